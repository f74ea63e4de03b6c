"""Time per pick by the size of the pool, for each engine: logistic regression with two classes, picks by entropy.

The same learner has its pool in memory, in a ``.npy`` file, in a Parquet file, in a tensor of torch, and on two workers
of Dask. The files are read in batches: rows may take a quarter of their size in memory. The time of a pick is the
median of one ``ask`` and one ``tell``.

Results are kept in ``docs/measured/pool-sizes.json`` by engine, so that a part can be measured on another machine:
``--engines cuda`` needs a graphics card. ``--write`` writes them, the table and the plot.

Run: ``OMP_NUM_THREADS=1 python benchmarks/pool_sizes.py`` (20 minutes; ``--largest 1e5`` takes one).
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np

import suffice as sf
from tables import MEASURED, table

FEATURES: Final = 8
FIRST: Final = 20
#: Engines in the order of the table, with their names there.
ENGINES: Final = {
    "memory": "array in memory",
    "npy": ".npy file",
    "parquet": "Parquet file",
    "torch": "torch, processor",
    "dask": "Dask, two workers",
    "cuda": "torch, graphics card",
}


def pool_and_labels(m: int) -> tuple[Any, Any]:
    """Standard normal features and noisy labels of two classes."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((m, FEATURES), dtype=np.float32).astype(np.float64)
    return X, (X[:, 0] - X[:, 1] + 0.5 * rng.standard_normal(m) > 0.0).astype(int)


@contextmanager
def opened(engine: str, X: Any) -> Iterator[tuple[Any, dict[str, Any]]]:
    """The pool of an engine and the options of the learner."""
    limit = max(X.nbytes // 4, 1 << 20)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if engine == "npy":
            np.save(folder / "pool.npy", X)
            yield sf.engines.NpyPool(folder / "pool.npy", memory_limit=limit), {}
        elif engine == "parquet":
            arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
            parquet.write_table(arrow.table({f"x{k}": X[:, k] for k in range(FEATURES)}), folder / "pool.parquet")
            yield sf.engines.ParquetPool(folder / "pool.parquet", memory_limit=limit), {}
        elif engine in {"torch", "cuda"}:
            import_module("torch")
            yield X, {"device": "cpu" if engine == "torch" else "cuda", "dtype": "float32"}
        elif engine == "dask":
            from suffice.engines.worker_rows import local_client

            yield X, {"client": stack.enter_context(local_client(2))}
        else:
            yield X, {}


def seconds_per_pick(engine: str, m: int, picks: int) -> float:
    """Median time of one ``ask`` and one ``tell``."""
    X, y = pool_and_labels(m)
    with opened(engine, X) as (pool, options):
        learner = sf.ActiveLearner(
            sf.models.BayesianLogistic(alpha=1.0), pool, acquisition="entropy", random_share=0.0, seed=0, **options
        )
        first = np.random.default_rng(1).choice(m, FIRST, replace=False)
        learner.tell(first, y[first])
        times = []
        for _ in range(picks):
            start = time.perf_counter()
            item = learner.ask()
            learner.tell(item, y[item])
            times.append(time.perf_counter() - start)
    return statistics.median(times)


def draw(found: dict[str, dict[str, float]], file: Path) -> None:
    """Draw all engines into one figure."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 4.2), layout="constrained")
    axes = figure.subplots()
    for (engine, times), marker, line in zip(found.items(), "osD^vx", ("-", "--", "-.", ":", "-", "--"), strict=False):
        sizes = [int(size) for size in times]
        axes.plot(sizes, [1e3 * t for t in times.values()], marker=marker, linestyle=line, label=ENGINES[engine])
    axes.set(xscale="log", yscale="log", xlabel="items in the pool", ylabel="milliseconds per pick")
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.legend()
    figure.savefig(file, dpi=130)


def shown(found: dict[str, dict[str, float]]) -> str:
    """The table: one row for each size, milliseconds."""
    sizes = sorted({int(size) for times in found.values() for size in times})

    def cell(times: dict[str, float], size: int) -> str:
        if str(size) not in times:
            return ""
        milliseconds = 1e3 * times[str(size)]
        return f"{milliseconds:.3g}" if milliseconds < 1000.0 else f"{milliseconds:,.0f}"

    rows = [[f"{size:,}", *(cell(times, size) for times in found.values())] for size in sizes]
    return table(["items", *(ENGINES[engine] for engine in found)], rows)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--engines", default=",".join(list(ENGINES)[:-1]), help="engines to measure, with commas")
    parser.add_argument("--largest", type=float, default=1e7, help="largest pool")
    parser.add_argument("--write", action="store_true", help="write table and plot")
    parser.add_argument("--results", type=Path, default=MEASURED / "pool-sizes.json", help="where results are kept")
    given = parser.parse_args()
    found: dict[str, dict[str, float]] = json.loads(given.results.read_text()) if given.results.exists() else {}

    for engine in given.engines.split(","):
        for m in (10**k for k in range(4, 8) if 10**k <= given.largest):
            found.setdefault(engine, {})[str(m)] = seconds_per_pick(engine, m, 30 if m < 10**6 else 9)
            print(engine, m, f"{1e3 * found[engine][str(m)]:.3g} ms", flush=True)
    found = {engine: found[engine] for engine in ENGINES if engine in found}
    print(shown(found))
    if given.write:
        given.results.write_text(json.dumps(found, indent=1) + "\n")
    if given.write and given.results.parent == MEASURED:
        (MEASURED / "pool-sizes.md").write_text(shown(found) + "\n")
        draw(found, MEASURED / "pool-sizes.png")


if __name__ == "__main__":
    main()
