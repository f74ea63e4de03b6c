"""Input and output of a stopping rule: the facts after one step of labelling, and the decision of the rule."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Annotated, Any, Final, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.arguments import floats, real, whole
from suffice.bounds import nonnegative
from suffice.divergence import Divergence, kl
from suffice.errors import InvalidTypeError, InvalidValueError
from suffice.forecast import Forecast, labels_left

# The sum of probabilities in half precision may differ from 1 by this much.
_SUM_TOLERANCE: Final = 1e-2

FieldKind = Literal["divergence", "amount", "count", "share", "number", "probabilities", "labels"]
# The optional fields of a step by kind. The kind decides how a value is checked (`_CHECKS`), which values
# `suffice.testing` tries, and whether a recorded run pads the field to the size of its largest step.
_DivergenceField = Annotated[float | None, "divergence"]
_AmountField = Annotated[float | None, "amount"]
_CountField = Annotated[int | None, "count"]
_ShareField = Annotated[float | None, "share"]
_NumberField = Annotated[float | None, "number"]
_ProbabilitiesField = Annotated[NDArray[Any] | None, "probabilities"]
_LabelsField = Annotated[NDArray[Any] | None, "labels"]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Step:
    r"""One step of a labelling loop, after the model has learned its label (or batch of labels).

    Each rule names the fields that it ``requires``; a loop provides those and omits the others. If your own rule
    needs another number, add a field in a subclass decorated like this class:
    ``@dataclass(frozen=True, kw_only=True, eq=False, repr=False)``. Below, ``p`` is the predictive probability of a
    class, ``H`` its entropy in nats and ``K`` the number of classes. The *pool* is the set of unlabelled items. The
    *stop set* is a sample of all items that is drawn once, see :class:`suffice.StopSet`.

    Args:
        n_labelled: Number of labels bought so far, including the initial ones.
        kl_new_old: ``KL[new||old]``. New and old are the posteriors after and before this step's labels.
        kl_old_new: ``KL[old||new]``.
        estimated: How the divergences were estimated, if they are neither exact nor upper bounds; otherwise empty. A
            certificate that is based on an estimate says that it guarantees nothing.
        kl_prior: ``KL[new||prior]``.
        train_error: Expected error on the labels bought, as a share of the loss range, 0 to 1.
        seconds: Time spent so far.
        cost: Total cost of all labels so far.
        pool_size: Number of items in the pool before the first label.
        selected_probabilities: Predictions for the items just labelled, *before* the model learned their labels,
            ``k x K``.
        selected_labels: The labels of these items, as columns of ``selected_probabilities``; -1 for a class that is
            new to the model.
        selected_agreement: Agreement of a committee on these items before it learned their labels, 0 to 1, see
            :func:`suffice.criteria.committee_agreement`.
        selected_wrong: Share of the labels just bought that the model predicted wrong before it learned them.
        selected_loss: Mean loss of the labels just bought under the model before it learned them.
        selected_expected_loss: The mean loss that the model expected of them, on the same scale.
        pool_max_entropy: Largest ``H`` over the pool.
        pool_uncertainty: Mean of ``H / log K`` over the pool, 0 to 1.
        pool_risk: Mean of ``1 - max p`` over the pool.
        pool_margin: Smallest difference between the two largest ``p`` of an item over the pool. For a classifier
            without probabilities, the smallest distance ``|f|`` from its decision boundary.
        pool_confidence_variance: Variance of ``max p`` over the pool.
        pool_changes: Number of items of the pool whose predicted class changed in this step.
        pool_f: The F score that the model expects of its own predictions on the pool, see
            :func:`suffice.criteria.expected_f`.
        pool_sample: Number of unlabelled items over which ``pool_uncertainty``, ``pool_risk``,
            ``pool_confidence_variance``, ``pool_changes`` and ``pool_f`` were computed, if they are a random sample of
            the pool. The verdict states it.
        pool_gain: Largest information gain over the pool, in nats: the information of one label about the parameters.
        pool_variance: Largest predictive variance of the latent value over the pool.
        stop_probabilities: Predictions on the stop set, ``S x K``.
        stop_confidence: Mean of ``max p`` over the stop set.
        stop_agreement: Agreement of a committee on the stop set, 0 to 1.
        expected_error: The error that the model expects of itself on the stop set, in the units of the error that
            matters to the user. For the models of suffice: the expected loss of the averaged prediction under the
            model, which is the predictive variance, or the entropy of the averaged probabilities.
        unlabelled_error: The error that the model expects of its predictions for unlabelled items: the share of wrong
            classes, or the mean squared error.
        reducible_error: The part of ``unlabelled_error`` that would vanish if the model knew its parameters: the most
            that further labels can remove, as estimated by the model.
        recent_gain: Error of the predictions at half of the labels minus that of the current ones, both as estimated
            by the current model.
        error_scale: The error that counts as one wrong prediction: 1 for classes, the variance of the labels for
            numbers.
        calibration: Ratio of the leave-one-out losses of labels drawn at random to the losses that the model expects,
            at the last step with such a label; 1 if they are equal, and before the first such label.
        random_labels: Number of labels drawn at random from which ``calibration`` is computed.
        classes_seen: Number of different classes among the labels bought so far, for classification. Rules that use
            predictions do not judge before there are two. Without this field they judge every step.
        validation_error: Error on a labelled validation set. For the models of suffice: the loss of the averaged
            prediction.
        validation_labels: Number of labels of that set. They were paid for too.
        guaranteed_error: Upper bound on the share of wrong predictions for the unlabelled items that a check has proved
            for the current model, see :class:`suffice.checks.Guarantee`.
        guaranteed_recall: Lower bound on the recall of the class that the rule is about, which a check has proved for
            the current model.
        guarantee_confidence: Confidence of these bounds.
        relevant_found: Number of labelled items of the positive class, which a screening looks for.
        estimated_relevant: Estimate of the number of items of the positive class among all items, labelled and
            unlabelled, from labels drawn at random.
        expected_found: Sum of ``p`` of the positive class over the labelled items, by the current model.
        found_variance: Sum of ``p (1 - p)`` over the labelled items.
        expected_missed: Sum of ``p`` of the positive class over the unlabelled items.
        missed_variance: Sum of ``p (1 - p)`` over the unlabelled items.
        control_found: Number of items of the control sample that the screening has found. The control sample consists
            of items of the positive class that were drawn at random before the screening.
        regret_change: For Bayesian optimisation, in the units of the objective: upper bound on the change of the
            expected regret by the last evaluation, see :func:`suffice.criteria.regret_facts`.
        regret_change_noise: The change that one standard deviation of noise in the last evaluation causes at most.
        regret_bound: Upper bound on the regret by the confidence bounds of the model.
        noise_deviation: Standard deviation of the noise of an evaluation.

    Raises:
        InvalidValueError: ``n_labelled`` is not a whole number of at least 0, or another field has a wrong value.
        InfiniteDivergenceError: A divergence is infinite.

    Examples:
        >>> Step(n_labelled=31, kl_new_old=0.021, kl_old_new=0.024)
        Step(n_labelled=31, kl_new_old=0.021, kl_old_new=0.024)
    """

    n_labelled: int
    kl_new_old: _DivergenceField = None
    kl_old_new: _DivergenceField = None
    estimated: str = ""
    kl_prior: _DivergenceField = None
    train_error: _ShareField = None
    seconds: _AmountField = None
    cost: _AmountField = None
    pool_size: _CountField = None
    selected_probabilities: _ProbabilitiesField = None
    selected_labels: _LabelsField = None
    selected_agreement: _ShareField = None
    selected_wrong: _ShareField = None
    selected_loss: _AmountField = None
    selected_expected_loss: _AmountField = None
    pool_max_entropy: _AmountField = None
    pool_uncertainty: _ShareField = None
    pool_risk: _ShareField = None
    pool_margin: _AmountField = None
    pool_confidence_variance: _AmountField = None
    pool_changes: _CountField = None
    pool_f: _ShareField = None
    pool_sample: _CountField = None
    pool_gain: _AmountField = None
    pool_variance: _AmountField = None
    stop_probabilities: _ProbabilitiesField = None
    stop_confidence: _ShareField = None
    stop_agreement: _ShareField = None
    expected_error: _NumberField = None
    unlabelled_error: _AmountField = None
    reducible_error: _AmountField = None
    recent_gain: _AmountField = None
    error_scale: _AmountField = None
    calibration: _AmountField = None
    random_labels: _CountField = None
    classes_seen: _CountField = None
    validation_error: _NumberField = None
    validation_labels: _CountField = None
    guaranteed_error: _ShareField = None
    guaranteed_recall: _ShareField = None
    guarantee_confidence: _ShareField = None
    relevant_found: _CountField = None
    estimated_relevant: _AmountField = None
    expected_found: _AmountField = None
    found_variance: _AmountField = None
    expected_missed: _AmountField = None
    missed_variance: _AmountField = None
    control_found: _CountField = None
    regret_change: _AmountField = None
    regret_change_noise: _AmountField = None
    regret_bound: _AmountField = None
    noise_deviation: _AmountField = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_labelled", whole(self.n_labelled, "n_labelled", least=0))
        if not self.estimated:
            object.__setattr__(self, "estimated", _how_estimated((self.kl_new_old, self.kl_old_new)))
        for name, checked in _CHECKS.items():
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, checked(value, name))
        selected, labels = self.selected_probabilities, self.selected_labels
        if selected is not None and labels is not None and len(selected) != len(labels):
            raise InvalidValueError(
                f"selected_probabilities has {len(selected)} rows and selected_labels {len(labels)} labels; one label "
                "for each row is needed"
            )
        if selected is not None and labels is not None and labels.max(initial=-1) >= selected.shape[1]:
            raise InvalidValueError(
                f"selected_labels holds {labels.max()}; selected_probabilities has columns 0 to {selected.shape[1] - 1}"
            )

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(_same(getattr(self, spec.name), getattr(other, spec.name)) for spec in fields(self))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        given = ((spec.name, getattr(self, spec.name)) for spec in fields(self))
        shown = (f"{name}={_shortened(value)}" for name, value in given if value is not None and not _is_empty(value))
        return f"{type(self).__name__}({', '.join(shown)})"

    @classmethod
    def between(cls, old: object, new: object, *, n_labelled: int, **others: Any) -> "Step":
        """Return the step between two posteriors.

        Args:
            old: Posterior before this step's labels: anything that :func:`suffice.kl` accepts.
            new: Posterior after them.
            n_labelled: Number of labels bought so far.
            others: Any other fields of the step.

        Returns:
            A step with both divergences.

        Examples:
            >>> from suffice.posteriors import Gaussian
            >>> Step.between(Gaussian(0.0, 1.0), Gaussian(0.5, 1.0), n_labelled=31).kl_new_old
            0.125
        """
        return cls(n_labelled=n_labelled, kl_new_old=kl(new, old), kl_old_new=kl(old, new), **others)

    @classmethod
    def sequence(
        cls,
        n_labelled: ArrayLike,
        kl_new_old: ArrayLike | None = None,
        kl_old_new: ArrayLike | None = None,
        *,
        estimated: str = "",
        **others: Any,
    ) -> "list[Step]":
        """Return the steps of a whole run from arrays. Counts and divergences are checked, array by array.

        Args:
            n_labelled: Labels bought after each step.
            kl_new_old: ``KL[new||old]`` of each step.
            kl_old_new: ``KL[old||new]``.
            estimated: As for one step.
            others: Any other fields by name, one entry (number or array) per step. They are not checked: this is
                for runs that were recorded from checked steps.

        Returns:
            One step per entry.

        Examples:
            >>> [step.n_labelled for step in Step.sequence([11, 12], [0.5, 0.4], [0.6, 0.4])]
            [11, 12]
        """
        counts = np.asarray(n_labelled)
        if counts.dtype.kind not in "iu" or counts.ndim != 1 or counts.min(initial=0) < 0:
            raise InvalidValueError("n_labelled must hold whole numbers, 0 or more")
        columns: dict[str, NDArray[Any]] = {"n_labelled": counts}
        for name, values in (("kl_new_old", kl_new_old), ("kl_old_new", kl_old_new)):
            if values is not None:
                columns[name] = nonnegative(values, name)
        if len({column.shape for column in columns.values()}) > 1:
            raise InvalidValueError(
                f"one entry per step is needed; the shapes are {[column.shape for column in columns.values()]}"
            )
        known = {spec.name for spec in fields(cls)}
        for name, values in others.items():
            if name not in known or len(values) != len(counts):
                raise InvalidValueError(f"{name} must be a field of {cls.__name__} with one entry for each step")
            columns[name] = np.asarray(values)
        return cls._of_columns(columns, estimated)

    @classmethod
    def _of_columns(cls, columns: "dict[str, NDArray[Any]]", estimated: str) -> "list[Step]":
        """Return steps from checked columns, without the constructor's checks."""
        entries = [column.tolist() if column.ndim == 1 else column for column in columns.values()]
        names, steps = tuple(columns), []
        for row in zip(*entries, strict=True):
            step = object.__new__(cls)
            step.__dict__.update(zip(names, row, strict=True), estimated=estimated)
            steps.append(step)
        return steps


def _is_empty(value: Any) -> bool:
    return isinstance(value, str) and not value


def _shortened(value: Any) -> str:
    """Return a printable form: arrays by their shape and type, floats with six digits."""
    if isinstance(value, np.ndarray):
        return f"array(shape={value.shape}, dtype={value.dtype})"
    return f"{value:.6g}" if isinstance(value, float) else repr(value)


def _how_estimated(divergences: tuple[float | None, ...]) -> str:
    return "; ".join(sorted({d.how for d in divergences if isinstance(d, Divergence) and d.kind == "estimate"}))


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    return bool(one == other)


def _divergence(value: float, name: str) -> float:
    """Return a divergence as a float. Values below 0 by rounding become 0."""
    if isinstance(value, float) and 0.0 <= value < math.inf:
        return float(value)
    clean = nonnegative(value, name)
    if clean.ndim:
        raise InvalidTypeError(f"{name} must be one number, not an array of shape {clean.shape}")
    return float(clean)


def _count(value: Any, name: str) -> int:
    return whole(value, name, least=0)


def _amount(value: Any, name: str) -> float:
    return real(value, name, "of at least 0", lambda x: x >= 0.0)


def _number(value: Any, name: str) -> float:
    return real(value, name)


def _share(value: Any, name: str) -> float:
    # Averages of probabilities may be slightly outside the range by rounding.
    return min(max(real(value, name, "from 0 to 1", lambda x: -1e-9 <= x <= 1.0 + 1e-9), 0.0), 1.0)


def _probabilities(value: Any, name: str) -> NDArray[Any]:
    kept = isinstance(value, np.ndarray) and value.dtype in (np.float16, np.float32, np.float64)
    array: NDArray[Any] = value if kept else floats(value, name)
    wanted = "a table of probabilities with one row per item and one column per class"
    if array.ndim != 2 or array.shape[1] < 1:
        raise InvalidValueError(f"{name} must be {wanted}, but its shape is {array.shape}")
    if not (array >= -1e-6).all() or not (np.abs(array.sum(axis=1, dtype=np.float64) - 1.0) < _SUM_TOLERANCE).all():
        raise InvalidValueError(f"{name} must be {wanted}: no value below 0, and each row adds up to 1")
    return array


def _codes(value: Any, name: str) -> NDArray[Any]:
    try:
        array = np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)
    except (TypeError, ValueError):
        array = np.zeros((0, 0))
    if array.ndim != 1 or array.dtype.kind not in "iu" or array.min(initial=0) < -1:
        raise InvalidValueError(f"{name} must hold the column of each label, whole numbers from 0 (-1: a new class)")
    return array


_CHECKS_BY_KIND: Final[dict[FieldKind, Callable[[Any, str], Any]]] = {
    "divergence": _divergence,
    "amount": _amount,
    "count": _count,
    "share": _share,
    "number": _number,
    "probabilities": _probabilities,
    "labels": _codes,
}
#: The kind of every optional field of a :class:`Step`.
FIELD_KINDS: Final[dict[str, FieldKind]] = {
    spec.name: spec.type.__metadata__[0] for spec in fields(Step) if hasattr(spec.type, "__metadata__")
}
_CHECKS: Final = {name: _CHECKS_BY_KIND[kind] for name, kind in FIELD_KINDS.items()}

#: Fields about the pool that may be computed over a random sample of it, ``pool_sample``.
SAMPLED_FIELDS: Final = frozenset(
    {"pool_uncertainty", "pool_risk", "pool_confidence_variance", "pool_changes", "pool_f"}
)
#: Fields that are computed from the predictions of a classifier; they are meaningless while it has seen one class only.
PREDICTION_FIELDS: Final = frozenset(
    {
        "train_error",
        "unlabelled_error",
        "reducible_error",
        "recent_gain",
        "selected_probabilities",
        "selected_agreement",
        "selected_wrong",
        "selected_loss",
        "selected_expected_loss",
        "pool_max_entropy",
        "pool_uncertainty",
        "pool_risk",
        "pool_margin",
        "pool_confidence_variance",
        "pool_changes",
        "pool_f",
        "pool_gain",
        "stop_probabilities",
        "stop_confidence",
        "stop_agreement",
        "expected_error",
        "validation_error",
        "expected_found",
        "found_variance",
        "expected_missed",
        "missed_variance",
    }
)


class Outlook(Protocol):
    """An object that can forecast when a rule will stop."""

    def forecast(self) -> Forecast | None:
        """Return the number of labels left, or None if it cannot be forecast."""


@dataclass(frozen=True)
class Known:
    """A number of labels that is certain.

    Attributes:
        labels: Number of labels left.
    """

    labels: int

    def forecast(self) -> Forecast:
        """Return that number, or 0 if it is negative."""
        left = max(0, self.labels)
        return Forecast(labels=left, low=left, high=left, coverage=1.0)


@dataclass(frozen=True)
class Curve:
    """A falling curve and the threshold that it has to cross, as a view of lists that only grow.

    Attributes:
        n_labelled: Labels bought, one entry per step.
        values: The values that the rule compares with its threshold.
        length: Number of entries that belong to this view.
        threshold: The value at which the rule stops.
        left: Number of unlabelled items of the pool; None if it is not known.
        averaged: Whether each value is a mean over several steps.
    """

    n_labelled: list[int]
    values: list[float]
    length: int
    threshold: float
    left: int | None = None
    averaged: bool = False

    def forecast(self) -> Forecast | None:
        """Extrapolate the curve to the threshold."""
        counts, values = (np.array(series[: self.length]) for series in (self.n_labelled, self.values))
        return labels_left(counts, values, self.threshold, left=self.left, averaged=self.averaged)


@dataclass(frozen=True)
class First:
    """The first stop of several rules.

    Attributes:
        outlooks: Outlooks of rules of which one is enough; None for a rule without an outlook.
    """

    outlooks: tuple[Outlook | None, ...]

    def forecast(self) -> Forecast | None:
        """Return the minimum of the known forecasts, number by number; another rule can only stop sooner."""
        return _combined_forecast(min, [f for f in _forecasts(self.outlooks) if f is not None])


@dataclass(frozen=True)
class Last:
    """The last stop of several rules.

    Attributes:
        outlooks: Outlooks of rules that must all stop; None for a rule without an outlook.
    """

    outlooks: tuple[Outlook | None, ...]

    def forecast(self) -> Forecast | None:
        """Return the maximum, if it can be forecast.

        An uncertain forecast is about the first stop of its rule, not about later ones. So it is used only if it is the
        only uncertain one, and if its whole interval is later than the certain ones.
        """
        forecasts = _forecasts(self.outlooks)
        known = [f for f in forecasts if f is not None]
        certain = [f for f in known if f.coverage == 1.0]
        wait, uncertain = max((f.labels for f in certain), default=0), [f for f in known if f.coverage < 1.0]
        if len(known) < len(forecasts) or len(uncertain) > 1 or any(f.low < wait for f in uncertain):
            return None
        return uncertain[0] if uncertain else _combined_forecast(max, certain)


def _forecasts(outlooks: tuple[Outlook | None, ...]) -> list[Forecast | None]:
    return [None if outlook is None else outlook.forecast() for outlook in outlooks]


def _combined_forecast(choose: Callable[[Iterable[int]], int], forecasts: list[Forecast]) -> Forecast | None:
    if not forecasts:
        return None
    labels, low, high = (choose(getattr(f, name) for f in forecasts) for name in ("labels", "low", "high"))
    return Forecast(labels=labels, low=low, high=high, coverage=min(f.coverage for f in forecasts))


@dataclass(frozen=True)
class Certificate:
    """Statement that a rule guarantees, and its assumption.

    Attributes:
        statement: The guarantee, in a sentence.
        assumption: The assumption of the guarantee, in a sentence.
        change: The certified change of the expected error as a share of the loss range; None if there is none.

    Examples:
        >>> print(Certificate("The last step changed nothing.", "A bounded loss."))
        The last step changed nothing. Assumption: A bounded loss.
    """

    statement: str
    assumption: str
    change: float | None = None

    @staticmethod
    def best(verdicts: "Iterable[Verdict]") -> "Certificate | None":
        """Return the certificate of the smallest change among those of several verdicts."""
        carried = [v.certificate for v in verdicts if v.certificate is not None]
        return min(carried, key=lambda c: math.inf if c.change is None else c.change, default=None)

    def __str__(self) -> str:
        return f"{self.statement} Assumption: {self.assumption}"


@dataclass(frozen=True, repr=False)
class Verdict:
    """The answer of a rule at one step.

    Attributes:
        stop: Whether the rule says stop.
        value: The number that was compared; None if there is none (a composed rule).
        threshold: The number that it was compared with, or None.
        ready: Whether the rule has enough steps to judge. If not, it never says stop.
        reason: The reason, in a sentence for the user.
        rule: Name of the rule.
        n_labelled: Number of labels bought so far.
        certificate: The guarantee and its assumption, or None.
        parts: Verdicts of the rules that this one is composed of.
        outlook: Computes :attr:`forecast`.

    Examples:
        >>> print(Verdict(stop=True, value=0.04, threshold=0.05, ready=True, rule="R", n_labelled=31,
        ...               reason="the error ratio 0.04 is at most the threshold 0.05"))
        Stop at 31 labels: the error ratio 0.04 is at most the threshold 0.05.
        >>> Verdict(stop=False, value=None, threshold=0.05, ready=False, rule="R", n_labelled=9, reason="no scale yet")
        Verdict(stop=False, threshold=0.05, ready=False, reason='no scale yet', rule='R', n_labelled=9)
    """

    stop: bool
    value: float | None
    threshold: float | None
    ready: bool
    reason: str
    rule: str
    n_labelled: int
    certificate: Certificate | None = None
    parts: "tuple[Verdict, ...]" = ()
    outlook: Outlook | None = field(default=None, repr=False, compare=False)

    @cached_property
    def forecast(self) -> Forecast | None:
        """The number of labels until this rule stops, or None if it cannot be forecast; computed at first use."""
        return None if self.stop or self.outlook is None else self.outlook.forecast()

    def __repr__(self) -> str:
        # Only the fields that are given; of a certificate only the statement, because the assumption is long.
        given = {spec.name: getattr(self, spec.name) for spec in fields(self) if spec.repr}
        if self.certificate is not None:
            given["certificate"] = self.certificate.statement
        shown = (f"{name}={value!r}" for name, value in given.items() if value is not None and value != ())
        return f"Verdict({', '.join(shown)})"

    def _repr_html_(self) -> str:
        """The verdict for notebooks."""
        from suffice.presentation.html_parts import card

        rows = [("rule", self.rule)]
        rows += [("value", f"{self.value:.6g}")] if self.value is not None else []
        rows += [("threshold", f"{self.threshold:.6g}")] if self.threshold is not None else []
        rows += [("certificate", str(self.certificate))] if self.certificate is not None else []
        rows += [(part.rule, str(part)) for part in self.parts]
        return card(str(self), rows, tone="stop" if self.stop else "go on" if self.ready else "undecided")

    def __str__(self) -> str:
        head = "Stop" if self.stop else "Go on" if self.ready else "Go on (undecided)"
        text = f"{head} at {self.n_labelled} label{'s' * (self.n_labelled != 1)}: {self.reason}."
        if self.forecast is None:
            return text
        left = str(self.forecast)
        return f"{text} {left[0].upper()}{left[1:]}."
