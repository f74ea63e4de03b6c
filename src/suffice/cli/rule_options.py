"""Command options for models and stopping rules."""

import dataclasses
from difflib import get_close_matches
from enum import StrEnum
from typing import Annotated, Any, Final

import typer

from suffice.arguments import real
from suffice.criteria import RULES, After, AllOf, AnyOf, Criterion, ErrorStability, LabelWorth, Patience
from suffice.errors import InvalidValueError
from suffice.project.settings import DEFAULT_THRESHOLDS


class TaskName(StrEnum):
    """What is predicted."""

    regression = "regression"
    classification = "classification"


class ModelName(StrEnum):
    """Which model learns."""

    gp = "gp"
    ridge = "ridge"
    logistic = "logistic"
    kernel = "kernel"
    dropout = "dropout"


class DemoModel(StrEnum):
    """Which model the demonstration shows."""

    linear = "linear"
    dropout = "dropout"


class BoundName(StrEnum):
    """Which bound on the change of error the rule takes."""

    paper = "paper"
    tight = "tight"


class ScaleName(StrEnum):
    """What the error ratio is divided by."""

    minimum = "minimum"
    median = "median"


def _rule_names() -> list[str]:
    """What the shell completes: the rules that a name alone makes, and those that take two costs."""
    return [*named_rules(), *(name for name, kind in _rules().items() if set(_arguments(kind)) == _COSTS)]


AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON, and nothing else.")]
Rule = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        autocompletion=_rule_names,
        help="The stopping rule, by its name in Python; an unknown name is answered with all of them.",
        show_default="ErrorStability",
    ),
]
Threshold = Annotated[
    float | None,
    typer.Option(
        help="Error ratio at which to stop, from 0 to 1; or the threshold of --rule, where it has one.",
        show_default="0.05 for gp, 0.02 for ridge, 0.1 for logistic, 0.2 for dropout; a rule's own",
    ),
]
Bound = Annotated[BoundName, typer.Option(help="Bound on the change of error: the paper's, or the tight one.")]
Average = Annotated[
    int,
    typer.Option(
        metavar="STEPS",
        help="Compare the mean of the log of the error ratio over this many last steps with the threshold; 1 is the "
        "paper's rule.",
    ),
]
CalibrationLabels = Annotated[
    int | None,
    typer.Option(
        metavar="LABELS",
        help="Length of the period that sets the scale of the error ratio, in labels instead of steps.",
        show_default="10 steps; 1 step for dropout",
    ),
]
Scale = Annotated[
    ScaleName,
    typer.Option(help="Scale of the error ratio: the paper's minimum of the first changes, or their median."),
]
ErrorCost = Annotated[
    float | None,
    typer.Option(
        metavar="MONEY",
        help="What it costs when the mean squared error is larger by 1, in squared units of the target; for classes, "
        "when the cross entropy is. With --label-cost it takes the place of a threshold.",
        show_default=False,
    ),
]
LabelCost = Annotated[
    float | None, typer.Option(metavar="MONEY", help="What a label costs, in the same money.", show_default=False)
]
_COSTS: Final = {"error_cost", "label_cost"}
# A table gives no validation set besides.
_NOT_HERE: Final = {"validation_error", "validation_labels"}


@dataclasses.dataclass(frozen=True)
class RuleOptions:
    """What a command was told about its rule; the fields are its options."""

    name: str | None = None
    threshold: float | None = None
    bound: BoundName = BoundName.paper
    error_cost: float | None = None
    label_cost: float | None = None
    average: int = 1
    calibration_labels: int | None = None
    scale: ScaleName = ScaleName.minimum

    @property
    def stability_options(self) -> dict[str, Any]:
        """The arguments of :class:`suffice.ErrorStability` that were set to another value than the paper's.

        Examples:
            >>> RuleOptions(average=10, scale=ScaleName.median).stability_options
            {'average': 10, 'scale': 'median'}
        """
        given = {"average": self.average, "calibration_labels": self.calibration_labels, "scale": self.scale.value}
        paper = RuleOptions()
        return {name: value for name, value in given.items() if value != getattr(paper, name)}

    @property
    def changed(self) -> bool:
        """Whether anything was said of the rule."""
        return self != RuleOptions()

    @property
    def named(self) -> bool:
        """Whether a rule was asked for, by its name or by costs."""
        return self.name is not None or self.costs is not None

    @property
    def costs(self) -> tuple[float, float] | None:
        """What an error and a label cost, or None where nothing was said of it.

        Raises:
            InvalidValueError: One is given without the other, or is no number above 0.
        """
        if self.error_cost is None and self.label_cost is None:
            return None
        if self.error_cost is None or self.label_cost is None:
            missing = "--error-cost" if self.error_cost is None else "--label-cost"
            raise InvalidValueError(
                f"--error-cost and --label-cost belong together: give both, or neither; {missing} is missing"
            )
        return cost(self.error_cost, "--error-cost"), cost(self.label_cost, "--label-cost")


def cost(value: float, option: str) -> float:
    """A cost, checked.

    Raises:
        InvalidValueError: It is no number above 0.
    """
    return real(value, option, "above 0", lambda x: x > 0.0)


def chosen_rule(options: RuleOptions, model: ModelName | None = None) -> Criterion:
    """Return the rule that the options ask for.

    Args:
        options: What was asked for.
        model: The model; before it is known, a threshold that depends on it is that of a Gaussian process.

    Raises:
        InvalidValueError: The options name no rule, or do not go together.

    Examples:
        >>> chosen_rule(RuleOptions("maxvariance", threshold=0.2))
        MaxVariance(threshold=0.2)
        >>> chosen_rule(RuleOptions(error_cost=1000.0, label_cost=1.0))
        LabelWorth(error_cost=1000.0, label_cost=1.0, window=0.3, caution=10.0)
    """
    costs = options.costs
    if options.name is None:
        kind: type[Criterion] = ErrorStability if costs is None else LabelWorth
    else:
        kind = _found(options.name)
    fields = {spec.name for spec in dataclasses.fields(_as_dataclass(kind))}
    _require_together(options, kind.__name__, fields)
    given: dict[str, Any] = {} if options.threshold is None else {"threshold": options.threshold}
    if "bound" in fields:
        given["bound"] = options.bound.value
    given |= options.stability_options
    if costs is not None:
        given |= {"error_cost": costs[0], "label_cost": costs[1]}
    if kind is ErrorStability:
        given.setdefault("threshold", DEFAULT_THRESHOLDS[(model or ModelName.gp).value])
        # A network's first step is its largest, and calibrates the rule alone, as in the paper.
        given["calibration"] = 1 if model is ModelName.dropout else 10
    return kind(**given)


def require_provided_fields(rule: Criterion, model: Any, name: ModelName) -> None:
    """Refuse a rule that requires what a run with this model does not provide, before the run.

    Raises:
        MissingInputError: The rule cannot be used; the message names the rules that can.
    """
    from suffice.learner.prepare import provided_fields, require_provided

    provided = provided_fields(model)
    others = [each for each, kind in named_rules().items() if kind.requires <= provided]
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


def _found(name: str) -> type[Criterion]:
    """The rule of a name, however it is written."""
    rules, usable = _rules(), named_rules()
    by_costs = {each: kind for each, kind in rules.items() if set(_arguments(kind)) == _COSTS}
    lower = {each.lower(): each for each in rules}
    asked = lower.get(name.strip().lower())
    known = f"{', '.join(usable)}; and with --error-cost and --label-cost {' or '.join(sorted(by_costs))}"
    if asked is None:
        possible = [each.lower() for each in (*usable, *by_costs)]
        near = get_close_matches(name.strip().lower(), possible, n=1, cutoff=0.5)
        guess = f" Did you mean {lower[near[0]]}?" if near else ""
        raise InvalidValueError(f"--rule: no stopping rule is named {name!r}.{guess} There are {known}")
    if asked not in usable and asked not in by_costs:
        wanted = ", ".join(_arguments(rules[asked]) or sorted(rules[asked].requires))
        remedy = f"use sf.{asked} from Python, or one of {known}"
        raise InvalidValueError(f"--rule {asked} requires {wanted}, which cannot be given here: {remedy}")
    return rules[asked]


def _require_together(options: RuleOptions, rule: str, fields: set[str]) -> None:
    """Refuse what does not go with a rule, and a rule without what it needs."""
    if options.costs is None and fields >= _COSTS:
        raise InvalidValueError(f"--rule {rule} weighs costs: give --error-cost and --label-cost")
    if options.costs is not None and not fields >= _COSTS:
        raise InvalidValueError(
            f"--rule {rule} knows nothing of costs; leave out --error-cost and --label-cost, or use --rule LabelWorth"
        )
    if options.threshold is not None and "threshold" not in fields:
        why = (
            "--error-cost and --label-cost say when to stop: leave out --threshold, or the costs"
            if options.costs is not None
            else f"--rule {rule} has no threshold: leave out --threshold"
        )
        raise InvalidValueError(why)
    if options.bound is not BoundName.paper and "bound" not in fields:
        raise InvalidValueError(f"--bound goes with ErrorStability or DeterministicBoundRuns; {rule} bounds no change")
    for name in options.stability_options:
        if name not in fields:
            option = f"--{name.replace('_', '-')}"
            raise InvalidValueError(f"{option} goes with --rule ErrorStability; {rule} has no error ratio")


def _rules() -> dict[str, type[Criterion]]:
    """Return all rules of suffice by name, in alphabetical order."""
    composed: dict[str, type[Criterion]] = {kind.__name__: kind for kind in (After, AllOf, AnyOf, Patience)}
    return dict(sorted((RULES | composed).items()))


def _arguments(kind: type[Criterion]) -> list[str]:
    """Arguments without which a rule cannot be made."""
    return [
        spec.name
        for spec in dataclasses.fields(_as_dataclass(kind))
        if spec.init and spec.default is dataclasses.MISSING and spec.default_factory is dataclasses.MISSING
    ]


def _as_dataclass(kind: type[Criterion]) -> Any:
    """Every rule is one, but the type of its base does not say so."""
    return kind
