"""Rows of a table as items: what is shown, what names them, what the model sees, and what is said of bad tables."""

import csv
import gzip
import importlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.errors import InvalidValueError
from suffice.project import create, item_features
from suffice.project.items import Items
from suffice.project.read_items import ReadingOptions, read_items
from suffice.project.settings import Settings, default_rule
from suffice.tables import parquet_reader, read_table

DATA = os.environ.get("SUFFICE_DATA")
needs_data = pytest.mark.skipif(DATA is None, reason="people's tables: SUFFICE_DATA is not set")

TEXTS = [
    "the cat sat on the mat",
    "a dog ran in the park",
    "the cat and the dog",
    "rain in the park again",
    "dog and cat in rain",
    "the mat is wet again",
]


def write(**columns: Sequence[object]) -> Path:
    path = Path("table.csv")
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def read(path: Path, **options: Any) -> Items:
    if not {"classes", "task", "target"} & set(options):
        options["classes"] = ("a", "b")
    return read_items(path, ReadingOptions(**options))


def refused(path: Path, words: str, **options: Any) -> None:
    with pytest.raises(InvalidValueError, match=words):
        read(path, **options)


# What is shown


def test_a_row_is_shown_as_the_file_has_it() -> None:
    items = read(write(size=["1.50", "007", " 2"], colour=["red", "NA", "red "], n=[1, 2, 3]))
    assert items.columns == ("size", "colour", "n")
    # A space after a separator is no part of a cell, one before it is.
    assert [*items.cells] == [("1.50", "red", "1"), ("007", "NA", "2"), ("2", "red ", "3")]
    assert (items.shown, items.main, items.root) == ("table", None, None)
    assert tuple(items.ids) == ("1", "2", "3")
    assert len(items) == 3
    assert items.labels == {}
    assert (items.task, items.classes) == ("classification", ("a", "b"))


@pytest.fixture(params=["small", "large"])
def parquet_size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parquet files are read as small ones, and as large ones."""
    if request.param == "large":
        monkeypatch.setattr(parquet_reader, "LARGE_PARQUET", -1)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"id": "key"},
        {"id": "code"},
        {"ignore": ("truth", "key")},
        {"target": "kind"},
        {"target": "x", "task": "regression"},
        {"text": "word"},
    ],
)
def test_a_large_parquet_file_gives_the_items_of_a_small_one(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    arrow: Any = pytest.importorskip("pyarrow", reason="Parquet: pyarrow is not installed")
    rng, n = np.random.default_rng(0), 300
    columns = {
        "id": np.arange(n) + 5,
        "key": [f"k{k}" for k in range(n)],
        "code": rng.permutation(n) / 8.0,
        "x": arrow.array(rng.normal(size=n), mask=rng.random(n) < 0.1),
        "single": rng.normal(size=n).astype(np.float32),
        "truth": arrow.array(rng.random(n) < 0.5),
        "word": [None if k % 7 == 0 else f"{'abc'[k % 3]} word of text" for k in range(n)],
        "kind": [("p", "q", None)[k % 3] for k in range(n)],
    }
    importlib.import_module("pyarrow.parquet").write_table(arrow.table(columns), "t.parquet", row_group_size=70)
    found = []
    for large in (2**24, -1):
        monkeypatch.setattr(parquet_reader, "LARGE_PARQUET", large)
        items = read(Path("t.parquet"), **options)
        assert isinstance(items.cells, parquet_reader.ParquetCells) == (large < 0)
        with create.write_project(f"project{large}", settings_of(items), items) as project:
            found.append((items, project.rows(range(n)), project.X, project.state().n_labelled))
    (one, *written), (two, *again) = found
    for name in ("shown", "columns", "main", "task", "classes", "labels", "notes", "components", "reading"):
        assert getattr(one, name) == getattr(two, name), name
    assert list(one.ids) == list(two.ids)
    np.testing.assert_array_equal(one.X, two.X)
    np.testing.assert_equal(written, again)


def test_progress_of_a_large_parquet_file(monkeypatch: pytest.MonkeyPatch) -> None:
    arrow: Any = pytest.importorskip("pyarrow", reason="Parquet: pyarrow is not installed")
    importlib.import_module("pyarrow.parquet").write_table(arrow.table({"a": [1, 2, 3], "b": [3, 1, 2]}), "t.parquet")
    monkeypatch.setattr(parquet_reader, "LARGE_PARQUET", -1)
    told: list[tuple[str, int, int]] = []
    read_items(Path("t.parquet"), ReadingOptions(classes=("a", "b")), lambda *each: told.append(each))
    reading = "reading the items"
    assert told == [(reading, 0, 0), (reading, 1, 3), (reading, 3, 3), ("computing features", 0, 0)]


def settings_of(items: Items) -> Settings:
    model = "gp" if items.task == "regression" else "logistic"
    return Settings(
        name="t",
        task=items.task,
        classes=items.classes,
        target="label",
        shown=items.shown,
        columns=items.columns,
        main=items.main,
        model=model,
        rule=default_rule().state_dict(),
        source="t",
    )


@pytest.mark.usefixtures("parquet_size")
def test_parquet_shows_numbers_shortly() -> None:
    arrow: Any = pytest.importorskip("pyarrow", reason="Parquet: pyarrow is not installed")
    columns = {
        "whole": [1, None, 3],
        "real": [0.1, 2.0, None],
        "word": ["x\0y", None, "z"],
        "odd": arrow.array([b"\xed\xa0\x80", b"a", b"b"]).view(arrow.string()),
        "several": [[1], [2], []],
        "truth": [True, False, True],
    }
    importlib.import_module("pyarrow.parquet").write_table(arrow.table(columns), "t.parquet")
    items = read(Path("t.parquet"))
    assert items.columns == ("whole", "real", "word", "odd", "truth")
    assert items.cells[0] == ("1", "0.1", "x\ufffdy", "\ufffd\ufffd\ufffd", "true")
    assert items.cells[1] == ("", "2", "", "a", "false")
    assert items.cells[2][1] == ""
    assert items.notes[0].startswith("column 'several' left out: list<")
    assert json.dumps([*items.cells], ensure_ascii=False).encode("utf-8")


@pytest.mark.parametrize("name", ["t.tsv", "t.csv.gz"])
def test_tabs_and_gzip(name: str) -> None:
    content = b"a\tb\n1\tx\n2\ty\n"
    Path(name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    assert [*read(Path(name)).cells] == [("1", "x"), ("2", "y")]


def test_the_only_text_is_the_main_thing() -> None:
    items = read(write(size=range(6), review=TEXTS, colour=["red", "blue"] * 3))
    assert (items.shown, items.main) == ("text", "review")
    assert items.columns == ("size", "review", "colour")
    two = read(write(size=range(6), review=TEXTS, reply=TEXTS[::-1]))
    assert (two.shown, two.main) == ("table", None)
    chosen = read(write(size=range(6), review=TEXTS, reply=TEXTS[::-1]), text="reply")
    assert (chosen.shown, chosen.main) == ("text", "reply")
    assert (chosen.X == two.X).all()
    # Neither the target nor what is ignored counts as text.
    assert read(write(review=TEXTS, reply=TEXTS), ignore=("reply",)).main == "review"


def test_a_short_text_is_text_if_it_is_said_to_be() -> None:
    names = ["red apple", "green apple", "red pear", "green pear", "green plum"]
    path = write(name=names, n=range(5))
    assert read(path).notes == ("column 'name' left out: a different value in every row",)
    items = read(path, text="name")
    assert (items.shown, items.main) == ("text", "name")
    assert items.notes[0].startswith("column 'name': text, TF-IDF of words, word pairs and ")
    # The same words, the same place: the two kinds of apple are nearer to each other than to the plum.
    near, far = np.linalg.norm(items.X[0, :-1] - items.X[[1, 4], :-1], axis=1)
    assert near < far


def test_a_text_without_words_is_read_by_its_type() -> None:
    items = read(write(mood=["👍", "👎", "👍", "👎"]), text="mood")
    assert items.X.tolist() == [[1, 0], [0, 1], [1, 0], [0, 1]]
    assert (items.shown, items.cells[1]) == ("text", ("👎",))
    numbers = read(write(n=[10, 20, 10, 30]), text="n")
    assert numbers.shown == "text"
    assert "text, TF-IDF" in numbers.notes[-1]


def test_ignored_columns_are_neither_shown_nor_used() -> None:
    items = read(write(a=[1, 2, 4], b=[1, 2, 8], c=["x", "y", "x"]), ignore=("b", "c", "b"))
    assert items.columns == ("a",)
    assert items.X.shape == (3, 1)


# What names the items


@pytest.mark.parametrize("name", ["id", "ID", "Id"])
def test_a_column_called_id_names_the_items(name: str) -> None:
    columns: dict[str, Sequence[object]] = {name: ["x1", "x2 ", "007"], "n": [1, 2, 3]}
    items = read(write(**columns))
    assert items.ids == ("x1", "x2", "007")
    assert items.columns == ("n",)


def test_an_id_that_is_none_is_an_ordinary_column() -> None:
    items = read(write(id=[1, 1, 2], n=[1, 2, 3]))
    assert tuple(items.ids) == ("1", "2", "3")
    assert items.columns == ("id", "n")
    assert items.notes[0] == "column 'id' does not name the items: '1' is in line 2 and in line 3; they are numbered"
    assert items.X.shape == (3, 2)


def test_another_column_may_name_the_items() -> None:
    items = read(write(id=[1, 2, 3], customer=[30, 10, 20], n=[1, 2, 4]), id="customer")
    assert items.ids == ("30", "10", "20")
    assert items.columns == ("id", "n")
    assert items.X.shape == (3, 1)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["a", "b", "a "], r"--id: column 'key' must name each item differently, but 'a' is in line 2 and in line 4"),
        (["a", "", "b"], "but line 3 has none"),
        (["a", "b", "c" * 501], "but line 4 has more than 500 characters"),
    ],
)
def test_ids_that_cannot_be(names: list[str], words: str) -> None:
    refused(write(key=names, n=[1, 2, 3]), words, id="key")


# Features


def test_features_are_those_of_a_table_that_is_labelled() -> None:
    columns: dict[str, Sequence[object]] = {
        "size": [1, "", 3, 4, "inf", 6],
        "colour": ["red", "blue", "", "red", "green", "red"],
        "sold": ["yes", "no", "no", "yes", "yes", "no"],
        "day": ["2024-01-01", "2024-01-02", "", "2024-01-04", "2024-02-01", "2024-01-01"],
        "review": TEXTS,
        "code": ["A1", "A2", "A3", "A4", "A5", "A6"],
        "one": [5] * 6,
        "y": ["u", "v", "u", "v", "u", "v"],
    }
    path = write(**columns)
    table, items = read_table(path, "y", ordered=True), read(path, target="y")
    assert items.X.dtype == np.float64
    assert (items.X == table.X).all()
    assert items.notes == table.notes
    assert [items.labels[k] for k in range(6)] == table.y.tolist()
    # Rows without a label are items like any other.
    fewer = read(write(**{**columns, "y": ["u", "", "", "v", "", ""]}), target="y")
    assert (fewer.X == items.X).all()


WORD = st.sampled_from(["", "?", "a", "b", "other", "yes", "no", "1", "2024-01-01", "three words here", "so very wet"])


@given(st.lists(st.tuples(WORD, WORD, st.floats(-1e6, 1e6)), min_size=2, max_size=20))
def test_any_labelled_table_has_the_features_of_read_table(rows: list[tuple[str, str, float]]) -> None:
    a, b, c = zip(*rows, strict=True)
    path = write(a=a, b=b, c=c, row=range(len(rows)), y=[k + 0.5 for k in range(len(rows))])
    table, items = read_table(path, "y", task="regression"), read(path, target="y", task="regression")
    assert (items.X == table.X).all()
    # Identical rows matter to people who label.
    assert [note for note in items.notes if "identical to" not in note] == [*table.notes]
    assert items.labels == dict(enumerate(table.y.tolist()))
    assert np.isfinite(items.X).all()


@pytest.mark.parametrize("later", [False, True])
def test_identical_rows_are_noted(later: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(item_features, "FEWEST_DEFERRED", 1)
    # Different words in every row are not read by the model, and neither is the label.
    columns: dict[str, Sequence[object]] = {"code": [*"abcdef"], "y": ["u", "v", "u", "v", "u", ""]}
    request = ReadingOptions(target="y")
    one = read_items(write(**columns, review=[*TEXTS[:4], TEXTS[0], TEXTS[5]]), request, later=later)
    assert (one.deferred is not None) == later
    assert "1 row is identical to an earlier row in all columns that the model reads; it is asked for on its own" in (
        one.notes
    )
    two = read_items(write(**columns, review=[TEXTS[0], *TEXTS[:3], TEXTS[0], TEXTS[5]]), request, later=later)
    assert "2 rows are identical to earlier rows in all columns that the model reads; each is asked for on its own" in (
        two.notes
    )
    assert len(two.ids) == 6
    none = read_items(write(**columns, review=TEXTS), request, later=later)
    assert not any("identical" in note for note in none.notes)
    np.save("f.npy", np.eye(6))
    given = read(write(**columns, review=[TEXTS[0]] * 6), target="y", features=Path("f.npy"))
    assert not any("identical" in note for note in given.notes)


def test_a_column_that_may_be_labels_is_pointed_out() -> None:
    path = write(Label=["x", "y", "x"], n=[1, 2, 3])
    hint = "column 'Label' is used as a feature; give --target Label if it holds labels"
    assert read(path).notes[0] == hint
    assert hint not in read(path, target="Label").notes
    assert hint not in read(path, ignore=("Label",)).notes
    np.save("f.npy", np.eye(3))
    assert read(path, features=Path("f.npy")).notes[0] == hint.replace("used as a feature", "shown")


def test_classes_that_are_alike_are_noted() -> None:
    items = read(write(n=[1.5, 2.5, 4.5], kind=["bug", "Bug ", "ham"]), target="kind")
    assert items.classes == ("Bug", "bug", "ham")
    assert "the classes 'Bug' and 'bug' differ in upper and lower case or spaces only" in items.notes[-1]


def test_a_first_line_of_data_is_noticed() -> None:
    Path("sms.tsv").write_text("ham\t1\nspam\t2\nham\t3\n")
    assert read(Path("sms.tsv")).notes[0].startswith("the first line may be data: 'ham' is the name of a column")


@pytest.mark.slow
@needs_data
def test_adult() -> None:
    path = Path(DATA or "") / "tables" / "adult.csv"
    items, table = read(path, target="class"), read_table(path, "class")
    assert items.classes == ("<=50K", ">50K")
    assert (items.X == table.X).all()
    assert len(items.labels) == len(items) == 32561


@pytest.mark.slow
@needs_data
def test_sms() -> None:
    source = (Path(DATA or "") / "text" / "sms_spam.tsv").read_bytes()
    lines = source.decode("utf-8").split("\n")[:2000]
    Path("sms.tsv").write_text("\n".join(["label\tmessage", *lines]), encoding="utf-8", newline="")
    items = read(Path("sms.tsv"), target="label")
    assert (items.shown, items.main, items.X.shape) == ("text", "message", (2000, 400))
    assert [f"{items.labels[k]}\t{items.cells[k][0]}" for k in (0, 10, 1999)] == [lines[k] for k in (0, 10, 1999)]


# What cannot be used


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", r"table\.csv is empty; a line of column names and lines of data are required"),
        (b"a,b\n", "holds one line only; a line of column names and lines of data are required"),
        (b"a,b\n1,2\n", r"table\.csv holds 1 item; at least 2 are required"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "is not text: it contains NUL bytes"),
        (b"a,b\n1,2\n3\n", "line 3: the number of cells is 1, and of column names 2"),
        (b"1,2\n3,4\n5,6\n", "the first line holds numbers only"),
        (b"a\x01,a\x02\n1,2\n3,5\n", "two columns differ in control characters of their names only"),
        (
            b"a,b\nx,1\ny,1\n",
            "the model can use no column; column 'a' left out: a different value in every row; "
            "column 'b' has one value only, left out; name a column of text with --text, or give",
        ),
        (b"id,k\n1,x\n2,x\n", "the model can use no column; column 'k' has one value only"),
    ],
)
def test_files_that_cannot_be_used(content: bytes, words: str) -> None:
    Path("table.csv").write_bytes(content)
    refused(Path("table.csv"), words)


def test_places_that_cannot_be_read() -> None:
    refused(Path("nowhere.csv"), r"there is no file nowhere\.csv; check the name")
    refused(Path("x" * 5000), "cannot be read")
    Path("cat.png").write_bytes(b"\x89PNG")
    refused(Path("cat.png"), r"cat\.png is one image; name the folder that holds the images")


@pytest.mark.parametrize("option", ["id", "text", "image"])
def test_columns_that_are_not_there(option: str) -> None:
    path = write(name=["x", "y", "x"], size=[1, 2, 3])
    refused(path, rf"--{option}: table\.csv has no column 'nam'\. Did you mean 'name'\? Its columns", **{option: "nam"})
    refused(path, r"--ignore: table\.csv has no column 'nam'", ignore=("nam",))


def test_a_column_has_one_use() -> None:
    path = write(a=["x", "y", "x"], n=[1, 2, 3])
    refused(path, "column 'a' is given as --target and as --text; it can be one of them", target="a", text="a")
    refused(path, "column 'a' is given as --id and as --ignore", id="a", ignore=("a",))


@pytest.mark.usefixtures("parquet_size")
def test_a_parquet_file_without_a_column_that_can_be_read() -> None:
    arrow: Any = pytest.importorskip("pyarrow", reason="Parquet: pyarrow is not installed")
    importlib.import_module("pyarrow.parquet").write_table(arrow.table({"v": [[1], [2]]}), "t.parquet")
    refused(Path("t.parquet"), "has no column that can be read; column 'v' left out: list<")
