"""Recorded runs: saved, loaded, replayed without looking ahead."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import suffice as sf
from suffice.errors import InvalidValueError, MissingInputError, SufficeError
from suffice.models import BayesianLogistic, BayesianRidge, GaussianProcess
from suffice.trace import STEP_FIELDS, Relearned, Trace
from tests.every_rule import OF_CLASSES_ONLY, OF_OPTIMISATION, OF_SCREENING, RULES, made_up_steps
from tests.thoroughness import thorough


def run(steps: int = 60, *, learned: bool = True) -> Trace:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=200)
    model = GaussianProcess() if learned else GaussianProcess(1.0, 0.05)
    return sf.simulate(model, X, y, steps=steps, X_test=X, y_test=y, record=())


def test_saved_and_loaded(tmp_path: Path) -> None:
    trace = run()
    trace.save(tmp_path / "run.npz")
    again = Trace.load(tmp_path / "run.npz")
    for name in (*ARRAYS, "predictive_error", "wrong_share"):
        assert getattr(again, name).tolist() == getattr(trace, name).tolist()
    assert len(again.predictive_error) == len(again)
    assert again.about == trace.about
    rule = sf.ErrorStability(0.1)
    assert again.replay(rule) == trace.replay(rule)
    assert [known.step for known in trace.relearned] == [9, 29]


def test_files_that_are_no_runs(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="no such file"):
        Trace.load(tmp_path / "none.npz")
    (tmp_path / "text.npz").write_text("hello")
    with pytest.raises(InvalidValueError, match="not a run"):
        Trace.load(tmp_path / "text.npz")
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    with pytest.raises(InvalidValueError, match="not a run"):
        Trace.load(tmp_path / "other.npz")
    with pytest.raises(SufficeError, match="cannot be written"):
        run(5).save(tmp_path / "no" / "folder.npz")


ARRAYS = ("initial", "indices", "n_labelled", "kl_new_old", "kl_old_new", "error")


def small() -> Trace:
    """A run of twenty steps with everything that a run can hold."""
    rng = np.random.default_rng(1)
    known = Relearned(7, *rng.random((2, 8)))
    made = Trace.of_divergences(*rng.random((2, 20)), first=10)
    measures = {"accuracy": rng.random(20), "contributions": rng.random((20, 4))}
    return replace(made, error=rng.random(20), relearned=(known,), about={"identity": "a" * 64}, measures=measures)


def contents(trace: Trace) -> dict[str, Any]:
    held = {name: getattr(trace, name).tolist() for name in ARRAYS}
    held |= {name: values.tolist() for name, values in trace.measures.items()}
    pairs = [(each.step, each.kl_new_old.tolist(), each.kl_old_new.tolist()) for each in trace.relearned]
    return {**held, "relearned": pairs, "about": dict(trace.about), "estimated": trace.estimated}


def test_the_share_of_wrong_classes_is_saved_too(tmp_path: Path) -> None:
    trace = replace(small(), predictive_error=np.linspace(0.9, 0.5, 20), wrong_share=np.linspace(0.3, 0.1, 20))
    trace.save(tmp_path / "run.npz")
    again = Trace.load(tmp_path / "run.npz")
    assert again.predictive_error.tolist() == trace.predictive_error.tolist()
    assert again.wrong_share.tolist() == trace.wrong_share.tolist()


@pytest.mark.parametrize("listed", [True, False])
def test_files_of_earlier_versions_have_no_predictive_error(listed: bool, tmp_path: Path) -> None:
    """A run without it is written as an earlier version wrote it; the oldest files have no list of their arrays."""
    path, trace = tmp_path / "run.npz", small()
    trace.save(path)
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    assert not {"predictive_error", "wrong_share"} & set(arrays)
    if not listed:
        text = json.loads(str(arrays["text"]))
        del text["arrays"]
        np.savez_compressed(path, **{**arrays, "text": np.array(json.dumps(text))})
    again = Trace.load(path)
    assert again.error.tolist() == trace.error.tolist()
    assert again.predictive_error.shape == again.wrong_share.shape == (0,)


@pytest.mark.parametrize("name", ["predictive_error", "wrong_share"])
@pytest.mark.parametrize("rows", [0, 19, 21])
def test_a_predictive_error_of_another_length_is_no_run(name: str, rows: int, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    replace(small(), predictive_error=np.zeros(20), wrong_share=np.zeros(20)).save(path)
    with_array(path, name, np.zeros(rows))
    with pytest.raises(InvalidValueError, match="not a run that suffice saved"):
        Trace.load(path)


def damaged(whole: bytes, rng: np.random.Generator) -> bytes:
    """Some bytes wrong, anywhere; now and then some lost or some too many."""
    content, kind = bytearray(whole), rng.integers(6)
    for place in rng.integers(len(content), size=rng.integers(1, 4)):
        content[place] ^= int(rng.integers(1, 256))
    start = int(rng.integers(len(content)))
    if kind == 0:
        del content[start : start + int(rng.integers(1, 50))]
    elif kind == 1:
        content[start:start] = rng.bytes(int(rng.integers(1, 50)))
    return bytes(content)


def test_any_damage_is_answered_in_a_sentence(tmp_path: Path) -> None:
    path, rng = tmp_path / "run.npz", np.random.default_rng(0)
    small().save(path)
    whole, refused = path.read_bytes(), 0
    assert contents(Trace.load(path)) == contents(small())
    for _ in range(400):
        path.write_bytes(damaged(whole, rng))
        try:
            Trace.load(path)
        except InvalidValueError as error:
            assert str(error) == f"{path} is not a run that suffice saved"  # noqa: PT017 - some damage does no harm
            refused += 1
    assert refused > 200


@pytest.mark.parametrize("name", [b"relearned_0", b"measure_accuracy"])
def test_no_part_of_a_damaged_run_is_left_out(name: bytes, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    small().save(path)
    whole = path.read_bytes()
    at = whole.rindex(name)
    path.write_bytes(whole[:at] + b"x" + whole[at + 1 :])
    with pytest.raises(InvalidValueError, match="not a run"):
        Trace.load(path)


@pytest.mark.parametrize(
    ("name", "values"),
    [("relearned_0", np.zeros(3)), ("relearned_0", np.zeros((1, 3))), ("n_labelled", np.array(3))],
    ids=lambda given: given if isinstance(given, str) else str(given.shape),
)
def test_arrays_of_another_shape_are_no_run(name: str, values: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    small().save(path)
    with np.load(path) as file:
        arrays = {each: file[each] for each in file.files}
    np.savez_compressed(path, **{**arrays, name: values})
    with pytest.raises(InvalidValueError, match="not a run"):
        repr(Trace.load(path))


@pytest.mark.parametrize("learned", [True, False])
def test_replay_never_looks_ahead(learned: bool) -> None:
    whole, part = run(80, learned=learned), run(47, learned=learned)
    rule = sf.ErrorStability(0.1)
    seen, known = whole.replay(rule)[:47], part.replay(rule)
    assert [v.stop for v in seen] == [v.stop for v in known]
    # Where the run ends, the labels are factored in other groups: the last digit may differ, and no more.
    assert [v.value for v in seen] == pytest.approx([v.value for v in known], rel=1e-10)


def test_replay_starts_over_where_the_past_changed() -> None:
    new_old, old_new = np.full(6, 0.1), np.full(6, 0.1)
    changed = Relearned(3, np.array([1.0, 1.0, 1.0, 1e-4]), np.array([1.0, 1.0, 1.0, 1e-4]))
    trace = Trace(np.arange(5), np.arange(6), 6 + np.arange(6), new_old, old_new, np.zeros(0), (changed,))
    verdicts = trace.replay(sf.ErrorStability(0.5, calibration=2))
    assert [v.stop for v in verdicts] == [False, False, False, True, True, True]
    assert verdicts[2].value == 1.0


def test_replay_is_observe() -> None:
    trace = run(learned=False)
    rule = sf.ErrorStability(0.2) & sf.Budget(30)
    assert trace.replay(rule) == [
        rule.observe(sf.Step(n_labelled=int(n), kl_new_old=float(a), kl_old_new=float(b)))
        for n, a, b in zip(trace.n_labelled, trace.kl_new_old, trace.kl_old_new, strict=True)
    ]


def test_ratio_is_the_rules() -> None:
    trace = run(learned=False)
    assert trace.ratio().tolist() == [v.value for v in trace.replay(sf.ErrorStability(0.0))]


def test_audit_is_a_run_in_order() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = X @ [1.0, 2.0, 3.0, 4.0] + rng.normal(size=300)
    trace = sf.audit(BayesianRidge(1.0, 1.0, fit_intercept=False), X, y)
    assert trace.indices.tolist() == list(range(10, 300))
    pair = sf.divergence.history(X @ X.T, y, 1.0)
    assert trace.kl_new_old == pytest.approx(pair.new_old[10:], rel=1e-6)
    assert trace.kl_old_new == pytest.approx(pair.old_new[10:], rel=1e-6)


@pytest.mark.parametrize("size", [1, 4])
def test_audit_of_a_process_is_one_factorisation(size: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=90)
    model = GaussianProcess(0.8, 0.01)
    trace = sf.audit(model, X, y, batch=size)
    pair = sf.divergence.history(GaussianKernel(X), y, 0.01)
    if size == 1:
        assert trace.kl_new_old == pytest.approx(pair.new_old[10:], rel=1e-8)
    else:
        old, new = (GaussianProcess(0.8, 0.01).fit(X[:n], y[:n]).posterior for n in (10, 14))
        assert trace.kl_new_old[0] == pytest.approx(sf.kl(new, old), rel=1e-7)
        assert trace.kl_old_new[0] == pytest.approx(sf.kl(old, new), rel=1e-7)


def GaussianKernel(X: "np.typing.NDArray[np.float64]") -> "np.typing.NDArray[np.float64]":  # noqa: N802
    return np.asarray(np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=-1) / 0.64))


# Facts for rules


@lru_cache
def told(name: str) -> Trace:
    """A run with all that a loop can tell, and hyper-parameters that are learned again on the way."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2))
    numbers = np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=90)
    words = np.array(["ham", "spam", "eggs"])[(2.0 * X @ rng.normal(size=(2, 3)) + rng.gumbel(size=(90, 3))).argmax(1)]
    options: dict[str, Any] = {"initial": 8, "steps": 40, "record": "all", "stop_set": 20}
    if name == "numbers":
        return sf.simulate(GaussianProcess(), X[20:], numbers[20:], validation=(X[:20], numbers[:20]), **options)
    if name == "batches":
        options |= {"steps": 10, "batch": 4}
    return sf.simulate(BayesianLogistic(), X[20:], words[20:], validation=(X[:20], words[:20]), **options)


def columns_of(steps: Sequence[sf.Step]) -> dict[str, Any]:
    return {name: np.array([getattr(step, name) for step in steps]) for name in STEP_FIELDS}


@lru_cache
def made_up() -> Trace:
    """Every field of a step, some of which look different when hyper-parameters are learned again."""
    columns = columns_of(made_up_steps(40))
    pair = columns.pop("kl_new_old"), columns.pop("kl_old_new")
    known = []
    for end in (9, 25):
        anew = columns_of(made_up_steps(end + 1, seed=end))
        known.append(Relearned(end, anew.pop("kl_new_old"), anew.pop("kl_old_new"), anew))
    return replace(Trace.of_divergences(*pair, first=10), measures=columns, relearned=tuple(known))


def after(trace: Trace, k: int) -> Trace:
    """The run as it was after ``k`` steps."""
    per_step = ("indices", "n_labelled", "kl_new_old", "kl_old_new", "error")
    return replace(
        trace,
        **{name: getattr(trace, name)[:k] for name in per_step},
        relearned=tuple(known for known in trace.relearned if known.step < k),
        measures={name: values[:k] for name, values in trace.measures.items()},
    )


def same_facts(one: Trace, other: Trace) -> None:
    assert contents(one) == contents(other)
    for name, values in one.measures.items():
        assert other.measures[name].dtype == values.dtype, name
        assert other.measures[name].shape == values.shape, name
    for was, now in zip(one.relearned, other.relearned, strict=True):
        assert set(was.measures) == set(now.measures)
        for name, values in was.measures.items():
            np.testing.assert_array_equal(now.measures[name], values)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("make", [lambda: told("numbers"), lambda: told("classes"), lambda: told("batches"), made_up])
def test_all_facts_survive_a_file(make: Any, tmp_path: Path) -> None:
    trace = make()
    trace.save(tmp_path / "run.npz")
    again = Trace.load(tmp_path / "run.npz")
    same_facts(trace, again)
    assert again.recorded == trace.recorded
    assert again.steps() == trace.steps()
    for rule in RULES.values():
        if rule.needs() <= trace.recorded:
            assert again.replay(rule) == trace.replay(rule)


def test_which_rules_can_be_replayed() -> None:
    def replayable(trace: Trace) -> set[str]:
        return {name for name, rule in RULES.items() if rule.needs() <= trace.recorded}

    assert replayable(told("numbers")) == set(RULES) - OF_CLASSES_ONLY - OF_OPTIMISATION
    of_classes = set(RULES) - OF_SCREENING - OF_OPTIMISATION - {"MaxVariance"}
    assert replayable(told("classes")) == replayable(told("batches")) == of_classes
    assert replayable(made_up()) == set(RULES)


def test_a_long_run_with_a_large_stop_set_is_a_file_of_a_few_megabytes(tmp_path: Path) -> None:
    """3000 steps, 2000 items, two classes: logits that drift apart, each step less, as in a run.

    The fast test has a fifth of the items in a file of a fifth of the size.
    """
    items = 2000 if thorough() else 400
    rng = np.random.default_rng(0)
    logits, told_of = rng.normal(size=items), np.empty((3000, items, 2), dtype=np.float16)
    for step in range(3000):
        logits = logits * (1.0 + 0.3 / (10 + step)) + rng.normal(size=items) / (3 + step) ** 0.7
        told_of[step, :, 1] = 1.0 / (1.0 + np.exp(-logits))
    told_of[:, :, 0] = 1.0 - told_of[:, :, 1]
    assert len(np.unique(told_of[1500])) > items / 4
    trace = Trace.of_divergences(*rng.random((2, 3000)), first=10)
    measures: dict[str, Any] = {"stop_probabilities": told_of}
    replace(trace, measures=measures).save(tmp_path / "run.npz")
    assert (tmp_path / "run.npz").stat().st_size < 15_000 * items


def with_array(path: Path, name: str, values: Any) -> None:
    with np.load(path) as file:
        arrays = {each: file[each] for each in file.files}
    assert name in arrays
    np.savez_compressed(path, **{**arrays, name: values})


FACTS = ["measure_pool_risk", "measure_stop_probabilities", "measure_cost", "seen_0_pool_risk", "seen_1_expected_error"]


@pytest.mark.parametrize("name", FACTS)
@pytest.mark.parametrize("rows", [0, 39, 41])
def test_a_fact_of_another_length_is_no_run(name: str, rows: int, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    made_up().save(path)
    with_array(path, name, np.zeros(rows))
    with pytest.raises(InvalidValueError, match="not a run that suffice saved"):
        Trace.load(path)


@pytest.mark.parametrize("name", [b"measure_pool_risk", b"seen_0_pool_risk"])
def test_no_fact_of_a_damaged_run_is_left_out(name: bytes, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    made_up().save(path)
    whole = path.read_bytes()
    at = whole.rindex(name)
    path.write_bytes(whole[:at] + b"x" + whole[at + 1 :])
    with pytest.raises(InvalidValueError, match="not a run"):
        Trace.load(path)


@pytest.mark.parametrize(
    "name", sorted(name for name, rule in RULES.items() if rule.needs() - {"kl_new_old", "kl_old_new"})
)
def test_a_rule_whose_facts_were_not_recorded_names_them(name: str) -> None:
    rule = RULES[name]
    wanted = ", ".join(sorted(rule.needs() - {"kl_new_old", "kl_old_new"}))
    said = f"{type(rule).__name__} requires {wanted}, which this run did not record; simulate(..., record="
    with pytest.raises(MissingInputError, match=re.escape(said)):
        run(5).replay(rule)


def test_only_what_is_missing_is_named() -> None:
    X = np.arange(12.0)[:, None]
    trace = sf.simulate(BayesianRidge(1.0, 1.0), X, X[:, 0], initial=3, record="expected_error")
    with pytest.raises(MissingInputError, match="LabelWorth requires calibration, error_scale, pool_size, recent_gain"):
        trace.replay(sf.LabelWorth(1.0, 1.0))
    assert len(trace.replay(sf.ExpectedCost(1.0, 1.0))) == 9


RUNS: dict[str, Any] = {"numbers": lambda: told("numbers"), "classes": lambda: told("classes"), "made up": made_up}


@lru_cache
def verdicts_of(run_name: str, rule_name: str) -> tuple[Trace, list[sf.Verdict]]:
    trace: Trace = RUNS[run_name]()
    return trace, trace.replay(RULES[rule_name])


@pytest.mark.parametrize("rule_name", sorted(RULES))
@settings(max_examples=8)
@given(k=st.integers(0, 40), run_name=st.sampled_from(sorted(RUNS)))
def test_no_rule_looks_ahead(rule_name: str, k: int, run_name: str) -> None:
    if not RULES[rule_name].needs() <= RUNS[run_name]().recorded:
        run_name = "made up"
    trace, verdicts = verdicts_of(run_name, rule_name)
    assert after(trace, k).replay(RULES[rule_name]) == verdicts[:k]


@pytest.mark.parametrize("name", ["classes", "batches"])
def test_a_shorter_run_is_the_beginning_of_a_longer_one(name: str) -> None:
    """The recording does not look ahead either: nothing that is told depends on how long the run is."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(70, 2))
    y = (X[:, 0] + rng.normal(size=70) > 0.0).astype(int)
    settings_of: dict[str, Any] = {
        "initial": 8,
        "record": "all",
        "stop_set": 20,
        "batch": 1 if name == "classes" else 4,
    }
    short, long = (sf.simulate(BayesianLogistic(), X, y, steps=steps, **settings_of) for steps in (7, 12))
    for fact in set(long.measures) - {"seconds"}:
        np.testing.assert_array_equal(short.measures[fact], long.measures[fact][:7], err_msg=fact)


def test_a_rule_that_asks_for_nothing_seen_anew_goes_on() -> None:
    trace = told("classes")
    assert [known.step for known in trace.relearned] == [7, 23]
    for rule in (sf.MinExpectedError(0.3).patience(3), sf.PredictedFChange(0.2, 2), sf.DropInConfidence(2)):
        twin = rule.copy()
        assert trace.replay(rule) == [twin.observe(step) for step in trace.steps()]


def test_a_rule_that_asks_for_something_seen_anew_starts_over() -> None:
    trace = told("numbers")
    known, rule = trace.relearned[-1], sf.MaxVariance(0.3)
    verdicts = trace.replay(rule)
    first, last = known.measures["pool_variance"][[0, -1]]
    assert verdicts[known.step].value == last / first
    assert verdicts[known.step + 1].value == trace.measures["pool_variance"][known.step + 1] / first
    # What was said before stays as it was said.
    if len(trace.relearned) > 1:
        before = trace.relearned[-2].measures["pool_variance"][0]
        assert verdicts[known.step - 1].value == trace.measures["pool_variance"][known.step - 1] / before


def test_steps_are_as_the_newest_hyper_parameters_see_them() -> None:
    trace = told("numbers")
    known = trace.relearned[-1]
    assert 0 < known.step < len(trace) - 1
    for number, step in enumerate(trace.steps()):
        seen: Any = known if number <= known.step else trace
        assert step.kl_new_old == seen.kl_new_old[number]
        for fact in ("pool_variance", "expected_error", "selected_loss", "validation_error"):
            assert getattr(step, fact) == seen.measures[fact][number]
        assert step.cost == trace.measures["cost"][number]


def test_what_a_record_is_filled_up_with_is_no_part_of_its_steps() -> None:
    """Items of larger steps and classes met later: NaN, or -2 among labels."""
    nan = np.nan
    measures: dict[str, Any] = {
        "selected_probabilities": np.array(
            [[[0.25, 0.75, nan], [nan] * 3], [[1.0, 0.0, nan], [0.5, 0.5, nan]], [[0.5, 0.25, 0.25], [0.0, 0.0, 1.0]]]
        ),
        "selected_labels": np.array([[1, -2], [0, -1], [2, 2]]),
        "stop_probabilities": np.array(
            [[[0.5, 0.5, nan]] * 4, [[0.0, 1.0, 0.0]] * 4, [[0.25, 0.25, 0.5]] * 4], dtype=np.float16
        ),
    }
    trace = replace(Trace.of_divergences([0.3, 0.2, 0.1], [0.3, 0.2, 0.1], first=4), measures=measures)
    for steps in (trace.steps(), [after(trace, k + 1).steps()[k] for k in range(3)]):
        held = [(s.selected_probabilities, s.selected_labels, s.stop_probabilities) for s in steps]
        shapes = [[None if part is None else part.shape for part in each] for each in held]
        # A class that has no probability, as after a correction, is there.
        assert shapes == [[(1, 2), (1,), (4, 2)], [(2, 2), (2,), (4, 3)], [(2, 3), (2,), (4, 3)]]
        for number, step in enumerate(steps):
            for name, values in measures.items():
                kept = np.asarray(getattr(step, name), dtype=float)
                whole = values[number].astype(float)
                assert kept.ravel().tolist() == whole[~np.isnan(whole) & (whole > -2)].tolist()
        assert steps[0].stop_probabilities is not None
        assert steps[0].stop_probabilities.dtype == np.float16
    # The record itself is not touched.
    assert np.isnan(trace.measures["selected_probabilities"][0, 1]).all()


@pytest.mark.parametrize("name", sorted(RULES))
def test_a_run_without_a_step_has_no_verdict(name: str) -> None:
    assert Trace.of_divergences([], [], first=4).replay(RULES[name]) == []


def test_what_a_run_can_tell() -> None:
    assert run(3).recorded == {"kl_new_old", "kl_old_new"}
    assert small().recorded == {"kl_new_old", "kl_old_new"}
    assert made_up().recorded == STEP_FIELDS
    assert "accuracy" not in STEP_FIELDS


def test_a_rule_is_not_touched_by_its_replay() -> None:
    trace = made_up()
    for rule in RULES.values():
        used = rule.copy()
        used.observe_all(made_up_steps(5))
        state = used.state_dict()
        assert trace.replay(used) == trace.replay(rule)
        assert used.state_dict() == state
