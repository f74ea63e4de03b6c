"""Error by number of labels of the text model of version 0.7 and of the current one, their time and the figure.

``python benchmarks/text_models.py --write`` writes docs/measured/text-models.md, text-model-times.md and
text-models.png. The data sets newsgroups and sms_spam must be there (``suffice data fetch newsgroups sms_spam``).
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import ast
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import psutil
from sklearn.linear_model import LogisticRegression

import suffice as sf
from suffice.models import BayesianLogistic
from suffice.models.capacity import most_components
from suffice.models.factory import make_model
from suffice.models.laplace import divergences, laplace
from suffice.models.threads import one_thread
from suffice.numerics import Floats
from suffice.tables.transformers import NgramComponents, TextComponents
from suffice_research.data.set_readers import read_texts
from tables import MEASURED, table

# Numbers of labels, and how often each is drawn anew.
REPEATS = {50: 5, 100: 5, 200: 4, 500: 3, 1000: 2, 2000: 1}
HELD_OUT = 800
CHOSEN, BATCH = 300, 10


class TextSet(NamedTuple):
    """Texts with their classes as codes; ``test`` if nothing was chosen on them."""

    name: str
    test: bool
    texts: Any
    codes: Any


def newsgroups(groups: Sequence[str], characters: int | None = None) -> tuple[Any, Any]:
    texts, labels = read_texts("newsgroups")
    found = [(t[:characters], groups.index(g)) for t, g in zip(texts, labels, strict=True) if g in groups and t.strip()]
    return _shuffled(found)


def spam() -> tuple[Any, Any]:
    texts, labels = read_texts("sms_spam")
    return _shuffled([(text, int(label == "spam")) for text, label in zip(texts, labels, strict=True)])


def docstrings(packages: Sequence[str], most: int = 1200) -> tuple[Any, Any]:
    """First paragraphs of docstrings of installed packages, at most 200 characters; the class is the package."""
    found = []
    for code, package in enumerate(packages):
        spec = find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            raise SystemExit(f"the package {package} is not installed; run make setup")
        root = Path(spec.submodule_search_locations[0])
        texts: dict[str, None] = {}
        for path in sorted(path for path in root.rglob("*.py") if "tests" not in path.parts):
            texts |= dict.fromkeys(_first_paragraphs(path))
        rows = list(texts)
        order = np.random.default_rng(1).permutation(len(rows))[:most]
        found += [(rows[k], code) for k in order]
    return _shuffled(found)


def _first_paragraphs(path: Path) -> list[str]:
    try:
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    except (SyntaxError, UnicodeDecodeError, ValueError):
        return []
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    strings = [ast.get_docstring(node) or "" for node in nodes if isinstance(node, kinds)]
    first = [" ".join(each.strip().split("\n\n")[0].split())[:200] for each in strings]
    return [text for text in first if len(text) > 15]


def _shuffled(found: Sequence[tuple[str, int]]) -> tuple[Any, Any]:
    order = np.random.default_rng(0).permutation(len(found))
    return np.array([found[k][0] for k in order], dtype=object), np.array([found[k][1] for k in order])


DEVELOPED = ("scipy", "sklearn", "torch", "pandas", "sqlalchemy", "sphinx")
TESTED = ("matplotlib", "networkx", "sympy", "numpy", "hypothesis", "docutils")
SHORT = ("rec.autos", "rec.sport.hockey", "sci.crypt", "sci.electronics", "comp.windows.x", "talk.politics.mideast")
OTHERS = ("comp.graphics", "misc.forsale", "rec.sport.baseball", "sci.med", "sci.space", "soc.religion.christian")
SETS: dict[str, tuple[bool, Callable[[], tuple[Any, Any]]]] = {
    "docstrings, 6 packages": (False, lambda: docstrings(DEVELOPED)),
    "short messages, 6 newsgroups": (False, lambda: newsgroups(SHORT, 200)),
    "messages, 2 newsgroups": (False, lambda: newsgroups(("comp.sys.ibm.pc.hardware", "comp.sys.mac.hardware"))),
    "docstrings, 6 other packages": (True, lambda: docstrings(TESTED)),
    "short messages, 6 other newsgroups": (True, lambda: newsgroups(OTHERS, 200)),
    "messages, 2 other newsgroups": (True, lambda: newsgroups(("talk.politics.guns", "talk.politics.misc"))),
    "SMS spam, 2 classes": (True, spam),
}


class Errors(NamedTuple):
    """Share of wrong classes by number of labels: both models, the reference, and components that the new one used."""

    old: dict[int, float]
    new: dict[int, float]
    sparse: dict[int, float]
    components: dict[int, float]
    chosen: tuple[float, float]


def measured(each: TextSet) -> Errors:
    K, n = int(each.codes.max()) + 1, len(each.codes)
    grown = NgramComponents(most_components(K, n))
    models = [
        (TextComponents().fit_transform(each.texts), make_model("logistic", classes=range(K))),
        (
            grown.fit_transform(each.texts),
            make_model("logistic", classes=range(K), components=[(0, int(grown.kept_.sum()))]),
        ),
    ]
    weights = grown._weights(each.texts)
    found = Errors({}, {}, {}, {}, (0.0, 0.0))
    for size, repeats in REPEATS.items():
        if size > n - HELD_OUT:
            continue
        rows = []
        for seed in range(repeats):
            order = np.random.default_rng(seed).permutation(n)
            test, train = order[:HELD_OUT], order[HELD_OUT : HELD_OUT + size]
            fitted = [model.fit(X[train], each.codes[train]) for X, model in models]
            full = LogisticRegression(C=10.0, max_iter=300).fit(weights[train], each.codes[train])
            wrong = [np.mean(m.predict(X[test]) != each.codes[test]) for (X, _), m in zip(models, fitted, strict=True)]
            wrong += [np.mean(full.predict(weights[test]) != each.codes[test]), fitted[1].n_components_]
            rows.append(wrong)
        found.old[size], found.new[size], found.sparse[size], found.components[size] = np.mean(rows, axis=0).tolist()
        print(each.name, size, np.round(np.mean(rows, axis=0), 3).tolist(), flush=True)
    order = np.random.default_rng(0).permutation(n)
    chosen = tuple(_chosen_error(model, X, each.codes, order) for X, model in models)
    print(each.name, "chosen", chosen, flush=True)
    return found._replace(chosen=(chosen[0], chosen[1]))


def _chosen_error(model: BayesianLogistic, X: Floats, codes: Any, order: Any) -> float:
    """Error with labels chosen by the model, ten at a time, the first ten at random."""
    test, pool = order[:HELD_OUT], order[HELD_OUT:]
    learner = sf.ActiveLearner(model, X[pool], seed=0, initial=BATCH)
    while len(learner.labelled) < CHOSEN:
        asked = learner.ask(BATCH)
        learner.tell(asked, codes[pool][asked])
    return float(np.mean(learner.current_model.predict(X[test]) != codes[test]))


def error_table(sets: Sequence[TextSet], found: Sequence[Errors]) -> str:
    head = ["data", *(f"{size} labels" for size in REPEATS), f"{CHOSEN} chosen by the model"]
    rows = []
    for kind, test in (("development", False), ("test", True)):
        rows.append([f"*{kind}*", *[""] * (len(head) - 1)])
        for each, errors in zip(sets, found, strict=True):
            if each.test != test:
                continue
            cells = [
                f"{100 * errors.old[n]:.0f} / **{100 * errors.new[n]:.0f}** / {100 * errors.sparse[n]:.0f}"
                if n in errors.old
                else ""
                for n in REPEATS
            ]
            chosen = f"{100 * errors.chosen[0]:.0f} / **{100 * errors.chosen[1]:.0f}**"
            rows.append([each.name, *cells, chosen])
    return table(head, rows)


def component_table(sets: Sequence[TextSet], found: Sequence[Errors]) -> str:
    rows = [
        [each.name, *(f"{errors.components[n]:.0f}" if n in errors.components else "" for n in REPEATS)]
        for each, errors in zip(sets, found, strict=True)
    ]
    return table(["components used, mean", *(f"{n} labels" for n in REPEATS)], rows)


def seconds_per_label(K: int, d: int, n: int = 500) -> float:
    """Median time to learn a label and compute both divergences, after ``n`` labels."""
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(n + 5), rng.normal(size=(n + 5, d)) * np.geomspace(1.0, 0.1, d)])
    y = (X @ rng.normal(size=(d + 1, K)) + rng.gumbel(size=(n + 5, K))).argmax(axis=1)
    times = []
    with one_thread():
        posterior = laplace(X[:n], y[:n], K, 1.0)
        old = posterior.snapshot()
        for row in range(n, n + 5):
            start = time.perf_counter()
            new = posterior.extend(X[row : row + 1], y[row : row + 1]).snapshot()
            divergences(old, new)
            times.append(time.perf_counter() - start)
            old = new
    return median(times)


def short_texts(count: int) -> Any:
    """So many texts of at most 100 characters, pieces of newsgroup messages."""
    pieces = [text[k : k + 100] for text in read_texts("newsgroups").texts for k in range(0, min(len(text), 2000), 100)]
    order = np.random.default_rng(0).permutation(len(pieces))[:count]
    return np.array([pieces[k] for k in order], dtype=object)


def time_table() -> str:
    rows = [
        [
            f"a label, {K} classes, {d} components ({(d + 1) * (K if K > 2 else 1)} weights)",
            _seconds(seconds_per_label(K, d)),
        ]
        for K, d in ((2, 50), (2, 100), (2, 400), (6, 50), (6, 100), (6, 165))
    ]
    texts = short_texts(100_000)
    for name, transformer in (
        ("50 components of words", TextComponents()),
        ("200 components of n-grams", NgramComponents(most_components(2, len(texts)))),
    ):
        start, before = time.perf_counter(), psutil.Process().memory_info().rss
        X = transformer.fit_transform(texts)
        grown = (psutil.Process().memory_info().rss - before) / 2**20
        rows.append([f"{len(texts):,} texts of 100 characters as {name}", _seconds(time.perf_counter() - start)])
        print(name, X.shape, f"memory grew by {grown:.0f} MiB", flush=True)
    return table(["", "time"], rows)


def _seconds(seconds: float) -> str:
    return f"{1000 * seconds:.0f} ms" if seconds < 1.0 else f"{seconds:.0f} s"


def draw(sets: Sequence[TextSet], found: Sequence[Errors], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.0, 5.2), layout="constrained")
    axes = figure.subplots(2, 4, sharex=True).ravel()
    for axis, each, errors in zip(axes, sets, found, strict=False):
        for label, values, style in (
            ("0.7: 50 components of words", errors.old, {"color": "0.55", "marker": "o"}),
            ("now: components chosen", errors.new, {"color": "C0", "marker": "o"}),
            ("all n-grams, scikit-learn", errors.sparse, {"color": "C1", "linestyle": ":"}),
        ):
            axis.plot(list(values), [100 * v for v in values.values()], label=label, markersize=3, **style)
        axis.set_xscale("log")
        axis.set_ylim(bottom=0)
        axis.set_title(f"{each.name}\n({'test' if each.test else 'development'})", fontsize=8)
    axes[-1].axis("off")
    axes[-1].legend(*axes[0].get_legend_handles_labels(), loc="center", fontsize=8)
    figure.supxlabel("labels drawn at random", fontsize=9)
    figure.supylabel("wrong, %", fontsize=9)
    figure.savefig(path, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true", help="write docs/measured/text-models.md and the figure")
    parser.add_argument("--only", default="", help="measure sets whose names contain this, or 'times'")
    arguments = parser.parse_args()
    texts = ""
    if arguments.only != "times":
        sets = [
            TextSet(name, test, *read())
            for name, (test, read) in SETS.items()
            if arguments.only in ("", "errors") or arguments.only in name
        ]
        found = [measured(each) for each in sets]
        texts = f"{error_table(sets, found)}\n\n{component_table(sets, found)}"
        print(texts)
        if arguments.write:
            (MEASURED / "text-models.md").write_text(texts + "\n")
            draw(sets, found, MEASURED / "text-models.png")
    if arguments.only in ("", "times"):
        times = time_table()
        print(times)
        if arguments.write:
            (MEASURED / "text-model-times.md").write_text(times + "\n")


if __name__ == "__main__":
    main()
