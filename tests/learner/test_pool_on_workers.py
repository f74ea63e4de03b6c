"""A pool on the workers of a Dask cluster: the picks of one in memory, whatever happens to the workers."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer, StandardScaler

import suffice as sf
from suffice.engines import worker_rows as workers_module
from suffice.engines.disk_rows import NpyPool, ParquetPool
from suffice.engines.worker_rows import WorkerRows, _groups, rows_on_workers
from suffice.errors import InvalidTypeError, InvalidValueError, NotEnoughMemoryError, SufficeError
from suffice.models import BayesianRidge, GaussianProcess

distributed = pytest.importorskip("distributed", reason="distributed is not installed")
da = pytest.importorskip("dask.array", reason="dask is not installed")

pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture
def client(cluster: Any) -> Any:
    return cluster


def data(m: int = 800, *, ties: bool = False) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.integers(-3, 4, size=(m, 2)).astype(float) if ties else rng.normal(size=(m, 3))
    return X, np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=m)


def parquet_file(folder: Path, X: Any) -> Path:
    arrow: Any = pytest.importorskip("pyarrow")
    parquet: Any = pytest.importorskip("pyarrow.parquet")
    table = arrow.table({f"x{k}": X[:, k] for k in range(X.shape[1])})
    parquet.write_table(table, folder / "pool.parquet", row_group_size=130)
    return folder / "pool.parquet"


def npy_file(folder: Path, X: Any) -> Path:
    np.save(folder / "pool.npy", X)
    return folder / "pool.npy"


def frame(X: Any) -> Any:
    pandas, dask = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    return dask.from_pandas(pandas.DataFrame(X, columns=[f"x{k}" for k in range(X.shape[1])]), npartitions=5)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kind", ["array", "npy", "parquet", "dask array", "dask frame"])
def test_the_picks_are_those_in_memory(client: Any, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = data()
    # The workers do not have this working directory.
    monkeypatch.chdir(tmp_path)
    pools: dict[str, Callable[[], Any]] = {
        "array": lambda: X,
        "npy": lambda: npy_file(Path(), X),
        "parquet": lambda: parquet_file(Path(), X),
        "dask array": lambda: da.from_array(X, chunks=(170, 2)),
        "dask frame": lambda: frame(X),
    }
    pool = pools[kind]()
    options: dict[str, Any] = {"steps": 35, "acquisition": "variance", "random_share": 0.2, "seed": 3}
    expected = sf.simulate(GaussianProcess(), X, y, **options)
    found = sf.simulate(GaussianProcess(), pool, y, client=client, **options)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.random_items, expected.random_items)
    np.testing.assert_allclose(found.kl_new_old, expected.kl_new_old, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("acquisition", ["random", "order"])
def test_ridge_regression_on_workers(client: Any, acquisition: str) -> None:
    X, y = data(300)
    runs = []
    for options in ({}, {"client": client}):
        learner = sf.ActiveLearner(BayesianRidge(), X, acquisition=acquisition, seed=3, **options)
        picks = []
        for _ in range(30):
            items = np.atleast_1d(learner.ask())
            picks.extend(items.tolist())
            learner.tell(items, y[items])
        check = learner.check(10, tolerance=1.0)
        runs.append((picks, learner.verdict, learner.error_estimate(), check.pending.tolist()))
    assert runs[0] == runs[1]


@pytest.mark.parametrize("acquisition", ["variance", "variance-reduction", "order"])
def test_ties_batches_and_skipped_items(client: Any, acquisition: str) -> None:
    X, y = data(400, ties=True)
    model = GaussianProcess(length_scale=1.0, noise=0.05)
    one, two = (sf.ActiveLearner(model, X, acquisition=acquisition, client=each, seed=1) for each in (None, client))
    for number, size in enumerate([10, 1, 4, 1, 30, 1]):
        asked = one.ask(size)
        np.testing.assert_array_equal(two.ask(size), asked)
        for learner in (one, two):
            if number == 2:
                learner.skip(asked[:2])
                learner.tell(asked[2:], y[asked[2:]])
            else:
                learner.tell(asked, y[asked])
    assert one.labelled == two.labelled
    assert one.error_estimate().value == pytest.approx(two.error_estimate().value)


def test_the_default_acquisition_single_precision_and_a_pipeline(client: Any) -> None:
    X, y = data()
    model = make_pipeline(StandardScaler(), GaussianProcess(length_scale=1.0, noise=0.1))
    expected = sf.simulate(model, X, y, steps=15)
    found = sf.simulate(model, da.from_array(X, chunks=(300, 3)), y, steps=15, client=client)
    np.testing.assert_array_equal(found.indices, expected.indices)
    options: dict[str, Any] = {"steps": 20, "acquisition": "variance", "dtype": "float32"}
    expected = sf.simulate(GaussianProcess(length_scale=1.0, noise=0.1), X, y, **options)
    found = sf.simulate(GaussianProcess(length_scale=1.0, noise=0.1), X, y, client=client, **options)
    np.testing.assert_array_equal(found.indices, expected.indices)


def test_random_checks_are_those_in_memory(client: Any) -> None:
    X, y = data(300)
    learners = [
        sf.ActiveLearner(GaussianProcess(length_scale=1.0, noise=0.1), pool, acquisition="variance", client=each)
        for pool, each in ((X, None), (da.from_array(X, chunks=(90, 3)), client))
    ]
    found = []
    for learner in learners:
        for _ in range(3):
            items = learner.ask(10)
            learner.tell(items, y[items])
        check = learner.check(40, tolerance=0.5)
        found.append((check.indices.tolist(), check.tell(y[check.indices])))
    assert found[0] == found[1]


def test_a_collection_uses_the_default_client(client: Any) -> None:
    X, _ = data(100)
    collection = da.from_array(X, chunks=(30, 3))
    with pytest.raises(InvalidValueError, match=r"Dask collection, and there is no client.*distributed\.Client\(\)"):
        sf.ActiveLearner(GaussianProcess(), collection)
    with client.as_current():
        learner = sf.ActiveLearner(GaussianProcess(), collection)
    assert isinstance(learner._X, WorkerRows)
    np.testing.assert_array_equal(learner._X[[5, 99, 31]], X[[5, 99, 31]])


def kill_the_worker(client: Any, place: str) -> None:
    os.kill(client.run(os.getpid, workers=[place])[place], signal.SIGKILL)


@pytest.mark.parametrize("kind", ["array", pytest.param("dask array", marks=pytest.mark.slow)])
def test_a_killed_worker_changes_no_pick(client: Any, kind: str) -> None:
    X, y = data()
    pool = X if kind == "array" else da.from_array(X, chunks=(200, 3))
    model = GaussianProcess()
    options: dict[str, Any] = {"acquisition": "variance", "random_share": 0.2}
    one, two = sf.ActiveLearner(model, X, **options), sf.ActiveLearner(model, pool, client=client, **options)
    # At 20 and 40 labels hyper-parameters are learned again, and shards are made anew.
    for size in [10, 5, 5, 8, 8, 8, 8]:
        if len(one.labelled) == 28:
            kill_the_worker(client, two._loop.backend._planner._pool._shards._places[0])  # type: ignore[attr-defined]
        items = one.ask(size)
        np.testing.assert_array_equal(two.ask(size), items)
        assert one.tell(items, y[items]).stop == two.tell(items, y[items]).stop


@pytest.mark.slow
def test_a_slow_worker_delays_and_changes_nothing(client: Any) -> None:
    X, y = data(300)
    model = GaussianProcess(length_scale=1.0, noise=0.1)
    one = sf.ActiveLearner(model, X, acquisition="variance")
    two = sf.ActiveLearner(model, X, acquisition="variance", client=client)
    first = one.ask(10)
    for learner in (one, two):
        learner.tell(first, y[first])

    def slow_down() -> None:
        import time

        from suffice.engines.sharded_pool import Shard

        fast = Shard.step

        def step(self: Any, *arguments: Any) -> Any:
            Shard.step = fast  # type: ignore[method-assign]
            time.sleep(1.6)
            return fast(self, *arguments)

        Shard.step = step  # type: ignore[method-assign,assignment]

    np.testing.assert_array_equal(two.ask(), one.ask())
    shards = two._loop.backend._planner._pool._shards  # type: ignore[attr-defined]
    client.run(slow_down, workers=[shards._places[1]])
    start = time.monotonic()
    for _ in range(5):
        items = one.ask(12)
        np.testing.assert_array_equal(two.ask(12), items)
        for learner in (one, two):
            learner.tell(items, y[items])
    assert time.monotonic() - start > 1.5
    assert shards.lost == 0


def test_numbers_that_are_not_finite_are_named(client: Any, tmp_path: Path) -> None:
    X, _ = data(100)
    X[77, 1] = np.nan
    for pool in (X, npy_file(tmp_path, X), da.from_array(X, chunks=(30, 3)), frame(X)):
        with pytest.raises(InvalidValueError, match="X_pool contains NaN at row 77, column 1"):
            sf.ActiveLearner(GaussianProcess(), pool, client=client)


def test_what_cannot_be_used_is_refused(client: Any, tmp_path: Path) -> None:
    X, _ = data(100)
    with pytest.raises(InvalidTypeError, match=r"client must be a distributed\.Client.*not str"):
        sf.ActiveLearner(GaussianProcess(), X, client="tcp://127.0.0.1:1")
    with pytest.raises(InvalidValueError, match="device and client cannot be combined"):
        sf.ActiveLearner(GaussianProcess(), X, client=client, device="cpu")
    with pytest.raises(
        InvalidValueError, match=r"'k-centre'.*cannot use a pool on the workers.*'variance'.*client out"
    ):
        sf.ActiveLearner(GaussianProcess(), X, client=client, acquisition="k-centre")
    with pytest.raises(InvalidValueError, match="LogisticRegression cannot use a pool on the workers"):
        sf.ActiveLearner(LogisticRegression(), X, client=client)
    with pytest.raises(InvalidValueError, match=r"'variance' of this model cannot use a pool on the workers.*'random'"):
        sf.ActiveLearner(BayesianRidge(), X, client=client, acquisition="variance")
    with pytest.raises(
        InvalidValueError, match=r"'quantiletransformer'.*cannot be fitted on a pool on disk or on work"
    ):
        sf.ActiveLearner(make_pipeline(QuantileTransformer(), GaussianProcess()), X, client=client)
    for pool in (X[:, 0], [["a", "b"]], X[:0], da.from_array(X[:, 0]), da.from_array(X > 0)[:0]):
        with pytest.raises((InvalidValueError, ValueError), match=r"table of|could not convert"):
            sf.ActiveLearner(GaussianProcess(), pool, client=client)
    with pytest.raises(InvalidValueError, match="there is no file"):
        sf.ActiveLearner(GaussianProcess(), tmp_path / "none.npy", client=client)


def test_a_file_that_only_this_process_has_is_named(client: Any, tmp_path: Path, monkeypatch: Any) -> None:
    path = npy_file(tmp_path, data(50)[0])
    pool = NpyPool(path)
    monkeypatch.setattr(pool, "_files", [tmp_path / "elsewhere.npy"])
    with pytest.raises(SufficeError, match=r"a worker cannot read .*elsewhere\.npy.*shared file system"):
        WorkerRows(client, pool).require_finite("X_pool")


def test_a_pool_that_does_not_fit_is_reported_with_figures(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, _ = data(1000)
    rows = rows_on_workers(client, X)
    assert rows is not None
    with pytest.raises(NotEnoughMemoryError, match=r"for each of 1,000 rows on 2 workers: the worker tcp.* GB"):
        rows.require_room(10**12, "following the pool")
    # The limits of the workers are not known, but the memory of the machine is.
    info = client.scheduler_info(n_workers=-1)
    for worker in info["workers"].values():
        worker["memory_limit"] = 0
    monkeypatch.setattr(client, "scheduler_info", lambda n_workers: info)
    with pytest.raises(NotEnoughMemoryError, match=r"2 of the workers, on 127\.0\.0\.1, would need"):
        rows.require_room(10**12, "following the pool")
    monkeypatch.setattr(client, "run", lambda function: dict.fromkeys(info["workers"], 10**5))
    with pytest.raises(NotEnoughMemoryError, match=r"following the pool over 256 labels takes 3,\d+ bytes.* MB"):
        sf.ActiveLearner(GaussianProcess(), X, client=client)


def test_a_cluster_without_workers_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    class Empty:
        def scheduler_info(self, **_: Any) -> dict[str, Any]:
            return {"workers": {}}

    monkeypatch.setattr(workers_module, "PATIENCE", 0.2)
    with pytest.raises(SufficeError, match="no worker"):
        WorkerRows(Empty(), np.zeros((3, 2)))


def test_workers_in_this_process_are_refused() -> None:
    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    with (
        distributed.LocalCluster(**options, processes=False) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
        pytest.raises(InvalidValueError, match=r"threads of this process.*processes=True"),
    ):
        sf.ActiveLearner(GaussianProcess(), data(50)[0], client=client)


@pytest.mark.parametrize(
    ("lengths", "most", "expected"),
    [
        ([10, 10, 10, 10], 2, [[0, 1], [2, 3]]),
        ([10], 3, [[0]]),
        ([0, 5, 0, 5], 2, [[0, 1], [2, 3]]),
        ([100, 1, 1, 1], 2, [[0], [1, 2, 3]]),
        ([1, 2, 3], 9, [[0], [1], [2]]),
    ],
)
def test_chunks_are_grouped_in_order(lengths: list[int], most: int, expected: list[list[int]]) -> None:
    assert _groups(lengths, most) == expected


@pytest.mark.slow
def test_rows_in_parts_and_batches(client: Any, tmp_path: Path) -> None:
    X, _ = data(500)
    pools: list[Any] = [X, ParquetPool(parquet_file(tmp_path, X)), da.from_array(X, chunks=(70, 2)), frame(X)]
    for pool in pools:
        rows = rows_on_workers(client, pool)
        assert rows is not None
        twice = rows.mapped(_doubled)
        assert (twice.shape, len(twice.parts), sum(map(len, twice.parts))) == ((500, 3), 2, 500)
        np.testing.assert_array_equal(np.concatenate([block for _, block in twice.batches()]), 2.0 * X)
        np.testing.assert_array_equal(twice[[3, 499, 250]], 2.0 * X[[3, 499, 250]])
        np.testing.assert_array_equal(twice.array(), 2.0 * X)
        for place in client.run(os.getpid):
            parts = [part.on(place).result() for part in twice.parts]
            np.testing.assert_array_equal(np.concatenate(parts), 2.0 * X)


def _doubled(block: Any) -> Any:
    return 2.0 * block
