"""The paper's claims, each compared with the measurements; its errata, each corrected alone, and their effects."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Final

import numpy as np

from suffice.report.html_page import NOTHING, ReportTable
from suffice_research.data.catalogue import SETS
from suffice_research.data.protocols import MODELS, PROTOCOLS, PUBLISHED, RUN_NAMES, Experiment, spelled_model
from suffice_research.paper.experiments import PaperRun
from suffice_research.paper.outcome import RunGroup, RunOutcome, correlation, grouped, middle, of_model, spread

HOLDS: Final = "holds"
IN_PART: Final = "holds in part"
FAILS: Final = "does not hold"

#: The correlation that the paper calls high.
HIGH: Final = 0.9
#: A threshold stops at one place if the data sets differ by at most this share of the decrease of the error.
SAME_PLACE: Final = 0.1
#: An error has risen again if its final value exceeds its minimum by this share.
RISEN: Final = 0.05
# Above 1 by more than rounding.
_WORSE: Final = 1.001
#: Lower limit of a moderate correlation.
_SOME: Final = 0.5
_EXCEPTED: Final = "blr/htru2"
#: Tolerances for the published correlations: the last printed digit, or more if the picks depend on the tolerance of a
#: solver or on the training of a network.
_TOLERANCE: Final = {"gpr": 6e-5, "brr": 6e-5, "blr": 0.05, "bdnn": 0.05}


@dataclass(frozen=True)
class ClaimFinding:
    """A claim of the paper, and whether the runs confirm it.

    Attributes:
        claim: What the paper says.
        where: Where it says so.
        protocol: ``published`` or ``corrected``.
        verdict: ``holds``, ``holds in part`` or ``does not hold``.
        words: What was found, with numbers.
    """

    claim: str
    where: str
    protocol: str
    verdict: str
    words: str


def judge(outcomes: Sequence[RunOutcome]) -> list[ClaimFinding]:
    """Evaluate every claim for which there are runs.

    Args:
        outcomes: The runs.

    Returns:
        Findings on the published protocol first.
    """
    found: list[ClaimFinding | None] = []
    for protocol in PROTOCOLS:
        groups = grouped(outcomes, protocol)
        found += [_repeats(groups)] if protocol == "published" else []
        found += [_correlates(groups, protocol)]
        found += [_same_place(of_model(groups, model), protocol) for model in ("gpr", "brr", "blr")]
        found += [_less_is_more(of_model(groups, "blr"), protocol), _levels_off(of_model(groups, "bdnn"), protocol)]
    return [each for each in found if each is not None]


def _repeats(groups: Sequence[RunGroup]) -> ClaimFinding | None:
    """Runs with the authors' seed."""
    first = [each for runs in groups for each in runs.outcomes if each.seed == 1 and runs.published is not None]
    if not first:
        return None
    gaps = {each.name: _gap(each) for each in first}
    missed = [_run(each) for each in first if gaps[each.name] > _TOLERANCE[each.model]]
    exact = [each for each in first if each.model in ("gpr", "brr")]
    others = [each for each in first if each not in exact]
    words = []
    if exact:
        worst = max(gaps[each.name] for each in exact)
        far = "some of them undefined" if worst == inf else f"the furthest {worst:.0e} from what was published"
        regressions = " and ".join(MODELS[model] for model in dict.fromkeys(each.model for each in exact))
        words.append(f"{regressions}: {len(exact)} correlations, {far}.")
    if others:
        told = ", ".join(f"{_run(each)} {_told([each.correlation])} ({each.published_correlation})" for each in others)
        words.append(f"Ours, and published: {told}; the picks depend on a solver's tolerance or a network's training.")
    if missed:
        words.append(f"Further away than expected: {', '.join(missed)}.")
    verdict = HOLDS if not missed else FAILS if len(missed) == len(first) else IN_PART
    claim = "The published correlations are what the authors' method gives"
    return ClaimFinding(claim, "figure 2", "published", verdict, " ".join(words))


def _gap(each: RunOutcome) -> float:
    if each.correlation is None or each.published_correlation is None:
        return inf
    return abs(each.correlation - each.published_correlation)


def _correlates(groups: Sequence[RunGroup], protocol: str) -> ClaimFinding | None:
    found = [runs for runs in groups if runs.name != _EXCEPTED]
    if not found:
        return None
    low = [runs for runs in found if _middle_correlation(runs) <= HIGH]
    some = [runs for runs in found if runs not in low and min(_correlations(runs)) <= HIGH]
    words = [f"The median over seeds is above {HIGH} in {len(found) - len(low)} of {len(found)} cases."]
    if any(runs.arm for runs in found):
        words.append("A case is a model on a data set, with hyper-parameters from labels bought or outside the run.")
    if low:
        words.append(f"At most that: {'; '.join(f'{_case(runs)} {_correlation(runs)}' for runs in low)}.")
    if some:
        words.append(f"In {len(some)} of the others some seed is not above it.")
    excepted = [runs for runs in groups if runs.name == _EXCEPTED]
    if excepted:
        told = "; ".join(f"{_case(runs)} {_correlation(runs)}" for runs in excepted)
        words.append(f"What the paper excepts: {told}.")
    return ClaimFinding(
        "The error ratio and the error correlate by more than 0.9, but for logistic regression on HTRU2",
        "section 5.3, figures 2 and 3",
        protocol,
        _share_verdict(len(found) - len(low), len(found)),
        " ".join(words),
    )


def _correlations(runs: RunGroup) -> list[float]:
    """The correlation of each run; 0 if it is undefined."""
    return [0.0 if each.correlation is None else each.correlation for each in runs.outcomes]


def _correlation(runs: RunGroup) -> str:
    undefined = len(runs.outcomes) - len(runs.correlations)
    return _told(runs.correlations) + (f", undefined in {undefined}" if undefined and runs.correlations else "")


def _middle_correlation(runs: RunGroup) -> float:
    return middle(_correlations(runs))


def _same_place(groups: Sequence[RunGroup], protocol: str) -> ClaimFinding | None:
    arms = [[runs for runs in groups if runs.arm == arm] for arm in dict.fromkeys(runs.arm for runs in groups)]
    # A comparison needs at least two data sets.
    arms = [own for own in arms if len(own) > 1]
    if not arms:
        return None
    places = {
        (own[0].arm, threshold): {runs: middle(runs.excesses(threshold)) for runs in own}
        for own in arms
        for threshold in own[0].thresholds
    }
    told: dict[str | None, list[str]] = {}
    for (arm, threshold), found in places.items():
        told.setdefault(arm, []).append(f"threshold {threshold}: {_ends(found, threshold)}")
    words = " ".join(f"{f'Labels {arm}: ' if arm else ''}{'; '.join(each)}." for arm, each in told.items())
    judged = [is_one_place(found) for found in places.values()]
    same, total = judged.count(True), len(judged) - judged.count(None)
    if not total:
        return None
    model, remarks = groups[0].model, _remarks(list(places.values()))
    return ClaimFinding(
        f"One threshold stops at about the same place on every data set: {spelled_model(model)}",
        "section 5.3, figure " + {"gpr": "4", "brr": "5", "blr": "6"}[model],
        protocol,
        _share_verdict(same, total),
        "Excess, how far the error at the stop is above the least of the run, in shares of the first error less the "
        f"least; from the lowest data set to the highest, median over seeds (one place is within {SAME_PLACE:g}). "
        f"{words[0].upper()}{words[1:]}{remarks}",
    )


def is_one_place(
    places: dict[RunGroup, float], *, within: float = SAME_PLACE, never_counts: bool = False
) -> bool | None:
    """Whether a threshold stops at one place; None if fewer than two data sets count.

    Args:
        places: Excess at the stop on each data set; infinite where it never stops.
        within: How far apart is still one place.
        never_counts: Whether a data set that never stops, and whose error falls to the end of the run, counts
            against it. It does not by default: not to stop is right there.
    """
    found = [place for runs, place in places.items() if place < inf or never_counts or not _falls_on(runs)]
    if len(found) < 2:
        return None
    return inf not in found and max(found) - min(found) <= within


def _ends(places: dict[RunGroup, float], threshold: str) -> str:
    reached = [place for place in places.values() if place < inf]
    parts = [f"{min(reached):.3f} to {max(reached):.3f}" if reached else "no data set stops"]
    never = [runs.data for runs in places if middle(runs.stops(threshold)) == inf]
    flat = [runs.data for runs, place in places.items() if place == inf and runs.data not in never]
    parts += [f"{' and '.join(never)} never"] if never and reached else []
    parts += [f"{' and '.join(flat)} with an error that never fell"] if flat else []
    return ", ".join(parts)


def _remarks(found: Sequence[dict[RunGroup, float]]) -> str:
    words = ""
    if any(_WORSE < place < inf for places in found for place in places.values()):
        words += " Above 1 is a stop at an error worse than the first."
    falling = dict.fromkeys(
        f"{runs.data} ({runs.arm})" if runs.arm else runs.data
        for places in found
        for runs, place in places.items()
        if place == inf and _falls_on(runs)
    )
    if falling:
        named = " and ".join(falling)
        words += f" On {named} the error falls to the end of the run: not to stop is right, and counts neither way."
    return words


def _falls_on(runs: RunGroup) -> bool:
    """Whether the error is least in the last twentieth of the run, in the median."""
    return middle(float(np.argmin(each.error)) / len(each.error) for each in runs.outcomes) >= 0.95


def _less_is_more(groups: Sequence[RunGroup], protocol: str) -> ClaimFinding | None:
    risen = {runs: middle(each.error[-1] / each.error_best - 1.0 for each in runs.outcomes) for runs in groups}
    rising = [runs for runs in groups if risen[runs] > RISEN]
    if not rising:
        return None
    before = {runs: [_before_best(each) for each in runs.outcomes] for runs in rising}
    told = " ".join(
        f"{_case(runs)}: {risen[runs]:.0%} above by the end, correlation up to the least {_told(before[runs])}."
        for runs in rising
    )
    middles = [middle(each) for each in before.values()]
    enough = min(middles)
    return ClaimFinding(
        "Where the error rises again in the end (less is more), the error ratio correlates with it until it does",
        "section 5.3",
        protocol,
        HOLDS if enough > HIGH else IN_PART if enough > _SOME else FAILS,
        f"The error ends more than {RISEN:.0%} above its least in {len(rising)} of {len(groups)} cases of logistic "
        f"regression. {told}",
    )


def _before_best(each: RunOutcome) -> float:
    end = int(np.argmin(each.error)) + 1
    return correlation(each.ratio[:end], each.error[:end], each.counted_from) or 0.0


def _levels_off(groups: Sequence[RunGroup], protocol: str) -> ClaimFinding | None:
    if not groups:
        return None
    runs = groups[0].outcomes
    stops = [each.stops["0.2"] for each in runs if each.stops["0.2"] is not None]
    later = sum(each.stops[name] is not None for name in ("0.15", "0.1") for each in runs)
    last = [float(np.median(each.ratio[-10:])) for each in runs]
    words = f"{len(stops)} of {len(runs)} runs stop at 0.2"
    left = [place for place in groups[0].excesses("0.2") if place < inf]
    words += f", at round {_told(stops, '.0f')} (the paper's at 67)" if stops else ""
    words += f", with an excess of {_told(left)}" if left else ""
    words += (
        f"; {later} of {2 * len(runs)} stop at 0.15 or 0.1. The last ten rounds have a ratio of {_told(last, '.2f')}. "
        "It falls as the training settles, whether labels come or not, so the stop says little about labels: see the "
        "page on networks."
    )
    verdict = HOLDS if len(stops) == len(runs) and not later else IN_PART if stops else FAILS
    claim = "The network's error ratio levels off near 0.2: the threshold 0.2 stops, 0.15 and 0.1 never do"
    return ClaimFinding(claim, "section 5.3, figure 7", protocol, verdict, words)


def _share_verdict(good: int, total: int) -> str:
    return HOLDS if good == total else FAILS if 2 * good < total else IN_PART


def _case(runs: RunGroup) -> str:
    name = f"{MODELS[runs.model]} on {runs.title}"
    return f"{name}, {runs.arm}" if runs.arm else name


def _run(outcome: RunOutcome) -> str:
    return _case(RunGroup(outcome.model, outcome.data, None, (outcome,)))


def _told(values: Iterable[float | None], form: str = ".3f") -> str:
    """Median and range, or the number itself if there is only one."""
    found = spread(value for value in values if value is not None)
    if found is None:
        return "undefined"
    if found.number == 1:
        return format(found.median, form)
    return f"{found.median:{form}} ({found.lowest:{form}} to {found.highest:{form}})"


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

#: In the order of the processing steps of an experiment.
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

    If only the measures differ, and not the run, it is marked as ``shared``.
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
    """The errors that were corrected, and the effect of each correction.

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
            "Errors in the paper and in its authors' scripts",
            ("error", "what was done", "what is correct"),
            tuple((erratum.name, erratum.done, erratum.right) for erratum in errata),
        ),
        ReportTable(
            "published-slip-effects",
            "Effect of each error: corrected alone, everything else as published",
            (
                "error",
                "run",
                "correlation",
                "correlation, corrected",
                "stop",
                "stop, corrected",
                "excess",
                "excess, corrected",
            ),
            tuple(rows),
            f"{seeds}Each pair is as published, and with the error corrected. The stop is at the paper's second "
            f"threshold of the model, counted in acquisitions from 0; the excess is that at the stop. {RUN_NAMES}",
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
