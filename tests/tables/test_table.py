"""Columns to numbers: what each type of column becomes, what the target is taken for, and what is said about it."""

import csv
import importlib
import math
import os
from collections.abc import Sequence
from dataclasses import FrozenInstanceError
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from suffice.errors import InvalidValueError
from suffice.tables import Table, read_table

DATA = os.environ.get("SUFFICE_DATA")
needs_data = pytest.mark.skipif(DATA is None, reason="people's tables: SUFFICE_DATA is not set")


def write(**columns: Sequence[object]) -> Path:
    path = Path("table.csv")
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def column(*values: object, target: Sequence[object] = ()) -> Table:
    """A table of one column "c", beside one of numbers so that something is left."""
    y = target or [f"y{k % 2}" for k in range(len(values))]
    return read_table(write(c=values, n=[k % 3 for k in range(len(values))], y=y), "y")


def feature(table: Table, name: str = "c") -> list[float]:
    values: list[float] = table.X[:, table.columns.index(name)].tolist()
    return values


# Features


@pytest.mark.parametrize(
    ("values", "note"),
    [
        (["1,84", "-0,14", "7"], "column 'c' is not taken as numbers: line 2 holds '1,84'; write 1.5 in place of 1,5"),
        (
            ["14.10.2024", "1.2.2024", ""],
            "column 'c' is not taken as dates: line 2 holds '14.10.2024'; write dates as 2024-02-29",
        ),
        (
            ["2012/01/01", "2012/01/02", "2012/1/2"],
            "column 'c' is not taken as dates: line 2 holds '2012/01/01'; write dates as 2024-02-29",
        ),
        (
            ["", "3/4/24 10:30", "5/4/24"],
            "column 'c' is not taken as dates: line 3 holds '3/4/24 10:30'; write dates as 2024-02-29",
        ),
    ],
)
def test_numbers_and_dates_in_other_forms_are_noted(values: list[str], note: str) -> None:
    assert column(*values * 4).notes[0] == note


@pytest.mark.parametrize("values", [["a,b", "1,5"], ["1.2.3", "1.2.4"], ["14.10.2024", "soon"], ["2024-02-29", "x"]])
def test_other_words_have_no_such_note(values: list[str]) -> None:
    assert not any("not taken as" in note for note in column(*values * 4).notes)


def test_classes_that_are_alike_are_noted() -> None:
    table = column(*range(6), target=["good", "Good", "bad"] * 2)
    assert "the classes 'good' and 'Good' differ in upper and lower case or spaces only" in table.notes[0]


def test_numbers_are_standardised() -> None:
    table = column(2, 4, 4, 10)
    assert table.columns == ("c", "n")
    assert feature(table) == pytest.approx([-1.0, -1 / 3, -1 / 3, 5 / 3])
    assert table.notes == ()
    assert table.X.dtype == np.float64
    assert table.X.mean(axis=0) == pytest.approx([0.0, 0.0], abs=1e-15)
    assert table.X.std(axis=0) == pytest.approx([1.0, 1.0])


def test_missing_numbers_get_the_median() -> None:
    table = column(1, "?", 3, "", 8)
    assert feature(table) == feature(column(1, 3, 3, 3, 8))
    assert table.notes == ("column 'c': 2 missing values filled with the median 3",)


def test_infinite_numbers_count_as_missing() -> None:
    table = column(1, "inf", 3, "", 8)
    assert feature(table) == feature(column(1, 3, 3, 3, 8))
    assert table.notes == ("column 'c': 2 missing values (1 of them infinite) filled with the median 3",)


@pytest.mark.parametrize("values", [(5, 5, 5, 5), ("a", "a", "a", "a"), (5, "", 5, 5), ("yes", "yes", "yes", "yes")])
def test_columns_with_one_value_are_left_out(values: tuple[object, ...]) -> None:
    table = column(*values)
    assert table.columns == ("n",)
    assert table.notes == ("column 'c' has one value only, left out",)


def test_columns_without_a_value_are_left_out() -> None:
    assert column("", "?", "NA", "inf").notes == ("column 'c' has no value at all, left out",)


def test_words_are_one_hot() -> None:
    table = column("red", "blue ", "blue", "red", "blue")
    assert table.columns == ("c=blue", "c=red", "n")
    assert feature(table, "c=blue") == [0, 1, 1, 0, 1]
    assert feature(table, "c=red") == [1, 0, 0, 1, 0]
    assert table.notes == ("column 'c': 2 categories, one-hot",)


def test_missing_words_are_a_category() -> None:
    table = column("red", "?", "blue", "red", "", "blue", "missing")
    assert table.columns[:3] == ("c=red", "c=blue", "c=missing")
    assert feature(table, "c=missing") == [0, 1, 0, 0, 1, 0, 1]
    assert table.notes == ("column 'c': 3 categories, one-hot; 2 missing values as 'missing'",)
    assert column("a", "", "a", "").columns == ("c=a", "c=missing", "n")


def test_rare_words_are_together() -> None:
    words = [f"w{k:02}" for k in range(32) for _ in range(40 - k)]
    table = column(*words)
    assert table.columns == (*(f"c=w{k:02}" for k in range(30)), "c=other", "n")
    assert sum(feature(table, "c=other")) == 10 + 9
    assert (table.X[:, :31].sum(axis=1) == 1.0).all()
    said = "column 'c': 32 categories, one-hot for the 30 most frequent, the others together as 'other'"
    assert table.notes == (said,)


def test_identifiers_are_left_out() -> None:
    codes = [f"A{k}" for k in range(40)]
    assert column(*codes).notes == ("column 'c' left out: a different value in every row",)
    assert column(*codes[:-1], "A0").notes == ("column 'c' left out: a different value in nearly every row (39 in 40)",)
    assert column(*codes[:30], *codes[:10]).columns[0] == "c=A0"


@pytest.mark.parametrize("name", ["id", "ID", "customer_id", "index", "Unnamed: 0", ""])
def test_row_numbers_are_left_out(name: str) -> None:
    columns: dict[str, list[float]] = {name: [7, 9, 8], "n": [1, 2, 4], "y": [0.5, 1.5, 2.5]}
    table = read_table(write(**columns), "y")
    assert table.columns == ("n",)
    assert table.notes == (f"column {name or 'column 1'!r} left out: a different value in every row",)


def test_numbers_under_such_a_name_are_kept_where_they_repeat_or_are_not_whole() -> None:
    y = [0.5, 1.5, 2.5]
    table = read_table(write(id=[1, 1, 2], my_id=[0.5, 1, 2], grid=[1, 2, 3], y=y), "y")
    assert table.columns == ("id", "my_id", "grid")


def test_a_slip_among_numbers_is_named() -> None:
    table = column(*range(30), "1.2.3", *range(31, 40))
    assert table.notes == (
        "column 'c' is not taken as numbers: line 32 holds '1.2.3'",
        "column 'c' left out: a different value in every row",
    )
    assert column(*[1, 2] * 20, "x").notes[0] == "column 'c' is not taken as numbers: line 42 holds 'x'"


def test_a_slip_in_a_row_without_a_target_does_no_harm() -> None:
    table = column(1, 2, "x", 4, target=["a", "b", "", "a"])
    assert feature(table) == pytest.approx(np.array([-4 / 3, -1 / 3, 5 / 3]) / math.sqrt(14 / 9))
    assert table.notes == ("1 row without a target was left out",)


@pytest.mark.parametrize("words", [("true", "false"), ("True", "FALSE"), ("yes", "no"), ("YES", "false")])
def test_booleans_are_0_and_1(words: tuple[str, str]) -> None:
    yes, no = words
    table = column(yes, no, no, yes)
    assert feature(table) == [1, 0, 0, 1]
    assert table.notes == ("column 'c': yes and no, as 1 and 0",)
    assert feature(column(yes, no)) == [1, 0]


def test_booleans_with_gaps_are_categories() -> None:
    assert column("yes", "no", "", "yes", "no").columns == ("c=yes", "c=no", "c=missing", "n")


def test_dates_are_days() -> None:
    table = column("2024-02-28", "2024-03-01", "2024-02-28T12:00:00", "2024-02-29 00:00")
    assert feature(table) == pytest.approx(feature(column(0, 2, 0.5, 1)))
    assert table.notes == ("column 'c': dates, as days",)
    zones = column("2024-01-01T00:00:00Z", "2024-01-01T02:00:00+01:00", "2024-01-01T03:00:00.000000000+0000")
    assert feature(zones) == pytest.approx(feature(column(0, 1, 3)))


def test_missing_dates_get_the_median() -> None:
    table = column("2024-02-28", "", "2024-03-01", "2024-02-29")
    assert table.notes == (
        "column 'c': dates, as days",
        "column 'c': 1 missing value filled with the median 2024-02-29",
    )
    assert feature(table) == pytest.approx(feature(column(0, 1, 2, 1)))


def test_dates_at_the_end_of_time() -> None:
    table = column("0001-01-01T00:00+14:00", "", "0001-01-02T00:00+13:00", "0001-01-01T00:00+14:00")
    assert table.notes[1] == "column 'c': 1 missing value filled with the median 0000-12-31"
    assert np.isfinite(column("9999-12-31T23:59-14:00", "0001-01-01").X).all()


def test_what_only_looks_like_dates_is_words() -> None:
    assert "c=2024-13-01" in column("2024-13-01", "2024-01-01", "2024-13-01").columns
    assert "c=2024-W01" in column("2024-W01", "2024-W02", "2024-W01").columns


TEXTS = [
    "the cat sat on the mat",
    "a dog ran in the park",
    "the cat and the dog",
    "rain in the park again",
    "dog and cat in rain",
    "the mat is wet again",
]


def test_text_becomes_components() -> None:
    table = column(*TEXTS)
    count = len(table.columns) - 1
    assert table.columns == (*(f"c[{k}]" for k in range(count)), "n")
    assert 2 <= count <= len(TEXTS)
    assert len(table.notes) == 1
    said = rf"column 'c': text, TF-IDF and SVD, {count} components \(100 % of the variance\)"
    assert table.X[:, :count].std(axis=0).max() == pytest.approx(1.0)
    assert table.notes[0] == said.replace("\\", "")
    # TF-IDF rows have length 1, and here all components are kept: what texts have in common is an inner product, times
    # the square of one factor.
    from sklearn.feature_extraction.text import TfidfVectorizer

    weights = TfidfVectorizer(sublinear_tf=True, min_df=2).fit_transform(TEXTS)
    inner = table.X[:, :count] @ table.X[:, :count].T
    assert inner / inner[0, 0] == pytest.approx((weights @ weights.T).toarray(), abs=1e-10)


def test_text_is_repeatable_and_of_at_most_50_components() -> None:
    rng = np.random.default_rng(0)
    texts = [" ".join(f"word{k}" for k in rng.integers(0, 200, 6)) for _ in range(150)]
    first, second = column(*texts), column(*texts)
    assert first.columns == (*(f"c[{k}]" for k in range(50)), "n")
    assert (first.X == second.X).all()
    assert "50 components (" in first.notes[0]


def test_text_with_gaps_and_without_common_words() -> None:
    table = column(*TEXTS, "", "?")
    assert table.notes[0].endswith("of the variance); 2 missing values as empty text")
    assert np.abs(table.X[-2:, :-1]).max() < 1e-12
    assert "3 components" in column("one two three", "four five six", "seven eight nine").notes[0]


def test_text_that_says_nothing_is_left_out() -> None:
    for texts in (["! ? !", ". . .", "- - -", ", , ,"], ["word " * k for k in (2, 3, 4, 5)]):
        assert column(*texts).notes == ("column 'c' left out: text of fewer than two different words",)
    same = column("one two three", "three two one", "two one three", "one three two")
    assert same.notes == ("column 'c' left out: text with the same words in every row",)
    assert same.columns == ("n",)


def test_few_phrases_are_categories_and_many_are_text() -> None:
    few = [f"a b c number{k}" for k in range(10)]
    assert column(*few * 4).notes == ("column 'c': 10 categories, one-hot",)
    many = [f"this is number{k}" for k in range(51)]
    assert "text, TF-IDF" in column(*many * 4).notes[0]
    assert "51 categories" in column(*(name[8:] for name in many * 4)).notes[0]


# The target


@pytest.mark.parametrize(
    ("values", "kind", "names"),
    [
        (range(21), "regression", None),
        ([1, 2.5, 3, 4], "regression", None),
        (["a", "b", "a", "b"], "classification", ["a", "b", "a", "b"]),
        ([0, 1, 1.0, " 0"], "classification", ["0", "1", "1", "0"]),
        ([-0.5, 0.5, 0.5, -0.5], "classification", ["-0.5", "0.5", "0.5", "-0.5"]),
        ([1e6, 5, 7, 5], "classification", ["1000000", "5", "7", "5"]),
        (["True", "False", "True", "True"], "classification", ["True", "False", "True", "True"]),
    ],
)
def test_the_task_follows_from_the_target(values: Sequence[object], kind: str, names: list[str] | None) -> None:
    table = column(*[k * k for k in range(len(values))], target=list(values))
    assert table.kind == kind
    assert table.y.dtype.kind == ("f" if names is None else "U")
    assert table.y.tolist() == (list(values) if names is None else names)


def test_whole_numbers_taken_as_classes_are_said_to_be() -> None:
    path = write(x=[1, 2, 4, 8, 16, 32], quality=[3, 4, 5, 6, 7, 8])
    table = read_table(path, "quality")
    assert table.notes == (
        "target 'quality' has 6 distinct whole numbers, taken as classes; --task regression takes them as numbers",
    )
    assert read_table(path, "quality", task="classification").notes == ()
    as_numbers = read_table(path, "quality", task="regression")
    assert as_numbers.notes == ()
    assert as_numbers.y.dtype == np.float64
    assert as_numbers.y.tolist() == [3, 4, 5, 6, 7, 8]
    assert column(1, 2, target=[0, 1]).notes == ()


def test_a_task_that_is_asked_for() -> None:
    path = write(x=[1, 2, 4], y=[0.5, 1.5, 2.5])
    assert read_table(path, "y", task="classification").y.tolist() == ["0.5", "1.5", "2.5"]
    with pytest.raises(InvalidValueError, match="task must be 'regression' or 'classification', not 'guess'"):
        read_table(path, "y", task="guess")  # type: ignore[arg-type]


def test_rows_without_a_target_are_left_out() -> None:
    table = read_table(write(x=[1, 2, 100, 4, 5, 7], y=["a", "?", "", "b", "None", "a"]), "y")
    assert table.rows.tolist() == [0, 3, 5]
    assert table.y.tolist() == ["a", "b", "a"]
    assert table.notes == ("3 rows without a target were left out",)
    assert feature(table, "x") == pytest.approx([-1.2247448713915890, 0.0, 1.2247448713915890])
    numbers = read_table(write(x=[1, 2, 3, 4], y=[0.5, "inf", 1.5, 2.5]), "y")
    assert numbers.rows.tolist() == [0, 2, 3]


def test_a_first_line_of_data_is_noticed() -> None:
    Path("sms.tsv").write_text("ham\t1\nspam\t2\nham\t3\n")
    assert read_table(Path("sms.tsv"), "ham").notes[0] == (
        "the first line may be data: 'ham' is the name of a column and also a value in it; "
        "if so, add a first line that names the columns"
    )


def test_a_table_is_frozen() -> None:
    table = column(1, 2, 4)
    with pytest.raises(FrozenInstanceError):
        table.kind = "regression"  # type: ignore[misc]
    assert table.rows.tolist() == [0, 1, 2]


# Errors


def test_an_unknown_target_gets_a_guess_and_the_list() -> None:
    path = write(age=[1, 2], Income=[3, 4])
    with pytest.raises(InvalidValueError) as caught:
        read_table(path, "incme")
    assert str(caught.value) == (
        "table.csv has no column 'incme'. Did you mean 'Income'? Its columns, by the first line, are 'age', 'Income'"
    )
    with pytest.raises(
        InvalidValueError, match=r"has no column 'age,Income'\. Name each column with an option of its own"
    ):
        read_table(path, "age,Income")
    wide = write(**{f"v{k}_{'x' * 50}": [1, 2] for k in range(25)})
    with pytest.raises(InvalidValueError, match=r"no column 'label'\. Its .* 'v19_x{33}\.\.\.' and 5 more$"):
        read_table(wide, "label")


@pytest.mark.parametrize(
    ("values", "task", "words"),
    [
        (["", "?", "NA"], None, "target 'y' has no value at all; two different ones are required"),
        (["", "inf", "NA"], "regression", "target 'y' has no value at all"),
        (["a", "a", "a"], None, "target 'y' has one value only; two different ones are required"),
        (["a", "", "a"], "classification", "target 'y' has one value only"),
        ([1.5, 1.5, 1.5], "regression", "target 'y' has one value only"),
        ([1, "", "low", "high"], "regression", "must hold numbers for regression, but line 4 holds 'low'; correct it"),
        (
            [f"name {k}" for k in range(40)],
            None,
            r"target 'y' has 40 different values in 40 rows, and not all are numbers \(line 2 holds 'name 0'\): "
            "this looks like an identifier or free text",
        ),
        (
            [0.5 * k for k in range(39)] + ["x"],
            None,
            r"40 different values .* \(line 41 holds 'x'\): this looks like an id",
        ),
        ([f"c{k}" for k in range(1001)] * 2, None, "1001 different values in 2002 rows.*looks like an identifier"),
        (range(1001), "classification", "has 1001 distinct numbers, more than 1000 classes; use --task regression"),
    ],
)
def test_targets_that_cannot_be_learnt(
    values: Sequence[object], task: Literal["regression", "classification"] | None, words: str
) -> None:
    with pytest.raises(InvalidValueError, match=words):
        read_table(write(x=range(len(values)), y=values), "y", task=task)


def test_many_classes_with_several_rows_each_are_classes() -> None:
    table = read_table(write(x=range(2000), y=[f"c{k}" for k in range(1000)] * 2), "y")
    assert len(set(table.y)) == 1000


def test_ignored_columns_are_left_out() -> None:
    path = write(a=[1, 2, 3], b=["", 5, 6], Colour=["red", "red", "blue"], y=["u", "v", "u"])
    table = read_table(path, "y", ignore=["b", "Colour"])
    assert table.columns == ("a",)
    assert table.notes == ()
    assert read_table(path, "y", ignore="b").columns == ("a", "Colour=red", "Colour=blue")
    with pytest.raises(InvalidValueError, match=r"has no column 'color'\. Did you mean 'Colour'\? Its columns"):
        read_table(path, "y", ignore=["color"])
    with pytest.raises(InvalidValueError, match="column 'y' is the target, so it cannot be ignored as well"):
        read_table(path, "y", ignore=["y"])
    with pytest.raises(InvalidValueError, match=r"at least one column is required that can be used; there is none"):
        read_table(path, "y", ignore=["a", "b", "Colour"])


def test_a_table_without_features_is_an_error() -> None:
    with pytest.raises(InvalidValueError, match=r"besides the target 'y' at least one column .* there is none"):
        read_table(write(y=["a", "b"]), "y")
    with pytest.raises(InvalidValueError, match=r"that can be used; column 'x' has one value only, left out$"):
        read_table(write(x=[1, 1], y=["a", "b"]), "y")


# Properties

NUMBER = st.floats(allow_nan=False, allow_infinity=False)


def exact(values: Sequence[float]) -> list[float]:
    """Standardised by fractions: z^2 = (x - mean)^2 / variance has no root in it."""
    numbers = [Fraction(value) for value in values]
    mean = sum(numbers) / len(numbers)
    squares = [(x - mean) ** 2 for x in numbers]
    variance = sum(squares) / len(numbers)
    return [
        math.copysign(math.sqrt(s / variance), 1 if x > mean else -1) for s, x in zip(squares, numbers, strict=True)
    ]


@given(st.integers(1, 4).flatmap(lambda d: st.lists(st.tuples(*[NUMBER] * d), min_size=2, max_size=12)))
@example([(1e16,), (1e16 + 2,), (1e16 + 4,)])
@example([(1.7e308, 5e-324), (-1.7e308, 1e-323), (1.7e308, 0.0)])
def test_numbers_come_back_standardised_and_in_order(rows: list[tuple[float, ...]]) -> None:
    columns = {f"x{k}": values for k, values in enumerate(zip(*rows, strict=True)) if len(set(values)) > 1}
    target = [k + 0.5 for k in range(len(rows))]
    path = write(**columns, always=list(range(len(rows))), y=target)
    table = read_table(path, "y", task="regression")
    assert table.columns == (*columns, "always")
    assert table.y.tolist() == target
    assert table.rows.tolist() == list(range(len(rows)))
    for name, values in columns.items():
        assert feature(table, name) == pytest.approx(exact(values), abs=1e-9)


WORD = st.sampled_from(["", "?", "a", "b", "other", "missing", "yes", "no", "1", "2024-01-01", "three words here"])


@given(st.lists(st.tuples(WORD, WORD, WORD), min_size=2, max_size=30))
def test_any_words_become_finite_numbers_or_a_sentence(rows: list[tuple[str, str, str]]) -> None:
    a, b, y = zip(*rows, strict=True)
    path = write(a=a, b=b, row=range(len(rows)), y=y)
    if len(set(y) - {"", "?"}) < 2:
        with pytest.raises(InvalidValueError, match=r"target 'y' has (one|no) value"):
            read_table(path, "y")
        return
    table = read_table(path, "y")
    assert table.X.shape == (len(table.y), len(table.columns)) == (len(table.rows), len(table.columns))
    assert np.isfinite(table.X).all()
    assert len(set(table.columns)) == len(table.columns)
    # What the target says changes nothing about the features.
    again = write(a=a, b=b, row=range(len(rows)), y=[k % 2 if k in table.rows else "" for k in range(len(rows))])
    if len(set(table.rows % 2)) == 2:
        assert (read_table(again, "y").X == table.X).all()


# Files as people have them


def test_parquet_gives_the_table_that_csv_gives() -> None:
    arrow: Any = pytest.importorskip("pyarrow", reason="Parquet: pyarrow is not installed")
    columns: dict[str, list[object]] = {
        "size": [1, 2.5, None, 7],
        "colour": ["red", None, "blue", "red"],
        "sold": [True, False, True, True],
        "price": [10.5, 9.25, 11, 8],
    }
    importlib.import_module("pyarrow.parquet").write_table(arrow.table(columns), "t.parquet")
    one = read_table(Path("t.parquet"), "price")
    two = read_table(write(**{name: ["" if v is None else v for v in col] for name, col in columns.items()}), "price")
    assert one.columns == two.columns == ("size", "colour=red", "colour=blue", "colour=missing", "sold")
    assert one.notes == two.notes
    assert (one.X == two.X).all()
    assert one.y.tolist() == two.y.tolist()


@pytest.mark.slow
@needs_data
def test_adult() -> None:
    table = read_table(Path(DATA or "") / "tables" / "adult.csv", "class")
    assert table.kind == "classification"
    assert dict(zip(*np.unique(table.y, return_counts=True), strict=True)) == {"<=50K": 24720, ">50K": 7841}
    # Six numbers; 9 + 16 + 7 + 15 + 6 + 5 + 2 categories, and 30 countries, the others and the missing.
    assert table.X.shape == (32561, 6 + 60 + 32)
    assert "column 'workclass': 8 categories, one-hot; 1836 missing values as 'missing'" in table.notes
    assert len(table.notes) == 8
    assert table.X[:, table.columns.index("age")].std() == pytest.approx(1.0)


@pytest.mark.slow
@needs_data
def test_grid_stability() -> None:
    path = Path(DATA or "") / "uci" / "grid_stability.csv"
    table = read_table(path, "stab")
    assert table.kind == "regression"
    assert table.X.shape == (10000, 13)
    assert table.y[0] == 0.0553474891727752
    classes = read_table(path, "stabf")
    assert classes.kind == "classification"
    assert set(classes.y) == {"0", "1"}
    raw = np.loadtxt(path, delimiter=",", skiprows=1)[:, :12]
    assert classes.X[:, :12] == pytest.approx((raw - raw.mean(axis=0)) / raw.std(axis=0), abs=1e-12)


@needs_data
def test_letters() -> None:
    table = read_table(Path(DATA or "") / "tables" / "letter_recognition.csv", "lettr")
    assert table.X.shape == (20000, 16)
    assert len(set(table.y)) == 26
    assert table.notes == ()


@needs_data
def test_sms() -> None:
    path = Path(DATA or "") / "text" / "sms_spam.tsv"
    with pytest.raises(InvalidValueError, match=r"has no column 'label'\. Its columns, by the first line, are 'ham'"):
        read_table(path, "label")
    named = Path("sms.tsv")
    named.write_bytes(b"label\tmessage\n" + path.read_bytes())
    table = read_table(named, "label")
    assert table.X.shape == (5574, 50)
    assert dict(zip(*np.unique(table.y, return_counts=True), strict=True)) == {"ham": 4827, "spam": 747}
    assert table.notes[-1].startswith("column 'message': text, TF-IDF and SVD, 50 components (")


@needs_data
def test_htru2_needs_names() -> None:
    path = Path(DATA or "") / "uci" / "htru2.csv"
    with pytest.raises(InvalidValueError, match="the first line holds numbers only, so there are no column names"):
        read_table(path, "pulsar")
    named = Path("htru2.csv")
    named.write_bytes(b"a,b,c,d,e,f,g,h,pulsar\r" + path.read_bytes())
    table = read_table(named, "pulsar")
    assert table.X.shape == (17898, 8)
    assert (table.y == "1").sum() == 1639
