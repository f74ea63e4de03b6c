"""Columns to features of the fitted rows and of new rows."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from suffice.errors import InvalidTypeError, InvalidValueError
from suffice.tables import read_table, transformers
from suffice.tables.file_reader import read_columns
from suffice.tables.table_columns import TableColumns
from suffice.tables.transformers import (
    NgramComponents,
    PrincipalComponents,
    StandardizedNumbers,
    TableTransformer,
    TextComponents,
    table_features,
)
from tests.thoroughness import examples

TABLE: dict[str, list[Any]] = {
    "size": [1, 2, None, 4, 9, "inf"],
    "sold": ["yes", "no", "no", "yes", "yes", "yes"],
    "when": ["2024-01-01", "2024-01-03", "", "2024-01-05", "2024-01-07", "2024-01-02"],
    "fuel": ["gas", "diesel", "gas", None, "gas", "diesel"],
    "code": ["7", "8", "x", "7", "8", "x"],
    "note": [
        "the cat sat on the mat",
        "a dog ran in the park",
        "",
        "rain in the park again",
        "dog and cat in rain",
        "the mat is wet again",
    ],
    "id": [1, 2, 3, 4, 5, 6],
    "same": [1, 1, 1, 1, 1, 1],
}
NAMES = ["size", "sold", "when", "fuel=gas", "fuel=diesel", "fuel=missing", "code=7", "code=8", "code=x"]


def fitted(**options: Any) -> TableTransformer:
    return TableTransformer(**options).fit(TABLE)


def row(**cells: Any) -> dict[str, list[Any]]:
    """One row that is the first row of the table, but for some cells."""
    return {name: [cells.get(name, values[0])] for name, values in TABLE.items()}


def feature(transformer: TableTransformer, name: str, **cells: Any) -> float:
    names = transformer.get_feature_names_out().tolist()
    return float(transformer.transform(row(**cells))[0, names.index(name)])


def test_every_type_of_column() -> None:
    transformer = TableTransformer()
    X = transformer.fit_transform(TABLE)
    names = transformer.get_feature_names_out().tolist()
    assert names[:9] == NAMES
    assert all(name.startswith("note[") for name in names[9:])
    assert X.shape == (6, len(names))
    assert X.dtype == np.float64
    assert {name: found.kind for name, found in transformer.types_.items()} == {
        "size": "number",
        "sold": "boolean",
        "when": "date",
        "fuel": "category",
        "code": "category",
        "note": "text",
        "id": None,
        "same": None,
    }
    assert isinstance(transformer.transformer_, ColumnTransformer)
    assert transformer.columns_ == ("size", "sold", "when", "fuel", "code", "note")
    assert transformer.notes_[0] == "column 'size': 2 missing values (1 of them infinite) filled with the median 3"
    assert transformer.notes_[-1] == "column 'same' has one value only, left out"


def test_the_fitted_rows_are_transformed_to_their_features() -> None:
    transformer = TableTransformer()
    X = transformer.fit_transform(TABLE)
    again = transformer.transform(TABLE)
    assert (again[:, :9] == X[:, :9]).all()
    assert again[:, 9:] == pytest.approx(X[:, 9:], abs=1e-12)
    for k in range(6):
        one = transformer.transform({name: [values[k]] for name, values in TABLE.items()})
        assert one[0] == pytest.approx(X[k], abs=1e-12)


def test_columns_are_found_by_name() -> None:
    transformer = fitted()
    X = transformer.transform(TABLE)
    other = {"extra": ["?"] * 6, **dict(reversed(TABLE.items()))}
    del other["id"], other["same"]
    assert (transformer.transform(other) == X).all()


def test_a_missing_column_is_an_error() -> None:
    transformer = fitted()
    table = {name: values for name, values in TABLE.items() if name not in {"size", "fuel"}}
    said = (
        r"the table must have the columns 'size', 'fuel'; its columns are 'sold', 'when', 'code', 'note', 'id', 'same'"
    )
    with pytest.raises(InvalidValueError, match=said):
        transformer.transform(table)
    with pytest.raises(InvalidValueError, match=r"must have the columns 'size', .*; its columns are none"):
        transformer.transform({})
    with pytest.raises(InvalidValueError, match="the table must have the columns 'review'"):
        fitted(text="review")


def test_missing_values_of_new_rows() -> None:
    transformer = fitted()
    for missing in (None, "", "NA", float("nan"), "inf"):
        assert feature(transformer, "size", size=missing) == feature(transformer, "size", size=3)
    assert feature(transformer, "when", when="") == feature(transformer, "when", when="2024-01-03")
    # The median of four times yes and twice no.
    assert feature(transformer, "sold", sold=None) == 1.0
    assert feature(transformer, "fuel=missing", fuel="?") == 1.0
    empty = transformer.transform(row(note=None))[0, 9:]
    assert np.abs(empty).max() == 0.0
    # The fit had no missing code, so no feature stands for it.
    assert transformer.transform(row(code=""))[0, 6:9].tolist() == [0, 0, 0]


def test_categories_of_new_rows() -> None:
    transformer = fitted()
    assert transformer.transform(row(fuel="electric"))[0, 3:6].tolist() == [0, 0, 0]
    assert transformer.transform(row(fuel=" diesel "))[0, 3:6].tolist() == [0, 1, 0]
    words = [f"w{k:02}" for k in range(32) for _ in range(40 - k)]
    many = TableTransformer().fit({"c": words})
    new = many.transform({"c": ["w00", "w31", "never seen", "other", None]})
    assert new.argmax(axis=1).tolist() == [0, 30, 30, 30, 0]
    assert new.sum(axis=1).tolist() == [1, 1, 1, 1, 0]


def test_numbers_in_a_column_of_categories() -> None:
    transformer = fitted()
    for value in (7, 7.0, "7", "7.0", "07"):
        assert transformer.transform(row(code=value))[0, 6:9].tolist() == [1, 0, 0]
    assert transformer.transform(row(code=9))[0, 6:9].tolist() == [0, 0, 0]
    assert transformer.transform(row(code=float("inf")))[0, 6:9].tolist() == [0, 0, 0]
    assert transformer.transform(row(note=1984))[0, 9:].tolist() == transformer.transform(row(note=""))[0, 9:].tolist()


def test_unknown_words_are_ignored() -> None:
    transformer = fitted()
    known = transformer.transform(row(note="cat rain"))[0, 9:]
    assert transformer.transform(row(note="cat unheard rain"))[0, 9:] == pytest.approx(known)
    assert np.abs(known).max() > 0.1


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ({"size": "big"}, "column 'size' must hold numbers, but row 1 holds 'big'; correct it or leave it empty"),
        ({"when": "tomorrow"}, "column 'when' must hold ISO dates such as 2024-02-29, but row 1 holds 'tomorrow'"),
        ({"when": "2024-13-01"}, "but row 1 holds '2024-13-01'"),
        ({"when": 7}, "column 'when' must hold ISO dates such as 2024-02-29, but row 1 holds '7'"),
        ({"sold": "maybe"}, "column 'sold' must hold yes and no, or true and false, but row 1 holds 'maybe'"),
        ({"sold": 1}, "column 'sold' must hold yes and no, or true and false, but row 1 holds '1'"),
    ],
)
def test_values_of_another_type(cells: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidValueError, match=words):
        fitted().transform(row(**cells))


def test_a_value_far_beyond_the_fitted_scale_is_an_error() -> None:
    transformer = TableTransformer().fit({"a": [1e-300, 2e-300, 3e-300], "b": [1, 2, 3]})
    assert np.isfinite(transformer.transform({"a": [1e-295], "b": [2]})).all()
    with pytest.raises(InvalidValueError, match="row 2: the value of 'a' is too large for the fitted scale"):
        transformer.transform({"a": [1e-300, 1e300], "b": [2, 2]})


def test_errors_name_the_line_of_the_file() -> None:
    Path("old.csv").write_text("size,fuel,price\n1,gas,5.5\n2,diesel,6\n3,gas,8\n")
    table = read_table(Path("old.csv"), "price")
    Path("new.csv").write_text("fuel;size\ngas;2,0\n\ndiesel;3,0\n")
    # A file with decimal commas and without the target.
    assert table.transformer.transform(read_columns(Path("new.csv"))).tolist() == [
        [0.0, 1.0, 0.0],
        [table.X[2, 0], 0.0, 1.0],
    ]
    Path("new.csv").write_text("fuel,size\ngas,2\n\ndiesel,three\n")
    with pytest.raises(InvalidValueError, match="column 'size' must hold numbers, but line 4 holds 'three'"):
        table.transformer.transform(read_columns(Path("new.csv")))


def test_the_table_carries_its_transformer() -> None:
    Path("t.csv").write_text("x,c,y\n1,a,u\n2,b,\n3,b,v\n5,a,u\n")
    table = read_table(Path("t.csv"), "y")
    assert table.transformer.get_feature_names_out().tolist() == list(table.columns)
    file = read_columns(Path("t.csv"))
    assert (table.transformer.transform(file)[table.rows] == table.X).all()
    # The row without a target was not fitted: the mean is 3, not 2.75.
    assert table.transformer.transform({"x": [3], "c": ["a"]})[0, 0] == 0.0


def test_no_rows_and_no_columns() -> None:
    transformer = fitted()
    assert transformer.transform({name: [] for name in TABLE}).shape == (0, len(transformer.get_feature_names_out()))
    nothing = TableTransformer().fit({"same": [1, 1], "id": [1, 2]})
    assert nothing.transform({"x": [1, 2, 3]}).shape == (3, 0)
    assert nothing.get_feature_names_out().tolist() == []
    assert len(nothing.notes_) == 2


def test_pickled_and_cloned() -> None:
    transformer = fitted(text="fuel", most_characters=20)
    X = transformer.transform(TABLE)
    loaded = pickle.loads(pickle.dumps(transformer))
    assert (loaded.transform(TABLE) == X).all()
    assert loaded.notes_ == transformer.notes_
    unfitted = clone(transformer)
    assert not hasattr(unfitted, "types_")
    assert unfitted.get_params() == {
        "text": "fuel",
        "special": None,
        "most_characters": 20,
        "components": None,
    }
    assert (unfitted.fit(TABLE).transform(TABLE) == X).all()


def test_a_transformer_of_a_file_does_not_hold_the_file() -> None:
    Path("t.csv").write_text("x,ignored,y\n" + "".join(f"{k},{'long text ' * 50}{k},{k % 2}\n" for k in range(200)))
    table = read_table(Path("t.csv"), "y", ignore=["ignored"])
    assert len(pickle.dumps(table.transformer)) < 10_000


def test_a_data_frame() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    Path("t.csv").write_text(
        "size,whole,sold,when,fuel,y\n1.5,1,True,2024-01-01,gas,1\n,2,False,2024-01-02,,2\n2.5,,True,,diesel,3\n"
        "7,5,True,2024-02-01,gas,4\n"
    )
    expected = table_features(read_columns(Path("t.csv")), TableTransformer())
    frame = pandas.read_csv("t.csv")
    frames = [
        frame,
        frame.convert_dtypes(),
        frame.astype({"fuel": "category"}),
        frame.assign(when=pandas.to_datetime(frame["when"])),
        frame.assign(size=frame["size"].astype(object)),
    ]
    for each in frames:
        found = table_features(each, TableTransformer())
        assert found.names == expected.names
        assert found.notes == expected.notes
        assert (found.X == expected.X).all()
        assert (expected.transformer.transform(each.iloc[::-1]) == expected.X[::-1]).all()
    with pytest.raises(InvalidValueError, match="the data: 2 columns are named 'a'"):
        TableTransformer().fit(pandas.DataFrame([[1, 2]], columns=["a", "a"]))


def test_arrays_also_where_scikit_learn_returns_data_frames() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    expected = table_features(TABLE, TableTransformer())
    with sklearn.config_context(transform_output="pandas"):
        found = table_features(TABLE, TableTransformer())
        assert isinstance(found.X, np.ndarray)
        assert (found.X == expected.X).all()
        frame = TableTransformer().fit_transform(TABLE)
    assert isinstance(frame, pandas.DataFrame)
    assert tuple(frame.columns) == expected.names


def test_tables_that_cannot_be() -> None:
    with pytest.raises(InvalidTypeError, match="a DataFrame or a mapping from column names to values, not list"):
        TableTransformer().fit([[1, 2]])
    with pytest.raises(InvalidValueError, match=r"must have the same length; the lengths are \{'a': 2, 'b': 1\}"):
        TableTransformer().fit({"a": [1, 2], "b": [1]})


def test_a_column_named_as_text() -> None:
    table = {"c": ["good film", "bad film", "good book", "bad book"], "n": [1, 2, 3, 5]}
    transformer = TableTransformer(text="c").fit(table)
    assert transformer.types_["c"].kind == "text"
    assert transformer.get_feature_names_out()[0] == "c[0]"
    # Without words to learn from it is read by its type.
    table["c"] = ["a", "b", "a", "b"]
    transformer = TableTransformer(text="c").fit(table)
    assert transformer.get_feature_names_out().tolist() == ["c=a", "c=b", "n"]
    assert transformer.notes_ == ("column 'c': 2 categories, one-hot",)
    assert transformer.transform({"c": ["b"], "n": [2]})[0, :2].tolist() == [0, 1]
    # One digit is not a word, and two columns of digits are numbers.
    assert TableTransformer(text="n").fit(table).types_["n"].kind == "number"
    table["c"] = ["! ? !", ". . .", "- - -", ", , ,"]
    transformer = TableTransformer(text="c").fit(table)
    assert transformer.notes_ == ("column 'c' left out: text of fewer than two different words",)
    assert transformer.transform({"n": [2]}).shape == (1, 1)


def test_only_the_first_characters_are_read() -> None:
    texts = ["red red red blue", "red blue red green", "blue green red red", "green blue blue red"]
    transformer = TableTransformer(most_characters=12)
    X = transformer.fit_transform({"c": texts})
    assert transformer.notes_[0] == (
        "column 'c': row 1 and 3 others are longer than 12 characters; the model reads the first 12"
    )
    cut = TableTransformer()
    assert (cut.fit_transform({"c": [text[:12] for text in texts]}) == X).all()
    new = "red blue green green green"
    assert (transformer.transform({"c": [new]}) == cut.transform({"c": [new[:12]]})).all()


def lengths(texts: Any) -> Any:
    return np.array([[len(text), text.count("a"), 1.0] for text in texts])


def test_special_transformers() -> None:
    special = {"c": make_pipeline(FunctionTransformer(lengths), PrincipalComponents("length", "lengths", 2))}
    table = {"n": [1, 2, 4], "c": ["a", "bb", None]}
    transformer = TableTransformer(special=special)
    X = transformer.fit_transform(table)
    assert transformer.get_feature_names_out().tolist() == ["n", "length[0]", "length[1]"]
    assert transformer.notes_ == ("lengths, 2 components (100 % of the variance)",)
    assert pickle.loads(pickle.dumps(transformer)).transform(table) == pytest.approx(X)
    assert clone(transformer).fit_transform(table) == pytest.approx(X)
    # It is left out where all items are the same.
    transformer.fit({"n": [1, 2, 4], "c": ["xx", "yy", "zz"]})
    assert transformer.get_feature_names_out().tolist() == ["n"]
    assert transformer.notes_ == ("lengths left out: the same for every item",)


def test_features_may_have_the_same_name() -> None:
    features = table_features({"a=b": [1, 2, 4, 3], "a": ["b", "c", "b", "c"]}, TableTransformer())
    assert features.names == ("a=b", "a=b", "a=c")
    assert features.X.shape == (4, 3)


# Parts


def test_standardized_numbers_of_extreme_sizes() -> None:
    for values in ([1.7e308, -1.7e308, 1.7e308], [5e-324, 1e-323, 0.0], [1e16, 1e16 + 2, 1e16 + 4]):
        column = np.array(values)[:, None]
        X = StandardizedNumbers().fit_transform(column)
        assert X.mean() == pytest.approx(0.0, abs=1e-15)
        assert X.std() == pytest.approx(1.0)
        assert (StandardizedNumbers().fit(column).transform(column[1:]) == X[1:]).all()
    assert StandardizedNumbers().fit_transform(np.ones((3, 1))).tolist() == [[0.0], [0.0], [0.0]]


def test_text_components_alone() -> None:
    texts = TABLE["note"]
    parts = TextComponents(most=2)
    X = parts.fit_transform(texts)
    assert X.shape == (6, 2)
    assert X.std(axis=0).max() == pytest.approx(1.0)
    assert parts.get_feature_names_out(["note"]).tolist() == ["note[0]", "note[1]"]
    assert parts.notes("note")[0].endswith("; 1 missing value as empty text")
    assert TextComponents(most=2).fit(texts).transform(texts) == pytest.approx(X, abs=1e-12)
    assert TextComponents().fit(["!", "?"]).transform(["word"]).shape == (1, 0)


# Properties

CELL = st.sampled_from(
    ["", "?", "a", "b", "other", "missing", "yes", "no", "1", "2.5", "-1e300", "inf", "2024-01-01", "three words here"]
)


@examples(50)
@given(st.lists(st.tuples(CELL, CELL, CELL), min_size=2, max_size=12), st.booleans())
def test_any_table_is_transformed_as_it_was_fitted(rows: list[tuple[str, str, str]], named: bool) -> None:
    table = dict(zip("abc", map(list, zip(*rows, strict=True)), strict=True))
    transformer = TableTransformer(text="a" if named else None)
    X = transformer.fit_transform(table)
    assert X.shape == (len(rows), len(transformer.get_feature_names_out()))
    assert np.isfinite(X).all()
    assert transformer.transform(table) == pytest.approx(X, abs=1e-9)
    loaded = pickle.loads(pickle.dumps(transformer))
    assert (loaded.transform(table) == transformer.transform(table)).all()
    for k in range(min(3, len(rows))):
        one = transformer.transform({name: [values[k]] for name, values in table.items()})
        assert one[0] == pytest.approx(X[k], abs=1e-9)


@examples(50)
@given(
    st.lists(st.tuples(CELL, CELL), min_size=2, max_size=15),
    st.lists(st.tuples(CELL, CELL), min_size=1, max_size=5),
)
def test_any_new_rows_give_finite_features_or_a_message(
    rows: list[tuple[str, str]], new: list[tuple[str, str]]
) -> None:
    transformer = TableTransformer().fit(dict(zip("ab", map(list, zip(*rows, strict=True)), strict=True)))
    table = dict(zip("ab", map(list, zip(*new, strict=True)), strict=True))
    try:
        X = transformer.transform(table)
    except InvalidValueError:
        with pytest.raises(InvalidValueError, match=r"column '.' must hold .*, but row|too large for the fitted scale"):
            transformer.transform(table)
    else:
        assert X.shape == (len(new), len(transformer.get_feature_names_out()))
        assert np.isfinite(X).all()


def test_selected_columns_and_rows() -> None:
    Path("t.csv").write_text("a,b,c\n1,x,u\n2,y,v\n3,z,w\n")
    file = read_columns(Path("t.csv"))
    part: TableColumns = file.selected(["c", "a"], np.array([0, 2]))
    assert part.names == ("c", "a")
    assert part["a"].tolist() == [1.0, 3.0]  # type: ignore[union-attr]
    assert part.place(1) == "line 4"
    assert [*part.cells()] == [("u", "1"), ("w", "3")]
    assert len(part) == 2


SENTENCES = [
    f"{who} {does} the {what} {when}"
    for who in ("the cat", "a dog", "my friend", "nobody")
    for does in ("sees", "paints", "breaks")
    for what in ("house", "houses", "window", "piano")
    for when in ("today", "at night")
]


def test_ngram_components_alone() -> None:
    texts = np.array(SENTENCES, dtype=object)
    parts = NgramComponents(most=20)
    X = parts.fit_transform(texts)
    assert X.shape == (len(texts), 20)
    assert parts.transform(texts) == pytest.approx(X, abs=1e-12)
    assert parts.get_feature_names_out(["review"]).tolist() == [f"review[{k}]" for k in range(20)]
    assert "20 components" in parts.notes("review")[0]
    # Each column has the square of its standard deviation, relative to the largest one.
    raw = parts._components(texts)
    assert X.std(axis=0) == pytest.approx((raw.std(axis=0) / raw.std(axis=0).max()) ** 2)
    assert NgramComponents().fit(["!", "?"]).transform(["word"]).shape == (1, 0)
    same = NgramComponents().fit(["the same words"] * 5)
    assert same.notes("x") == ("column 'x' left out: text with the same words in every row",)


def test_n_grams_find_words_of_the_same_stem() -> None:
    texts = np.array(SENTENCES, dtype=object)
    new = ["paint", "painting", "mending"]
    assert not TextComponents().fit(SENTENCES).transform(new).any()
    found = np.abs(NgramComponents().fit(texts).transform(new)).max(axis=1)
    assert found[0] > 0.05
    assert found[1] > 0.05


def test_ngram_components_of_many_texts_are_learned_from_some(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = np.array(SENTENCES, dtype=object)
    monkeypatch.setattr("suffice.tables.transformers._LEARNED_TEXTS", 40)
    parts = NgramComponents(most=10)
    X = parts.fit_transform(texts)
    assert X.shape == (len(texts), 10)
    assert parts.transform(texts) == pytest.approx(X, abs=1e-12)


def test_component_groups_of_a_table() -> None:
    table = {"size": list(range(len(SENTENCES))), "said": SENTENCES, "also": SENTENCES[::-1]}
    transformer = TableTransformer(components=7).fit(table)
    assert transformer.component_groups() == ((1, 8), (8, 15))
    assert transformer.get_feature_names_out().tolist()[:3] == ["size", "said[0]", "said[1]"]
    assert TableTransformer().fit(table).component_groups() == ()


def test_tables_with_ordered_components(tmp_path: Path) -> None:
    lines = [f"{text},{'yes' if 'dog' in text else 'no'},{k}" for k, text in enumerate(SENTENCES)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["said,dog,size", *lines]) + "\n")
    table = read_table(path, "dog", ordered=True)
    assert table.components == ((0, table.X.shape[1] - 1),)
    assert table.transformer.transform({"said": SENTENCES, "size": list(range(96))}) == pytest.approx(table.X, abs=1e-9)
    assert read_table(path, "dog").components == ()
    assert read_table(path, "size", ordered=True).components == ()


def test_features_of_many_rows_are_made_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, n = np.random.default_rng(0), 230
    table = {
        "x": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
        "far": 1e9 + rng.normal(size=n),
        "day": [f"2020-01-{1 + k % 28:02}" for k in range(n)],
        "truth": ["yes" if k % 3 else "no" for k in range(n)],
        "same": np.ones(n),
    }
    one = TableTransformer()
    expected = one.fit_transform(table)
    monkeypatch.setattr(transformers, "MANY_ROWS", 100)
    told: list[tuple[int, int]] = []
    two = TableTransformer()
    found = two.fit_features(table, lambda *each: told.append(each))
    np.testing.assert_array_equal(found, expected)
    assert found.flags.c_contiguous == expected.flags.c_contiguous
    assert told == [(100, n), (200, n), (230, n)]
    assert two.notes_ == one.notes_
    assert two.get_feature_names_out().tolist() == one.get_feature_names_out().tolist()
    new = {"x": [0.5, None], "far": [1e9, 1e9], "day": ["2020-02-01", "2020-01-01"], "truth": ["no", "yes"]}
    np.testing.assert_array_equal(two.transform(new), one.transform(new))
