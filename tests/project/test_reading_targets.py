"""Labels that are there already, classes by name, and what is asked for where nobody said what labels are."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.errors import InvalidValueError
from suffice.project.items import Items
from suffice.project.read_items import ReadingOptions, parse_classes, read_items


def read(labels: Sequence[object], **options: Any) -> Items:
    with Path("t.csv").open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([("n", "y"), *enumerate(labels)])
    return read_items(Path("t.csv"), ReadingOptions(**{"target": "y", **options}))


def refused(labels: Sequence[object], words: str, **options: Any) -> None:
    with pytest.raises(InvalidValueError, match=words):
        read(labels, **options)


# What the labels say


@pytest.mark.parametrize(
    ("labels", "classes", "known"),
    [
        (["spam", "", "ham", "NA", "spam "], ("ham", "spam"), {0: "spam", 2: "ham", 4: "spam"}),
        ([10, "", 9, 10, ""], ("9", "10"), {0: "10", 2: "9", 3: "10"}),
        (["0.5", "1.0", "", "?"], ("0.5", "1"), {0: "0.5", 1: "1"}),
        (["red, dark", "blue", ""], ("blue", "red, dark"), {0: "red, dark", 1: "blue"}),
        (["😀", "😢", ""], ("😀", "😢"), {0: "😀", 1: "😢"}),
        (["1", "x", "2"], ("1", "2", "x"), {0: "1", 1: "x", 2: "2"}),
    ],
)
def test_classes_are_found(labels: list[object], classes: tuple[str, ...], known: dict[int, str]) -> None:
    items = read(labels)
    assert (items.task, items.classes, items.labels) == ("classification", classes, known)
    assert items.columns == ("n",)
    assert items.X.shape == (len(labels), 1)


def test_numbers_are_found() -> None:
    items = read(["", 1.5, "2e1", "NaN", " -3.25"])
    assert (items.task, items.classes) == ("regression", ())
    assert items.labels == {1: 1.5, 2: 20.0, 4: -3.25}
    assert all(type(label) is float for label in items.labels.values())
    assert read(range(21)).task == "regression"


def test_numbers_taken_as_classes_are_said_to_be() -> None:
    said = "column 'y': 3 distinct numbers, taken as classes; --regression takes them as numbers"
    assert said in read([3, 4, 5, "", 3]).notes
    assert said not in read([3, 4, 5, "", 3], task="classification").notes
    assert read([0.5, 1.5, 2.5], task="classification").classes == ("0.5", "1.5", "2.5")
    as_numbers = read([3, 4, 5, "", 3], task="regression")
    assert as_numbers.labels == {0: 3.0, 1: 4.0, 2: 5.0, 4: 3.0}
    assert as_numbers.notes == ()


def test_decimal_commas_where_semicolons_separate() -> None:
    Path("t.csv").write_text("n;y\n1;2,5\n2;\n3;4,25\n")
    items = read_items(Path("t.csv"), ReadingOptions(target="y", task="regression"))
    assert items.labels == {0: 2.5, 2: 4.25}


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (
            ["", "NA", ""],
            r"no label yet, so it is not known what labels are; give the classes as --classes a,b,c, or --reg",
        ),
        (
            ["spam", "", "spam"],
            "column 'y' has the label 'spam' only, and there must be two at least; give the classes",
        ),
        ([7, "", 7], "column 'y' has the label '7' only"),
        ([1, "inf", 2], "line 3: the label 'inf' in column 'y' is not a finite number; correct it, leave it empty"),
        ([1, "-nan", 2], "line 3: the label '-nan' in column 'y' is not a finite number"),
        (
            [*(f"name {k}" for k in range(40)), ""],
            r"column 'y' has 40 different values in 40 labels, and not all are numbers \(line 2 holds 'name 0'\): "
            "this looks like an identifier or free text",
        ),
        ([f"c{k}" for k in range(201)] * 2, "labels in column 'y' cannot be classes. --classes: at most 200 classes"),
        (["x" * 201, "y", "", "y"], "the name of a class must be at most 200 characters"),
        (["two\nlines", "y", "", "y"], "none of them a control character, not 'two"),
    ],
)
def test_labels_that_do_not_tell(labels: list[object], words: str) -> None:
    refused(labels, words)


# Classes that are given


def test_classes_are_in_the_order_given() -> None:
    items = read(["spam", "", "ham"], classes=("spam", "ham", "other"))
    assert (items.task, items.classes) == ("classification", ("spam", "ham", "other"))
    assert items.labels == {0: "spam", 2: "ham"}


def test_a_number_is_its_class_however_it_is_written() -> None:
    items = read(["1", "1.0", "01", "2", " 2.00 ", ""], classes=("01", "2"))
    assert items.labels == {0: "01", 1: "01", 2: "01", 3: "2", 4: "2"}


def test_a_class_may_be_called_like_a_missing_value() -> None:
    items = read(["None", "", "some", "NA"], classes=("None", "some"))
    assert items.labels == {0: "None", 2: "some"}


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ("egg", "line 4: the label 'egg' in column 'y' is none of the classes 'ham', 'spam'; correct it, leave it"),
        ("Ham", "line 4: the label 'Ham' in column 'y' is none of the classes"),
        ("3", "line 4: the label '3' in column 'y' is none of the classes"),
        ("z" * 1000, r"the label 'z{37}\.\.\.' in column"),
    ],
)
def test_a_label_that_is_no_class(label: str, words: str) -> None:
    refused(["ham", "", label, "spam"], words, classes=("ham", "spam"))


@pytest.mark.parametrize(
    ("label", "words"),
    [
        (
            "high",
            "line 4: the label 'high' in column 'y' is not a finite number; correct it, leave it empty, or give --cl",
        ),
        ("inf", "line 4: the label 'inf' in column 'y' is not a finite number"),
        ("-nan", "line 4: the label '-nan'"),
        ("3,5", "line 4: the label '3,5'"),
        ("1_000", "line 4: the label '1_000'"),
    ],
)
def test_a_label_that_is_no_number(label: str, words: str) -> None:
    refused([1, "", label, 2], words, task="regression")


def test_numbers_need_no_label_to_begin_with() -> None:
    items = read(["", "", ""], task="regression")
    assert (items.task, items.classes, items.labels) == ("regression", (), {})
    assert read([5, "", ""], task="regression").labels == {0: 5.0}


# The name of the target


def test_a_new_name_is_that_of_the_labels_to_come() -> None:
    items = read(["u", "v", "u"], target="sentiment", classes=("good", "bad"))
    assert items.labels == {}
    assert items.columns == ("n", "y")


def test_a_name_that_is_nearly_there_is_asked_about() -> None:
    Path("t.csv").write_text("n,Label,table\n1,x,5\n2,y,6\n3,x,7\n")
    for wanted in ("label", "labels", "Labe"):
        with pytest.raises(InvalidValueError) as caught:
            read_items(Path("t.csv"), ReadingOptions(target=wanted, classes=("x", "y")))
        assert str(caught.value) == (
            f"t.csv has no column '{wanted}', given as --target; did you mean 'Label'? "
            "To name a new column, choose another name"
        )
    assert read_items(Path("t.csv"), ReadingOptions(target="cable?", classes=("x", "y"))).labels == {}


def test_what_labels_are_must_be_said() -> None:
    refused([1, 2], r"no label yet, .*; if a column holds labels already, name it with --target", target=None)
    with pytest.raises(InvalidValueError, match="no label yet") as caught:
        read([1, 2], target="mood")
    assert "--target" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"task": "guess"}, "task must be 'regression' or 'classification', not 'guess'"),
        ({"task": "regression", "classes": ("a", "b")}, "--classes and --regression exclude each other"),
        ({"target": " "}, "--target must be a name without control characters, not ' '"),
        ({"target": "a\0"}, "--target must be a name without control characters"),
        ({"classes": ("a",)}, "at least two classes are required, and there is only 'a'"),
        ({"features": Path("f.npy"), "embed": "m"}, "--features and --embed exclude each other"),
    ],
)
def test_options_that_cannot_be(options: dict[str, Any], words: str) -> None:
    refused(["a", "b"], words, **options)


# Names of classes in one line


@pytest.mark.parametrize(
    ("text", "classes"),
    [
        ("a,b,c", ("a", "b", "c")),
        (" a , b ", ("a", "b")),
        ('"red, dark",blue', ("red, dark", "blue")),
        ('blue, "say ""hi"""', ("blue", 'say "hi"')),
        ("ja,nein,weiß nicht", ("ja", "nein", "weiß nicht")),
        ("😀,😢", ("😀", "😢")),
        ("0,1", ("0", "1")),
    ],
)
def test_classes_are_taken_apart(text: str, classes: tuple[str, ...]) -> None:
    assert parse_classes(text) == classes


NAME = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Zs", "Zl", "Zp")), min_size=1, max_size=10)


@given(st.lists(NAME, min_size=2, max_size=200, unique=True))
def test_any_names_in_quotes_come_back(names: list[str]) -> None:
    line = ",".join('"' + name.replace('"', '""') + '"' for name in names)
    assert parse_classes(line) == tuple(names)
    assert ReadingOptions(classes=tuple(names)).checked().classes == tuple(names)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "at least two classes are required, and there is none; write them as --classes a,b,c"),
        ("a", "at least two classes are required, and there is only 'a'"),
        ("a;b;c", "there is only 'a;b;c'; write them as --classes a,b,c"),
        ("a,,b", "name 2 of 3 is empty; write them as --classes a,b,c, and a name that holds a comma in double quotes"),
        ("a,b,", "name 3 of 3 is empty"),
        ("a, b,a ", "'a' is there twice, and classes must be distinct; take one out"),
        ('"a,b', r"cannot be read: .*; write them as"),
        ('"a"b,c', r"cannot be read: .*; write them as"),
        ("a,b\nc,d", "must be one line, not 2"),
        ("a,b\x07", "none of them a control character"),
        (",".join(f"c{k}" for k in range(201)), "at most 200 classes are possible, not 201; put some together"),
    ],
)
def test_classes_that_cannot_be(text: str, words: str) -> None:
    with pytest.raises(InvalidValueError, match=words):
        parse_classes(text)
