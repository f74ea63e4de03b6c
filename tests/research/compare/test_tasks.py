"""Labelling jobs by name: what is drawn, in which scale, with which labels; and names and tables that do not do."""

import csv
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.errors import InvalidValueError, MissingDataError
from suffice.tables.example_data import Task
from suffice_research.compare.recording import (
    SOURCES,
    LabelledData,
    cut,
    load,
    load_task,
    source,
    source_names,
    text_features,
)
from suffice_research.data.catalogue import SETS, FileState, set_status
from suffice_research.data.set_readers import read_set

DATA = os.environ.get("SUFFICE_DATA")
EMBEDDED = [name for name, each in SOURCES.items() if each.origin == "embedded"]
FETCHED = [name for name, each in SOURCES.items() if each.origin == "data folder"]


def require(name: str) -> None:
    if DATA is None:
        pytest.skip(f"{name}: SUFFICE_DATA is not set")
    if any(status.state is FileState.missing for status in set_status(SOURCES[name].data)):
        pytest.skip(f"{name}: not in the folder that SUFFICE_DATA names")


def numbered(n: int, classes: int = 0, *, rows: Sequence[int] = ()) -> LabelledData:
    """Rows 0, 1, 2, ... with a target of 100 + 7 times the second input, or with classes, as many rows as said."""
    inputs = np.column_stack([np.arange(n), np.random.default_rng(0).normal(5.0, 3.0, n)])
    if not classes:
        return LabelledData("mine", "a number", "regression", inputs, 100.0 + 7.0 * inputs[:, 1])
    codes = np.repeat(np.arange(classes), rows) if rows else np.arange(n) % classes
    return LabelledData("mine", "a class", "classification", inputs, codes, tuple(f"c{k}" for k in range(classes)))


def write(**columns: Sequence[object]) -> str:
    with Path("table.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return "table.csv"


def same(one: Task, two: Task) -> bool:
    return all(
        np.array_equal(getattr(one, name), getattr(two, name)) for name in ("X_pool", "y_pool", "X_test", "y_test")
    )


# What is drawn


@pytest.mark.parametrize("kind", ["regression", "classification"])
def test_the_same_seed_draws_the_same(kind: str) -> None:
    labelled = numbered(90, 3 if kind == "classification" else 0)
    options: dict[str, Any] = {"noise": 0.3, "imbalance": 0.1 if kind == "classification" else None}
    assert same(cut(labelled, 5, **options), cut(labelled, 5, **options))
    assert not same(cut(labelled, 5, **options), cut(labelled, 6, **options))
    assert same(load_task("wine", 3, pool=50), cut(load("wine"), 3, pool=50))


@given(st.integers(10, 40), st.integers(2, 30), st.integers(1, 30), st.integers(0, 5))
def test_pool_and_test_are_disjoint_and_as_large_as_asked(n: int, pool: int, test: int, seed: int) -> None:
    labelled = numbered(n)
    job = cut(labelled, seed, pool=pool, test=test)
    if n >= pool + test:
        assert (len(job.X_pool), len(job.X_test)) == (pool, test)
    else:
        assert (len(job.X_pool), len(job.X_test)) == (min(pool, int(0.7 * n)), min(test, n - int(0.7 * n)))
    assert len(np.unique(np.concatenate([job.X_pool[:, 1], job.X_test[:, 1]]))) == len(job.X_pool) + len(job.X_test)
    assert (len(job.y_pool), len(job.y_test)) == (len(job.X_pool), len(job.X_test))


def test_every_row_keeps_its_label_and_the_test_set_is_that_of_larger_pools() -> None:
    # Each row has an input of its own that is 1, and the largest in any scale: so it can be told which row it is.
    labelled = LabelledData("mine", "a class", "classification", np.eye(12), np.arange(12) % 3, ("a", "b", "c"))
    small, large = (cut(labelled, 1, pool=size, test=4) for size in (6, 8))
    pool, test = (X.argmax(axis=1) for X in (large.X_pool, large.X_test))
    assert sorted([*pool, *test]) == list(range(12))
    np.testing.assert_array_equal(large.y_pool, pool % 3)
    np.testing.assert_array_equal(large.y_test, test % 3)
    np.testing.assert_array_equal(small.X_test.argmax(axis=1), test)
    np.testing.assert_array_equal(small.X_pool.argmax(axis=1), pool[:6])


def test_all_is_standardised_by_the_pool_alone() -> None:
    labelled = numbered(60)
    job = cut(labelled, 2, pool=30, test=20)
    assert job.X_pool.mean(axis=0) == pytest.approx([0.0, 0.0], abs=1e-12)
    assert job.X_pool.std(axis=0) == pytest.approx([1.0, 1.0])
    assert (job.y_pool.mean(), job.y_pool.std()) == pytest.approx((0.0, 1.0), abs=1e-12)
    # The target is 100 + 7 x, so in both scales it is x; also on the test set, whose own mean and deviation are others.
    np.testing.assert_allclose(job.y_test, job.X_test[:, 1], atol=1e-12)
    assert abs(job.y_test.mean()) > 0.01
    # Always saying the mean has an error of 1.
    assert np.mean(job.y_pool**2) == pytest.approx(1.0)


def test_a_constant_input_is_zero() -> None:
    inputs = np.column_stack([np.full(20, 0.1), np.arange(20.0)])
    job = cut(LabelledData("mine", "a number", "regression", inputs, np.arange(20.0)), 0)
    np.testing.assert_allclose(job.X_pool[:, 0], 0.0, atol=1e-15)
    np.testing.assert_allclose(job.X_test[:, 0], 0.0, atol=1e-15)


# Noise


@given(st.floats(0.0, 1.0), st.integers(2, 5), st.integers(0, 3))
def test_a_share_of_the_classes_is_wrong_in_the_pool_alone(noise: float, classes: int, seed: int) -> None:
    labelled = numbered(200, classes)
    clean, noisy = cut(labelled, seed, pool=100, test=50), cut(labelled, seed, pool=100, test=50, noise=noise)
    np.testing.assert_array_equal(noisy.X_pool, clean.X_pool)
    assert np.sum(noisy.y_pool != clean.y_pool) == round(noise * 100)
    np.testing.assert_array_equal(noisy.y_test, clean.y_test)
    assert set(noisy.y_pool.tolist()) <= set(range(classes))


def test_wrong_classes_are_spread_over_all_others() -> None:
    labelled = numbered(6000, 3)
    clean, noisy = cut(labelled, 0, pool=5000), cut(labelled, 0, pool=5000, noise=1.0)
    counts = [np.sum((clean.y_pool == a) & (noisy.y_pool == b)) for a in range(3) for b in range(3) if a != b]
    assert np.allclose(counts, 5000 / 6, rtol=0.1)


def test_numbers_get_noise_of_so_many_deviations() -> None:
    labelled = numbered(6000)
    clean, noisy = cut(labelled, 0, pool=5000), cut(labelled, 0, pool=5000, noise=0.5)
    added = noisy.y_pool - clean.y_pool
    assert added.std() == pytest.approx(0.5, rel=0.05)
    assert abs(np.corrcoef(added, clean.y_pool)[0, 1]) < 0.05
    np.testing.assert_array_equal(noisy.y_test, clean.y_test)
    np.testing.assert_array_equal(noisy.X_pool, clean.X_pool)


# Imbalance


@given(st.floats(0.02, 0.25), st.integers(0, 3))
def test_the_rarest_class_has_the_share_that_was_asked_for(share: float, seed: int) -> None:
    labelled = numbered(1000, 3, rows=(400, 250, 350))
    job = cut(labelled, seed, pool=600, test=400, imbalance=share)
    for codes in (job.y_pool, job.y_test):
        others = np.sum(codes != 1)
        # Exact to half a row; where the draw had fewer than that, none was dropped.
        assert np.sum(codes == 1) <= max(1, round(share / (1 - share) * others))
    if share < 0.2:
        assert np.mean(job.y_pool == 1) == pytest.approx(share, abs=0.5 / 600 + 1e-3)
    as_it_is = cut(labelled, seed, pool=600, test=400)
    for code in (0, 2):
        assert np.sum(job.y_pool == code) == np.sum(as_it_is.y_pool == code)


def test_one_of_the_rarest_class_is_always_left() -> None:
    job = cut(numbered(100, 2, rows=(80, 20)), 0, pool=50, test=50, imbalance=1e-6)
    assert (np.sum(job.y_pool == 1), np.sum(job.y_test == 1)) == (1, 1)


# Classes that are missing


def test_test_rows_of_classes_that_the_pool_has_not_are_dropped() -> None:
    inputs = np.arange(100.0)[:, None]
    codes = np.r_[np.zeros(49, int), [1], np.full(50, 2)]
    labelled = LabelledData("mine", "a class", "classification", inputs, codes, ("a", "b", "c"))
    jobs = [cut(labelled, seed, pool=50, test=50) for seed in range(8)]
    # Where the lone row is in the test set it is dropped, and the codes go on without a gap.
    assert {len(job.X_test) for job in jobs} == {49, 50}
    for job in jobs:
        assert set(job.y_test.tolist()) <= set(job.y_pool.tolist()) == set(range(2 if len(job.X_test) == 49 else 3))
        assert len(job.y_test) == len(job.X_test)


def test_one_class_is_not_enough() -> None:
    with pytest.raises(
        InvalidValueError, match=r"mine: the 35 rows of the pool have 1 class; two or more are required"
    ):
        cut(numbered(50, 1), 0)
    with pytest.raises(InvalidValueError, match=r"imbalance must be a number above 0 and at most 1 "):
        cut(numbered(50, 1), 0, imbalance=1.0)
    constant = LabelledData("mine", "a number", "regression", np.arange(9.0)[:, None], np.full(9, 0.1))
    with pytest.raises(InvalidValueError, match=r"in the 6 rows of the pool the target of mine has one value only"):
        cut(constant, 0)


def test_no_test_row_of_a_class_in_the_pool() -> None:
    codes = np.r_[np.zeros(5, int), np.ones(5, int), 2]
    labelled = LabelledData("mine", "a class", "classification", np.arange(11.0)[:, None], codes, ("a", "b", "c"))
    seed = next(k for k in range(99) if np.random.default_rng([k, 2, 0]).permutation(11)[0] == 10)
    with pytest.raises(InvalidValueError, match=r"the 10 rows of the pool have 2 classes; no test row has one of them"):
        cut(labelled, seed, pool=10, test=1)


# Options


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"pool": 1}, r"pool must be a whole number, 2 or more, not 1"),
        ({"test": 0}, r"test must be a whole number, 1 or more, not 0"),
        ({"noise": -0.1}, r"noise must be a number from 0 to 1, a share of the labels, not -0\.1"),
        ({"noise": 1.5}, r"noise must be a number from 0 to 1"),
        ({"imbalance": 0.0}, r"imbalance must be a number above 0 and at most 0\.2696 \(the share of 'class_2'"),
        ({"imbalance": 0.4}, r"the rarest class of wine: rows are only dropped\), not 0\.4"),
        ({"target": "x"}, r"target 'x' goes with a file, and wine has a target of its own; leave target out"),
    ],
)
def test_options_that_cannot_be(options: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidValueError, match=told):
        load_task("wine", 0, **options)


def test_options_that_do_not_go_with_numbers() -> None:
    with pytest.raises(InvalidValueError, match="imbalance is for classes, and diabetes has a number to predict"):
        load_task("diabetes", 0, imbalance=0.1)
    with pytest.raises(InvalidValueError, match="noise must be a number of 0 or more, in standard deviations"):
        load_task("diabetes", 0, noise=-1.0)
    with pytest.raises(InvalidValueError, match="seed must be a whole number, 0 or more, not -1"):
        load_task("diabetes", -1)
    assert load_task("diabetes", 0, noise=2.0).kind == "regression"


# Names


def test_the_names() -> None:
    assert source_names() == [*EMBEDDED, *FETCHED]
    assert EMBEDDED == ["diabetes", "friedman", "breast_cancer", "digits", "wine", "iris"]
    paper = ["power_plant", "protein", "gas_emission", "grid_stability", "grid_stable", "skin", "htru2"]
    assert [*paper, "sms_spam", "newsgroups", "letter", "adult"] == FETCHED
    assert {SOURCES[name].data for name in FETCHED} == set(SETS) - {"mnist"}
    assert all(SOURCES[name].kind == SETS[SOURCES[name].data].task for name in FETCHED)


def test_a_name_that_is_none() -> None:
    for wrong, near in (("power-plnt", "power_plant"), ("Iris", "iris"), ("sms spam", "sms_spam")):
        with pytest.raises(InvalidValueError, match=rf"there is no data set '{wrong}'\. Did you mean {near}\?"):
            load(wrong)
    with pytest.raises(InvalidValueError, match=r"'qqq'\. The data sets are diabetes, .*; or give the path of a table"):
        load_task("qqq", 0)
    for strange in ("", "a\0b", "x" * 5000):
        with pytest.raises(InvalidValueError, match="there is no data set"):
            source(strange)


def test_sets_that_are_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SUFFICE_DATA", str(tmp_path))
    for name in FETCHED:
        with pytest.raises(MissingDataError, match=f"Run: suffice data fetch {SOURCES[name].data}"):
            load(name)


@pytest.mark.parametrize("name", EMBEDDED)
def test_what_comes_with_scikit_learn(name: str) -> None:
    labelled, about = load(name), SOURCES[name]
    assert (labelled.name, labelled.title, labelled.kind) == (name, about.title, about.kind)
    shape = {
        "diabetes": (442, 10),
        "friedman": (2000, 10),
        "breast_cancer": (569, 30),
        "digits": (1797, 64),
        "wine": (178, 13),
        "iris": (150, 4),
    }[name]
    check(labelled, shape)


def check(labelled: LabelledData, shape: tuple[int, int]) -> None:
    assert labelled.inputs.shape == shape
    assert labelled.inputs.dtype == np.float64
    assert np.isfinite(labelled.inputs).all()
    assert labelled.target.shape == shape[:1]
    job = cut(labelled, 0)
    assert job.name == f"{labelled.name}: {labelled.title}"
    if labelled.kind == "regression":
        assert labelled.classes == ()
        assert labelled.target.dtype == np.float64
        return
    codes = np.arange(len(labelled.classes))
    np.testing.assert_array_equal(np.unique(labelled.target), codes)
    for found in (job.y_pool, job.y_test):
        assert np.issubdtype(found.dtype, np.integer)
        np.testing.assert_array_equal(np.unique(found), codes)


def test_friedmans_function() -> None:
    labelled = load("friedman")
    a, b, c, d, e = labelled.inputs[:, :5].T
    truth = 10 * np.sin(np.pi * a * b) + 20 * (c - 0.5) ** 2 + 10 * d + 5 * e
    assert (labelled.target - truth).std() == pytest.approx(1.0, rel=0.05)


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name == "newsgroups" else name for name in FETCHED]
)
def test_what_is_in_the_data_folder(name: str) -> None:
    require(name)
    about = SETS[SOURCES[name].data]
    features = {"sms_spam": 100, "newsgroups": 100, "adult": 98}.get(name, about.features)
    labelled = load(name)
    check(labelled, (about.rows, features))
    job = cut(labelled, 1, pool=300, test=200)
    assert (len(job.X_pool), len(job.X_test)) == (300, 200)
    assert job.X_pool.mean(axis=0) == pytest.approx(np.zeros(features), abs=1e-9)


def test_classes_have_the_names_that_belong_to_them() -> None:
    require("grid_stable")
    grid = load("grid_stable")
    stable = np.array(grid.classes)[grid.target] == "stable"
    np.testing.assert_array_equal(stable, read_set("grid_stability_c").target == 1)
    assert np.mean(stable) == pytest.approx(0.362, abs=1e-9)  # 3620 of 10000, as published
    require("htru2")
    pulsars = load("htru2")
    assert np.sum(np.array(pulsars.classes)[pulsars.target] == "pulsar") == 1639
    cancer = load("breast_cancer")
    assert np.sum(np.array(cancer.classes)[cancer.target] == "malignant") == 212


def test_texts_can_be_told_apart() -> None:
    require("sms_spam")
    from sklearn.linear_model import LogisticRegression

    job = load_task("sms_spam", 0)
    model = LogisticRegression(max_iter=1000).fit(job.X_pool, job.y_pool)
    # Always saying "ham" is right in 87 % of the cases.
    assert model.score(job.X_test, job.y_test) > 0.95


# Texts


def test_texts_become_numbers_without_labels_and_the_same_each_time() -> None:
    rng = np.random.default_rng(0)
    words = np.array(["tree", "river", "stone", "cloud", "bird", "fish", "wolf", "moss"])
    texts = [" ".join(rng.choice(words, 5)) for _ in range(40)] + [""]
    found = text_features(texts, components=4)
    assert found.shape == (41, 4)
    np.testing.assert_array_equal(found, text_features(texts, components=4))
    np.testing.assert_allclose(found[-1], 0.0, atol=1e-12)
    # The components of one decomposition are orthogonal.
    gram = found.T @ found
    np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-6 * gram.max())


@pytest.mark.parametrize("texts", [[], ["a"] * 5, ["one two three"] * 2, ["", "", ""]])
def test_too_few_words(texts: list[str]) -> None:
    with pytest.raises(InvalidValueError, match="texts must be more than 4 texts and more than 4 words"):
        text_features(texts, components=4)


# People's own tables


def test_a_table_of_classes() -> None:
    n = 60
    path = write(
        size=range(n),
        colour=["red", "?", "blue"] * 20,
        fixed=[1] * n,
        good=["yes" if k % 3 else "no" for k in range(n)],
    )
    labelled = load(path, target="good")
    assert (labelled.kind, labelled.classes) == ("classification", ("no", "yes"))
    assert labelled.inputs.shape == (60, 4)  # the size, red, blue, missing; what is constant is left out
    job = load_task(path, 0, target="good", imbalance=0.2, noise=0.1)
    assert job.name == "table.csv: column good"
    assert set(job.y_pool.tolist()) == {0, 1}


def test_a_table_of_numbers() -> None:
    path = write(size=range(40), price=[3.5 * k + 0.25 for k in range(40)])
    job = load_task(path, 0, target="price")
    assert job.kind == "regression"
    np.testing.assert_allclose(job.y_test, job.X_test[:, 0], atol=1e-12)
    # By any name that is a file's, and not a data set's.
    Path("table.csv").rename("prices")
    assert source("prices").origin == "file"
    assert same(load_task("prices", 0, target="price"), job)


def test_tables_that_do_not_do() -> None:
    path = write(size=range(40), price=range(40), kind=["a"] * 40)
    with pytest.raises(InvalidValueError, match=r"table\.csv has no column 'prise'\. Did you mean 'price'\? Its col"):
        load_task(path, 0, target="prise")
    with pytest.raises(InvalidValueError, match=r"target must name the column to predict\. Its columns are 'size', 'p"):
        load_task(path, 0)
    with pytest.raises(InvalidValueError, match=r"target 'kind' has one value only"):
        load_task(path, 0, target="kind")
    with pytest.raises(InvalidValueError, match=r"there is no file nowhere\.csv"):
        load_task("nowhere.csv", 0, target="x")
    Path("empty.csv").touch()
    for target in (None, "x"):
        with pytest.raises(InvalidValueError, match=r"empty\.csv is empty"):
            load_task("empty.csv", 0, target=target)
    path = write(size=range(2), price=[1.5, 2.5])
    with pytest.raises(InvalidValueError, match=r"table\.csv has 2 rows; 3 or more are required"):
        load_task(path, 0, target="price")
    path = write(**{f"c{k}": range(9) for k in range(30)})
    with pytest.raises(InvalidValueError, match=r"'c19' and 10 more"):
        load_task(path, 0)


def test_nothing_heavy_is_loaded_before_it_is_needed() -> None:
    modules = "suffice_research.compare.recording, suffice_research.compare.compare_command"
    code = f"import sys, {modules}; print('sklearn' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
