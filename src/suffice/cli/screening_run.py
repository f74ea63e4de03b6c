"""``suffice run --positive``: a labelled table is screened for one class, as if its labels were unknown."""

import json
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

import numpy as np
import typer
from rich.console import Console
from threadpoolctl import threadpool_limits

from suffice.checks import Guarantee, plan_recall, spent_alpha
from suffice.cli.rule_options import problem, screening_rule, share_of
from suffice.cli.table_run import RunRequest, TableJob, checked_output, labelling_bar, read_job
from suffice.criteria import Criterion, Verdict
from suffice.errors import InvalidValueError, SufficeError
from suffice.files import write_whole
from suffice.presentation.charts import number_chart
from suffice.presentation.messages import screening_headline, screening_sentences

_RECALL: Final = 0.95
_CONFIDENCE: Final = 0.95
# The model learns again after each label at first, and later whenever there are so many more.
_GROWTH: Final = 0.02
# Sizes of a check that the answer names.
_CHECKS: Final = (100, 300, 1000)
# Options that are about the error of predictions, or about the figure of it.
_OTHERS: Final = ("threshold", "bound", "error_cost", "label_cost", "mistake_cost", "tolerance", "average", "scale")


@dataclass(frozen=True)
class ScreeningRequest:
    """Options of a screening, in addition to those of a run.

    Attributes:
        positive: Name of the class.
        recall: The target recall as it was written; None if it was not given.
        acquisition: Which row next; None for the likeliest.
        growing: Whether the number of labels at each step grows with the number so far.
    """

    positive: str
    recall: str | None
    acquisition: str | None
    growing: bool


@dataclass(frozen=True)
class ScreenedTable:
    """A screening of a table.

    Attributes:
        positive: The class.
        recall: The target recall.
        rule: The rule.
        relevance: Whether each screened row is of the class, in order.
        verdicts: Verdicts of all steps.
        size: All rows.
        relevant: All rows of the class.
    """

    positive: str
    recall: float
    rule: Criterion
    relevance: list[bool]
    verdicts: list[Verdict]
    size: int
    relevant: int

    @property
    def screened(self) -> int:
        """Number of rows screened."""
        return len(self.relevance)

    @property
    def found(self) -> int:
        """Number of rows of the class among them."""
        return sum(self.relevance)

    @property
    def stopped(self) -> bool:
        """Whether the rule said stop."""
        return any(verdict.stop for verdict in self.verdicts)

    def about(self) -> dict[str, Any]:
        """The values in the sentences."""
        rest, alpha = self.size - self.screened, spent_alpha(1, 1.0 - _CONFIDENCE)
        least = plan_recall(self.recall, self.found, 0, rest, alpha=alpha).least if rest and self.found else None
        sizes = [size for size in _CHECKS if size < (rest if least is None else least)] if self.found else []
        return {
            "positive": self.positive,
            "size": self.size,
            "screened": self.screened,
            "found": self.found,
            "relevant": self.relevant,
            "rule": repr(self.rule),
            "stopped": self.stopped,
            "recall": self.recall,
            "confidence": _CONFIDENCE,
            "checks": [(size, self._guaranteed(size, rest, alpha)) for size in sizes],
            "check_for_recall": least,
        }

    def _guaranteed(self, size: int, rest: int, alpha: float) -> float:
        """The recall that a check of some size guarantees if it finds no row of the class."""
        return Guarantee.of_recall(self.positive, self.found, 0, size, rest, alpha=alpha).value


def screen_table(request: RunRequest, wanted: ScreeningRequest) -> None:
    """Screen a table, and say what came out.

    Raises:
        InvalidValueError: The options or the table cannot be used.
        SufficeError: The run could not be saved; the result has been shown by then.
    """
    recall = share_of(wanted.recall, "--recall") if wanted.recall is not None else _RECALL
    assert recall is not None
    rule = screening_rule(request.rule.name, recall)
    _require_fitting(request)
    # The rule of the request is about the error of predictions; that of the screening takes its place.
    plain = RunRequest(**{**vars(request), "test": 0.0, "rule": type(request.rule)(), "figure": None})
    output = checked_output(plain)
    with threadpool_limits(limits=1):
        job = read_job(plain, output.console)
        positive = _class_named(wanted.positive, job, request.target)
        learner, found = _screened(plain, wanted, job, rule, positive, output.console)
    result = ScreenedTable(
        positive=wanted.positive,
        recall=recall,
        rule=rule,
        relevance=[bool(label == positive) for label in learner.labels.values()],
        verdicts=found,
        size=len(job.pool),
        relevant=int(np.sum(job.pool_labels == positive)),
    )
    _show(output.console, result)
    unsaved = (
        ""
        if request.save is None
        else problem(lambda: write_whole(Path(request.save or ""), learner.trace().save), raised=False)
    )
    saved = None if request.save is None or unsaved else request.save
    if saved:
        output.console.print(f"Run saved: {saved}", markup=False)
    if request.as_json:
        typer.echo(json.dumps(_as_json(result, job, saved)))
    if unsaved:
        raise SufficeError(unsaved)


def _require_fitting(request: RunRequest) -> None:
    """Refuse options that have no meaning for a screening."""
    given = [name for name in _OTHERS if getattr(request.rule, name, None) is not None]
    given += ["at_most"] if request.target_error is not None else []
    given += ["figure"] if request.figure is not None else []
    if given:
        raise InvalidValueError(
            f"--{given[0].replace('_', '-')} is not used with --positive, which stops by the share of the class that "
            "is found; leave one of them out"
        )


def _class_named(name: str, job: TableJob, target: str) -> Any:
    """The class of a name, as the table has it.

    Raises:
        InvalidValueError: The target is a number, or no row has the class.
    """
    if job.table.kind != "classification":
        raise InvalidValueError(
            f"--positive is a class, and the target {target!r} is a number; use --task classification if its numbers "
            "are classes"
        )
    classes = np.unique(job.table.y).tolist()
    by_name = {str(each): each for each in classes}
    if name not in by_name:
        near = get_close_matches(name, list(by_name), n=1, cutoff=0.6)
        guess = f" Did you mean {near[0]!r}?" if near else ""
        more = ", ..." if len(by_name) > 10 else ""
        raise InvalidValueError(
            f"--positive must be a class of the column {target!r}, not {name!r}.{guess} The file has "
            f"{', '.join(repr(each) for each in list(by_name)[:10])}{more}"
        )
    return by_name[name]


def _screened(
    request: RunRequest, wanted: ScreeningRequest, job: TableJob, rule: Criterion, positive: Any, console: Console
) -> tuple[Any, list[Verdict]]:
    """The learner at the stop, and all verdicts."""
    # Brings scikit-learn, which a wrong option need not wait for.
    from suffice.learner import ActiveLearner

    y = job.pool_labels
    learner = ActiveLearner(
        job.model,
        job.pool_features,
        criterion=rule,
        acquisition=wanted.acquisition,
        random_share=request.random_share,
        seed=request.seed,
        initial=request.initial,
        positive=positive,
    )
    with labelling_bar(console, "screening") as progress:
        items = learner.ask(request.initial)
        while True:
            verdict = learner.tell(items, y[items])
            done = len(learner.labelled)
            if progress is not None:
                progress(done, job.labels)
            if verdict.stop or done >= job.labels:
                return learner, learner.verdicts
            size = max(1, int(_GROWTH * done)) if wanted.growing else request.batch
            items = learner.ask(min(size, job.labels - done))


def _show(console: Console, found: ScreenedTable) -> None:
    """Tell a person how it came out."""
    gains = np.cumsum(found.relevance).astype(float).tolist()
    width = max(20, min(64, console.width - 10))
    plain = not console.encoding.lower().startswith("utf")
    console.print("\nRelevant rows found, by rows screened", style="dim")
    lines = number_chart(gains, [float("nan")] * len(gains), log=False, width=width, height=9, plain=plain)
    end = f"{found.screened} rows"
    console.print("\n".join([*lines, f"{'':8}1{end:>{width - 1}}"]), style="cyan", markup=False)
    reason = found.verdicts[-1].reason if found.verdicts else "the rule has judged no step"
    headline = screening_headline(found.screened, found.size, found.found, stopped=found.stopped, reason=reason)
    console.print(f"\n{headline}", style="bold", markup=False)
    for sentence in screening_sentences(found.about()):
        console.print(sentence, markup=False)
    if found.stopped:
        console.print(f"The rule: {reason}.", style="dim", markup=False)


def _as_json(found: ScreenedTable, job: TableJob, saved: Path | None) -> dict[str, Any]:
    about = found.about()
    last = found.verdicts[-1] if found.verdicts else None
    return {
        "task": job.table.kind,
        "model": job.name.value,
        **about,
        "rule": {"name": type(found.rule).__name__, **found.rule.state_dict()["params"]},
        "recall_reached": found.found / found.relevant,
        "checks": [{"labels": size, "guaranteed_recall": value} for size, value in about["checks"]],
        "value": None if last is None else last.value,
        "threshold": None if last is None else last.threshold,
        "reason": "" if last is None else last.reason,
        "sentences": screening_sentences(about),
        "notes": list(job.table.notes),
        "saved_trace": None if saved is None else str(saved),
        "curve": {
            "n_labelled": [verdict.n_labelled for verdict in found.verdicts],
            "found": np.cumsum(found.relevance)[[verdict.n_labelled - 1 for verdict in found.verdicts]].tolist(),
            "value": [verdict.value for verdict in found.verdicts],
        },
    }
