"""``suffice recommend``: the recommended stopping rule, based on the comparison of all rules."""

import dataclasses
import inspect
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from suffice.arguments import real, whole
from suffice.cli.rule_options import (
    BoundName,
    ModelName,
    RuleOptions,
    ScaleName,
    TaskName,
    chosen_rule,
    cost,
    named_rules,
)
from suffice.criteria import Criterion, ErrorStability, LabelWorth
from suffice.errors import InvalidValueError
from suffice.presentation.messages import expected_cost_sentence
from suffice.presentation.number_format import rounded_percent

if TYPE_CHECKING:
    from suffice.recommendation.rule_choice import Expectation, Recommendation

_HEADING: Final = (
    "Dearer than the best stop: typically (geometric mean), in half or 9 of 10 runs at most, on average.\n"
    "The rule to take, then the next best over all prices of an error; the numbers are those at this price."
)


@dataclass(frozen=True)
class _Question:
    """What was asked; the fields are the options."""

    task: TaskName
    model: ModelName | None
    error_cost: float
    label_cost: float
    target_variance: float | None
    batch: int
    given: tuple[str, ...] | None


def recommend_command(
    task: Annotated[TaskName, typer.Option(help="What is predicted: a number, or a class.", show_default=False)],
    error_cost: Annotated[
        float,
        typer.Option(
            metavar="MONEY",
            help="What it costs when the mean squared error is larger by 1, in squared units of the target; for "
            "classes, when the cross entropy is.",
            show_default=False,
        ),
    ],
    label_cost: Annotated[
        float, typer.Option(metavar="MONEY", help="What a label costs, in the same money.", show_default=False)
    ],
    model: Annotated[
        ModelName | None, typer.Option(help="The model; what holds on average over those of the task if left out.")
    ] = None,
    target_variance: Annotated[
        float | None,
        typer.Option(help="Variance of the target, for regression: its spread squared.", show_default="1"),
    ] = None,
    batch: Annotated[
        int, typer.Option(metavar="N", help="Labels that are bought at a time; runs with the nearest number count.")
    ] = 1,
    given: Annotated[
        str | None,
        typer.Option(
            metavar="FIELD,FIELD",
            help="For a loop of your own: the fields of a suffice.Step that it can tell. Rules that need others are "
            "left out.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON, and nothing else.")] = False,
) -> None:
    """Find out which stopping rule to take for a task and its two costs, and what to expect of it.

    Example: suffice recommend --task classification --model logistic --error-cost 2000 --label-cost 0.5

    For a number: suffice recommend --task regression --error-cost 0.05 --label-cost 2 --target-variance 900
    """
    asked = _Question(
        task,
        model,
        cost(error_cost, "--error-cost"),
        cost(label_cost, "--label-cost"),
        _variance(task, target_variance),
        whole(batch, "--batch", least=1),
        _fields(given),
    )
    _require_model(task, model)
    # Brings scikit-learn, which `suffice --help` need not wait for.
    from suffice.recommendation.rule_choice import recommend

    advice = recommend(
        task.value,
        None if model is None else model.value,
        asked.error_cost,
        asked.label_cost,
        target_variance=asked.target_variance,
        batch=asked.batch,
        given=asked.given,
    )
    if as_json:
        typer.echo(json.dumps(_as_json(asked, advice)))
        return
    console = Console(highlight=False)
    # Off a terminal nobody wants lines broken at a width that is not there.
    console.soft_wrap = not console.is_terminal
    _tell(console, asked, advice)


def python_line(rule: Criterion) -> str:
    """The rule as it is written in Python; what has its default is left out.

    Examples:
        >>> from suffice.criteria import InformationGain, MaxVariance, ThresholdUpdate
        >>> python_line(MaxVariance(0.2))
        'sf.MaxVariance(threshold=0.2)'
        >>> python_line(ThresholdUpdate(InformationGain(0.5)))
        'sf.ThresholdUpdate(base=sf.InformationGain(threshold=0.5))'
    """
    made: Any = rule
    values = {spec.name: (getattr(rule, spec.name), spec.default) for spec in dataclasses.fields(made) if spec.init}
    shown = [
        f"{name}={python_line(value) if isinstance(value, Criterion) else repr(value)}"
        for name, (value, default) in values.items()
        if value != default
    ]
    return f"sf.{type(rule).__name__}({', '.join(shown)})"


def run_options(rule: Criterion, model: ModelName | None = None) -> list[str] | None:
    """The options with which ``suffice run`` takes a rule, or None where there are none that do.

    Examples:
        >>> run_options(LabelWorth(error_cost=2000.0, label_cost=0.5))
        ['--error-cost', '2000', '--label-cost', '0.5']
        >>> run_options(ErrorStability(0.05, relative=False)) is None
        True
    """
    name, limits = type(rule).__name__, {each: getattr(rule, each, None) for each in ("threshold", "bound")}
    costs: dict[str, Any] = {each: getattr(rule, each, None) for each in ("error_cost", "label_cost")}
    weighing = None not in costs.values()
    if not weighing and name not in named_rules():
        return None
    plain = isinstance(rule, ErrorStability | LabelWorth)
    more: dict[str, Any] = {}
    if isinstance(rule, ErrorStability):
        more = {"average": rule.average, "calibration_labels": rule.calibration_labels, "scale": ScaleName(rule.scale)}
    options = RuleOptions(
        None if plain else name, limits["threshold"], BoundName(limits["bound"] or BoundName.paper), **costs, **more
    )
    # A rule of the comparison may have another setting, for which there is no option.
    if chosen_rule(options, model) != rule:
        return None
    words = [] if options.name is None else ["--rule", name]
    words += [] if options.bound is BoundName.paper else ["--bound", options.bound.value]
    for each, value in options.stability_options.items():
        words += [f"--{each.replace('_', '-')}", str(value)]
    numbers = {"--threshold": options.threshold, "--error-cost": options.error_cost, "--label-cost": options.label_cost}
    return words + [part for each, value in numbers.items() if value is not None for part in (each, _number(value))]


def _number(value: float) -> str:
    return repr(float(value)).removesuffix(".0")


def _variance(task: TaskName, value: float | None) -> float | None:
    if value is None:
        return None
    if task is TaskName.classification:
        raise InvalidValueError("--target-variance goes with --task regression: a class has no variance; leave it out")
    return real(value, "--target-variance", "above 0", lambda x: x > 0.0)


def _fields(given: str | None) -> tuple[str, ...] | None:
    if given is None:
        return None
    names = tuple(name.strip() for name in given.split(",") if name.strip())
    if not names:
        raise InvalidValueError("--given must name fields of a suffice.Step, with commas between them; it names none")
    return names


def _require_model(task: TaskName, model: ModelName | None) -> None:
    if model is None:
        return
    meant = TaskName.regression if model in (ModelName.gp, ModelName.ridge) else TaskName.classification
    if meant is not task:
        fitting = "gp or ridge" if task is TaskName.regression else "logistic or dropout"
        raise InvalidValueError(f"--model {model} is for {meant}, and --task is {task}; use --model {fitting}")


def _command(asked: _Question, rule: Criterion) -> list[str] | None:
    """Arguments of ``suffice run`` besides the table; a loop of somebody's own has none."""
    options = None if asked.given is not None else run_options(rule, asked.model)
    if options is None:
        return None
    model = [] if asked.model is None else ["--model", asked.model.value]
    size = [] if asked.batch == 1 else ["--batch", str(asked.batch)]
    return ["--task", asked.task.value, *model, *options, *size]


def _as_json(asked: _Question, advice: "Recommendation") -> dict[str, object]:
    return {
        "task": asked.task.value,
        "model": None if asked.model is None else asked.model.value,
        "error_cost": asked.error_cost,
        "label_cost": asked.label_cost,
        "target_variance": asked.target_variance,
        "batch": asked.batch,
        "given": None if asked.given is None else list(asked.given),
        "rule": {"name": type(advice.rule).__name__, **advice.rule.state_dict()["params"]},
        "needs": sorted(advice.rule.needs()),
        "expected": dataclasses.asdict(advice.expected),
        "others": [dataclasses.asdict(other) for other in advice.others],
        "evidence": advice.evidence,
        "python": python_line(advice.rule),
        "run_options": _command(asked, advice.rule),
    }


def _tell(console: Console, asked: _Question, advice: "Recommendation") -> None:
    best, made = advice.expected, python_line(advice.rule).removeprefix("sf.")
    meaning = re.sub(r":\w+:|``?", "", " ".join((inspect.getdoc(type(advice.rule)) or "").split("\n\n")[0].split()))
    console.print(f"Take {made}. {meaning}", style="bold", markup=False)
    console.print(expected_cost_sentence(typical=best.typical, median=best.median, p90=best.p90, mean=best.mean))
    console.print(_table([best, *advice.others]))
    console.print(advice.evidence, markup=False)
    if asked.task is TaskName.regression and asked.target_variance is None:
        console.print("The variance of the target is taken to be 1: give that of yours with --target-variance.")
    console.print("\nIn Python (import suffice as sf):", style="bold")
    console.print(f"  rule = {python_line(advice.rule)}\n  {_use(asked, advice.rule)}", markup=False)
    command = _command(asked, advice.rule)
    if command is not None:
        console.print("On a table that has its labels:", style="bold")
        console.print(f"  suffice run DATA --target COLUMN {' '.join(command)}", markup=False)
    elif asked.given is None:
        console.print("suffice run has no options for this rule.")


def _use(asked: _Question, rule: Criterion) -> str:
    if asked.given is None:
        return "learner = sf.ActiveLearner(model, X, criterion=rule)"
    fields = "".join(f", {name}=..." for name in sorted(rule.needs()))
    return f"verdict = rule.observe(sf.Step(n_labelled=...{fields}))"


def _table(expectations: "list[Expectation]") -> Table:
    """What is expected of each rule, the one that is recommended first."""
    from suffice.recommendation.compared_rules import catalogue

    parameters = {entry.name: entry.parameter for entry in catalogue()}
    table = Table(box=box.SIMPLE, title=_HEADING, title_justify="left", title_style="dim")
    table.add_column("rule", overflow="fold")
    table.add_column("setting", no_wrap=True)
    for heading in ("typical", "half", "9 of 10", "average"):
        table.add_column(heading, justify="right", no_wrap=True)
    for each in expectations:
        setting = "" if each.setting is None else f"{parameters[each.name]} {each.setting:g}"
        table.add_row(
            each.name, setting, *(rounded_percent(value) for value in (each.typical, each.median, each.p90, each.mean))
        )
    return table
