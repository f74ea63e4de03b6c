"""Evaluation of recorded runs: the decision at the stop, and the effect of the order of labels."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.arguments import whole
from suffice.checks import Guarantee
from suffice.criteria import Criterion, LabelWorth, Verdict
from suffice.learner.learning_loop import family_name
from suffice.learner.prepare import PreparedModel, prepare
from suffice.learner.simulation import audit
from suffice.models.inputs import as_labels
from suffice.models.threads import one_thread
from suffice.numerics import Floats
from suffice.presentation.text_format import count
from suffice.session.decision import Alternative, Decision, DecisionNumbers, ErrorNow, decide, trivial_error
from suffice.session.held_out import left_out_losses
from suffice.session.model_comparison import better_on_rest
from suffice.trace import RecordedCheck, Trace


@dataclass(frozen=True)
class AuditedStop:
    """Stop of a rule on labelled rows, and the error there.

    Attributes:
        n_labelled: Labels at the stop; None if the rule never says stop.
        rows: Number of rows after the stop, on which the errors are measured; all later labels are known.
        error: Error of the model at the stop on these rows: for classes the share of wrong predictions, for numbers the
            root of the mean squared error. None without such rows.
        error_at_end: Error on the same rows of the model with all labels, each row left out of it. None for a model
            that cannot leave labels out.
        alternative: Another model that is better on these rows with the same labels, see
            :func:`suffice.session.model_comparison.better_on_rest`.
        decision: Whether it was enough there, with the measured error; None if the rule never says stop.
    """

    n_labelled: int | None
    rows: int = 0
    error: float | None = None
    error_at_end: float | None = None
    alternative: Alternative | None = None
    decision: Decision | None = None


def audited_stop(  # noqa: PLR0913 - as above
    model: Any,
    X: Any,
    y: Any,
    trace: Trace,
    rule: Criterion,
    *,
    at_most: float | None = None,
    compare: bool = True,
    verdicts: Sequence[Verdict] | None = None,
) -> AuditedStop:
    """Return the stop of a rule on an audited run, and the error of the model on the rows after it.

    Args:
        model: The model.
        X: Inputs in the order in which they were labelled, ``n x D``.
        y: Labels.
        trace: The result of :func:`suffice.audit` for them.
        rule: The stopping rule; the run has recorded what it requires.
        at_most: The error that is wanted, see :meth:`suffice.ActiveLearner.decision`.
        compare: Whether to measure the error at the end too, and to compare the model with others.
        verdicts: Verdicts of the rule for each step, if they are known already.

    Examples:
        >>> from suffice.models import BayesianRidge
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(300, 3)); y = X @ [1.0, 2.0, 3.0] + rng.normal(size=300)
        >>> rule = LabelWorth(mistake_cost=0.1)
        >>> stop = audited_stop(BayesianRidge(), X, y, audit(BayesianRidge(), X, y), rule)
        >>> stop.n_labelled + stop.rows, stop.error > stop.error_at_end > 0.8
        (300, True)
    """
    said = trace.replay(rule) if verdicts is None else verdicts
    stop = next((verdict for verdict in said if verdict.stop), None)
    if stop is None:
        return AuditedStop(None)
    labels, prepared = np.asarray(as_labels(y)), prepare(model, X)
    inputs = prepared.inputs(X, "X")
    share, n = prepared.backend.task == "classification", stop.n_labelled
    order = np.concatenate([trace.initial, trace.indices.ravel()])
    first, rest = order[:n], order[n:]
    if not len(rest):
        return AuditedStop(n)
    with one_thread():
        fitted = _fitted(prepared, inputs[first], labels[first])
        losses = _losses(fitted.predict(inputs[rest]), labels[rest], share=share)
        error = _mean_error(losses, share=share)
        if not compare:
            return AuditedStop(n, len(rest), error)
        left_out = left_out_losses(_fitted(prepared, inputs[order], labels[order]))
        at_end = None if left_out is None else _mean_error(left_out[n:], share=share)
        raw = X if isinstance(X, np.ndarray) and X.dtype.kind in "fiu" else inputs
        known, others = (raw[first], labels[first]), (raw[rest], labels[rest])
        other = better_on_rest(losses, *known, *others, share=share, present=family_name(prepared))
    baseline, common = trivial_error(labels[rest], share=share)
    numbers = DecisionNumbers(
        n_labelled=n,
        unlabelled=len(rest),
        share=share,
        # The error is measured, so there is no interval.
        error=ErrorNow(error, error, error, len(rest)),
        baseline=baseline,
        common=common,
        at_most=at_most,
        alternative=other if other is not None and other.clear else None,
    )
    return AuditedStop(n, len(rest), error, at_end, other, decide(stop, numbers))


def audit_orders(  # noqa: PLR0913 - as above
    model: Any,
    X: Any,
    y: Any,
    rule: Criterion | None = None,
    *,
    orders: int = 5,
    initial: int = 10,
    batch: int = 1,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> list[AuditedStop]:
    """Audit the same rows in several random orders, to show how much the stop depends on the order.

    Args:
        model: One of :mod:`suffice.models`, or a pipeline that ends in one.
        X: Inputs, ``n x D``.
        y: Labels.
        rule: The stopping rule; :class:`suffice.LabelWorth` with its defaults if left out.
        orders: Number of orders.
        initial: Labels before the first step.
        batch: Labels that come at each step.
        seed: Seed of the orders.
        progress: Called now and then with the steps done and to do, of all orders together.

    Returns:
        The stop in each order, with the error of the rows after it.

    Examples:
        >>> from suffice.models import BayesianRidge
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(200, 3)); y = X @ [1.0, 2.0, 3.0] + rng.normal(size=200)
        >>> stops = audit_orders(BayesianRidge(), X, y, LabelWorth(mistake_cost=0.1), orders=3)
        >>> len(stops), all(stop.n_labelled < 200 for stop in stops)
        (3, True)
    """
    judge = LabelWorth() if rule is None else rule
    count, rows = whole(orders, "orders", least=0), X.shape[0] if hasattr(X, "shape") else len(X)
    inputs, labels, found = np.asarray(X), np.asarray(as_labels(y)), []
    for number in range(count):
        order = np.random.default_rng([whole(seed, "seed", least=0), 17, number]).permutation(rows)
        several = None if progress is None else _shifted(progress, number, count)
        X_now, y_now = inputs[order], labels[order]
        trace = audit(model, X_now, y_now, initial=initial, batch=batch, record=judge, progress=several)
        found.append(audited_stop(model, X_now, y_now, trace, judge, compare=False))
    return found


def _shifted(progress: Callable[[int, int], None], number: int, count: int) -> Callable[[int, int], None]:
    """Progress of one of several runs of the same length, as progress of all."""
    return lambda done, total: progress(number * total + done, count * total)


def _fitted(prepared: PreparedModel, inputs: Floats, labels: Any) -> Any:
    """A copy of the model, without its pipeline, fitted to labels."""
    from sklearn.base import clone

    return clone(prepared.model).fit(inputs, labels)


def _losses(predicted: Any, labels: Any, *, share: bool) -> Floats:
    if share:
        return np.asarray(predicted != labels, dtype=np.float64)
    return np.asarray((predicted - labels.astype(np.float64)) ** 2)


def _mean_error(losses: Floats, *, share: bool) -> float:
    """The share of wrong predictions, or the root mean squared error."""
    mean = float(np.mean(losses))
    return mean if share else math.sqrt(mean)


@dataclass(frozen=True)
class GuaranteedRun:
    """Guarantees of a simulated run with random checks, and their cost.

    Attributes:
        guarantee: The newest guarantee; None if no check proved anything.
        reached: Whether it satisfied the rule for guarantees; None if the run had no such rule.
        labels: All labels of the run, those of checks included.
        in_checks: Labels of checks.
        checks: The checks, in order, with the truth about each.
        expected_totals: Pairs of a number of labels and the labels in all that the plan expected then, None where it
            expected no success.
    """

    guarantee: Guarantee | None
    reached: bool | None
    labels: int
    in_checks: int
    checks: tuple[RecordedCheck, ...]
    expected_totals: tuple[tuple[int, int | None], ...]

    def __str__(self) -> str:
        spent = f"{count(self.labels, 'label')}, {self.in_checks:,} of them in {count(len(self.checks), 'check')}"
        said = "Nothing is guaranteed." if self.guarantee is None else str(self.guarantee)
        missed = " This is not the target." if self.guarantee is not None and self.reached is False else ""
        first = next(((n, total) for n, total in self.expected_totals if total is not None), None)
        plan = "" if first is None else f" At {count(first[0], 'label')} the plan expected {first[1]:,} in all."
        return f"{said}{missed} It took {spent}.{plan}".replace("\u00a0", " ")


def guaranteed_run(trace: Trace) -> GuaranteedRun:
    """Return the guarantees of a run with random checks, and their cost.

    Args:
        trace: The result of :func:`suffice.simulate` or :func:`suffice.audit` with ``rule`` or ``check``.

    Examples:
        >>> from suffice.learner import ErrorGuarantee, simulate
        >>> from suffice.models import BayesianLogistic
        >>> X = np.random.default_rng(0).normal(size=(1000, 3)); y = np.where(X[:, 0] > 0.0, "right", "left")
        >>> trace = simulate(BayesianLogistic(), X, y, rule=ErrorGuarantee(at_most=0.1), batch=5, seed=0)
        >>> print(guaranteed_run(trace))
        At most 10 % of the predictions for the 945 items that were unlabelled at the start of the check are wrong
        (95 % confidence). It took 99 labels, 44 of them in 1 check. At 15 labels the plan expected 255 in all.
    """
    proved = [check for check in trace.checks if check.guarantee is not None]
    return GuaranteedRun(
        guarantee=proved[-1].guarantee if proved else None,
        reached=proved[-1].passed if proved else next((check.passed for check in trace.checks), None),
        labels=int(trace.about.get("labels", len(trace.initial) + trace.indices.size)),
        in_checks=int(trace.about.get("labels_in_checks", 0)),
        checks=trace.checks,
        expected_totals=tuple((int(n), total) for n, total in trace.about.get("expected_totals", ())),
    )
