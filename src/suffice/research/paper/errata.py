"""Errors in the paper and in its authors' scripts, each corrected alone, and their effects as a table."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Final

from suffice.report.html_page import NOTHING, ReportTable
from suffice.research.data.catalogue import SETS
from suffice.research.data.protocols import PUBLISHED, Experiment
from suffice.research.paper.groups import spread
from suffice.research.paper.jobs import PaperRun
from suffice.research.paper.outcome import RunOutcome

Change = Callable[[Experiment], Experiment]


@dataclass(frozen=True)
class Erratum:
    """An error of the paper or of its authors' scripts, or a difference between the two.

    Attributes:
        name: Its name.
        done: What was done.
        right: What is right.
        change: Corrects it in an experiment; an experiment without this error is returned unchanged.
    """

    name: str
    done: str
    right: str
    change: Change


def _view(**changes: object) -> Change:
    return lambda each: replace(each, view=each.view._replace(**changes))  # type: ignore[arg-type]


def _settings(**changes: object) -> Change:
    return lambda each: replace(each, **changes)  # type: ignore[arg-type]


def _of(change: Change, *, models: Sequence[str] = (), data: Sequence[str] = ()) -> Change:
    """Return the change for some models or data sets only."""

    def concerned(each: Experiment) -> Experiment:
        wanted = (not models or each.model in models) and (not data or each.data in data)
        return change(each) if wanted else each

    return concerned


def _first_column_back(each: Experiment) -> Experiment:
    return replace(each, view=each.view._replace(inputs=(SETS[each.data].columns[0], *each.view.inputs)))


def _without_target(each: Experiment) -> Experiment:
    inputs = tuple(name for name in each.view.inputs if name != each.view.target)
    return replace(each, view=each.view._replace(inputs=inputs))


def _without_emissions(each: Experiment) -> Experiment:
    inputs = tuple(name for name in each.view.inputs if name not in ("CO", "NOX"))
    return replace(each, view=each.view._replace(inputs=inputs))


_CSV: Final = ("gas_emission", "grid_stability", "grid_stability_c", "htru2")
_PROTEIN: Final = SETS["protein"].columns

#: In the order in which data go through the experiment.
ERRATA: Final = (
    Erratum("column lost", "the first column of a CSV file is read as an index and lost", "it is an input",
         _of(_first_column_back, data=_CSV)),
    Erratum("row lost", "the first row of HTRU2 is read as a header and lost (and so the split differs too)",
         "it is a row", _of(_view(rows_lost=0), data=("htru2",))),
    Erratum("other target", "of gas emission CDP is predicted",
         "TEY, the energy yield, is the target (here it stays among the inputs)",
         _of(_view(target="TEY"), data=("gas_emission",))),
    Erratum("target among inputs", "CDP is predicted from inputs that hold CDP", "it is no input",
         _of(_without_target, data=("gas_emission",))),
    Erratum("outcomes among inputs", "the emissions CO and NOX are inputs", "they are outcomes, as the target is",
         _of(_without_emissions, data=("gas_emission",))),
    Erratum("target and input swapped", "of protein F9 is predicted, from RMSD among others",
         "RMSD is the target, F9 an input", _of(_view(inputs=_PROTEIN[1:], target="RMSD"), data=("protein",))),
    Erratum("target as it is", "the target of grid stability is not standardised", "all targets are",
         _of(_view(standardised=True), models=("gpr", "brr"), data=("grid_stability",))),
    Erratum("labels nobody bought", "hyper-parameters are learned from 1000 and more labels of the pool beforehand",
         "from the labels bought so far (where the noise is bounded, that bound goes with it)",
         _of(_settings(hyperparameters="bought"), models=("gpr", "brr"))),
    Erratum("ten iterations", "the evidence's fixed point is iterated ten times", "until it is reached",
         _of(_settings(iterations=None), models=("brr",))),
    Erratum("noise bounded", "the noise of gas emission and grid stability is at least 0.1",
         "at least 0.001, as for the others", _of(_settings(noise_floor=1e-3), models=("gpr",),
         data=("gas_emission", "grid_stability"))),
    Erratum("C by hand", "C is 100 for grid stability and 0.001 for skin", "it is 1, as for HTRU2",
         _of(_settings(inverse_precision=1.0), models=("blr",), data=("grid_stability_c", "skin"))),
    Erratum("narrow basis", "the basis is half a step wide", "one step, as the paper says",
         _of(_settings(bandwidth=1.0), models=("brr", "blr"))),
    Erratum("C for its inverse", "the posterior adds C to the information, the fit 1/C", "both add 1/C",
         _of(_settings(information="precision"), models=("blr",), data=("grid_stability_c", "skin"))),
    Erratum("intercept left out", "the posterior is that of the weights for a fixed intercept",
         "the intercept is a parameter too", _of(_settings(intercept="in"), models=("blr",))),
    Erratum("half the loss", "the loss counts the positive class only", "both classes",
         _of(_settings(loss="both"), models=("blr",))),
    Erratum("loss at one point", "the loss is that of the positive class at the most probable weights",
         "the mean over the posterior, of both classes", _of(_settings(loss="expected"), models=("blr",))),
    Erratum("covariance as printed", "(not done, but printed: the covariance is the information itself)",
         "its inverse; here the other way round, as printed", _of(_settings(covariance="printed"), models=("blr",))),
    Erratum("one step more", "gamma is the minimum over m + 1 = 11 steps", "over m = 10",
         _of(_settings(calibration=10, counted_from=9), models=("gpr", "brr", "blr"))),
    Erratum("two steps", "gamma of the network is the minimum over m + 1 = 2 steps", "over m = 1",
         _of(_settings(calibration=1), models=("bdnn",))),
    Erratum("softmax twice", "the network's loss takes its probabilities for logits", "the loss of the probabilities",
         _of(_settings(loss="expected"), models=("bdnn",))),
)  # fmt: skip


def erratum_runs(base: PaperRun) -> list[tuple[Erratum, PaperRun]]:
    """Return, for each erratum of a run, the same run with that erratum corrected.

    Where only the measures differ, and not the run, it is marked as ``shared``.
    """
    found = []
    for erratum in ERRATA:
        changed = erratum.change(base.experiment)
        if changed == base.experiment:
            continue
        job = replace(base, experiment=changed, variant=erratum.name)
        found.append((erratum, replace(job, shared=job.identity == base.identity)))
    return found


@dataclass(frozen=True)
class ErratumEffect:
    """A run as published, and the same run with one erratum corrected."""

    erratum: Erratum
    published: RunOutcome
    corrected: RunOutcome


def errata_tables(effects: Iterable[ErratumEffect]) -> list[ReportTable]:
    """The slips that were put right, and what that changes.

    Args:
        effects: Pairs of runs; several seeds are summarised by their median.
    """
    groups: dict[tuple[str, str], list[ErratumEffect]] = {}
    for each in effects:
        groups.setdefault((each.erratum.name, each.published.name), []).append(each)
    errata = [erratum for erratum in ERRATA if any(name == erratum.name for name, _ in groups)]
    rows = [_row(group) for erratum in errata for (name, _), group in groups.items() if name == erratum.name]
    several = max((len(group) for group in groups.values()), default=1)
    seeds = f"Medians over {several} seeds. " if several > 1 else ""
    return [
        ReportTable(
            "published-slips",
            "Slips of the paper and of its authors' scripts",
            ("slip", "what was done", "what is right"),
            tuple((erratum.name, erratum.done, erratum.right) for erratum in errata),
        ),
        ReportTable(
            "published-slip-effects",
            "What each slip does: put right alone, all else as published",
            (
                "slip",
                "run",
                "correlation",
                "correlation, put right",
                "stop",
                "stop, put right",
                "excess",
                "excess, put right",
            ),
            tuple(rows),
            f"{seeds}Each pair is as published, and with the slip put right. The stop is at the paper's second "
            "threshold of the model, counted in acquisitions from 0; the excess is that at the stop.",
        ),
    ]


def _row(group: Sequence[ErratumEffect]) -> tuple[str, ...]:
    name = group[0].published.name
    threshold = f"{PUBLISHED[name].thresholds[1]:g}"
    sides = [[each.published for each in group], [each.corrected for each in group]]
    stops = [_middle([each.stops[threshold] for each in side], ".0f", "never") for side in sides]
    # Where it stopped, there is no excess only if the error never fell.
    without = ["never" if stop == "never" else NOTHING for stop in stops]
    excesses = [
        _middle([each.excess(threshold) for each in side], ".3f", word)
        for side, word in zip(sides, without, strict=True)
    ]
    correlations = [_middle([each.correlation for each in side], ".3f", "undefined") for side in sides]
    return (group[0].erratum.name, name, *correlations, *stops, *excesses)


def _middle(values: Sequence[float | None], form: str, without: str) -> str:
    found = spread(inf if value is None else value for value in values)
    if found is None:
        return NOTHING
    return without if found.median == inf else format(found.median, form)
