"""The registry of checks: digests, numbers, saving, and users who repeat checks of the same items."""

import json
import math
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array, random_array
from scipy.stats import binom, hypergeom

from suffice.checks import Check, CheckRegistry, Guarantee, compare, rows_digest, sequential, spent_alpha, upper_bound
from suffice.checks.registry import RegisteredItems, registered_items
from suffice.errors import InvalidTypeError, InvalidValueError, SufficeError


def numbers(rows: int = 40, columns: int = 5) -> Any:
    return np.random.default_rng(0).normal(size=(rows, columns))


# Digests.


def test_a_digest_is_that_of_the_rows_in_any_order() -> None:
    X = numbers()
    found = rows_digest(X)
    assert found == rows_digest(X.copy()) == rows_digest(X[::-1]) == rows_digest(np.asfortranarray(X))
    assert found == rows_digest(X.tolist())
    assert found.startswith("40-")
    others = [X[:-1], X[:, ::-1], X + 1e-9, np.vstack([X, X[:1]]), np.vstack([X[:-1], X[:1]])]
    assert len({found, *map(rows_digest, others)}) == 6


def test_every_change_of_one_cell_changes_the_digest() -> None:
    X = np.random.default_rng(1).integers(0, 3, size=(30, 4)).astype(float)
    found = {rows_digest(X)}
    for row in range(30):
        for column in range(4):
            Y = X.copy()
            Y[row, column] += 1.0
            found.add(rows_digest(Y))
    # Equal rows with the same change are the same items.
    changed = {
        tuple(sorted(map(tuple, np.vstack([np.delete(X, i, 0), X[i] + np.eye(4)[j]]))))
        for i in range(30)
        for j in range(4)
    }
    assert len(found) == 1 + len(changed)


def test_multiplicity_counts() -> None:
    a, b, c = np.eye(3)
    assert len({rows_digest(np.array(rows)) for rows in ([a, a, b], [a, b, b], [c, c, b], [a, b, c])}) == 4


def test_sparse_and_dense_rows_have_the_same_digest() -> None:
    S = random_array((300, 50), density=0.1, rng=np.random.default_rng(0), format="csr")
    dense = S.toarray()
    assert rows_digest(S) == rows_digest(dense) == rows_digest(coo_array(dense)) == rows_digest(S[::-1])
    twice = csr_array((np.array([1.0, 2.0, 5.0]), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2))
    assert rows_digest(twice) == rows_digest(np.array([[3.0, 0.0], [0.0, 5.0]]))


def test_numbers_count_by_value() -> None:
    X = np.arange(12).reshape(4, 3)
    assert rows_digest(X) == rows_digest(X.astype(np.float32)) == rows_digest(X.astype(object))
    assert rows_digest(np.array([[0.0, np.nan]])) == rows_digest(np.array([[-0.0, -np.nan]]))
    images = np.random.default_rng(0).integers(0, 255, size=(6, 4, 4, 3), dtype=np.uint8)
    assert rows_digest(images) == rows_digest(images.reshape(6, -1))


def test_large_pools_are_read_in_blocks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    X = numbers(100, 7)
    found, texts = rows_digest(X), [f"text {i}" for i in range(100)]
    known = rows_digest(texts)
    np.save(tmp_path / "pool.npy", X)
    monkeypatch.setattr("suffice.checks.registry._BLOCK_CELLS", 20)
    assert (
        found
        == rows_digest(X)
        == rows_digest(csr_array(X))
        == rows_digest(np.load(tmp_path / "pool.npy", mmap_mode="r"))
    )
    assert known == rows_digest(texts)
    from suffice.engines.disk_rows import rows_on_disk

    assert rows_digest(rows_on_disk(tmp_path / "pool.npy")) == found


def test_tables() -> None:
    pd = pytest.importorskip("pandas")
    pl = pytest.importorskip("polars")
    columns: dict[str, Any] = {"age": [1, 2, 3], "name": ["x", "y", None], "width": [0.5, None, 2.0]}
    frame = pd.DataFrame(columns)
    found = rows_digest(frame)
    assert found == rows_digest(frame.copy()) == rows_digest(frame.iloc[::-1]) == rows_digest(pl.DataFrame(columns))
    assert found == rows_digest(frame.set_axis(["a", "b", "c"], axis=1))
    assert found != rows_digest(frame.assign(name=["x", "y", "z"]))
    X = numbers()
    assert rows_digest(pd.DataFrame(X)) == rows_digest(pl.DataFrame(X)) == rows_digest(X)
    dates = pd.DataFrame({"day": pd.to_datetime(["2020-01-01", "2020-01-02"]), "kind": pd.Categorical(["u", "v"])})
    assert rows_digest(dates) == rows_digest(dates.iloc[::-1])
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table({"a": [1, 2], "b": ["x", "y"]})
    assert rows_digest(table) == rows_digest(table.to_pylist()[::-1])


def test_texts_and_objects() -> None:
    pd = pytest.importorskip("pandas")
    texts = ["good", "bad", "", "good"]
    assert (
        rows_digest(texts) == rows_digest(np.array(texts)) == rows_digest(pd.Series(texts)) == rows_digest(tuple(texts))
    )
    assert rows_digest(texts) != rows_digest(["good", "bad", "", "bad"])
    rows = [{"text": "a", "tags": ["x", "y"]}, {"text": "b", "tags": []}]
    assert rows_digest(rows) == rows_digest([{"tags": [], "text": "b"}, {"tags": ["x", "y"], "text": "a"}])
    arrays = [np.zeros(3), np.ones((2, 2)), b"bytes", ("a", 1)]
    assert rows_digest(arrays) == rows_digest([b"bytes", ("a", 1), np.ones((2, 2)), np.zeros(3)])
    with pytest.raises(InvalidTypeError, match="cannot be identified by their content; give earlier_checks"):
        rows_digest([lambda: 0])
    for wrong in ("text", 3, {"a": [1]}):
        with pytest.raises(InvalidTypeError, match="X must be an array, a table or a series of items"):
            rows_digest(wrong)


# Numbers.


def test_checks_of_the_same_items_are_counted_together() -> None:
    registry = CheckRegistry()
    assert registry.started("a") == 0
    assert registry.alpha("a") is None
    assert registry.next_alpha("a") == 0.025
    assert [registry.start("a"), registry.start("a"), registry.start("b")] == [1, 2, 1]
    assert (registry.started("a"), registry.alpha("a"), registry.next_alpha("a")) == (2, 0.05, spent_alpha(3))
    registry.add_earlier("b", 3)
    assert registry.start("b") == 5
    assert str(registry) == "CheckRegistry(7 checks of 2 sets of items)"
    registry.add_earlier("c", 0)
    assert registry.started("c") == 0
    with pytest.raises(InvalidValueError, match="number"):
        registry.add_earlier("c", -1)
    with pytest.raises(InvalidTypeError, match=r"rows_digest\(X\), not ndarray"):
        registry.start(np.zeros(3))  # type: ignore[arg-type]


def test_the_first_check_fixes_the_error_probability() -> None:
    registry = CheckRegistry()
    assert registry.start("a", alpha=0.1) == 1
    with pytest.raises(InvalidValueError, match=r"alpha must be 0.1 \(confidence 0.9\), as for the first check"):
        registry.start("a", alpha=0.05)
    assert registry.started("a") == 1
    assert registry.start("a") == 2
    assert registry.alpha("a") == 0.1
    with pytest.raises(InvalidValueError, match="alpha"):
        registry.start("b", alpha=1.5)
    assert registry.started("b") == 0


def test_a_running_check_uses_the_whole_error_probability() -> None:
    registry = CheckRegistry()
    items = RegisteredItems(registry, "a")
    items.start_running(0.05)
    assert items.started == 1
    for refused in (items.require_free, lambda: items.start(0.05), lambda: registry.add_earlier("a", 1)):
        with pytest.raises(InvalidValueError, match="a running check of these items uses the whole error probability"):
            refused()
    with pytest.raises(InvalidValueError, match="1 check of them was started before; leave check_share out"):
        RegisteredItems(registry, "a").start_running(0.05)
    registry.start("b")
    with pytest.raises(InvalidValueError, match="1 check of them was started before"):
        RegisteredItems(registry, "b").start_running(0.05)
    with pytest.raises(InvalidValueError, match="2 checks of them were started before"):
        RegisteredItems(earlier=2).start_running(0.05)
    assert registry.started("a") == registry.started("b") == 1


def test_arguments_of_objects_that_draw_checks() -> None:
    X, registry = numbers(), CheckRegistry()
    assert registered_items(None, 2, X).started == 2
    items = registered_items(registry, 0, X)
    assert items.start(0.05) == 1
    assert registry.started(rows_digest(X)) == 1
    with pytest.raises(InvalidValueError, match="earlier_checks cannot be combined with checks"):
        registered_items(registry, 1, X)
    with pytest.raises(InvalidTypeError, match=r"checks must be a suffice.checks.CheckRegistry, not int"):
        registered_items(3, 0, X)
    with pytest.raises(InvalidValueError, match="earlier_checks"):
        registered_items(None, -1, X)


# Saving.


def test_saving(tmp_path: Path) -> None:
    registry = CheckRegistry()
    registry.start("a", alpha=0.1)
    registry.start("a")
    registry.add_earlier("b", 2)
    RegisteredItems(registry, "c").start_running(0.05)
    state = json.loads(json.dumps(registry.state_dict()))
    again = CheckRegistry.from_state(state)
    assert again.state_dict() == state
    registry.save(tmp_path / "checks.json")
    read = CheckRegistry.load(str(tmp_path / "checks.json"))
    assert read.state_dict() == state
    assert (read.start("a"), read.alpha("a"), read.start("b")) == (3, 0.1, 3)
    with pytest.raises(InvalidValueError, match="running check"):
        read.start("c")
    assert len((tmp_path / "checks.json").read_text()) < 1000


def test_bad_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SufficeError, match=r"cannot be read: .*use CheckRegistry\(\)"):
        CheckRegistry.load(tmp_path / "none.json")
    for content in (b"", b"[1", b"\xff\xfe", b"{}"):
        (tmp_path / "bad.json").write_bytes(content)
        with pytest.raises(InvalidValueError):
            CheckRegistry.load(tmp_path / "bad.json")
    registry = CheckRegistry()
    registry.start("a")
    state = registry.state_dict()
    state["items"]["a"]["checks"] = []
    with pytest.raises(InvalidValueError, match="changed or damaged"):
        CheckRegistry.from_state(state)
    with pytest.raises(SufficeError, match="cannot be written"):
        registry.save(tmp_path / "none" / "checks.json")


def test_a_restored_object_is_not_counted_twice() -> None:
    registry = CheckRegistry()
    items = RegisteredItems(registry, "a")
    items.start(0.05)
    items.start(0.05)
    saved = items.state_dict()
    again = RegisteredItems(registry, "a")
    again.load_state(saved)
    assert again.started == 2
    # Checks of other objects are added to those of the restored one.
    other = CheckRegistry()
    other.start("a")
    moved = RegisteredItems(other, "a")
    moved.load_state(saved)
    assert (moved.started, moved.start(0.05), registry.started("a")) == (3, 4, 2)
    alone = RegisteredItems()
    alone.load_state(saved)
    assert alone.start(0.05) == 3
    assert registry.started("a") == 2
    different = CheckRegistry()
    different.start("a", alpha=0.1)
    with pytest.raises(InvalidValueError, match=r"alpha must be 0.1"):
        RegisteredItems(different, "a").load_state(saved)
    running = RegisteredItems()
    running.start_running(0.05)
    with pytest.raises(InvalidValueError, match="the registry has other checks of them"):
        RegisteredItems(registry, "a").load_state(running.state_dict())


# Statements.


def test_a_statement_says_which_check_it_is() -> None:
    check = Check.draw(np.arange(500), 60, np.random.default_rng(0), number=2)
    guarantee = check.tell(dict.fromkeys(check.items, "ham")).guarantee(["ham"] * 60)
    assert str(guarantee).endswith("are wrong (95 % confidence; check 2 of these items).")
    assert Guarantee.from_dict(json.loads(json.dumps(guarantee.to_dict()))) == guarantee
    first = Guarantee.of_error(0, 60, 500)
    assert "number" not in first.to_dict()
    assert str(first).endswith("(95 % confidence).")
    proof = sequential(0.2, 500, number=3, seed=0).tell([False] * 60)
    assert str(proof).endswith("(95 % confidence; check 3 of these items).")
    with pytest.raises(InvalidValueError, match="number"):
        Guarantee.of_error(0, 60, 500, number=0)


# Comparing models.


def complete(size: int = 200) -> Check:
    check = Check.draw(np.arange(3000), size, np.random.default_rng(0))
    return check.tell(dict.fromkeys(check.items, "ham"))


def predicted(wrong: int, size: int = 200) -> list[str]:
    return ["spam"] * wrong + ["ham"] * (size - wrong)


def test_models_are_compared_with_a_part_of_the_error_probability_each() -> None:
    check = complete()
    given = {"c": predicted(9), "a": np.array(predicted(4)), "b": dict(zip(check.items, predicted(6), strict=True))}
    found = compare(check, given)
    assert list(found) == ["a", "b", "c"]
    for name, wrong in (("a", 4), ("b", 6), ("c", 9)):
        assert (found[name].wrong, found[name].model, found[name].confidence) == (wrong, name, 0.95)
        assert found[name].alpha == 0.025 / 3
        assert found[name].wrong_at_most == upper_bound(wrong, 200, 3000, 0.025 / 3)
    assert compare(check, {"a": predicted(4)})["a"] == check.guarantee(predicted(4), model="a")


def test_numbers_and_excluded_items() -> None:
    check = Check.draw(np.arange(500), 40, np.random.default_rng(0))
    check = check.tell(dict.fromkeys(check.items[:39], 1.0)).cannot_label(check.items[39:])
    found = compare(check, {"far": [2.0] * 40, "near": [1.2] * 40}, tolerance=0.5, unlabelable_as="excluded")
    assert list(found) == ["near", "far"]
    assert [each.wrong for each in found.values()] == [0, 39]
    assert found["near"].unlabelable_as == "excluded"


def test_bad_comparisons_are_refused() -> None:
    check = complete()
    with pytest.raises(InvalidValueError, match="at least one model"):
        compare(check, {})
    with pytest.raises(InvalidTypeError, match="mapping of names to predictions, not list"):
        compare(check, [predicted(1)])  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match="name of a model must be a text, not 3"):
        compare(check, {3: predicted(1)})  # type: ignore[dict-item]
    with pytest.raises(InvalidTypeError, match="predictions of 'a' must be by item or a series, not str"):
        compare(check, {"a": "ham"})
    with pytest.raises(
        InvalidValueError, match="predictions of 'b': predictions must be one for each of the 200 items, not 1"
    ):
        compare(check, {"a": predicted(1), "b": ["ham"]})
    with pytest.raises(InvalidValueError, match="predictions of 'a': predictions must cover every item"):
        compare(check, {"a": {0: "ham"}})
    with pytest.raises(InvalidTypeError, match=r"that of a learner is check\.record"):
        compare(None, {"a": predicted(1)})  # type: ignore[arg-type]
    unfinished = Check.draw(np.arange(3000), 200, np.random.default_rng(0))
    with pytest.raises(InvalidValueError, match=r"^a check gives a guarantee when all its 200 items have an answer"):
        compare(unfinished, {"a": predicted(1)})
    with pytest.raises(InvalidValueError, match=r"^an aborted check gives no guarantee"):
        compare(unfinished.abort(), {"a": predicted(1)})
    terms = sequential(0.05, 3000, seed=0).terms
    with pytest.raises(InvalidValueError, match="a sequential check proves the target of one model"):
        compare(Check((1, 2), 3000, sequential=terms), {"a": ["ham"] * 2})


# Users who repeat checks of the same items. All probabilities are exact.


@lru_cache
def false_share(wrong: int, checked: int, pool: int, alpha: float) -> float:
    """Probability that the bound of a check at ``alpha`` is below the number of wrong items."""
    k = np.arange(min(checked, wrong) + 1)
    too_low = np.array([upper_bound(int(each), checked, pool, alpha) < wrong for each in k])
    return float(hypergeom(pool, wrong, checked).pmf(k)[too_low].sum())


def of_any(shares: list[float]) -> float:
    """Probability of at least one of independent events."""
    return 1.0 - math.prod(1.0 - share for share in shares)


def registry_levels(checks: int) -> list[float]:
    """Error probability of each of several checks of the same items, by separate objects with one registry."""
    registry, X = CheckRegistry(), numbers()
    return [spent_alpha(registered_items(registry, 0, X).start(0.05)) for _ in range(checks)]


SETTINGS = [(wrong, checked, pool) for pool in (500, 3000) for checked in (100, 200) for wrong in (15, 30, 60, 120)]


@pytest.mark.no_cover
def test_keeping_the_best_of_ten_models() -> None:
    """The counts of models with independent errors are nearly independent; this is the worst case."""
    before = [of_any([false_share(*setting, 0.025)] * 10) for setting in SETTINGS]
    after = [of_any([false_share(*setting, level) for level in registry_levels(10)]) for setting in SETTINGS]
    assert max(before) > 0.2
    assert max(after) <= 0.05
    # On one check with alpha / K each.
    together = [of_any([false_share(*setting, 0.025 / 10)] * 10) for setting in SETTINGS]
    assert max(together) <= 0.025


@pytest.mark.parametrize("argument", ["registry", "earlier_checks"])
def test_a_new_object_for_each_attempt(argument: str) -> None:
    """Five attempts, each with a new learner, until one check passes."""
    levels = registry_levels(5)
    if argument == "earlier_checks":
        levels = [spent_alpha(registered_items(None, earlier, None).start(0.05)) for earlier in range(5)]
    before = [of_any([false_share(*setting, 0.025)] * 5) for setting in SETTINGS]
    after = [of_any([false_share(*setting, level) for level in levels]) for setting in SETTINGS]
    assert max(before) > 0.11
    assert max(after) <= 0.05


def test_the_best_of_ten_on_one_check_in_simulated_runs() -> None:
    """Ten models with independent errors on the same sample, drawn and compared 3,000 times."""
    rng, runs, pool, wrong, checked = np.random.default_rng(0), 3000, 400, 40, 80
    uncorrected = np.array([upper_bound(k, checked, pool, 0.025) for k in range(checked + 1)])
    shared = np.array([upper_bound(k, checked, pool, 0.0025) for k in range(checked + 1)])
    false_before = false_after = 0
    for _ in range(runs):
        sample = rng.permutation(pool)[:checked]
        faults = np.argsort(rng.random((10, pool)), axis=1) < wrong
        fewest = int(faults[:, sample].sum(axis=1).min())
        false_before += int(uncorrected[fewest] < wrong)
        false_after += int(shared[fewest] < wrong)
    assert false_before > 0.1 * runs
    assert false_after <= binom.ppf(0.999, runs, 0.025)
