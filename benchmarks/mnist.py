"""The published deep experiment: MNIST, 100 rounds of 5 labels by BatchBALD, several seeds and what explains them.

``python benchmarks/mnist.py --run RESULTS.json`` runs it (minutes on a GPU), in parts if asked, adding to what is
in the file; ``python benchmarks/mnist.py --write`` writes table and figure of docs/measured/mnist.json.
"""

import argparse
import json
import os
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from suffice.criteria import ErrorStability
from suffice.trace import Trace
from suffice_research.data.protocols import PUBLISHED
from suffice_research.data.set_readers import read_mnist
from suffice_research.paper.experiments import published_run, unlabelled_run
from suffice_research.paper.outcome import correlation
from tables import MEASURED, publish, table

THRESHOLDS = (0.2, 0.15, 0.1)
#: What is run, and what is changed for it: options of the network and of the run.
VARIANTS: dict[str, dict[str, Any]] = {
    "as published": {},
    "as published, single precision": {"precision": "float32"},
    "labels at random": {"acquisition": "random"},
    "no more labels": {"unlabelled": True},
    "a new Adam every round": {"keep_optimizer": False},
    "trained well before the first round": {"epochs": 300},
    "last layer by Laplace": {"approximation": "last-layer"},
}


def run(variant: str, seed: int, steps: int, device: str | None) -> dict[str, Any]:
    """One run of a variant, as numbers."""
    options = dict(VARIANTS[variant])
    folder = Path(os.environ.get("SUFFICE_DATA", ".")) / "mnist"
    train, test = read_mnist(folder), read_mnist(folder, "test")
    start = time.perf_counter()
    with parts() as spent:
        kind = unlabelled_run if options.pop("unlabelled", False) else published_run
        trace = kind(train, test, seed=seed, steps=steps, device=device, **options)
    return {
        "variant": variant,
        "seed": seed,
        "device": described(device),
        "rounds": steps + 1,
        "seconds": round(time.perf_counter() - start, 2),
        "parts": {name: round(seconds, 2) for name, seconds in spent.items()},
        **figures(trace),
    }


def figures(trace: Trace) -> dict[str, Any]:
    ratio = trace.ratio(calibration=1)
    published = trace.measures.get("published_error")
    stops = {}
    for threshold in THRESHOLDS:
        verdicts = trace.replay(ErrorStability(threshold, calibration=1))
        stops[str(threshold)] = next((step for step, verdict in enumerate(verdicts) if verdict.stop), None)
    curves = {"ratio": ratio, "error": trace.error, "accuracy": trace.measures["accuracy"]}
    curves |= {} if published is None else {"published_error": published}
    curves |= {name: trace.measures[name] for name in ("calibration_error",) if name in trace.measures}
    return {
        "stops": stops,
        "layers": trace.measures["contributions"].mean(axis=0).round(5).tolist()
        if "contributions" in trace.measures
        else None,
        "curves": {name: [float(f"{value:.4g}") for value in values] for name, values in curves.items()},
    }


@contextmanager
def parts() -> Iterator[dict[str, float]]:
    """Seconds spent in training, drawing, choosing and testing while it is on."""
    import torch

    from suffice.learner import network_backend
    from suffice.models.deep.trained_module import Machine

    spent: dict[str, float] = defaultdict(float)
    gpu = torch.cuda.is_available()

    def timed(owner: Any, name: str, label: str) -> tuple[Any, str, Any]:
        plain = getattr(owner, name)

        def measured(*args: Any, **named: Any) -> Any:
            if gpu:
                torch.cuda.synchronize()
            start = time.perf_counter()
            found = plain(*args, **named)
            if gpu:
                torch.cuda.synchronize()
            spent[label] += time.perf_counter() - start
            return found

        setattr(owner, name, measured)
        return owner, name, plain

    kept = [
        timed(Machine, "train", "training"),
        timed(network_backend.NetworkBackend, "_probabilities", "draws over the pool"),
        timed(network_backend, "batchbald", "BatchBALD"),
        timed(network_backend.NetworkBackend, "_judged", "test"),
        timed(Machine, "posterior", "weights read"),
    ]
    try:
        yield spent
    finally:
        for owner, name, plain in kept:
            setattr(owner, name, plain)


def described(device: str | None) -> str:
    import torch

    if device != "cpu" and torch.cuda.is_available():
        return str(torch.cuda.get_device_name())
    return f"CPU, {torch.get_num_threads()} threads"


def summary(results: list[dict[str, Any]]) -> str:
    rows = []
    for variant in VARIANTS:
        runs = [each for each in results if each["variant"] == variant and each["rounds"] == 100]
        if not runs:
            continue
        rows.append(
            [
                variant,
                str(len(runs)),
                spread([correlated(each, "error") for each in runs], "{:.3f}"),
                spread([correlated(each, "published_error") for each in runs], "{:.3f}"),
                *(spread([each["stops"][str(threshold)] for each in runs], "{:.0f}") for threshold in THRESHOLDS),
                spread([each["curves"]["ratio"][-1] for each in runs], "{:.2f}"),
                spread([each["curves"]["accuracy"][-1] for each in runs], "{:.3f}"),
                spread([each["seconds"] for each in runs], "{:.0f} s"),
            ]
        )
    heads = ["run", "seeds", "correlation", "with the published error", "stop at 0.2", "at 0.15", "at 0.1"]
    text = table([*heads, "last ratio", "last accuracy", "100 rounds"], rows)
    paper = (
        f"Published: correlation {PUBLISHED['bdnn/mnist'].correlation}, stop at round 67 for 0.2, never for 0.15 and "
        "0.1. Median and range over the seeds; a stop is counted in rounds from 0."
    )
    return f"{text}\n\n{paper}\n\n{time_table(results)}"


def correlated(run: dict[str, Any], error: str) -> float | None:
    """Correlation of the ratio with one of the errors, where there is such."""
    curves = run["curves"]
    return correlation(np.array(curves["ratio"]), np.array(curves[error]), 0) if error in curves else None


def spread(values: list[Any], form: str) -> str:
    """Median and range; a run that never stops counts as later than all others."""
    if all(value is None for value in values):
        return "never" if "0f" in form else "-"
    known = sorted(np.inf if value is None else value for value in values)
    middle, low, high = known[(len(known) - 1) // 2], known[0], known[-1]
    words = ["never" if np.isinf(value) else form.format(value) for value in (middle, low, high)]
    return words[0] if len(known) == 1 else f"{words[0]} ({words[1]} to {words[2]})"


def time_table(results: list[dict[str, Any]]) -> str:
    names = ["training", "draws over the pool", "BatchBALD", "test", "weights read"]
    rows = []
    for variant in ("as published", "as published, single precision"):
        for device in dict.fromkeys(each["device"] for each in results if each["variant"] == variant):
            runs = [each for each in results if each["variant"] == variant and each["device"] == device]
            best = sorted(runs, key=lambda each: each["seconds"] / each["rounds"])[(len(runs) - 1) // 2]
            spent = [f"{1e3 * best['parts'].get(name, 0.0) / best['rounds']:,.0f} ms" for name in names]
            each = f"{best['seconds'] / best['rounds']:.2f} s"
            rows.append([variant, device, str(best["rounds"]), each, *spent])
    return table(["run", "on", "rounds", "a round", *names], rows)


def draw(results: list[dict[str, Any]], path: Path) -> None:
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullFormatter, StrMethodFormatter

    colours = {"as published": "#1d4ed8", "no more labels": "#c2410c", "last layer by Laplace": "#15803d"}
    figure = Figure(figsize=(9.0, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    for variant, colour in colours.items():
        runs = [each for each in results if each["variant"] == variant and each["rounds"] == 100]
        for number, each in enumerate(runs):
            style: dict[str, Any] = {"color": colour, "lw": 1.0, "alpha": 0.7, "label": None if number else variant}
            left.plot(each["curves"]["error"], **style)
            right.plot(each["curves"]["ratio"], **style)
    left.set_ylabel("test error (cross entropy)")
    right.set_ylabel("error ratio")
    right.axhline(0.2, color="#616e7c", ls="--", lw=1.0, label="threshold 0.2")
    for axis in (left, right):
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axis.yaxis.set_minor_formatter(NullFormatter())
        axis.set_xlabel("round of 5 labels")
        axis.spines[["top", "right"]].set_visible(False)
    left.set_yticks([0.2, 0.3, 0.5, 1.0])
    right.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, help="file to add results to")
    parser.add_argument("--variants", default=";".join(VARIANTS), help="which, with semicolons between")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=99)
    parser.add_argument("--device")
    parser.add_argument("--write", action="store_true", help="write table and figure of docs/measured/mnist.json")
    given = parser.parse_args()
    if given.run is not None:
        results = json.loads(given.run.read_text()) if given.run.exists() else []
        for variant in given.variants.split(";"):
            for seed in range(given.seeds):
                found = run(variant, seed, given.steps, given.device)
                results.append(found)
                shown = ("stops", "seconds", "parts")
                print(variant, seed, {name: found[name] for name in shown}, flush=True)
                given.run.write_text(json.dumps(results))
    if given.write or given.run is None:
        results = json.loads((MEASURED / "mnist.json").read_text())
        publish("mnist", summary(results))
        if given.write:
            draw(results, MEASURED / "mnist.png")


if __name__ == "__main__":
    main()
