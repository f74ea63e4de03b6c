"""Runs to compare rules on: what each starts from, when two are the same, and which cannot be made."""

import csv
import os
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from sklearn.decomposition import PCA

from suffice import StopSet
from suffice.errors import InvalidValueError, MissingDataError, SufficeError
from suffice.tables.example_data import Task
from suffice.trace import Trace
from suffice_research.compare.recording import (
    _VERSIONS,
    MODELS,
    SOURCES,
    RecordingJob,
    RecordingSettings,
    _fewer_features,
    cut,
    load,
    prepared,
    recordings,
)
from suffice_research.data.catalogue import FileState, set_status
from tests.thoroughness import crossed

SMALL = RecordingSettings(labels=22, initial=6, pool=50, test=48, stop_set=20, validation=8)
TASKS = {"gp": "diabetes", "ridge": "friedman", "logistic": "wine"}


def job(model: str = "logistic", **options: Any) -> RecordingJob:
    return RecordingJob(TASKS[model], model, **{"seed": 1, "setting": SMALL, **options})


def run(made: RecordingJob) -> Trace:
    return made.run(Path("traces"), None)


def write(name: str, **columns: Any) -> str:
    path = Path(name).absolute()
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return str(path)


class TestARun:
    @pytest.mark.one_in(3)
    @pytest.mark.parametrize(("model", "batch"), crossed(MODELS, [1, 3], every=2))
    def test_the_same_job_gives_the_same_run(self, model: str, batch: int) -> None:
        one, other = (run(job(model, batch=batch)) for _ in range(2))
        for name in ("initial", "indices", "n_labelled", "kl_new_old", "kl_old_new", "error"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        assert set(one.measures) == set(other.measures)
        # Time alone passes otherwise.
        for name in set(one.measures) - {"seconds"}:
            np.testing.assert_array_equal(one.measures[name], other.measures[name])
        assert run(job(model, batch=batch, seed=2)).kl_new_old.tolist() != one.kl_new_old.tolist()

    @pytest.mark.parametrize("model", MODELS)
    def test_all_that_rules_may_ask_for_is_there(self, model: str) -> None:
        from suffice.learner.class_backend import ClassBackend
        from suffice.learner.gaussian_backend import GaussianBackend
        from suffice.learner.step_inputs import COUNTED_FIELDS, VALIDATION_FIELDS

        trace = run(job(model))
        told = ClassBackend.step_fields | {"classes_seen"} if model == "logistic" else GaussianBackend.step_fields
        assert trace.recorded == told | COUNTED_FIELDS | VALIDATION_FIELDS | {"kl_new_old", "kl_old_new"}
        assert len(trace.error) == len(trace) == 16
        assert len(trace.initial) == 6
        assert trace.measures["validation_labels"].tolist() == [8] * 16

    def test_as_many_labels_as_there_are(self) -> None:
        assert len(run(job(setting=replace(SMALL, labels=500)))) == 50 - 6
        assert len(run(job(batch=5))) == (22 - 6) // 5
        assert run(job(batch=5)).indices.shape == (3, 5)

    def test_progress_is_told(self) -> None:
        moved: list[tuple[int, int]] = []
        job().run(Path("traces"), lambda done, total: moved.append((done, total)))
        assert moved[-1] == (16, 16)

    def test_nothing_is_written(self) -> None:
        run(job())
        assert not list(Path().iterdir())

    @pytest.mark.parametrize(("pool", "batch", "left"), [(7, 1, 1), (6, 1, 0), (20, 10, 1), (4, 1, 0)])
    def test_a_pool_that_is_too_small(self, pool: int, batch: int, left: int) -> None:
        said = f"diabetes: a pool of {pool} rows leaves {left} steps of {batch} after 6 initial labels; 2 or more"
        with pytest.raises(InvalidValueError, match=said):
            run(job("gp", batch=batch, setting=replace(SMALL, pool=pool)))

    def test_two_steps_are_enough(self) -> None:
        assert len(run(job("gp", setting=replace(SMALL, pool=8)))) == 2

    def test_too_few_labels_asked_for(self) -> None:
        with pytest.raises(InvalidValueError, match="leaves 1 steps of 1 after 6 initial labels"):
            run(job(setting=replace(SMALL, labels=7)))

    @pytest.mark.parametrize(("model", "data"), [("gp", "wine"), ("ridge", "iris"), ("logistic", "diabetes")])
    def test_a_model_for_another_task(self, model: str, data: str) -> None:
        kind, other = MODELS[model], {"regression": "classification", "classification": "regression"}[MODELS[model]]
        with pytest.raises(InvalidValueError, match=f"{model} is for {kind}, and {data} is a task of {other}"):
            run(RecordingJob(data, model, 0, setting=SMALL))

    def test_settings_that_cannot_be_are_named(self) -> None:
        for setting, wrong in (
            ({"noise": -1.0}, "noise must be"),
            ({"pool": 1}, "pool must be a whole number"),
            ({"imbalance": 0.9}, "imbalance must be"),
            ({"stop_set": 0}, "stop_set must be a whole number"),
        ):
            with pytest.raises(InvalidValueError, match=wrong):
                run(job(setting=replace(SMALL, **setting)))

    def test_a_validation_set_of_less_than_no_rows(self) -> None:
        with pytest.raises(InvalidValueError, match="validation"):
            prepared(job(setting=replace(SMALL, validation=-5)))

    def test_a_model_that_there_is_not(self) -> None:
        with pytest.raises(InvalidValueError, match="svm"):
            run(RecordingJob("wine", "svm", 0, setting=SMALL))

    @pytest.mark.one_in(3)
    @pytest.mark.parametrize(
        "setting", [{"validation": 0}, {"test": 3}], ids=["no validation rows wanted", "a test set of three rows"]
    )
    @pytest.mark.parametrize("model", MODELS)
    def test_without_a_validation_set(self, model: str, setting: dict[str, int]) -> None:
        made = job(model, setting=replace(SMALL, **setting))
        start = prepared(made)
        assert start.validation is None
        # No row of the test set is lost for it.
        assert len(start.task.y_test) == setting.get("test", 48)
        trace = run(made)
        assert not {"validation_error", "validation_labels"} & trace.recorded
        assert len(trace.error) == len(trace) == 16


class TestWhatARunStartsFrom:
    def test_the_task_is_the_one_of_the_seed(self) -> None:
        task = cut(load("wine"), 1, pool=50, test=48)
        made = prepared(job())
        np.testing.assert_array_equal(made.task.X_pool, task.X_pool)
        np.testing.assert_array_equal(made.task.y_pool, task.y_pool)

    def test_validation_and_test_set_share_nothing(self) -> None:
        task = cut(load("wine"), 1, pool=50, test=48)
        made = prepared(job())
        assert made.validation is not None
        X, y = made.validation
        np.testing.assert_array_equal(np.concatenate([X, made.task.X_test]), task.X_test)
        np.testing.assert_array_equal(np.concatenate([y, made.task.y_test]), task.y_test)
        assert len(y) == 8

    def test_of_a_small_test_set_a_quarter_at_most(self) -> None:
        made = prepared(job(setting=replace(SMALL, validation=100, test=30)))
        assert made.validation is not None
        assert (len(made.validation[1]), len(made.task.y_test)) == (30 // 4, 30 - 30 // 4)

    def test_the_stop_set_is_of_the_pool_by_the_seed(self) -> None:
        made = prepared(job())
        assert made.stop_set.indices.tolist() == StopSet.draw(50, 20, seed=1).indices.tolist()
        assert len(prepared(job(setting=replace(SMALL, stop_set=2000))).stop_set) == 50

    def test_noise_and_imbalance_are_those_of_the_setting(self) -> None:
        noisy = prepared(job("gp", setting=replace(SMALL, noise=0.5))).task
        plain = prepared(job("gp")).task
        np.testing.assert_array_equal(noisy.X_pool, plain.X_pool)
        assert noisy.y_pool.tolist() != plain.y_pool.tolist()
        cancer = RecordingJob(
            "breast_cancer", "logistic", 0, setting=RecordingSettings(pool=300, test=200, imbalance=0.1)
        )
        assert np.mean(prepared(cancer).task.y_pool == 0) == pytest.approx(0.1, abs=0.01)

    def test_the_models(self) -> None:
        logistic = prepared(job("logistic")).model
        assert logistic.classes == np.unique(prepared(job("logistic")).task.y_pool).tolist()
        assert logistic.alpha == 1.0
        assert prepared(job("gp")).model.learns
        assert [name for name, _ in prepared(job("ridge")).model.steps] == ["radialbasis", "bayesianridge"]
        assert MODELS == {"gp": "regression", "ridge": "regression", "logistic": "classification"}


def classes(n_classes: int, width: int, rows: int = 200) -> Task:
    rng = np.random.default_rng(0)
    spread = np.linspace(3.0, 0.5, width)
    X = rng.normal(size=(rows + 50, width)) * spread
    y: Any = np.arange(rows + 50) % n_classes
    return Task("made up", "classification", X[:rows], y[:rows], X[rows:], y[rows:])


class TestFewerFeatures:
    """Many classes times many features are many weights, whose Hessian would not end; nothing else is reduced."""

    @pytest.mark.parametrize(("n_classes", "width"), [(2, 30), (2, 400), (3, 13), (10, 25), (26, 9), (5, 50)])
    def test_inputs_stay_as_they_are(self, n_classes: int, width: int) -> None:
        task = classes(n_classes, width)
        X_pool, X_test = _fewer_features(task)
        assert X_pool is task.X_pool
        assert X_test is task.X_test

    @pytest.mark.parametrize(
        ("n_classes", "width", "left"),
        [(10, 26, 25), (10, 64, 25), (26, 16, 9), (20, 100, 12), (3, 84, 83), (90, 30, 5)],
    )
    def test_or_become_principal_components(self, n_classes: int, width: int, left: int) -> None:
        task = classes(n_classes, width)
        X_pool, X_test = _fewer_features(task)
        assert X_pool.shape == (200, left)
        assert X_test.shape == (50, left)
        # The same scale for all of them: the first has deviation 1.
        assert X_pool.std(axis=0, ddof=1)[0] == pytest.approx(1.0)
        assert X_pool.std(axis=0)[1] < 1.0
        own = PCA(left, svd_solver="full").fit(task.X_pool)
        found = own.transform(task.X_test) / np.sqrt(own.explained_variance_[0])
        if left < min(width, 20):
            assert np.abs(X_test[:, :2]) == pytest.approx(np.abs(found[:, :2]), abs=0.05)

    def test_fewer_rows_than_components(self) -> None:
        X_pool, _ = _fewer_features(classes(10, 64, rows=20))
        assert X_pool.shape == (20, 20)

    def test_of_the_pool_alone(self) -> None:
        task = classes(10, 64)
        other = Task(task.name, task.kind, task.X_pool, task.y_pool, task.X_test * 7.0 + 3.0, task.y_test)
        np.testing.assert_array_equal(_fewer_features(task)[0], _fewer_features(other)[0])

    def test_in_a_run(self) -> None:
        digits = prepared(RecordingJob("digits", "logistic", 0, setting=SMALL))
        assert digits.validation is not None
        assert digits.task.X_pool.shape[1] == digits.task.X_test.shape[1] == digits.validation[0].shape[1] == 25
        cancer = prepared(RecordingJob("breast_cancer", "logistic", 0, setting=SMALL))
        assert cancer.task.X_pool.shape[1] == 30
        diabetes = prepared(job("gp"))
        assert diabetes.task.X_pool.shape[1] == 10


class TestIdentity:
    CHANGED: ClassVar[dict[str, Any]] = {
        "labels": 23, "initial": 7, "pool": 51, "test": 49, "stop_set": 21, "validation": 9, "noise": 0.1,
        "imbalance": 0.2,
    }  # fmt: skip

    def test_every_setting_makes_another_run(self) -> None:
        assert set(self.CHANGED) == {spec.name for spec in fields(RecordingSettings)}
        settings = [replace(SMALL, **{name: value}) for name, value in self.CHANGED.items()]
        others = [job(setting=setting) for setting in settings]
        others += [job(seed=2), job(batch=2), RecordingJob("iris", "logistic", 1, setting=SMALL), job("ridge")]
        others += [RecordingJob("friedman", "gp", 1, setting=SMALL), replace(job(), target="price"), job()]
        assert len({each.identity for each in others}) == len(others)
        assert set(asdict(job())) == {"data", "model", "seed", "batch", "setting", "target"}

    def test_the_same_settings_make_the_same_run(self) -> None:
        assert job().identity == job().identity
        assert job() == job()
        assert len({job(), job()}) == 1

    def test_the_version_of_the_code_counts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Of each model its own: runs of the others are kept."""
        before = {model: job(model).identity for model in MODELS}
        assert set(_VERSIONS) == set(MODELS)
        monkeypatch.setitem(_VERSIONS, "ridge", 10**6)
        assert {model for model in MODELS if job(model).identity != before[model]} == {"ridge"}

    def test_the_content_of_a_table_counts(self) -> None:
        path = write("mine.csv", a=range(30), b=[k % 2 for k in range(30)])
        before = RecordingJob(path, "logistic", 0, target="b").identity
        assert RecordingJob(path, "logistic", 0, target="b").identity == before
        write("mine.csv", a=range(1, 31), b=[k % 2 for k in range(30)])
        assert RecordingJob(path, "logistic", 0, target="b").identity != before

    def test_the_checksums_of_a_fetched_set_count(self) -> None:
        # Nothing is read, so that nothing needs to be there.
        assert len({RecordingJob(name, "logistic", 0).identity for name in ("skin", "htru2", "letter")}) == 3

    def test_names_and_files(self) -> None:
        made = job(batch=3)
        assert made.name == "logistic on wine, seed 1, 3 at a time"
        assert made.stem == f"wine-logistic-3-1-{made.identity[:8]}"
        assert RecordingJob("some/where/mine.csv", "gp", 0, target="b").stem.startswith("mine-gp-1-0-")
        assert made.steps is None
        assert made.alone is False

    def test_a_run_is_of_the_content_that_its_identity_says(self) -> None:
        rng = np.random.default_rng(0)
        columns = {"a": rng.normal(size=60).tolist(), "c": rng.normal(size=60).tolist()}
        path = write("changing.csv", **columns, b=rng.normal(size=60).tolist())
        made = RecordingJob(path, "gp", 0, setting=SMALL, target="b")
        first = prepared(made).task.y_pool
        write("changing.csv", **columns, b=rng.exponential(size=60).tolist())
        assert prepared(made).task.y_pool.tolist() != first.tolist()


class TestReady:
    def test_what_comes_with_scikit_learn_always_is(self) -> None:
        for model in MODELS:
            job(model).ready()
        assert {SOURCES[name].origin for name in TASKS.values()} == {"embedded"}

    def test_data_that_were_not_fetched(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SUFFICE_DATA", str(Path().absolute()))
        with pytest.raises(MissingDataError, match="skin"):
            RecordingJob("skin", "logistic", 0).ready()

    def test_data_that_were(self) -> None:
        if os.environ.get("SUFFICE_DATA") is None:
            pytest.skip("skin: SUFFICE_DATA is not set")
        states = {status.state for status in set_status("skin")}
        if FileState.missing in states:
            pytest.skip("skin: not in the folder that SUFFICE_DATA names")
        RecordingJob("skin", "logistic", 0).ready()
        assert len(states) == 1

    def test_tables(self) -> None:
        with pytest.raises(SufficeError, match=r"nowhere\.csv"):
            RecordingJob(str(Path("nowhere.csv").absolute()), "gp", 0, target="b").ready()
        path = write("ready.csv", a=range(30), b=[k % 2 for k in range(30)])
        with pytest.raises(InvalidValueError, match="target must name the column to predict"):
            RecordingJob(path, "logistic", 0).ready()
        made = RecordingJob(path, "logistic", 0, setting=replace(SMALL, labels=15, validation=2), target="b")
        made.ready()
        assert len(run(made)) == 9


class TestRecordings:
    def made(self, data: list[str], models: list[str], **options: Any) -> list[RecordingJob]:
        settings: dict[str, Any] = {"seeds": 2, "batches": (1, 5), "setting": SMALL, "target": None}
        return recordings(data, models, **{**settings, **options})

    def test_everything_with_everything_that_fits(self) -> None:
        found = self.made(["wine", "diabetes"], ["gp", "ridge", "logistic"])
        assert [each.name for each in found] == [
            f"{model} on {data}, seed {seed}, {batch} at a time"
            for data, fitting in (("wine", ["logistic"]), ("diabetes", ["gp", "ridge"]))
            for model in fitting
            for batch in (1, 5)
            for seed in (0, 1)
        ]
        assert len({each.identity for each in found}) == len({each.stem for each in found}) == 12
        assert all(each.setting == SMALL for each in found)

    def test_a_data_set_that_no_model_fits(self) -> None:
        with pytest.raises(InvalidValueError, match="wine is a task of classification, and no model given is for that"):
            self.made(["wine"], ["gp", "ridge"])
        with pytest.raises(InvalidValueError, match="no model given is for that; there is gp, ridge"):
            self.made(["diabetes"], ["logistic"])

    def test_a_data_set_that_there_is_not(self) -> None:
        with pytest.raises(InvalidValueError, match=r"there is no data set 'wines'\. Did you mean wine"):
            self.made(["wines"], ["logistic"])

    @pytest.mark.parametrize("models", [["svm"], ["logistic", "svm"]])
    def test_a_model_that_there_is_not(self, models: list[str]) -> None:
        with pytest.raises(InvalidValueError, match="there is no model 'svm' to compare on; there is gp, ridge"):
            self.made(["wine"], models)

    def test_a_table_decides_by_its_target(self) -> None:
        rng = np.random.default_rng(0)
        path = write("two.csv", a=rng.normal(size=40), b=np.where(rng.random(40) < 0.5, "yes", "no"), c=range(40))
        found = self.made([path], ["gp", "logistic"], target="b")
        assert {(each.model, each.target) for each in found} == {("logistic", "b")}
        assert {each.model for each in self.made([path], ["gp", "logistic"], target="a")} == {"gp"}

    def test_a_target_is_for_tables_alone(self) -> None:
        path = write("one.csv", a=range(40), b=np.random.default_rng(0).normal(size=40))
        found = self.made(["wine", path], ["gp", "logistic"], target="b")
        assert {each.data: each.target for each in found} == {"wine": None, path: "b"}
