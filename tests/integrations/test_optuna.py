"""The callback for studies of Optuna."""

import math
from typing import Any

import pytest

import suffice as sf
from suffice.errors import InvalidTypeError, InvalidValueError
from suffice.integrations.optuna import STATE, StoppingCallback, encoded_trials
from tests.integrations.snippets import run_snippet

optuna = pytest.importorskip("optuna")
optuna.logging.set_verbosity(optuna.logging.ERROR)


def study_of(seed: int = 0, **options: Any) -> Any:
    return optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed), **options)


def bowl(trial: Any) -> float:
    return (float(trial.suggest_float("x", -1.0, 1.0)) - 0.2) ** 2


def test_the_snippet() -> None:
    found = run_snippet("with_optuna")
    assert found["callback"].verdict.stop
    assert len(found["study"].trials) < 100
    assert abs(found["study"].best_params["x"] - 0.5) < 0.1


def test_a_study_is_stopped_and_the_verdicts_are_those_of_the_monitor() -> None:
    callback, study = StoppingCallback(sf.Budget(15)), study_of()
    study.optimize(bowl, n_trials=30, callbacks=[callback])
    assert len(study.trials) == 15
    assert [verdict.n_labelled for verdict in callback.verdicts] == [10, 11, 12, 13, 14, 15]
    assert "15" in callback.verdict.reason


def test_pruned_failed_and_infinite_trials_are_left_out() -> None:
    def objective(trial: Any) -> float:
        x = trial.suggest_float("x", -1.0, 1.0)
        if trial.number % 4 == 1:
            trial.report(x, 0)
            raise optuna.TrialPruned
        if trial.number % 4 == 2:
            return math.nan
        return math.inf if trial.number % 8 == 3 else float(x**2)

    callback, study = StoppingCallback(first=4), study_of()
    study.optimize(objective, n_trials=24, callbacks=[callback], catch=(ValueError,))
    usable = [t for t in study.trials if t.state.name == "COMPLETE" and math.isfinite(t.value)]
    assert len(usable) < 12
    assert callback.verdict.n_labelled == len(usable)
    assert len(callback.verdicts) == len(usable) - 3


def test_conditional_parameters_change_the_space_and_the_rule_goes_on() -> None:
    def objective(trial: Any) -> float:
        x = trial.suggest_float("x", 1e-3, 1.0, log=True)
        if trial.number < 14:
            x += trial.suggest_int("depth", 1, 9)
        return float(x)

    rule = sf.RegretChange(share=0.9, calibration=8)
    callback, study = StoppingCallback(rule, first=5), study_of()
    study.optimize(objective, n_trials=20, callbacks=[callback])
    assert [verdict.n_labelled for verdict in callback.verdicts][-1] == len(study.trials)
    # The first values that were seen in the other space still count.
    assert [verdict.ready for verdict in callback.verdicts[:9]] == [False] * 8 + [True]


def test_parameters_are_encoded() -> None:
    study = study_of()

    def objective(trial: Any) -> float:
        trial.suggest_float("a", 1e-4, 1.0, log=True)
        trial.suggest_int("b", 2, 10, step=2)
        trial.suggest_categorical("c", ["x", None, 3])
        trial.suggest_float("d", 0.5, 0.5)
        return 0.0

    study.optimize(objective, n_trials=12)
    space = optuna.search_space.intersection_search_space(study.trials)
    X, groups = encoded_trials(study.trials, {name: each for name, each in space.items() if not each.single()})
    params = [trial.params for trial in study.trials]
    assert groups == [[2, 3, 4]]
    assert X[:, 0] == pytest.approx([1.0 + math.log10(each["a"]) / 4.0 for each in params])
    assert X[:, 1] == pytest.approx([(each["b"] - 2) / 8 for each in params])
    assert (X[:, 2:].argmax(axis=1) == [["x", None, 3].index(each["c"]) for each in params]).all()
    assert (X[:, 2:].sum(axis=1) == 1.0).all()


def test_parallel_trials_count_in_the_order_of_their_completion() -> None:
    callback, study = StoppingCallback(first=3), study_of()
    asked = [study.ask() for _ in range(6)]
    order = [3, 0, 5, 1, 4, 2]
    for number in order:
        study.tell(asked[number], bowl(asked[number]))
        callback.update(study)
    assert [verdict.n_labelled for verdict in callback.verdicts] == [3, 4, 5, 6]
    threads = StoppingCallback(sf.Budget(20), first=5)
    study.optimize(bowl, n_trials=40, n_jobs=4, callbacks=[threads])
    assert threads.verdict.stop
    counts = [verdict.n_labelled for verdict in threads.verdicts]
    assert counts == sorted(set(counts))


def test_a_study_that_is_continued_keeps_the_state_of_the_rule(tmp_path: Any) -> None:
    storage = f"sqlite:///{tmp_path / 'study.db'}"
    rule = sf.RegretChange(share=0.5, calibration=6)
    parts = []
    for number in range(2):
        study = optuna.create_study(
            storage=storage, study_name="one", load_if_exists=True, sampler=optuna.samplers.RandomSampler(seed=number)
        )
        parts.append(StoppingCallback(rule, first=5))
        for _ in range(8):
            trial = study.ask()
            study.tell(trial, bowl(trial))
            parts[-1].update(study)
    whole, again = StoppingCallback(rule, first=5), study_of()
    for trial in study.trials:
        again.add_trial(trial)
        whole.update(again)
    assert [*parts[0].verdicts, *parts[1].verdicts] == whole.verdicts
    assert study.user_attrs[STATE]["evaluations"] == 16
    # Another rule starts anew.
    other = StoppingCallback(sf.RegretChange(share=0.5, calibration=4), first=5)
    assert not other.update(study).ready


def test_a_maximum() -> None:
    stops = []
    for direction, sign in (("minimize", 1.0), ("maximize", -1.0)):
        study, callback = study_of(direction=direction), StoppingCallback()

        def objective(trial: Any, sign: float = sign) -> float:
            return sign * bowl(trial)

        study.optimize(objective, n_trials=25, callbacks=[callback])
        stops.append([(verdict.stop, pytest.approx(verdict.value, rel=1e-6)) for verdict in callback.verdicts])
    assert stops[0] == stops[1]


def test_nothing_in_common_and_equal_values() -> None:
    def objective(trial: Any) -> float:
        trial.suggest_float(f"x{trial.number}", 0.0, 1.0)
        return 1.0

    callback, study = StoppingCallback(first=3), study_of()
    study.optimize(objective, n_trials=6, callbacks=[callback])
    assert callback.verdict.reason == "the completed trials have no varied parameter in common"
    study = study_of()
    study.optimize(lambda trial: 0.0 * trial.suggest_float("x", 0.0, 1.0), n_trials=6, callbacks=[callback])
    assert callback.verdict.value is not None
    assert math.isfinite(callback.verdict.value)


def test_refusals() -> None:
    study = optuna.create_study(directions=["minimize", "maximize"])
    with pytest.raises(InvalidValueError, match="the study has 2 objectives"):
        StoppingCallback().update(study)
    with pytest.raises(InvalidTypeError, match="study must be a study of Optuna"):
        StoppingCallback().update(None)
    with pytest.raises(InvalidValueError, match="first must be a whole number, 2 or more"):
        StoppingCallback(first=1)
    with pytest.raises(InvalidValueError, match="are those of the study"):
        StoppingCallback(direction="maximize")
    with pytest.raises(sf.SufficeError, match="EntropyMax requires"):
        StoppingCallback(sf.EntropyMax())
