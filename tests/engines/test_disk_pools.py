"""Pools on disk: the same picks as in memory, bounded memory, and errors that name what is wrong."""

import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import suffice as sf
from suffice.engines import NpyPool, ParquetPool
from suffice.engines.class_pool import ScoredPool, UncertainPool, _LowestRanks
from suffice.engines.disk_rows import DiskRows, MappedRows, rows_on_disk
from suffice.errors import InvalidValueError, NotEnoughMemoryError, SufficeError
from suffice.models import BayesianLogistic, BayesianRidge, GaussianProcess

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

# So little memory that pools of a few hundred rows stay on disk, and inner layers are smaller than they are.
TINY = 8_000


def write(path: Path, X: Any, *, group: int = 50, types: dict[str, Any] | None = None) -> Path:
    columns = {f"x{k}": X[:, k] for k in range(X.shape[1])}
    table = pa.table({name: pa.array(values, type=(types or {}).get(name)) for name, values in columns.items()})
    pq.write_table(table, path, row_group_size=group)
    return path


def data(m: int = 600, classes: int = 2, seed: int = 0, features: int = 4) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, features)).astype(np.float32)
    logits = X @ rng.normal(size=(features, classes)) * 2.0
    return X, (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)


def parquet(folder: Path, X: Any) -> DiskRows:
    return ParquetPool(write(folder / "pool.parquet", X), memory_limit=TINY)


def npy(folder: Path, X: Any) -> DiskRows:
    np.save(folder / "pool.npy", X)
    return NpyPool(folder / "pool.npy", memory_limit=TINY)


def several(folder: Path, X: Any) -> DiskRows:
    """Files of different sizes in folders, one of them without rows."""
    (folder / "part=a").mkdir()
    (folder / "part=b").mkdir()
    cuts = [0, 7, 7, len(X) // 3, len(X)]
    names = ["part=a/0.parquet", "part=a/1.parquet", "part=a/2.pq", "part=b/0.parquet"]
    for name, start, stop in zip(names, cuts[:-1], cuts[1:], strict=True):
        write(folder / name, X[start:stop], group=3 if stop - start < 50 else 64)
    (folder / "_metadata.parquet").write_bytes(b"not read")
    return ParquetPool(folder, memory_limit=TINY)


Opened = Callable[[Path, Any], DiskRows]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("opened", [parquet, npy, several])
@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("acquisition", [None, "entropy", "random"])
def test_classes_get_the_picks_of_memory(tmp_path: Path, opened: Opened, classes: int, acquisition: str | None) -> None:
    X, y = data(classes=classes)
    pool = opened(tmp_path, X)
    assert not pool.small
    one, two = (sf.simulate(BayesianLogistic(), each, y, acquisition=acquisition, steps=25) for each in (X, pool))
    np.testing.assert_array_equal(one.indices, two.indices)
    np.testing.assert_allclose(one.kl_new_old, two.kl_new_old, rtol=1e-9)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("size", [1, 3, 17])
def test_ties_and_duplicates_go_to_the_lowest_index(tmp_path: Path, classes: int, size: int) -> None:
    X, y = data(m=150, classes=classes)
    X, y = np.round(np.tile(X, (4, 1))), np.tile(y, 4)
    pool = parquet(tmp_path, X)
    one, two = (sf.simulate(BayesianLogistic(alpha=1.0), each, y, steps=8, batch=size) for each in (X, pool))
    np.testing.assert_array_equal(one.indices, two.indices)


@pytest.mark.parametrize("acquisition", ["variance", "random", "variance-reduction", "k-centre", "order"])
@pytest.mark.parametrize("batch", [1, 4])
def test_ridge_gets_the_picks_of_memory(tmp_path: Path, acquisition: str, batch: int) -> None:
    X, _ = data()
    y = X @ np.arange(4.0) + np.random.default_rng(1).normal(size=len(X))
    pool = npy(tmp_path, X)
    options: dict[str, Any] = {"acquisition": acquisition, "steps": 20, "batch": batch}
    one, two = (sf.simulate(BayesianRidge(), each, y, **options) for each in (X, pool))
    np.testing.assert_array_equal(one.indices, two.indices)


def test_learner_with_skips_corrections_checks_and_estimates(tmp_path: Path) -> None:
    X, y = data()
    pool = parquet(tmp_path, X)
    one, two = (sf.ActiveLearner(BayesianLogistic(), each, seed=3) for each in (X, pool))
    for learner in (one, two):
        for number in range(25):
            items = learner.ask(2)
            learner.tell(items, y[items])
            if number == 8:
                learner.skip(learner.ask())
            if number == 12:
                learner.correct(int(items[0]), 1 - y[items[0]])
    assert one.labelled == two.labelled
    assert one.error_estimate().value == pytest.approx(two.error_estimate().value, rel=1e-9)
    checks = [learner.check(20) for learner in (one, two)]
    np.testing.assert_array_equal(checks[0].indices, checks[1].indices)
    guarantees = [check.tell(y[check.indices]) for check in checks]
    assert guarantees[0] == guarantees[1]
    np.testing.assert_allclose(one.model.predict_proba(X), two.model.predict_proba(X), rtol=1e-9)


def test_screening_reads_in_batches(tmp_path: Path) -> None:
    X, y = data()
    rule = sf.QuantCI() & sf.Budget(1000)
    pool = parquet(tmp_path, X)
    one, two = (sf.ActiveLearner(BayesianLogistic(), each, positive=1, criterion=rule) for each in (X, pool))
    for learner in (one, two):
        for _ in range(20):
            items = learner.ask(2)
            learner.tell(items, y[items])
    assert one.labelled == two.labelled
    assert one.verdict.value == pytest.approx(two.verdict.value)


def test_a_saved_learner_continues_on_disk(tmp_path: Path) -> None:
    X, y = data()
    pool = parquet(tmp_path, X)
    first = sf.ActiveLearner(BayesianLogistic(), pool, acquisition="margin")
    for _ in range(12):
        items = first.ask(2)
        first.tell(items, y[items])
    second = sf.ActiveLearner.from_state(first.state_dict(), BayesianLogistic(), pool)
    np.testing.assert_array_equal(first.ask(5), second.ask(5))


def test_number_types_and_columns(tmp_path: Path) -> None:
    X, y = data()
    X[:, 2] = np.round(3.0 * X[:, 2])
    types = {"x0": pa.float64(), "x1": pa.float32(), "x2": pa.int16(), "x3": pa.float32()}
    path = write(tmp_path / "pool.parquet", X, types=types)
    wanted = ["x2", "x0"]
    pool = ParquetPool(path, wanted, memory_limit=TINY)
    assert pool.columns == wanted
    assert not pool.single
    assert ParquetPool(path, ["x1", "x2"]).single
    np.testing.assert_array_equal(pool.array(), X[:, [2, 0]])
    np.testing.assert_array_equal(pool[[599, 0, 599, 50, 49]], X[[599, 0, 599, 50, 49]][:, [2, 0]])
    one, two = (sf.simulate(BayesianLogistic(), each, y, steps=20) for each in (X[:, [2, 0]], pool))
    np.testing.assert_array_equal(one.indices, two.indices)


@pytest.mark.parametrize("dtype", ["<f8", ">f4", "<i4", "|b1", "<f2"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_rows_are_those_of_the_array(tmp_path: Path, dtype: str, order: Any) -> None:
    X = np.asarray(np.random.default_rng(0).normal(size=(700, 3)) > 0.2, dtype=dtype, order=order)
    pool = npy(tmp_path, X)
    wanted = [0, 699, 3, 4, 5, 3]
    np.testing.assert_array_equal(pool[wanted], X[wanted].astype(float))
    np.testing.assert_array_equal(pool[5:9], X[5:9].astype(float))
    np.testing.assert_array_equal(pool.array(), X.astype(float))
    assert pool.passes == 1


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(0, 299), max_size=400), st.integers(1, 40))
def test_any_rows_in_any_order(tmp_path_factory: pytest.TempPathFactory, wanted: list[int], group: int) -> None:
    X, _ = data(m=300)
    folder = tmp_path_factory.mktemp("rows")
    pool = ParquetPool(write(folder / "pool.parquet", X, group=group), memory_limit=2_000)
    with patch("suffice.engines.disk_rows._CACHED_LEAST", 0):
        for _ in range(2):
            np.testing.assert_array_equal(pool[np.array(wanted, dtype=np.intp)], X[wanted].astype(float))
    assert len(pool._kept) <= 64
    with pytest.raises(IndexError):
        pool[[300]]


@pytest.mark.parametrize("limit", [TINY, 10**6])
def test_rows_in_order_are_read_once(tmp_path: Path, limit: int) -> None:
    X, _ = data(m=1000)
    path = write(tmp_path / "pool.parquet", X, group=300)
    pool = ParquetPool(path, memory_limit=limit)
    for size in (100, 7, 450):
        pool._kept.clear()
        parts = [pool[np.arange(k, min(k + size, 1000))] for k in range(0, 1000, size)]
        np.testing.assert_array_equal(np.concatenate(parts), X)
    assert (pool._last is not None) == (limit == 10**6)
    pool._kept.clear()
    os.utime(path, (1, 1))
    with pytest.raises(SufficeError, match="it was written again"):
        pool[np.arange(990, 1000)]


def test_memory_maps(tmp_path: Path) -> None:
    X, y = data()
    np.save(tmp_path / "pool.npy", X)
    mapped = np.load(tmp_path / "pool.npy", mmap_mode="r")
    whole, view = rows_on_disk(mapped), rows_on_disk(mapped[100:, ::2])
    assert isinstance(whole, NpyPool)
    assert view is not None
    np.testing.assert_array_equal(whole.array(), X)
    np.testing.assert_array_equal(view.array(), X[100:, ::2])
    np.testing.assert_array_equal(view[[3, 1]], X[[103, 101], ::2])
    assert rows_on_disk(X) is None
    given = (X, mapped, tmp_path / "pool.npy", str(tmp_path / "pool.npy"))
    runs = [sf.simulate(BayesianLogistic(), each, y, steps=5).indices for each in given]
    assert all(np.array_equal(runs[0], run) for run in runs)


def test_a_small_pool_is_kept_in_memory_for_any_model(tmp_path: Path) -> None:
    X, y = data(m=200)
    path = write(tmp_path / "pool.parquet", X)
    for model in (LogisticRegression(), make_pipeline(PCA(2), BayesianLogistic())):
        one, two = (sf.simulate(model, each, y, steps=5) for each in (X, path))
        np.testing.assert_array_equal(one.indices, two.indices)
    run = sf.simulate(GaussianProcess(length_scale=1.0, noise=0.1), path, X[:, 0], steps=5)
    assert len(run) == 5


@pytest.mark.slow
@pytest.mark.parametrize("model", [BayesianLogistic(alpha=1.0), BayesianRidge()])
def test_memory_is_bounded(tmp_path: Path, model: Any) -> None:
    m, features = 100_000, 32
    np.save(tmp_path / "pool.npy", np.random.default_rng(0).standard_normal((m, features), dtype=np.float32))
    pool = NpyPool(tmp_path / "pool.npy", memory_limit=2_000_000)
    tracemalloc.start()
    try:
        name = "variance" if isinstance(model, BayesianRidge) else "margin"
        learner = sf.ActiveLearner(model, pool, acquisition=name, criterion=sf.Budget(1000))
        for _ in range(4):
            items = learner.ask(10)
            learner.tell(items, (pool[items][:, 0] > 0.0).astype(int))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # What is kept for each item, and rows: far less than the pool in memory.
    assert peak < 64 * m + 2_000_000 < 8 * m * features / 3


def test_models_that_need_memory_say_how_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X, _ = data()
    pool = npy(tmp_path, X)
    monkeypatch.setattr("suffice.engines.disk_rows.free_memory", lambda: 10_000)
    with pytest.raises(NotEnoughMemoryError, match=r"GaussianProcess needs it, 600 x 4 numbers, needs 0.0 MB"):
        sf.ActiveLearner(GaussianProcess(), pool)
    with pytest.raises(NotEnoughMemoryError, match="600 items on disk, 64 bytes for each"):
        sf.ActiveLearner(BayesianLogistic(), pool)
    assert pool.passes == 1


def test_pipelines(tmp_path: Path) -> None:
    X, y = data()
    X[:, 1] *= 50.0
    pool = npy(tmp_path, X)
    model = make_pipeline(StandardScaler(), BayesianLogistic())
    one, two = (sf.ActiveLearner(model, each) for each in (X.astype(float), pool))
    for learner in (one, two):
        for _ in range(15):
            items = learner.ask(2)
            learner.tell(items, y[items])
    assert one.labelled == two.labelled
    np.testing.assert_allclose(one.model.predict_proba(X), two.model.predict_proba(X), rtol=1e-6)
    with pytest.raises(InvalidValueError, match=r"'pca' \(PCA\) cannot be fitted on a pool on disk.*no partial_fit"):
        sf.ActiveLearner(make_pipeline(PCA(2), BayesianLogistic()), pool)


@pytest.mark.parametrize("limit", [TINY, 10**8])
def test_values_that_are_no_numbers_are_named(tmp_path: Path, limit: int) -> None:
    X, _ = data()
    X[420, 2] = np.nan
    pool = ParquetPool(write(tmp_path / "nan.parquet", X), memory_limit=limit)
    with pytest.raises(InvalidValueError, match=r"X_pool contains NaN at row 420, column 2 \('x2'\)"):
        sf.ActiveLearner(BayesianLogistic(), pool)
    table = pa.table({"a": pa.array([1, 2, None] * 200), "b": pa.array([0.5, 1.0, 2.0] * 200)})
    pq.write_table(table, tmp_path / "null.parquet", row_group_size=7)
    with pytest.raises(InvalidValueError, match=r"X_pool contains NaN at row 2, column 0 \('a'\)"):
        sf.ActiveLearner(BayesianLogistic(), ParquetPool(tmp_path / "null.parquet", memory_limit=limit))
    np.save(tmp_path / "inf.npy", np.where(np.isnan(X), np.inf, X))
    with pytest.raises(InvalidValueError, match=r"X_pool contains an infinity .* at row 420, column 2"):
        sf.ActiveLearner(BayesianRidge(), NpyPool(tmp_path / "inf.npy", memory_limit=limit))


@pytest.mark.parametrize(
    ("values", "what"),
    [
        (["a", "b"], "texts"),
        ([[1.0], [2.0]], "values of type list"),
        (np.array([0, 1], dtype="datetime64[s]"), "values of type timestamp"),
    ],
)
def test_columns_of_other_types_are_refused_by_name(tmp_path: Path, values: Any, what: str) -> None:
    pq.write_table(pa.table({"x": [0.5, 1.5], "name": values}), tmp_path / "pool.parquet")
    with pytest.raises(InvalidValueError, match=rf"{what}.* in column 'name' .*columns="):
        sf.ActiveLearner(BayesianLogistic(), tmp_path / "pool.parquet")
    assert ParquetPool(tmp_path / "pool.parquet", columns=["x"]).shape == (2, 1)


def test_bad_paths_and_arguments(tmp_path: Path) -> None:
    X, _ = data(m=20)
    path = write(tmp_path / "pool.parquet", X)
    (tmp_path / "empty").mkdir()
    pq.write_table(pa.table({"x": pa.array([], pa.float64())}), tmp_path / "none.parquet")
    (tmp_path / "broken.parquet").write_bytes(b"nothing")
    (tmp_path / "broken.npy").write_bytes(b"nothing")
    np.save(tmp_path / "words.npy", np.array([["a"]]))
    np.save(tmp_path / "line.npy", np.zeros(3))
    for X_pool, message in (
        (tmp_path / "empty", "has no Parquet file"),
        (tmp_path / "absent.parquet", "there is no file or folder"),
        (tmp_path / "absent.npy", "there is no file"),
        (tmp_path / "none.parquet", "at least one row"),
        (tmp_path / "broken.parquet", "not a Parquet file that can be read"),
        (tmp_path / "broken.npy", "is not a NumPy file"),
        (tmp_path / "words.npy", "must hold a table of numbers"),
        (tmp_path / "line.npy", r"of shape \(3,\)"),
        ("pool.csv", r"must end in \.npy, \.parquet or \.pq"),
    ):
        with pytest.raises(InvalidValueError, match=message):
            sf.ActiveLearner(BayesianLogistic(), X_pool)
    with pytest.raises(InvalidValueError, match="has no column 'y'; it has 'x0', 'x1'"):
        ParquetPool(path, columns=["x0", "y"])
    with pytest.raises(InvalidValueError, match="'x0' comes twice"):
        ParquetPool(path, columns=["x0", "x0"])
    wrong: list[Any] = ["x0", []]
    for columns in wrong:
        with pytest.raises(InvalidValueError, match="columns must be a list"):
            ParquetPool(path, columns=columns)
    with pytest.raises(InvalidValueError, match="memory_limit"):
        ParquetPool(path, memory_limit=0)
    write(tmp_path / "empty" / "a.parquet", X)
    write(tmp_path / "empty" / "b.parquet", X[:, :2])
    with pytest.raises(InvalidValueError, match=r"b\.parquet has no column 'x2'"):
        ParquetPool(tmp_path / "empty")


@pytest.mark.parametrize("opened", [parquet, npy])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda path: path.unlink(), "it is not there any more"),
        (lambda path: path.write_bytes(path.read_bytes()[:-8]), "it had .* bytes and has"),
        (lambda path: os.utime(path, (1, 1)), "it was written again"),
    ],
)
def test_a_file_that_changes_is_noticed(
    tmp_path: Path, opened: Opened, change: Callable[[Path], None], message: str
) -> None:
    X, y = data()
    learner = sf.ActiveLearner(BayesianLogistic(), opened(tmp_path, X))
    items = learner.ask(12)
    learner.tell(items, y[items])
    (path,) = (file for file in tmp_path.iterdir() if file.suffix in (".npy", ".parquet"))
    change(path)

    def label() -> None:
        for _ in range(50):
            items = learner.ask(3)
            learner.tell(items, y[items])

    with pytest.raises(SufficeError, match=rf"the pool has changed since it was opened: .*{message}"):
        label()


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(0, 30) | st.just(np.inf), min_size=5, max_size=120), st.integers(1, 20), st.integers(1, 9))
def test_lowest_ranks_of_a_stream(ranks: list[float], width: int, size: int) -> None:
    rank = np.array(ranks, dtype=np.float64)
    lowest = _LowestRanks(width, 2, size, np.float32, np.inf)
    for start in range(0, len(rank), size):
        part = rank[start : start + size]
        lowest.add(part, start, np.vstack([part, np.arange(start, start + len(part))]))
    layer = lowest.layer(averaged=True)
    finite = np.isfinite(rank)
    kept = layer.indices
    assert len(kept) == min(width, finite.sum())
    assert (np.diff(kept) > 0).all()
    others = np.setdiff1d(np.arange(len(rank)), kept)
    assert lowest.rest <= rank[others].min(initial=np.inf)
    assert np.sort(rank[kept]).tolist() == np.sort(rank[finite])[: len(kept)].tolist()
    np.testing.assert_array_equal(layer._columns[1], kept)


class _Posterior:
    """A posterior that moves a little at each step."""

    def __init__(self, weights: Any, information: Any) -> None:
        self.weights, self.information = weights, information
        self.factor = np.linalg.cholesky(information)
        self.inverse_factor = np.linalg.inv(self.factor)


@pytest.mark.parametrize("averaged", [False, True])
@pytest.mark.parametrize("size", [4_000, 30_000])
def test_every_pick_is_that_of_the_whole_pool(tmp_path: Path, averaged: bool, size: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(size, 3)).astype(np.float32)
    np.save(tmp_path / "x.npy", X)
    source = NpyPool(tmp_path / "x.npy", memory_limit=20 * size)
    disk, memory = (UncertainPool(each, averaged=averaged) for each in (source, X.astype(float)))
    weights, information = rng.normal(size=3), 5.0 * np.eye(3)
    for number in range(60):
        posterior = _Posterior(weights, information)
        n = 1 + number % 3
        found = disk.nearest(posterior, n)
        np.testing.assert_array_equal(found, memory.nearest(posterior, n))
        for pool in (disk, memory):
            pool.take(found)
        x = X[found[0]].astype(float)
        weights, information = weights + 0.05 * rng.normal(size=3), information + np.outer(x, x)
    # The file was read for few of the picks.
    assert disk.looks < 30


def test_scored_pool_ends_with_the_pool(tmp_path: Path) -> None:
    X, _ = data(m=40)
    disk, memory = (ScoredPool(each, lambda _, rows: np.abs(np.round(rows[:, 0]))) for each in (npy(tmp_path, X), X))
    for pool in (disk, memory):
        pool.take(np.arange(30))
    for n in (1, 4, 10, 15):
        np.testing.assert_array_equal(disk.nearest(None, n), memory.nearest(None, n))
    for pool in (disk, memory):
        pool.take(np.arange(40))
    assert not len(disk.nearest(None, 3))


def test_mapped_rows(tmp_path: Path) -> None:
    X, _ = data(m=30)
    source = npy(tmp_path, X)
    mapped = MappedRows(source, lambda block: block[:, :2], selects=True)
    assert (mapped.shape, mapped.single, len(mapped)) == ((30, 2), True, 30)
    assert not MappedRows(source, lambda block: block / 3.0).single
    np.testing.assert_array_equal(mapped.array(), X[:, :2])
    assert mapped.passes == source.passes == 1
