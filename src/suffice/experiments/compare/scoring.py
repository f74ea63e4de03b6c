"""A run judged: where every rule would have stopped at each of its settings, and what that would have cost."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.experiments.compare.costs import (
    RATIOS,
    CostedRun,
    first_good,
    optimal_steps,
    paid_steps,
    random_regrets,
    regrets,
)
from suffice.experiments.compare.entry import Entry
from suffice.experiments.compare.replay import Replayer
from suffice.experiments.compare.rules import ORACLE, RANDOM_STOP, for_trace
from suffice.special import Floats
from suffice.trace import Trace


@dataclass(frozen=True, order=True)
class RunCase:
    """Identifies a run.

    Attributes:
        data: Name of the data set. Runs on the same data set have the same name, whatever else differs.
        model: Name of the model: settings are chosen among runs of the same.
        seed: Seed of the run.
        batch: Labels bought at each step.
        variant: What else was varied, in words: label noise, imbalance, the size of the stop set.
    """

    data: str
    model: str
    seed: int
    batch: int = 1
    variant: str = ""


@dataclass(frozen=True, eq=False)
class RuleScore:
    """One rule on one run, at each of its settings.

    Attributes:
        case: Which run.
        rule: Name of the entry.
        ratios: What an error of 1 costs, in labels.
        settings: Settings of the rule. For a rule of costs, and the oracle, they are the ratios.
        stops: Step of the stop at each setting, from 0; None where there is none.
        regrets: Relative regret, ``settings x ratios``.
        labels: Labels paid for at each setting, the whole run's where there was no stop.
        error: Error at the stop.
        premature: Whether it stopped before the first good step; for a random stop the share of steps before it.
        fired: Whether it stopped.
        good_labels: Labels at the first good step of the run.
        best_error: Least error of the run.
        seconds_per_step: What the rule took for one step; None for a reference that is no rule.
    """

    case: RunCase
    rule: str
    ratios: tuple[float, ...]
    settings: tuple[Any, ...]
    stops: tuple[int | None, ...]
    regrets: Floats
    labels: Floats
    error: Floats
    premature: Floats
    fired: Floats
    good_labels: float
    best_error: float
    seconds_per_step: float | None = None

    @property
    def over(self) -> Floats:
        """Labels beyond those at the first good step, at each setting; below 0 where there are fewer."""
        return self.labels - self.good_labels

    @property
    def forgone(self) -> Floats:
        """Error above the best of the run, at each setting."""
        return self.error - self.best_error


def scores(
    case: RunCase,
    trace: Trace,
    *,
    ratios: Sequence[float] = RATIOS,
    entries: Sequence[Entry] | None = None,
    error: Any = None,
) -> list[RuleScore]:
    """Replay everything that can be compared on a run, and judge it.

    Args:
        case: Which run it is.
        trace: The run, recorded with a test set.
        ratios: What an error of 1 costs, in labels.
        entries: What to compare; all that the run recorded enough for if left out.
        error: What to judge by, one number for each step; the test error of the run if left out.

    Returns:
        One score for each entry.

    Raises:
        InvalidValueError: The run has no error to judge by.
        MissingInputError: An entry requires what was not recorded.

    Examples:
        >>> from dataclasses import replace
        >>> trace = replace(Trace.of_divergences([0.5, 0.1], [0.6, 0.1], first=10), error=np.array([0.4, 0.3]))
        >>> found = {score.rule: score for score in scores(RunCase("toy", "gp", 0), trace, ratios=[1.0, 100.0])}
        >>> found["Oracle"].stops, found["Never"].regrets.round(2)
        ((0, 1), array([[0.08, 0.  ]]))
    """
    run, replayer, wanted = CostedRun.of(trace, error), Replayer(trace), tuple(float(ratio) for ratio in ratios)
    compared = for_trace(trace, wanted) if entries is None else entries
    made = []
    for entry in compared:
        if entry.name == RANDOM_STOP:
            made.append(_random(case, run, wanted))
        elif entry.name == ORACLE:
            stops = tuple(int(step) for step in optimal_steps(run, wanted))
            made.append(_score(case, run, wanted, name=entry.name, settings=wanted, stops=stops))
        else:
            found = replayer.replay(entry)
            made.append(
                _score(
                    case,
                    run,
                    wanted,
                    name=entry.name,
                    settings=entry.settings,
                    stops=tuple(found.stops.values()),
                    extra=entry.extra_labels(trace),
                    seconds=found.seconds_per_step,
                )
            )
    return made


def _score(  # noqa: PLR0913 - what a score is made of, all but three by keyword
    case: RunCase,
    run: CostedRun,
    ratios: tuple[float, ...],
    *,
    name: str,
    settings: tuple[Any, ...],
    stops: tuple[int | None, ...],
    extra: int = 0,
    seconds: float | None = None,
) -> RuleScore:
    steps, good = paid_steps(run, stops), first_good(run)
    fired = np.array([stop is not None for stop in stops])
    return RuleScore(
        case=case,
        rule=name,
        ratios=ratios,
        settings=settings,
        stops=stops,
        regrets=regrets(run, stops, ratios, extra=extra),
        labels=run.n_labelled[steps] + extra,
        error=run.error[steps],
        premature=(fired & (steps < good)).astype(np.float64),
        fired=fired.astype(np.float64),
        good_labels=float(run.n_labelled[good]),
        best_error=run.best_error,
        seconds_per_step=seconds,
    )


def _random(case: RunCase, run: CostedRun, ratios: tuple[float, ...]) -> RuleScore:
    """What is expected of a stop at a step drawn at random."""
    good = first_good(run)
    return RuleScore(
        case=case,
        rule=RANDOM_STOP,
        ratios=ratios,
        settings=(None,),
        stops=(None,),
        regrets=random_regrets(run, ratios)[None],
        labels=np.array([run.n_labelled.mean()]),
        error=np.array([run.error.mean()]),
        premature=np.array([good / len(run)]),
        fired=np.ones(1),
        good_labels=float(run.n_labelled[good]),
        best_error=run.best_error,
    )
