"""Command options for models and stopping rules, and what a rule compared."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from enum import StrEnum
from fractions import Fraction
from typing import Annotated, Any, Final

import typer

from suffice.arguments import real
from suffice.criteria import (
    RULES,
    After,
    AllOf,
    AnyOf,
    Criterion,
    ErrorStability,
    LabelWorth,
    Patience,
    RecallTest,
    Verdict,
)
from suffice.criteria.optimisation import REGRET_FIELDS
from suffice.errors import InvalidValueError, SufficeError
from suffice.models.factory import MODEL_FAMILIES, ModelTask
from suffice.presentation.charts import number_chart
from suffice.presentation.rule_words import RATIO_RULE, quantity_name, threshold_name
from suffice.project.settings import DEFAULT_THRESHOLDS


class TaskName(StrEnum):
    """What is predicted."""

    regression = "regression"
    classification = "classification"


class ModelName(StrEnum):
    """Which model learns: one of :data:`suffice.models.factory.MODEL_FAMILIES`."""

    vars().update({name: name for name in MODEL_FAMILIES})


class RunModelName(StrEnum):
    """Which model learns in ``suffice run``: one of :class:`ModelName`, or the best of several."""

    vars().update({name: name for name in MODEL_FAMILIES})
    auto = "auto"


class DemoModel(StrEnum):
    """Which model the demonstration shows."""

    linear = "linear"
    dropout = "dropout"


class BoundName(StrEnum):
    """Which bound on the change of error the rule takes."""

    paper = "paper"
    tight = "tight"


class ScaleName(StrEnum):
    """Scale of the error ratio."""

    minimum = "minimum"
    median = "median"


def _rule_names() -> list[str]:
    """Names for shell completion: rules without required arguments, and rules that take two costs."""
    return [*named_rules(), *(name for name, kind in _rules().items() if set(_arguments(kind)) == _COSTS)]


LabelCost = Annotated[
    float | None,
    typer.Option(metavar="COST", help="Cost of a label, in any unit: money, minutes.", show_default="1"),
]
MistakeCost = Annotated[
    float | None,
    typer.Option(
        metavar="COST",
        help="Cost of one wrong prediction among the unlabelled items, in the same unit. With a label cost of 1: "
        "how many labels you would pay for to avoid one wrong prediction.",
        show_default="1",
    ),
]
Tolerance = Annotated[
    float | None,
    typer.Option(
        metavar="NUMBER",
        help="For numbers: the largest error that is not wrong, in units of the target.",
        show_default="none: errors count relative to the variance of the target",
    ),
]
TargetError = Annotated[
    str | None,
    typer.Option(
        "--at-most",
        "--target-error",
        metavar="ERROR",
        help="The error that you want to reach: for classes the share of wrong predictions (5% or 0.05), for numbers "
        "the root of the mean squared error. Together with the costs it decides when to stop; with --of all it decides "
        "alone.",
        show_default=False,
    ),
]
ErrorCost = Annotated[
    float | None,
    typer.Option(
        metavar="COST",
        help="In place of --mistake-cost: what it costs when the error is larger by 1. For classes the error is the "
        "share of wrong predictions, for numbers the mean squared error.",
        show_default=False,
    ),
]
Recall = Annotated[
    str | None,
    typer.Option(metavar="SHARE", help="With --positive: the share of the class to find.", show_default="95%"),
]
MayMiss = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CLASS",
        help="A rare class that may be missed: it does not hold a stop back while it has few labels; may be given "
        "several times.",
        show_default=False,
    ),
]
_COSTS: Final = {"error_cost", "label_cost"}
_WORTH_OPTIONS: Final = ("label_cost", "mistake_cost", "error_cost", "tolerance")
# A table has no separate validation set, and no positive class without --positive.
_OF_SCREENING: Final = {"relevant_found", "expected_found", "control_found"}
_NOT_HERE: Final = {"validation_error", "validation_labels"} | _OF_SCREENING | REGRET_FIELDS


def figure_option(command: str) -> Any:
    """The option of a command for the file of its figure."""
    return typer.Option(help="Where to write the figure (.png, .pdf, .svg).", show_default=f"suffice-{command}.png")


@dataclasses.dataclass(frozen=True, kw_only=True)
class RuleOptions:
    """Options of a command about its stopping rule and the target error; None if an option was not given."""

    label_cost: LabelCost = None
    mistake_cost: MistakeCost = None
    tolerance: Tolerance = None
    at_most: TargetError = None
    error_cost: ErrorCost = None
    rule: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            autocompletion=_rule_names,
            help="The stopping rule, by its name in Python; for an unknown name, all rules are listed.",
            show_default="LabelWorth; ErrorStability with --threshold or another option of it",
        ),
    ] = None
    threshold: Annotated[
        float | None,
        typer.Option(
            help="Error ratio at which to stop, from 0 to 1; or the threshold of --rule, if it has one.",
            show_default="0.05 for gp, 0.02 for ridge, 0.1 for logistic, 0.2 for dropout; a rule's own",
        ),
    ] = None
    bound: Annotated[
        BoundName | None,
        typer.Option(
            help="For ErrorStability: the paper's bound on the change of error, or the tight one.", show_default="paper"
        ),
    ] = None
    average: Annotated[
        int | None,
        typer.Option(
            metavar="STEPS",
            help="For ErrorStability: compare the mean of the log of the error ratio over this many last steps with "
            "the threshold; 1 is the paper's rule.",
            show_default="1",
        ),
    ] = None
    calibration_labels: Annotated[
        int | None,
        typer.Option(
            metavar="LABELS",
            help="For ErrorStability: length of the period that sets the scale of the error ratio, in labels instead "
            "of steps.",
            show_default="10 steps; 1 step for dropout",
        ),
    ] = None
    scale: Annotated[
        ScaleName | None,
        typer.Option(
            help="For ErrorStability: scale of the error ratio, the paper's minimum of the first changes or their "
            "median.",
            show_default="minimum",
        ),
    ] = None

    @property
    def stability_options(self) -> dict[str, Any]:
        """The arguments of :class:`suffice.ErrorStability` besides threshold and bound that were given.

        Examples:
            >>> RuleOptions(average=10, scale=ScaleName.median).stability_options
            {'average': 10, 'scale': 'median'}
        """
        scale = None if self.scale is None else self.scale.value
        given = {"average": self.average, "calibration_labels": self.calibration_labels, "scale": scale}
        return {name: value for name, value in given.items() if value is not None}

    @property
    def costs(self) -> dict[str, float]:
        """The costs and the tolerance that were given, by their names in :class:`suffice.LabelWorth`.

        Raises:
            InvalidValueError: One is no number above 0.

        Examples:
            >>> RuleOptions(mistake_cost=5.0).costs
            {'mistake_cost': 5.0}
        """
        given = {name: getattr(self, name) for name in _WORTH_OPTIONS}
        return {name: cost(value, f"--{_dashed(name)}") for name, value in given.items() if value is not None}

    @property
    def changed(self) -> bool:
        """Whether any option about the rule was given. The target error is not about the rule."""
        return any(value is not None for name, value in vars(self).items() if name != "at_most")

    @property
    def about_ratio(self) -> bool:
        """Whether an option was given that :class:`suffice.ErrorStability` has and the default rule has not."""
        return self.threshold is not None or self.bound is not None or bool(self.stability_options)


def cost(value: float, option: str) -> float:
    """A validated cost.

    Raises:
        InvalidValueError: It is no number above 0.
    """
    return real(value, option, "above 0", lambda x: x > 0.0)


def target_error(text: str | None, task: str | None) -> float | None:
    """The target error of ``--at-most``.

    Args:
        text: A number or a percentage; None if nothing was said.
        task: ``"classification"`` for a share of wrong predictions, ``"regression"`` for the root of a mean squared
            error; None before it is known.

    Raises:
        InvalidValueError: It is no number of the kind.

    Examples:
        >>> target_error("5%", "classification"), target_error("0.05", None), target_error("12.5", "regression")
        (0.05, 0.05, 12.5)
    """
    if text is None:
        return None
    words = text.strip()
    percent = words.endswith("%")
    try:
        value = _plain_or_percent(words)
    except ValueError:
        value = math.nan
    if task == "regression" and percent:
        raise InvalidValueError(
            f"--at-most must be a number in units of the target, not {text!r}: a share of wrong predictions is "
            "for classes"
        )
    share = task == "classification" or percent
    if not 0.0 < value < (1.0 if share else math.inf):
        what = {
            "classification": "a share of wrong predictions above 0 and below 1, such as 5% or 0.05",
            "regression": "a number above 0, in units of the target",
        }.get(task or "", "a share such as 5% for classes, or a number above 0")
        hint = f"; write {words}% for {words} percent" if share and not percent and 1.0 <= value < 100.0 else ""
        raise InvalidValueError(f"--at-most must be {what}, not {text!r}{hint}")
    return value


def _plain_or_percent(words: str) -> float:
    """The value of a number or a percentage: 2.9% is the same as 0.029."""
    value = float(words.removesuffix("%").strip())
    if not words.endswith("%") or not math.isfinite(value):
        return value
    return float(Fraction(repr(value)) / 100)


def share_of(text: str | None, option: str, *, or_none: bool = False) -> float | None:
    """A share that was written as a number or as a percentage.

    Args:
        text: What was written; None if nothing was.
        option: Name of the option.
        or_none: Whether 0 is allowed.

    Raises:
        InvalidValueError: It is not above 0 and below 1.

    Examples:
        >>> share_of("95%", "--confidence"), share_of("0.95", "--confidence"), share_of(None, "--confidence")
        (0.95, 0.95, None)
    """
    if text is None:
        return None
    words = text.strip()
    try:
        value = _plain_or_percent(words)
    except ValueError:
        value = math.nan
    if not (0.0 < value < 1.0 or (or_none and value == 0.0)):
        hint = f"; write {words}% for {words} percent" if 1.0 <= value < 100.0 and not words.endswith("%") else ""
        least = "of at least 0" if or_none else "above 0"
        raise InvalidValueError(f"{option} must be a share {least} and below 1, such as 5% or 0.05, not {text!r}{hint}")
    return value


def chosen_rule(options: RuleOptions, model: ModelName | None = None, task: ModelTask | None = None) -> Criterion:
    """Return the rule that the options ask for.

    Without a name it is :class:`suffice.LabelWorth`; with a threshold or another option of
    :class:`suffice.ErrorStability` it is that.

    Args:
        options: What was asked for.
        model: The model; before it is known, a threshold that depends on it is that of a Gaussian process.
        task: The task, if it is known; otherwise that of the model, if it has one only.

    Raises:
        InvalidValueError: The options name no rule, or do not go together.

    Examples:
        >>> chosen_rule(RuleOptions(rule="maxvariance", threshold=0.2))
        MaxVariance(threshold=0.2)
        >>> chosen_rule(RuleOptions(mistake_cost=5.0))
        LabelWorth(error_cost=None, label_cost=1.0, mistake_cost=5.0, tolerance=None)
        >>> chosen_rule(RuleOptions(threshold=0.1)).threshold
        0.1
    """
    costs = options.costs
    unnamed: type[Criterion] = ErrorStability if options.about_ratio else LabelWorth
    kind = unnamed if options.rule is None else _rule_named(options.rule)
    fields = {spec.name for spec in dataclasses.fields(_as_dataclass(kind))}
    _require_together(options, kind, fields)
    if task is None and model is not None and len(MODEL_FAMILIES[model].tasks) == 1:
        task = MODEL_FAMILIES[model].tasks[0]
    _require_fitting_tolerance(options, task)
    given: dict[str, Any] = {} if options.threshold is None else {"threshold": options.threshold}
    if options.bound is not None:
        given["bound"] = options.bound.value
    given |= options.stability_options | costs
    if kind is ErrorStability:
        given.setdefault("threshold", DEFAULT_THRESHOLDS.get(model or "gp", 0.1))
        # For a network only the first step calibrates the rule, as in the paper, because it is the largest.
        given["calibration"] = 1 if model == "dropout" else 10
    return kind(**given)


def require_provided_fields(rule: Criterion, model: Any, name: ModelName) -> None:
    """Raise an error before the run if a rule requires inputs that a run with this model does not provide.

    Raises:
        MissingInputError: The rule cannot be used; the message names the rules that can.
    """
    from suffice.learner.prepare import provided_fields, require_provided

    provided = provided_fields(model)
    others = [other for other, kind in named_rules().items() if kind.requires <= provided]
    require_provided(
        rule.needs(),
        model,
        names=(f"--rule {type(rule).__name__}", f"--model {name}"),
        remedy=f"rules for {name}: {', '.join(others)}",
    )


def named_rules() -> dict[str, type[Criterion]]:
    """The rules that a name alone makes, by name; each but the plainest has a threshold.

    Examples:
        >>> "StabilizingPredictions" in named_rules(), "Budget" in named_rules()
        (True, False)
    """
    return {name: kind for name, kind in _rules().items() if not _arguments(kind) and not kind.requires & _NOT_HERE}


def screening_rule(name: str | None, recall: float) -> Criterion:
    """The rule of a screening.

    Args:
        name: Name of the rule, however it is written; the default rule if None.
        recall: The target recall; rules without one ignore it.

    Raises:
        InvalidValueError: There is no rule for screening of that name.

    Examples:
        >>> screening_rule("quantci", 0.9)
        QuantCI(at_least=0.9, deviations=2.0)
    """
    usable = {rule: kind for rule, kind in _rules().items() if kind.requires & _OF_SCREENING and not _arguments(kind)}
    by_lower = {rule.lower(): kind for rule, kind in usable.items()}
    kind = RecallTest if name is None else by_lower.get(name.strip().lower())
    if kind is None:
        raise InvalidValueError(f"--rule with --positive must be one of {', '.join(usable)}, not {name!r}")
    fields = {spec.name for spec in dataclasses.fields(_as_dataclass(kind))}
    make: Any = kind
    made: Criterion = make(at_least=recall) if "at_least" in fields else make()
    return made


def _rule_named(name: str) -> type[Criterion]:
    """The rule of a name, without regard to upper and lower case."""
    rules, usable = _rules(), named_rules()
    by_costs = {rule: kind for rule, kind in rules.items() if set(_arguments(kind)) == _COSTS}
    lower = {rule.lower(): rule for rule in rules}
    asked = lower.get(name.strip().lower())
    available = f"{', '.join(usable)}; and with --error-cost and --label-cost {' or '.join(sorted(by_costs))}"
    if asked is None:
        possible = [rule.lower() for rule in (*usable, *by_costs)]
        near = get_close_matches(name.strip().lower(), possible, n=1, cutoff=0.5)
        guess = f" Did you mean {lower[near[0]]}?" if near else ""
        raise InvalidValueError(f"--rule: no stopping rule is named {name!r}.{guess} There are {available}")
    if asked not in usable and asked not in by_costs:
        if rules[asked].requires & _OF_SCREENING:
            remedy = "give --positive CLASS, the class that is looked for, or use it from Python"
            raise InvalidValueError(f"--rule {asked} is for screening: {remedy}")
        if rules[asked].requires & REGRET_FIELDS:
            remedy = "use it from Python, with suffice.learner.OptimisationMonitor"
            raise InvalidValueError(f"--rule {asked} is for Bayesian optimisation: {remedy}")
        wanted = ", ".join(_arguments(rules[asked]) or sorted(rules[asked].requires))
        remedy = f"use sf.{asked} from Python, or one of {available}"
        raise InvalidValueError(f"--rule {asked} requires {wanted}, which cannot be given here: {remedy}")
    return rules[asked]


def _require_together(options: RuleOptions, kind: type[Criterion], fields: set[str]) -> None:
    """Raise an error for options that do not apply to a rule, and for missing required options."""
    rule, costs = kind.__name__, options.costs
    if options.rule is None and options.about_ratio and costs:
        ratio_options = ("threshold", "bound", *options.stability_options)
        which = next(name for name in ratio_options if getattr(options, name) is not None)
        raise InvalidValueError(
            f"--{_dashed(which)} is for the rule ErrorStability, and --{_dashed(next(iter(costs)))} for LabelWorth: "
            "give one of the two"
        )
    if missing := [f"--{_dashed(name)}" for name in _arguments(kind) if name in _COSTS and name not in costs]:
        raise InvalidValueError(
            f"--rule {rule} weighs costs: give --error-cost and --label-cost; {missing[0]} is missing"
        )
    for name in costs:
        # Other rules have a tolerance of another kind.
        if kind is not LabelWorth and not (name in _COSTS and name in fields):
            raise InvalidValueError(
                f"--{_dashed(name)} is for the rule LabelWorth, and --rule is {rule}; leave one of them out"
            )
    if "error_cost" in costs and "mistake_cost" in costs:
        raise InvalidValueError(
            "--error-cost and --mistake-cost both say what errors cost: give --mistake-cost, the cost of one wrong "
            "prediction, or --error-cost, the cost of an error that is larger by 1"
        )
    if options.threshold is not None and "threshold" not in fields:
        why = " (it compares the worth of a label with its cost)" if kind is LabelWorth else ""
        raise InvalidValueError(f"--rule {rule} has no threshold{why}: leave out --threshold")
    if options.bound is not None and "bound" not in fields:
        raise InvalidValueError(f"--bound goes with ErrorStability or DeterministicBoundRuns; {rule} bounds no change")
    for name in options.stability_options:
        if name not in fields:
            raise InvalidValueError(f"--{_dashed(name)} goes with --rule ErrorStability; {rule} has no error ratio")


def _require_fitting_tolerance(options: RuleOptions, task: ModelTask | None) -> None:
    if options.tolerance is not None and task == "classification":
        raise InvalidValueError(
            "--tolerance is for numbers: it says how far off a prediction may be. The task here is classification, "
            "where a prediction is right or wrong; leave it out, or use --task regression if the target is a number"
        )


def _dashed(name: str) -> str:
    """The name of an argument as an option has it."""
    return name.replace("_", "-")


def _rules() -> dict[str, type[Criterion]]:
    """Return all rules of suffice by name, in alphabetical order."""
    composed: dict[str, type[Criterion]] = {kind.__name__: kind for kind in (After, AllOf, AnyOf, Patience)}
    return dict(sorted((RULES | composed).items()))


def _arguments(kind: type[Criterion]) -> list[str]:
    """Required arguments of a rule."""
    return [
        spec.name
        for spec in dataclasses.fields(_as_dataclass(kind))
        if spec.init and spec.default is dataclasses.MISSING and spec.default_factory is dataclasses.MISSING
    ]


def _as_dataclass(kind: type[Criterion]) -> Any:
    """The rule as a dataclass: every rule is one, but its base class is not typed as one."""
    return kind


@dataclasses.dataclass(frozen=True)
class RuleValues:
    """The values that a rule compared.

    Attributes:
        rule: Name of the rule.
        values: The number at each step; NaN where there was none.
        thresholds: What it was compared with, likewise.

    Examples:
        >>> verdict = Verdict(
        ...     stop=False, value=3.0, threshold=1.0, ready=True, reason="", rule="LabelWorth", n_labelled=9
        ... )
        >>> RuleValues.of([verdict]).caption
        'worth of a label, and its cost 1'
    """

    rule: str
    values: list[float]
    thresholds: list[float]

    @classmethod
    def of(cls, verdicts: Sequence[Verdict]) -> "RuleValues":
        """The values in verdicts of one rule; at least one verdict."""
        return cls(verdicts[0].rule, [_number(v.value) for v in verdicts], [_number(v.threshold) for v in verdicts])

    @property
    def name(self) -> str:
        """Name of the number."""
        return quantity_name(self.rule)

    @property
    def threshold_name(self) -> str:
        """Name of the limit."""
        return threshold_name(self.rule)

    @property
    def threshold(self) -> float | None:
        """The threshold, or None if it differs between steps."""
        levels = set(_there(self.thresholds))
        return levels.pop() if len(levels) == 1 else None

    @property
    def caption(self) -> str:
        """A heading for the curve."""
        level = "" if self.threshold is None else f" {self.threshold:g}"
        return f"{self.name}, and {'the' if self.rule == RATIO_RULE else 'its'} {self.threshold_name}{level}"

    @property
    def any(self) -> bool:
        """Whether there is a number at all."""
        return bool(_there(self.values))

    @property
    def log(self) -> bool:
        """Whether a log scale fits: all numbers are above 0, and they are far apart."""
        numbers = _there([*self.values, *self.thresholds])
        return min(numbers, default=0.0) > 0.0 and max(numbers) >= 10.0 * min(numbers)

    def chart(self, *, width: int, height: int, plain: bool) -> list[str]:
        """The curve as text, see :func:`suffice.presentation.charts.number_chart`."""
        size = {"width": width, "height": height}
        return number_chart(self.values, self.thresholds, log=self.log, plain=plain, **size) if self.any else []


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _there(values: Sequence[float]) -> list[float]:
    return [value for value in values if not math.isnan(value)]


def problem(action: Callable[[], None], *, raised: bool) -> str:
    """Message of the error of an action, or an empty string. With ``raised`` the error is raised."""
    try:
        action()
    except SufficeError as error:
        if raised:
            raise
        return str(error)
    return ""
