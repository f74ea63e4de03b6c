"""A stopping rule for studies of Optuna."""

import math
import threading
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final, NamedTuple

import numpy as np

from suffice.arguments import whole
from suffice.criteria import Criterion, Verdict
from suffice.errors import InvalidTypeError, InvalidValueError, MissingExtraError
from suffice.learner import OptimisationMonitor
from suffice.models import GaussianProcess
from suffice.numerics import Floats

__all__ = ["StoppingCallback"]

#: Name of the attribute of a study with the state of the callback.
STATE: Final = "suffice:monitor"


class StoppingCallback:
    """A callback that stops a study of Optuna when a rule of Bayesian optimisation says so.

    Give it to ``study.optimize(objective, n_trials=200, callbacks=[StoppingCallback()])``. In a loop with ``ask`` and
    ``tell``, call :meth:`update` after ``tell`` instead.

    The callback fits its own Gaussian process to the completed trials, independent of the sampler, and learns its
    hyper-parameters again at each trial. Its inputs are the parameters that all completed trials have, with the same
    distribution (the intersection search space): numbers on a scale from 0 to 1, or their logs; categories as
    indicators. Pruned, failed and unfinished trials are left out, and completed ones with an infinite value. Trials
    count in the order in which they were completed, so that parallel workers are possible. Constraints are not known
    to the model. The state of the rule is saved in the study, and continues if the study is loaded again with the same
    rule.

    Args:
        rule: The stopping rule; that of :class:`suffice.learner.OptimisationMonitor` if left out.
        first: Number of completed trials at which the rule starts, at least 2.
        options: Other arguments of the monitor: ``delta``, ``beta_factor``, ``points``, ``seed``.

    Attributes:
        verdict: What the rule says now.
        verdicts: What it said at each trial.

    Raises:
        MissingExtraError: Optuna is not installed.
        InvalidValueError: An argument is out of range; when called, a study with several objectives.
    """

    def __init__(self, rule: Criterion | None = None, *, first: int = 10, **options: Any) -> None:
        try:
            optuna: Any = import_module("optuna")
        except ImportError:
            raise MissingExtraError("optuna", "", "StoppingCallback") from None
        self._optuna = optuna
        self._first = whole(first, "first", least=2)
        if {"direction", "one_hot", "bounds"} & set(options):
            raise InvalidValueError("direction, one_hot and bounds are those of the study; leave them out")
        self._rule, self._options = rule, options
        # The arguments are checked now, not at the first trial.
        self._monitor = OptimisationMonitor([(0.0, 1.0)], rule, **options)
        self._space: dict[str, Any] | None = None
        self._lock = threading.Lock()
        self.verdicts: list[Verdict] = []
        self.verdict = self._monitor.verdict

    def __repr__(self) -> str:
        return f"StoppingCallback({self._monitor!r})"

    def __call__(self, study: Any, trial: Any) -> None:
        """Apply the rule after a trial, and stop the study if the rule says stop."""
        if trial.state == self._optuna.trial.TrialState.COMPLETE and self.update(study).stop:
            study.stop()

    def update(self, study: Any) -> Verdict:
        """Return the verdict on a study after its completed trials.

        Raises:
            InvalidTypeError: It is not a study of Optuna.
            InvalidValueError: The study has several objectives.
        """
        if not isinstance(study, self._optuna.study.Study):
            raise InvalidTypeError(f"study must be a study of Optuna, not {type(study).__name__}")
        if len(study.directions) != 1:
            raise InvalidValueError(
                f"the study has {len(study.directions)} objectives, and the regret is known for one only; use a fixed "
                "number of trials"
            )
        # With n_jobs, callbacks are called by several threads.
        with self._lock:
            return self._updated(study)

    def _updated(self, study: Any) -> Verdict:
        complete = self._optuna.trial.TrialState.COMPLETE
        trials = [each for each in study.get_trials(deepcopy=False, states=(complete,)) if math.isfinite(each.value)]
        trials.sort(key=lambda each: (each.datetime_complete, each.number))
        if len(trials) < self._first:
            return self._undecided(f"{len(trials)} of {self._first} completed trials are available", len(trials))
        space = self._optuna.search_space.intersection_search_space(trials)
        space = {name: each for name, each in space.items() if not each.single()}
        if not space:
            return self._undecided("the completed trials have no varied parameter in common", len(trials))
        encoded = encoded_trials(trials, space)
        if space != self._space:
            self._restart(study, space, encoded)
        values = np.array([each.value for each in trials])
        known = len(self._monitor.verdicts)
        verdict = self._monitor.update(GaussianProcess(per_feature=True).fit(encoded.X, values))
        new = self._monitor.verdicts[known:]
        if new:
            self.verdicts += new
            self.verdict = verdict
            study.set_user_attr(STATE, self._monitor.state_dict())
        return self.verdict

    def _restart(self, study: Any, space: dict[str, Any], encoded: "EncodedTrials") -> None:
        """Continue with the same rule in another space, or from the state that an earlier process has saved."""
        state = self._monitor.state_dict()
        saved = study.user_attrs.get(STATE) if self._space is None else None
        if saved and all(saved["rule"][part] == state["rule"][part] for part in ("rule", "params")):
            state = saved
        direction = study.direction.name.lower()
        # A saved state with more trials than exist now belongs to trials that were deleted.
        state = {**state, "evaluations": min(state["evaluations"], len(encoded.X))}
        options = {**self._options, "direction": direction, "one_hot": encoded.one_hot}
        self._monitor = OptimisationMonitor.from_state(state, [(0.0, 1.0)] * encoded.X.shape[1], **options)
        self._space = space

    def _undecided(self, reason: str, trials: int) -> Verdict:
        self.verdict = Verdict(
            stop=False,
            value=None,
            threshold=None,
            ready=False,
            reason=reason,
            rule="StoppingCallback",
            n_labelled=trials,
        )
        return self.verdict


class EncodedTrials(NamedTuple):
    """Parameters of trials as numbers.

    Attributes:
        X: One row for each trial, all values from 0 to 1.
        one_hot: Columns of each category.
    """

    X: Floats
    one_hot: list[list[int]]


def encoded_trials(trials: Sequence[Any], space: dict[str, Any]) -> EncodedTrials:
    """Return the parameters of trials as numbers from 0 to 1, in the order of the names of the parameters.

    Args:
        trials: Trials that have all parameters of the space.
        space: Distribution of each parameter, none with a single value.
    """
    columns: list[Floats] = []
    groups: list[list[int]] = []
    for name, distribution in sorted(space.items()):
        given = np.array([distribution.to_internal_repr(each.params[name]) for each in trials], dtype=np.float64)
        if hasattr(distribution, "choices"):
            groups.append(list(range(len(columns), len(columns) + len(distribution.choices))))
            columns += [(given == code).astype(np.float64) for code in range(len(distribution.choices))]
            continue
        low, high = float(distribution.low), float(distribution.high)
        if distribution.log:
            given, low, high = np.log(given), math.log(low), math.log(high)
        columns.append(np.clip((given - low) / (high - low), 0.0, 1.0))
    return EncodedTrials(np.column_stack(columns), groups)
