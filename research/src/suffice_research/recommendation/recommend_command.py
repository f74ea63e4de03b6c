"""``suffice recommend``: the recommended stopping rule, based on the comparison of all rules."""

import dataclasses
import inspect
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import numpy as np
import typer
from rich import box
from rich.console import Console
from rich.table import Table

from suffice.arguments import real, whole
from suffice.cli.json_output import AsJson, print_json
from suffice.cli.rule_options import (
    BoundName,
    ErrorCost,
    LabelCost,
    MistakeCost,
    ModelName,
    RuleOptions,
    ScaleName,
    TaskName,
    chosen_rule,
    cost,
    named_rules,
)
from suffice.cli.table_run import Ignore
from suffice.criteria import Criterion, ErrorStability, ExpectedCost, LabelWorth
from suffice.errors import InvalidValueError
from suffice.models.factory import MODEL_FAMILIES, default_model, model_description, model_names
from suffice.presentation.text_format import count, rounded_percent
from suffice_research.recommendation.recommend_words import assumed_costs_sentence, expected_cost_sentence

if TYPE_CHECKING:
    from suffice_research.recommendation.compared_rules import Expectation, Recommendation

_HEADING: Final = (
    "Cost above the best stop: typically (geometric mean), in half or 9 of 10 runs at most, on average.\n"
    "The rule to take, then the next best over all prices of an error; the numbers are those at this price."
)


@dataclass(frozen=True)
class _Question:
    """The question: the options, completed from the table.

    Attributes:
        about: What was read, in sentences; empty without a table.
        unlabelled: Number of items that will be predicted; None with ``error_cost``.
        place: How ``suffice run`` is to be called for the table.
    """

    task: TaskName
    model: ModelName | None
    error_cost: float | None
    label_cost: float
    mistake_cost: float | None
    unlabelled: int | None
    target_variance: float | None
    batch: int
    given: tuple[str, ...] | None
    about: tuple[str, ...] = ()
    place: str = "DATA --target COLUMN"


def recommend_command(
    data: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DATA]",
            help="A table of such data (CSV, Excel, JSON lines or Parquet), with some or all labels.",
            show_default=False,
        ),
    ] = None,
    target: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column of the file to predict.", show_default=False)
    ] = None,
    task: Annotated[
        TaskName | None,
        typer.Option(
            metavar="TASK",
            help="What is predicted: regression (a number) or classification; by the target's values with a file.",
            show_default=False,
        ),
    ] = None,
    label_cost: LabelCost = None,
    mistake_cost: MistakeCost = None,
    unlabelled: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Number of items that will be predicted.",
            show_default="the rows of the file, if there is one",
        ),
    ] = None,
    error_cost: ErrorCost = None,
    model: Annotated[
        ModelName | None,
        typer.Option(
            help="The model. Without a model and a file, the average over the models of the task.",
            show_default="that of `suffice run` with a file",
        ),
    ] = None,
    target_variance: Annotated[
        float | None,
        typer.Option(
            help="With --error-cost, for regression: variance of the target, its spread squared.",
            show_default="that of the file, or 1",
        ),
    ] = None,
    batch: Annotated[
        int, typer.Option(metavar="N", help="Labels that are bought at a time; runs with the nearest number count.")
    ] = 1,
    given: Annotated[
        str | None,
        typer.Option(
            metavar="FIELD,FIELD",
            help="For your own loop: the fields of a suffice.Step that it provides. Rules that need others are "
            "left out.",
        ),
    ] = None,
    ignore: Ignore = None,
    as_json: AsJson = False,
) -> None:
    """Find out which stopping rule to use for your data and costs, and what to expect of it.

    Example: suffice recommend mails.csv --target spam --mistake-cost 20

    Without data: suffice recommend --task classification --mistake-cost 20 --unlabelled 5000

    With the cost of an error as a whole: suffice recommend --task regression --error-cost 0.05 --label-cost 2
    --target-variance 900
    """
    costs = {
        "error_cost": None if error_cost is None else cost(error_cost, "--error-cost"),
        "label_cost": 1.0 if label_cost is None else cost(label_cost, "--label-cost"),
        "mistake_cost": None if mistake_cost is None else cost(mistake_cost, "--mistake-cost"),
    }
    if error_cost is not None and (mistake_cost is not None or unlabelled is not None):
        other = "--mistake-cost" if mistake_cost is not None else "--unlabelled"
        raise InvalidValueError(
            f"--error-cost is the cost of an error as a whole, and {other} is about single predictions: give one of "
            "them"
        )
    options: dict[str, Any] = {
        **costs,
        "batch": whole(batch, "--batch", least=1),
        "given": _fields(given),
        "unlabelled": None if unlabelled is None else whole(unlabelled, "--unlabelled", least=1),
    }
    if data is None:
        asked = _without_data(options, task, model, target_variance, target=target, ignore=ignore)
    else:
        asked = _about_data(options, data, target, task, model, target_variance, tuple(ignore or ()))
    # Imported here, because it loads scikit-learn, which would delay `suffice --help`.
    from suffice_research.recommendation.compared_rules import recommend

    advice = recommend(
        asked.task.value,
        None if asked.model is None else asked.model.value,
        asked.error_cost,
        asked.label_cost,
        mistake_cost=asked.mistake_cost,
        unlabelled=asked.unlabelled,
        target_variance=asked.target_variance,
        batch=asked.batch,
        given=asked.given,
    )
    if as_json:
        print_json("recommend", _as_json(asked, advice))
        return
    console = Console(highlight=False)
    # Without a terminal, lines are not wrapped.
    console.soft_wrap = not console.is_terminal
    _tell(console, asked, advice)


def _without_data(
    options: dict[str, Any],
    task: TaskName | None,
    model: ModelName | None,
    target_variance: float | None,
    *,
    target: str | None,
    ignore: list[str] | None,
) -> _Question:
    if target is not None or ignore:
        raise InvalidValueError(f"--{'ignore' if target is None else 'target'} goes with a file; name the file too")
    if task is None:
        raise InvalidValueError("name a file and its --target, or say with --task what is predicted")
    if options["error_cost"] is None:
        options["mistake_cost"] = options["mistake_cost"] or 1.0
        if options["unlabelled"] is None:
            raise InvalidValueError(
                "how many wrong predictions a label avoids depends on the number of items: give --unlabelled, or "
                "--error-cost, or a file"
            )
    _require_model(task, model)
    variance = _variance(task, target_variance, options["error_cost"])
    return _Question(task=task, model=model, target_variance=variance, **options)


def _about_data(
    options: dict[str, Any],
    data: Path,
    target: str | None,
    task: TaskName | None,
    model: ModelName | None,
    target_variance: float | None,
    ignore: tuple[str, ...],
) -> _Question:
    """Read the table, and complete the question with its properties."""
    from suffice.tables import read_table

    if target is None:
        raise InvalidValueError(f"{data}: name the column to predict with --target")
    table = read_table(data, target, task=None if task is None else task.value, ignore=ignore)
    found = TaskName(table.kind)
    _require_model(found, model)
    n_classes = len(np.unique(table.y)) if found is TaskName.classification else 0
    usual = default_model(table.kind, n_features=table.X.shape[1], n_classes=n_classes, components=table.components)
    name = model or ModelName(usual.name)
    variance = _variance(found, target_variance, options["error_cost"])
    rows = len(table.y)
    if options["error_cost"] is None:
        options["mistake_cost"] = options["mistake_cost"] or 1.0
        options["unlabelled"] = options["unlabelled"] or rows
    elif variance is None and found is TaskName.regression:
        variance = float(np.var(table.y))
    classes = f" ({len(np.unique(table.y))} classes)" if found is TaskName.classification else ""
    features = count(table.X.shape[1], "feature")
    about = (
        f"{data.name}: {count(rows, 'row')} with a label, {features}, target {target!r}",
        f"{found.value.capitalize()}{classes}; model: {model_description(name)}",
    )
    told = ["" if task is None else f" --task {task.value}", "" if model is None else f" --model {model.value}"]
    ignored = "".join(f" --ignore {shlex.quote(each)}" for each in ignore)
    place = f"{shlex.quote(str(data))} --target {shlex.quote(target)}{ignored}{''.join(told)}"
    return _Question(task=found, model=name, target_variance=variance, about=about, place=place, **options)


def python_line(rule: Criterion) -> str:
    """The rule as Python code, without arguments that have their defaults.

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
        >>> run_options(LabelWorth(mistake_cost=20.0, label_cost=0.5))
        ['--label-cost', '0.5', '--mistake-cost', '20']
        >>> run_options(ErrorStability(0.05, relative=False)) is None
        True
    """
    name = type(rule).__name__
    weighing = isinstance(rule, LabelWorth | ExpectedCost)
    if not weighing and name not in named_rules():
        return None
    plain = isinstance(rule, ErrorStability | LabelWorth)
    numbers: dict[str, Any] = {} if weighing else {"threshold": getattr(rule, "threshold", None)}
    if weighing:
        numbers = {
            each: getattr(rule, each, None) for each in ("label_cost", "mistake_cost", "error_cost", "tolerance")
        }
    if isinstance(rule, LabelWorth) and rule.label_cost == 1.0:
        del numbers["label_cost"]
    words: dict[str, Any] = {}
    bound = getattr(rule, "bound", None)
    if bound not in (None, BoundName.paper.value):
        words["bound"] = BoundName(bound)
    if isinstance(rule, ErrorStability):
        default = ErrorStability()
        words |= {
            each: ScaleName(value) if each == "scale" else value
            for each in ("average", "calibration_labels", "scale")
            if (value := getattr(rule, each)) != getattr(default, each)
        }
    options = RuleOptions(rule=None if plain else name, **numbers, **words)
    # A rule of the comparison may have another setting, for which there is no option.
    if chosen_rule(options, model) != rule:
        return None
    said = [] if options.rule is None else ["--rule", name]
    for each, value in words.items():
        said += [f"--{each.replace('_', '-')}", str(value)]
    for each, value in numbers.items():
        said += [] if value is None else [f"--{each.replace('_', '-')}", _number(value)]
    return said


def _number(value: float) -> str:
    return repr(float(value)).removesuffix(".0")


def _variance(task: TaskName, value: float | None, error_cost: float | None) -> float | None:
    if value is None:
        return None
    if task is TaskName.classification:
        raise InvalidValueError("--target-variance goes with --task regression: a class has no variance; leave it out")
    if error_cost is None:
        raise InvalidValueError("--target-variance goes with --error-cost; leave it out, or give --error-cost")
    return real(value, "--target-variance", "above 0", lambda x: x > 0.0)


def _fields(given: str | None) -> tuple[str, ...] | None:
    if given is None:
        return None
    names = tuple(name.strip() for name in given.split(",") if name.strip())
    if not names:
        raise InvalidValueError("--given must name fields of a suffice.Step, separated by commas; it names none")
    return names


def _require_model(task: TaskName, model: ModelName | None) -> None:
    if model is None:
        return
    tasks = MODEL_FAMILIES[model].tasks
    if task.value not in tasks:
        fitting = " or ".join(model_names(task.value))
        raise InvalidValueError(f"--model {model} is for {tasks[0]}, and --task is {task}; use --model {fitting}")


def _command(asked: _Question, rule: Criterion) -> list[str] | None:
    """Arguments of ``suffice run`` besides the table; a loop of somebody's own has none."""
    options = None if asked.given is not None else run_options(rule, asked.model)
    if options is None:
        return None
    size = [] if asked.batch == 1 else ["--batch", str(asked.batch)]
    if asked.about:
        return [*options, *size]
    model = [] if asked.model is None else ["--model", asked.model.value]
    return ["--task", asked.task.value, *model, *options, *size]


def _as_json(asked: _Question, advice: "Recommendation") -> dict[str, object]:
    return {
        "task": asked.task.value,
        "model": None if asked.model is None else asked.model.value,
        "error_cost": asked.error_cost,
        "label_cost": asked.label_cost,
        "mistake_cost": asked.mistake_cost,
        "unlabelled": asked.unlabelled,
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
    for line in asked.about:
        console.print(line, markup=False)
    if asked.mistake_cost is not None and asked.unlabelled is not None:
        console.print(assumed_costs_sentence(asked.label_cost, asked.mistake_cost, asked.unlabelled, task=asked.task))
    meaning = re.sub(r":\w+:|``?", "", " ".join((inspect.getdoc(type(advice.rule)) or "").split("\n\n")[0].split()))
    console.print(f"Take {made}. {meaning}", style="bold", markup=False)
    console.print(expected_cost_sentence(typical=best.typical, median=best.median, p90=best.p90, mean=best.mean))
    console.print(_table([best, *advice.others]))
    console.print(advice.evidence, markup=False)
    if asked.task is TaskName.regression and asked.error_cost is not None and asked.target_variance is None:
        console.print("The variance of the target is assumed to be 1: give yours with --target-variance.")
    console.print("\nIn Python (import suffice as sf):", style="bold")
    console.print(f"  rule = {python_line(advice.rule)}\n  {_use(asked, advice.rule)}", markup=False)
    command = _command(asked, advice.rule)
    if command is not None:
        where = "On this table, as far as it has labels:" if asked.about else "On a table that has its labels:"
        console.print(where, style="bold")
        console.print(f"  {' '.join(['suffice run', asked.place, *command])}", markup=False)
    elif asked.given is None:
        console.print("suffice run has no options for this rule.")
        costs = run_options(_default_rule(asked), asked.model)
        if asked.about and costs is not None:
            console.print("With the default rule and the same costs, on this table:", style="bold")
            console.print(f"  {' '.join(['suffice run', asked.place, *costs])}", markup=False)


def _default_rule(asked: _Question) -> LabelWorth:
    """The default rule of the commands with the costs that were given."""
    return LabelWorth(asked.error_cost, asked.label_cost, mistake_cost=asked.mistake_cost)


def _use(asked: _Question, rule: Criterion) -> str:
    if asked.given is None:
        return "learner = sf.ActiveLearner(model, X, criterion=rule)"
    fields = "".join(f", {name}=..." for name in sorted(rule.needs()))
    return f"verdict = rule.observe(sf.Step(n_labelled=...{fields}))"


def _table(expectations: "list[Expectation]") -> Table:
    """Expected cost of each rule, the recommended one first."""
    from suffice_research.recommendation.compared_rules import catalogue

    parameters = {entry.name: entry.parameter for entry in catalogue()}
    table = Table(box=box.SIMPLE, title=_HEADING, title_justify="left", title_style="dim")
    table.add_column("rule", overflow="fold")
    table.add_column("setting", no_wrap=True)
    for heading in ("typical", "half", "9 of 10", "average"):
        table.add_column(heading, justify="right", no_wrap=True)
    for expectation in expectations:
        setting = "" if expectation.setting is None else f"{parameters[expectation.name]} {expectation.setting:g}"
        table.add_row(
            expectation.name,
            setting,
            *map(rounded_percent, (expectation.typical, expectation.median, expectation.p90, expectation.mean)),
        )
    return table
