"""What the paper claims, held against what was measured."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

import numpy as np

from suffice.data.protocols import PUBLISHED
from suffice.experiments.paper.measures import correlation
from suffice.experiments.paper.outcome import Outcome

HOLDS: Final = "holds"
IN_PART: Final = "holds in part"
FAILS: Final = "does not hold"

#: The correlation that the paper calls high.
HIGH: Final = 0.9
#: Where every data set is this close to the others, in shares of the fall in error, a threshold stops at one place.
SAME_PLACE: Final = 0.1
#: An error that ends this far above its least has risen again.
RISEN: Final = 0.05
_EXCEPTED: Final = "blr/htru2"
#: How close the published correlations must be met: to the last printed digit; but where a solver's tolerance, or a
#: network's training, decides the picks.
_TOLERANCE: Final = {"gpr": 6e-5, "brr": 6e-5, "blr": 0.05, "bdnn": 0.05}
_NEVER: Final = float("inf")


@dataclass(frozen=True)
class Finding:
    """A claim of the paper, and what was found.

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


def judge(outcomes: Sequence[Outcome]) -> list[Finding]:
    """Judge every claim that the runs at hand can speak to.

    Args:
        outcomes: The runs.

    Returns:
        Findings on the published protocol first.
    """
    found: list[Finding | None] = []
    for protocol in ("published", "corrected"):
        runs = [each for each in outcomes if each.protocol == protocol]
        if protocol == "published":
            found.append(_repeats(runs))
        found.append(_correlates(runs, protocol))
        found += [_same_place(runs, protocol, model) for model in ("gpr", "brr", "blr")]
        found += [_less_is_more(runs, protocol), _levels_off(runs, protocol)]
    return [each for each in found if each is not None]


def groups(runs: Iterable[Outcome]) -> dict[tuple[str, str | None], list[Outcome]]:
    """Runs that differ in their seed alone, by name and arm."""
    found: dict[tuple[str, str | None], list[Outcome]] = {}
    for each in runs:
        found.setdefault((each.name, each.arm), []).append(each)
    return found


def middle(values: Iterable[float | None]) -> float:
    """Median; what is None (never, undefined) counts as larger than all others, and an even half tells the larger."""
    known = sorted(_NEVER if value is None else value for value in values)
    return known[len(known) // 2] if _NEVER in known else float(median(known))


def _repeats(runs: Sequence[Outcome]) -> Finding | None:
    first = [each for each in runs if each.seed == 1 and each.published_correlation is not None]
    if not first:
        return None
    gaps = {each.name: _gap(each) for each in first}
    missed = [each for each in first if gaps[each.name] > _TOLERANCE[each.model]]
    exact = [each for each in first if each.model in ("gpr", "brr")]
    words = []
    if exact:
        worst = max(gaps[each.name] for each in exact)
        words.append(f"GPR and BRR: {len(exact)} correlations, the furthest {worst:.0e} from what was published.")
    others = [each for each in first if each not in exact]
    told = ", ".join(f"{each.name} {_number(each.correlation)} ({each.published_correlation:.4f})" for each in others)
    if others:
        words.append(f"Ours, and published: {told}; the picks depend on a solver's tolerance or a network's training.")
    if missed:
        words.append(f"Further away than expected: {', '.join(each.name for each in missed)}.")
    verdict = HOLDS if not missed else FAILS if len(missed) == len(first) else IN_PART
    return Finding("The published correlations are what the authors' method gives", "figure 2", "published", verdict,
                   " ".join(words))  # fmt: skip


def _gap(each: Outcome) -> float:
    if each.correlation is None or each.published_correlation is None:
        return _NEVER
    return abs(each.correlation - each.published_correlation)


def _correlates(runs: Sequence[Outcome], protocol: str) -> Finding | None:
    found = {
        key: sorted(-_NEVER if each.correlation is None else each.correlation for each in group)
        for key, group in groups(runs).items()
        if key[0] != _EXCEPTED
    }
    if not found:
        return None
    low = {key: values for key, values in found.items() if median(values) <= HIGH}
    some = {key: values for key, values in found.items() if key not in low and values[0] <= HIGH}
    words = [f"The median over seeds is above {HIGH} in {len(found) - len(low)} of {len(found)} cases."]
    if any(arm for _, arm in found):
        words.append("A case is a model on a data set, with hyper-parameters from labels bought or outside the run.")
    words += _listed("At most that", low)
    if some:
        words.append(f"In {len(some)} of the others some seed is not above it.")
    excepted = [(key, group) for key, group in groups(runs).items() if key[0] == _EXCEPTED]
    for key, group in excepted:
        words.append(f"HTRU2, which the paper excepts{_arm(key[1])}: {_range([each.correlation for each in group])}.")
    return Finding(
        "The error ratio and the error correlate by more than 0.9, but for logistic regression on HTRU2",
        "section 5.3, figures 2 and 3",
        protocol,
        _share_verdict(len(found) - len(low), len(found)),
        " ".join(words),
    )


def _listed(title: str, found: dict[tuple[str, str | None], list[float]]) -> list[str]:
    if not found:
        return []
    told = "; ".join(f"{name}{_arm(arm)} {_range(values)}" for (name, arm), values in found.items())
    return [f"{title}: {told}."]


def _same_place(runs: Sequence[Outcome], protocol: str, model: str) -> Finding | None:
    own = [each for each in runs if each.model == model]
    if len({each.data for each in own}) < 2:
        return None
    words, kept, total = [], 0, 0
    thresholds = [f"{each:g}" for each in PUBLISHED[own[0].name].thresholds[:3]]
    for arm in dict.fromkeys(each.arm for each in own):
        places = [_places([each for each in own if each.arm == arm], threshold) for threshold in thresholds]
        kept, total = kept + sum(each.same for each in places), total + len(places)
        told = "; ".join(f"at {threshold} {place}" for threshold, place in zip(thresholds, places, strict=True))
        words.append(f"{f'Labels {arm}: ' if arm else ''}{told}.")
    return Finding(
        f"One threshold stops at about the same place on every data set: {model.upper()}",
        "section 5.3, figure " + {"gpr": "4", "brr": "5", "blr": "6"}[model],
        protocol,
        _share_verdict(kept, total),
        "Share of the fall in error that was still to come at the stop, from the lowest data set to the highest "
        f"(median over seeds; the same place is within {SAME_PLACE:g}). {' '.join(words)}",
    )


@dataclass(frozen=True)
class _Places:
    """Where one threshold stops: on the data sets that it stops on, and on which it does not."""

    reached: list[float]
    never: list[str]

    @property
    def same(self) -> bool:
        return not self.never and max(self.reached) - min(self.reached) <= SAME_PLACE

    def __str__(self) -> str:
        ends = f"{min(self.reached):.3f} to {max(self.reached):.3f}" if self.reached else "nowhere"
        return f"{ends} (never: {' and '.join(self.never)})" if self.never else ends


def _places(runs: Sequence[Outcome], threshold: str) -> _Places:
    found = {name: middle([each.excess(threshold) for each in group]) for (name, _), group in groups(runs).items()}
    never = [name.split("/")[1] for name, place in found.items() if place == _NEVER]
    return _Places([place for place in found.values() if place < _NEVER], never)


def _less_is_more(runs: Sequence[Outcome], protocol: str) -> Finding | None:
    found = groups(each for each in runs if each.model == "blr")
    rising = {key: group for key, group in found.items() if median([_grown(each) for each in group]) > RISEN}
    if not rising:
        return None
    words, before = [], {}
    for (name, arm), group in rising.items():
        values = [_before_best(each) for each in group]
        before[name, arm] = median([-1.0 if value is None else value for value in values])
        grown = median([_grown(each) for each in group])
        words.append(f"{name}{_arm(arm)}: {grown:.0%} above by the end, correlation up to the least {_range(values)}.")
    high, some = (sum(value > bar for value in before.values()) for bar in (HIGH, 0.5))
    return Finding(
        "Where the error rises again in the end (less is more), the error ratio correlates with it until it does",
        "section 5.3",
        protocol,
        HOLDS if high == len(before) else IN_PART if some == len(before) else FAILS,
        f"The error ends more than {RISEN:.0%} above its least in {len(rising)} of {len(found)} cases of logistic "
        f"regression. {' '.join(words)}",
    )


def _grown(each: Outcome) -> float:
    return float(each.error[-1] / each.error_best - 1.0)


def _before_best(each: Outcome) -> float | None:
    end = int(np.argmin(each.error)) + 1
    return correlation(each.ratio[:end], each.error[:end], each.counted_from)


def _levels_off(runs: Sequence[Outcome], protocol: str) -> Finding | None:
    own = [each for each in runs if each.model == "bdnn"]
    if not own:
        return None
    stops = {threshold: [each.stops[threshold] for each in own] for threshold in ("0.2", "0.15", "0.1")}
    last = [float(np.median(each.ratio[-10:])) for each in own]
    at = [each.excess("0.2") for each in own]
    stopped = sum(stop is not None for stop in stops["0.2"])
    later = sum(stop is not None for name in ("0.15", "0.1") for stop in stops[name])
    words = (
        f"{stopped} of {len(own)} runs stop at 0.2, at round {_range(stops['0.2'], '.0f')}; {later} of "
        f"{2 * len(own)} stop at 0.15 or 0.1. The ratio of the last ten rounds: {_range(last, '.2f')}. Of the fall in "
        f"error was still to come at the stop: {_range(at)}. The ratio falls as the training settles, whether labels "
        "come or not, so the stop says little about labels: see the page on networks."
    )
    verdict = HOLDS if stopped == len(own) and not later else IN_PART if stopped or not later else FAILS
    claim = "The network's error ratio levels off near 0.2: 0.2 stops, at a good time, and 0.15 and 0.1 never do"
    return Finding(claim, "section 5.3, figure 7", protocol, verdict, words)


def _share_verdict(good: int, total: int) -> str:
    return HOLDS if good == total else FAILS if 2 * good < total else IN_PART


def _arm(arm: str | None) -> str:
    return f", {arm}" if arm else ""


def _number(value: float | None, form: str = ".4f") -> str:
    return "undefined" if value is None else format(value, form)


def _range(values: Iterable[float | None], form: str = ".3f") -> str:
    """Median and range; what is None comes last."""
    known = sorted(_NEVER if value is None else value for value in values)
    say: Callable[[float], str] = lambda value: "never" if abs(value) == _NEVER else format(value, form)  # noqa: E731
    return say(known[0]) if len(known) == 1 else f"{say(middle(known))} ({say(known[0])} to {say(known[-1])})"
