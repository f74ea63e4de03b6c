"""Predictions made elsewhere: what is accepted as a column, and what is refused."""

from typing import Any

import numpy as np
import pytest

from suffice.checks import GivenPredictions, of_predictions
from suffice.errors import InvalidTypeError, InvalidValueError

LABELS = ["ham", "spam", "ham"]


def columns_of(values: list[Any]) -> list[Any]:
    """The same column in every kind that is installed."""
    pandas, polars, arrow = map(pytest.importorskip, ("pandas", "polars", "pyarrow"))
    series = pandas.Series(values)
    return [
        values,
        tuple(values),
        np.array(values),
        np.array(values, dtype=object),
        series,
        series.convert_dtypes(),
        polars.Series(values),
        arrow.array(values),
        arrow.chunked_array([values]),
        (value for value in values),
    ]


def test_every_kind_of_column_gives_the_same_texts() -> None:
    for column in columns_of(LABELS):
        found = of_predictions(column)
        assert found.first.tolist() == LABELS, type(column)
        assert all(type(value) is str for value in found.first)
        assert list(found.columns) == ["prediction"]
        assert (len(found), found.classes, found.numbers) == (3, ["ham", "spam"], False)


def test_every_kind_of_column_gives_the_same_numbers() -> None:
    for column in columns_of([0.5, 2.0, -1.0]):
        found = of_predictions(column)
        assert found.first.dtype == np.float64
        assert (found.first.tolist(), found.numbers, found.classes) == ([0.5, 2.0, -1.0], True, [])


def test_categories_are_texts() -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    for column in (pandas.Series(LABELS, dtype="category"), polars.Series(LABELS, dtype=polars.Categorical)):
        assert of_predictions(column).first.tolist() == LABELS


def test_every_kind_of_table_gives_the_same_columns() -> None:
    pandas, polars, arrow = map(pytest.importorskip, ("pandas", "polars", "pyarrow"))
    made = {"llm": LABELS, "rules": ["spam", "spam", "ham"]}
    for table in (made, pandas.DataFrame(made), polars.DataFrame(made), arrow.table(made)):
        found = of_predictions(table)
        assert {name: values.tolist() for name, values in found.columns.items()} == made, type(table)
        assert found.first.tolist() == LABELS
    assert repr(found) == "GivenPredictions(3 rows, 'llm', 'rules')"


def test_a_class_is_the_same_text_in_every_type() -> None:
    assert of_predictions([1.0, "a", 2]).first.tolist() == ["1", "a", "2"]
    assert of_predictions([True, False, True]).first.tolist() == ["True", "False", "True"]
    # A text and a list of texts of the same length stay apart.
    assert of_predictions({"a": ["1", "2"], "b": [1, 2]}).numbers is False


def test_a_missing_value_is_refused_with_its_row() -> None:
    pandas, polars, arrow = map(pytest.importorskip, ("pandas", "polars", "pyarrow"))
    texts = [
        ["a", None, "b"],
        ["a", float("nan"), "b"],
        ["a", " ", "b"],
        pandas.Series(["a", None, "b"]),
        pandas.Series(["a", pandas.NA, "b"], dtype="string"),
        polars.Series(["a", None, "b"]),
        arrow.array(["a", None, "b"]),
    ]
    numbers = [[1.0, float("nan"), 2.0], [1, None, 2], pandas.Series([1, pandas.NA, 2], dtype="Int64")]
    for column in [*texts, *numbers, polars.Series([1, None, 2]), [1.0, float("inf"), 2.0]]:
        with pytest.raises(InvalidValueError, match="predicted has no value at row 1; leave such rows out"):
            of_predictions(column)
    with pytest.raises(InvalidValueError, match="no value at row 0 and 2 more"):
        of_predictions([None, None, None])
    with pytest.raises(InvalidValueError, match=r"predicted\['rules'\] has no value at row 1"):
        of_predictions({"llm": ["a", "b"], "rules": ["a", None]})


def test_other_input_is_refused() -> None:
    for predicted in ("ham", b"ham", 3, object()):
        with pytest.raises(InvalidTypeError, match="must be a series of values"):
            of_predictions(predicted)
    with pytest.raises(InvalidValueError, match="at least one row"):
        of_predictions([])
    with pytest.raises(InvalidValueError, match="at least one column"):
        of_predictions({})
    with pytest.raises(InvalidValueError, match=r"the same length; the lengths are \{'a': 1, 'b': 2\}"):
        of_predictions({"a": ["x"], "b": ["x", "y"]})


@pytest.mark.parametrize("bad", [-0.01, 1.01, float("nan"), float("inf")])
def test_a_probability_is_from_0_to_1(bad: float) -> None:
    assert of_predictions(LABELS, [0, 1, 0.5]).probability is not None
    with pytest.raises(InvalidValueError, match="probability must be from 0 to 1; row 2 has"):
        of_predictions(LABELS, [0.2, 0.3, bad])


def test_probabilities_and_groups_have_a_value_for_each_row() -> None:
    with pytest.raises(InvalidValueError, match="probability must have one value for each of the 3 rows, not 2"):
        of_predictions(LABELS, [0.2, 0.3])
    with pytest.raises(InvalidValueError, match="groups must have one value for each of the 3 rows, not 4"):
        of_predictions(LABELS, groups=["a"] * 4)
    with pytest.raises(InvalidValueError, match="groups has no value at row 0"):
        of_predictions(LABELS, groups=[None, "a", "b"])
    with pytest.raises(InvalidTypeError, match="probability must be a real number"):
        of_predictions(LABELS, ["sure", "sure", "sure"])
    with pytest.raises(InvalidValueError, match="at most 1,000 groups can be guaranteed together; is it an identifier"):
        of_predictions(["a"] * 1001, groups=range(1001))


def test_groups_are_counted() -> None:
    found = of_predictions(LABELS, groups=[2024.0, 2025, 2024])
    assert found.group_sizes == {"2024": 2, "2025": 1}
    assert of_predictions(LABELS).group_sizes == {}


def test_a_part_has_its_rows_in_the_given_order() -> None:
    found = of_predictions(LABELS, [0.1, 0.2, 0.3], ["x", "y", "z"]).part(np.array([2, 1]))
    assert isinstance(found, GivenPredictions)
    assert found.probability is not None
    assert found.groups is not None
    assert (found.first.tolist(), found.probability.tolist(), found.groups.tolist()) == (
        ["ham", "spam"],
        [0.3, 0.2],
        ["z", "y"],
    )
