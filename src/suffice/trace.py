"""A recorded run, and the replay of any rule on it."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.checks import Guarantee
from suffice.criteria import Criterion, ErrorStability, Step, Verdict
from suffice.errors import InvalidValueError, MissingExtraError, MissingInputError, SufficeError
from suffice.numerics import Floats
from suffice.presentation.html_parts import card, curve
from suffice.session.decision import Decision, Worsening
from suffice.session.recorded_steps import DIVERGENCES, STEP_FIELDS, Relearned, recorded_fields, steps_between

__all__ = [
    "DIVERGENCES",
    "STEP_FIELDS",
    "DeferredMeasures",
    "RecordedCheck",
    "RecordedDecision",
    "Relearned",
    "Trace",
    "drawn_curve",
]

_FORMAT = "suffice-trace-1"
_MEASURE = "measure_"
# Two quotients of counts may differ by rounding.
_ROUNDING = 1e-12
# Colours of plots, readable on light and dark backgrounds.
_BLUE, _ORANGE, _GREEN = "#3b82c4", "#cf7a1c", "#2e9e5b"


class DeferredMeasures(Mapping[str, Floats]):
    """Measures of a run, some of which are computed when one of them is first read.

    The names are known from the start. Copies, also by pickling, are plain dictionaries with all values.

    Args:
        recorded: Values that were recorded in the run.
        names: Names of the other values.
        compute: Returns the other values by name. It is called at most once.

    Examples:
        >>> measures = DeferredMeasures({"cost": np.ones(2)}, {"pool_gain"}, lambda: {"pool_gain": np.zeros(2)})
        >>> sorted(measures), sorted(measures.computed)
        (['cost', 'pool_gain'], ['cost'])
        >>> measures["pool_gain"], sorted(measures.computed)
        (array([0., 0.]), ['cost', 'pool_gain'])
    """

    def __init__(
        self, recorded: Mapping[str, Floats], names: Iterable[str], compute: Callable[[], Mapping[str, Floats]]
    ) -> None:
        self._values = dict(recorded)
        self._deferred = frozenset(names) - set(self._values)
        # Set to None once it was called, so that what it refers to, such as the pool, is released.
        self._compute: Callable[[], Mapping[str, Floats]] | None = compute

    @property
    def computed(self) -> frozenset[str]:
        """Names of the values that are computed."""
        return frozenset(self._values)

    def __getitem__(self, name: str) -> Floats:
        if name in self._deferred and self._compute is not None:
            values = self._compute()
            self._values |= {deferred: values[deferred] for deferred in self._deferred}
            self._compute = None
        return self._values[name]

    def __contains__(self, name: object) -> bool:
        # The method of Mapping would read, and so compute, the value.
        return name in self._deferred or name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._deferred.union(self._values)))

    def __len__(self) -> int:
        return len(self._deferred.union(self._values))

    def __repr__(self) -> str:
        return f"DeferredMeasures({', '.join(self)})"

    def __reduce__(self) -> Any:
        return dict, (dict(self),)


@dataclass(frozen=True)
class RecordedCheck:
    """A random check in a run whose labels are all known.

    Attributes:
        n_labelled: Number of labels that the checked model had learned.
        items: The items of the check, in the order in which they were drawn.
        guarantee: The guarantee of the check; None if there is none.
        truth: The true value of the guaranteed quantity for the items that remained unlabelled: the share of wrong
            predictions, the precision or the recall. For a sequential check it is about all items that were unlabelled.
        passed: Whether it satisfied the rule for guarantees; None if the run had no such rule.
    """

    n_labelled: int
    items: tuple[int, ...]
    guarantee: Guarantee | None
    truth: float
    passed: bool | None = None

    @property
    def holds(self) -> bool:
        """Whether the guarantee is true; also if there is none."""
        if self.guarantee is None:
            return True
        if self.guarantee.quantity == "tolerance":
            return self.truth <= (self.guarantee.share or 0.0) + _ROUNDING
        value = self.guarantee.value
        return self.truth <= value + _ROUNDING if self.guarantee.upper else self.truth >= value - _ROUNDING

    def to_dict(self) -> dict[str, Any]:
        """The check as JSON values."""
        guarantee = None if self.guarantee is None else self.guarantee.to_dict()
        return {**asdict(self), "items": list(self.items), "guarantee": guarantee}

    @staticmethod
    def from_dict(saved: Mapping[str, Any]) -> "RecordedCheck":
        """Restore a check from :meth:`to_dict`."""
        said = saved["guarantee"]
        guarantee = None if said is None else Guarantee.from_dict(said)
        return RecordedCheck(**{**saved, "items": tuple(saved["items"]), "guarantee": guarantee})


@dataclass(frozen=True)
class RecordedDecision:
    """A decision that was made in a run.

    Attributes:
        step: Index of the step; -1 for a decision after the initial labels.
        decision: The decision.
        worsening: Evidence that labels had made the model worse by then; None if there was none.
    """

    step: int
    decision: Decision
    worsening: Worsening | None = None

    @property
    def ends(self) -> bool:
        """Whether labelling ends here: the decision is to stop, or to check the model now."""
        plan = self.decision.plan
        return self.decision.stop or (plan is not None and plan.check_now)

    def state_dict(self) -> dict[str, Any]:
        """The decision as JSON values."""
        worse = None if self.worsening is None else list(self.worsening)
        return {"step": self.step, "decision": self.decision.state_dict(), "worsening": worse}

    @staticmethod
    def from_state(state: Mapping[str, Any]) -> "RecordedDecision":
        """Restore :meth:`state_dict`."""
        worse = state["worsening"]
        decision = Decision.from_state(state["decision"])
        return RecordedDecision(state["step"], decision, None if worse is None else Worsening(*worse))


@dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """A labelling run, one row per step.

    Attributes:
        initial: Items labelled at the start, before the first step.
        indices: Items labelled at each step: ``steps``, or ``steps x size`` if several are labelled at once. If steps
            differ in size: all items in order; ``n_labelled`` separates the steps.
        n_labelled: Labels bought after each step.
        kl_new_old: ``KL[new||old]`` of each step, under the hyper-parameters at that step; NaN if it is not known.
        kl_old_new: ``KL[old||new]``.
        error: Posterior mean of the loss on the test set after each step, as in the paper: squared error, or log loss.
            Empty without a test set.
        relearned: Steps at which hyper-parameters were learned again, with the earlier steps under them.
        estimated: How the divergences were estimated, if they are neither exact nor bounds.
        about: Description of the run: model, acquisition, seed.
        random_items: Items, initial ones included, that were drawn at random from those unlabelled at the time, in the
            order of their labels.
        predictive_error: Loss of the averaged prediction on the test set after each step: squared error of the
            posterior mean, or log loss of the averaged class probabilities. This is the error that users of the model
            see. Rows of classes that have no label yet are left out, as in ``error``. Empty without a test set,
            and in files of earlier versions.
        wrong_share: Share of the test set whose predicted class is wrong, after each step. Rows of classes that
            have no label yet count as wrong. Empty for numbers, and if ``predictive_error`` is empty.
        measures: Other measurements after each step, by name: ``accuracy``, ``calibration_error`` and training ``loss``
            of a network, the ``contributions`` of its layers to ``kl_new_old``, measurements of the caller, and the
            fields of a :class:`suffice.Step` that were recorded for rules. Those for the default rule may be computed
            only when they are read, see ``record`` of :func:`suffice.simulate`.
        checks: Random checks of a simulated run, in order. The labels of a check after which labelling went on are a
            step of the run; those of the last one may not be.
        decisions: Decisions that were made in the run, see ``decide`` of :func:`suffice.simulate`. The last one is
            the decision to stop or to check the model, or that at the end of the run if there was none.

    Examples:
        >>> trace = Trace.of_divergences([0.5, 0.4, 0.0001], [0.6, 0.4, 0.0001], first=10)
        >>> [verdict.stop for verdict in trace.replay(ErrorStability(0.1, calibration=1))]
        [False, False, True]
    """

    initial: NDArray[np.intp]
    indices: NDArray[np.intp]
    n_labelled: NDArray[np.intp]
    kl_new_old: Floats
    kl_old_new: Floats
    error: Floats
    relearned: tuple[Relearned, ...] = ()
    estimated: str = ""
    about: Mapping[str, Any] = field(default_factory=dict)
    measures: Mapping[str, Floats] = field(default_factory=dict)
    random_items: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    predictive_error: Floats = field(default_factory=lambda: np.zeros(0))
    wrong_share: Floats = field(default_factory=lambda: np.zeros(0))
    checks: tuple[RecordedCheck, ...] = ()
    decisions: tuple[RecordedDecision, ...] = ()

    @classmethod
    def of_divergences(cls, kl_new_old: Any, kl_old_new: Any, *, first: int) -> "Trace":
        """Return a run with known divergences only; ``first`` labels were bought before its first step."""
        new_old, old_new = (np.asarray(values, dtype=np.float64) for values in (kl_new_old, kl_old_new))
        steps = np.arange(len(new_old))
        return cls(np.arange(first), first + steps, first + 1 + steps, new_old, old_new, np.zeros(0))

    def __repr__(self) -> str:
        return f"Trace({len(self)} steps after {len(self.initial)} initial labels)"

    def __len__(self) -> int:
        return len(self.n_labelled)

    def replay(self, rule: Criterion) -> list[Verdict]:
        """Return the verdicts of ``rule`` after each step, without knowledge of later steps.

        When hyper-parameters were learned again, the rule is restarted on the earlier steps under them, as in the run
        itself. Earlier verdicts do not change.

        Args:
            rule: A stopping rule; it is copied without its state.

        Returns:
            One verdict per step.

        Raises:
            MissingInputError: The rule requires a field that was not recorded; the message names it.
        """
        judge = rule.copy()
        judge.reset()
        missing = sorted(judge.needs() - self.recorded)
        if missing and len(self):
            raise MissingInputError(
                f"{type(rule).__name__} requires {', '.join(missing)}, which this run did not record; "
                f"simulate(..., record={type(rule).__name__}(...)) records what a rule needs, if the model can tell it"
            )
        verdicts: list[Verdict] = []
        done = 0
        # A rule that requires no recomputed field continues unchanged.
        for known in (*(k for k in self.relearned if judge.needs() & {*DIVERGENCES, *k.measures}), None):
            end = len(self) if known is None else known.step
            verdicts += judge.observe_all(self.steps_seen(None, done, end, judge.reads()))
            if known is not None:
                judge.reset()
                seen = judge.observe_all(self.steps_seen(known, 0, end + 1, judge.reads()))
                verdicts[end:] = seen[-1:]
                done = end + 1
        return verdicts

    @property
    def is_random(self) -> NDArray[np.bool_]:
        """Whether each of :attr:`indices` was drawn at random from the unlabelled items."""
        return np.isin(self.indices, self.random_items)

    @property
    def recorded(self) -> frozenset[str]:
        """The fields of a :class:`suffice.Step` that were recorded; divergences that are NaN are unknown."""
        return recorded_fields(self.kl_new_old, self.kl_old_new, self.measures)

    def steps(self) -> list[Step]:
        """Return all steps under the newest hyper-parameters, as for a rule at the end of the run."""
        known = self.relearned[-1] if self.relearned else None
        rest = 0 if known is None else known.step + 1
        return [
            *self.steps_seen(known, 0, rest, self.recorded),
            *self.steps_seen(None, rest, len(self), self.recorded),
        ]

    def ratio(self, *, calibration: int = 10) -> Floats:
        """The error ratio after each step: 1 until the rule is calibrated. See :class:`suffice.ErrorStability`."""
        values = (verdict.value for verdict in self.replay(ErrorStability(0.0, calibration=calibration)))
        return np.array([1.0 if value is None else value for value in values])

    def plot(self, rule: Criterion | None = None, ax: Any = None) -> Any:
        """Draw the run against the number of labels.

        Args:
            rule: A stopping rule, whose value and threshold are drawn. By default the error is drawn: the first one
                available of the share of wrong classes, the error of the prediction, and the posterior mean of the loss
                on the test set; without a test set the error that the model expects of unlabelled items, or the error
                ratio.
            ax: matplotlib Axes; new ones by default.

        Returns:
            The axes.

        Raises:
            MissingExtraError: matplotlib is not installed.
            MissingInputError: The rule requires a field that was not recorded.
        """
        if rule is not None:
            return drawn_curve(self.replay(rule), ax)
        name, values = self._curve()
        axes = _axes(ax)
        axes.plot(self.n_labelled, values, color=_BLUE)
        axes.set(xlabel="labels", ylabel=name)
        return axes

    def _curve(self) -> tuple[str, Any]:
        """The error to show, and its name."""
        for name, values in (
            ("share of wrong predictions", self.wrong_share),
            ("error of the prediction", self.predictive_error),
            ("posterior mean of the loss", self.error),
        ):
            if len(values) == len(self) and len(self):
                return name, values
        # It is read only if there is no other error, because reading may compute it.
        if "unlabelled_error" in self.measures and len(self):
            return "expected error of unlabelled items", self.measures["unlabelled_error"]
        return "error ratio", self.ratio() if len(self) and self.recorded >= DIVERGENCES else np.full(len(self), np.nan)

    def _repr_html_(self) -> str:
        """The run with a chart, for notebooks."""
        name, values = self._curve()
        rows = [("steps", f"{len(self):,}"), ("initial labels", f"{len(self.initial):,}")]
        rows += [("labels", f"{int(self.n_labelled[-1]):,}")] if len(self) else []
        rows += [(str(key), str(value)) for key, value in self.about.items()]
        numbers = zip(self.n_labelled.tolist(), np.asarray(values, dtype=np.float64).tolist(), strict=True)
        line = [(float(n), value) for n, value in numbers if np.isfinite(value)]
        return card(repr(self), rows, chart=curve(name, line))

    def save(self, path: Path | str) -> None:
        """Write the run to a file in numpy's ``.npz`` form.

        Raises:
            SufficeError: It cannot be written there.
        """
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        arrays |= {name: getattr(self, name) for name in _OPTIONAL if len(getattr(self, name))}
        for number, known in enumerate(self.relearned):
            arrays[f"relearned_{number}"] = np.array([known.kl_new_old, known.kl_old_new])
            arrays |= {f"seen_{number}_{name}": np.asarray(values) for name, values in known.measures.items()}
        arrays |= {f"{_MEASURE}{name}": np.asarray(values) for name, values in self.measures.items()}
        text: dict[str, Any] = {
            "format": _FORMAT,
            "estimated": self.estimated,
            "about": dict(self.about),
            "arrays": sorted(arrays),
        }
        if self.checks:
            text["checks"] = [check.to_dict() for check in self.checks]
        if self.decisions:
            text["decisions"] = [made.state_dict() for made in self.decisions]
        try:
            with Path(path).open("wb") as file:
                np.savez_compressed(file, text=np.array(json.dumps(text, default=str)), **arrays)
        except OSError as error:
            raise SufficeError(f"{path} cannot be written: {error.strerror or error}") from None

    @classmethod
    def load(cls, path: Path | str) -> "Trace":
        """Read a run that :meth:`save` wrote.

        Raises:
            InvalidValueError: There is no such file, or it is not one of these.
        """
        try:
            with Path(path).open("rb") as raw, np.load(raw, allow_pickle=False) as file:
                text = json.loads(str(file["text"]))
                if text["format"] != _FORMAT:
                    raise KeyError(text["format"])
                arrays = {name: file[name] for name in file.files if name != "text"}
            # An array with a damaged name would be omitted without an error. (Older files have no list of names.)
            if sorted(arrays) != text.get("arrays", sorted(arrays)):
                raise KeyError("arrays")
            return cls._of_arrays(arrays, text)
        except FileNotFoundError:
            raise InvalidValueError(f"{path}: no such file") from None
        except Exception:
            raise InvalidValueError(f"{path} is not a run that suffice saved") from None

    @classmethod
    def _of_arrays(cls, arrays: Mapping[str, Any], text: Mapping[str, Any]) -> "Trace":
        plain = {name: arrays[name] for name in _ARRAYS}
        new_old, old_new = plain["kl_new_old"], plain["kl_old_new"]
        if not plain["n_labelled"].shape == new_old.shape == old_new.shape == (len(new_old),):
            raise ValueError("shapes")
        for name in _OF_TEST_SET & set(arrays):
            if arrays[name].shape != new_old.shape:
                raise ValueError("shapes")
        measures = _with_new_names(_named(arrays, _MEASURE))
        for name in STEP_FIELDS & set(measures):
            if len(measures[name]) != len(new_old):
                raise ValueError("shapes")
        relearned = []
        for number in range(sum(name.startswith("relearned_") for name in arrays)):
            pair, seen = arrays[f"relearned_{number}"], _named(arrays, f"seen_{number}_")
            if any(len(values) != pair.shape[1] for values in seen.values()):
                raise ValueError("shapes")
            relearned.append(Relearned(pair.shape[1] - 1, pair[0], pair[1], seen))
        return cls(
            **plain,
            relearned=tuple(relearned),
            estimated=str(text["estimated"]),
            about=dict(text["about"]),
            measures=measures,
            checks=tuple(RecordedCheck.from_dict(saved) for saved in text.get("checks", ())),
            decisions=tuple(RecordedDecision.from_state(saved) for saved in text.get("decisions", ())),
            **{name: arrays[name] for name in _OPTIONAL if name in arrays},
        )

    def steps_seen(self, known: Relearned | None, first: int, end: int, names: frozenset[str]) -> list[Step]:
        """Return some steps, under the hyper-parameters at each step or under later ones.

        Args:
            known: Later hyper-parameters, for the steps under them; None for the hyper-parameters at each step.
            first: The first step.
            end: The step after the last.
            names: The fields to include; those that were not recorded are left out.
        """
        arrays = {name: getattr(self, name) for name in ("n_labelled", "kl_new_old", "kl_old_new", "measures")}
        return steps_between(known, first, end, names, estimated=self.estimated, **arrays)


def drawn_curve(verdicts: Sequence[Verdict], ax: Any = None) -> Any:
    """Draw the values of verdicts and their thresholds against the number of labels, with the first stop.

    Args:
        verdicts: The verdict of a rule at each step.
        ax: matplotlib Axes; new ones by default.

    Returns:
        The axes.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    axes = _axes(ax)
    labels = [said.n_labelled for said in verdicts]
    values = [np.nan if said.value is None else said.value for said in verdicts]
    limits = [np.nan if said.threshold is None else said.threshold for said in verdicts]
    axes.plot(labels, values, color=_BLUE, label="value")
    if np.isfinite(limits).any():
        axes.plot(labels, limits, color=_ORANGE, linestyle="--", label="threshold")
    stop = next((said.n_labelled for said in verdicts if said.stop), None)
    if stop is not None:
        axes.axvline(stop, color=_GREEN, label=f"stop at {stop:,} labels")
    axes.set(xlabel="labels", ylabel=verdicts[-1].rule if verdicts else "value")
    if verdicts:
        axes.legend()
    return axes


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError:
        raise MissingExtraError("matplotlib", "plot", "a plot") from None
    return pyplot.subplots(layout="constrained")[1]


def _named(arrays: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {name.removeprefix(prefix): values for name, values in arrays.items() if name.startswith(prefix)}


def _with_new_names(measures: dict[str, Any]) -> dict[str, Any]:
    """The measures with the calibration error of a network under its name.

    Version 0.10 and older called it ``calibration``. They replaced it if the field of a :class:`suffice.Step` with this
    name was recorded, which is recorded together with one of two other fields.
    """
    others = {"calibration_error", "error_scale", "random_labels"}
    if {"accuracy", "calibration"} <= set(measures) and others.isdisjoint(measures):
        measures["calibration_error"] = measures.pop("calibration")
    return measures


_ARRAYS = ("initial", "indices", "n_labelled", "kl_new_old", "kl_old_new", "error")
# Files contain these only if they are not empty. Files of earlier versions never contain them.
_OF_TEST_SET = frozenset({"predictive_error", "wrong_share"})
_OPTIONAL = ("random_items", *sorted(_OF_TEST_SET))
