"""JSON lines and lists of JSON objects to columns, and what is said of lines that are none."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.errors import InvalidValueError
from suffice.tables import file_content, json_reader
from suffice.tables.file_reader import read_chunks, read_columns
from tests.tables.table_contents import cells, content, read

OBJECTS = [
    {"id": "007", "text": 'good, "fine"', "n": 1, "y": True},
    {"id": "8", "text": "bad\nnews", "n": 2.5, "y": False},
    {"id": "9", "text": "snail \U0001f40c é", "n": None, "y": None},
]
READ = {
    "id": [7.0, 8.0, 9.0],
    "text": ['good, "fine"', "bad\nnews", "snail \U0001f40c é"],
    "n": [1.0, 2.5, None],
    "y": ["true", "false", None],
}


def lines(*objects: Any, ascii: bool = False) -> str:
    return "".join(f"{json.dumps(each, ensure_ascii=ascii)}\n" for each in objects)


@pytest.mark.parametrize("ascii", [True, False])
@pytest.mark.parametrize("name", ["t.jsonl", "t.NDJSON", "t.jsonl.gz", "t.json", "t.json.gz"])
def test_one_object_a_line(name: str, ascii: bool) -> None:
    data = lines(*OBJECTS, ascii=ascii).encode()
    file = read(gzip.compress(data) if name.endswith("gz") else data, name)
    assert (content(file), file.notes, file.header) == (READ, (), "")
    assert cells(file)[0] == ("007", 'good, "fine"', "1", "true")
    assert cells(file)[2] == ("9", "snail \U0001f40c é", "", "")
    assert file.texts("id").levels == ("007", "8", "9")
    assert file.place(1) == "line 2"


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("name", ["t.json", "t.jsonl", "t.json.gz"])
def test_a_list_of_objects(name: str, indent: int | None) -> None:
    data = f"\ufeff \n{json.dumps(OBJECTS, indent=indent)}\n".encode()
    file = read(gzip.compress(data) if name.endswith("gz") else data, name)
    assert content(file) == READ
    assert cells(file)[1] == ("8", "bad\nnews", "2.5", "false")
    assert [file.place(row) for row in range(3)] == ["row 1", "row 2", "row 3"]


def test_byte_order_marks_line_ends_and_blank_lines() -> None:
    file = read('\ufeff\r\n{"a": 1}\r\n\n  \n\t{"a": 2} \r{"a": 3}', "t.jsonl")
    assert content(file) == {"a": [1.0, 2.0, 3.0]}
    assert [file.place(row) for row in range(3)] == ["line 2", "line 5", "line 6"]


def test_keys_in_the_order_in_which_they_appear(monkeypatch: pytest.MonkeyPatch) -> None:
    text = lines({"b": 1}, {"a": "x", "b": 2}, {}, {"c": "", "a": "y"}, {"d": [1]})
    wanted = {"b": [1.0, 2.0, None, None, None], "a": [None, "x", None, "y", None], "c": [None] * 5}
    for block in (500, 1, 2):
        monkeypatch.setattr(json_reader, "BLOCK", block)
        file = read(text, "t.jsonl")
        assert content(file) == wanted | {"d": [None] * 4 + ["[1]"]}
        assert cells(file)[1] == ("2", "x", "", "")


def test_numbers_are_texts_as_in_the_file() -> None:
    text = (
        '{"n": 1.50, "m": 12345678901234567890, "x": NaN, "z": 1E5}\n{"n": -0, "m": 1e999, "x": Infinity, "z": "1_0"}\n'
    )
    file = read(text, "t.jsonl")
    assert cells(file) == [("1.50", "12345678901234567890", "NaN", "1E5"), ("-0", "1e999", "Infinity", "1_0")]
    assert content(file) == {
        "n": [1.5, 0.0],
        "m": [12345678901234567890.0, float("inf")],
        "x": [None, float("inf")],
        "z": ["1E5", "1_0"],
    }


def test_texts_mean_what_they_mean_in_csv() -> None:
    values = ["NA", "?", "null", " 7 ", "8", ""]
    in_csv = read("n,w\n" + "".join(f'"{value}",{value}x\n' for value in values))
    in_json = read(lines(*({"n": value, "w": f"{value}x"} for value in values)), "t.jsonl")
    assert content(in_json) == content(in_csv)
    assert content(in_json)["n"] == [None, None, None, 7.0, 8.0, None]
    assert cells(in_json)[3] == (" 7 ", " 7 x")


def test_lists_and_objects_become_texts_of_json() -> None:
    spans = [{"start": 0, "end": 4, "label": "Ort é"}, {"start": 5, "end": 6.5, "label": None}]
    file = read(lines({"spans": spans, "set": ["b", "a"], "x": 1}, {"spans": [], "set": {}, "x": 2}), "t.jsonl")
    assert cells(file) == [
        ('[{"start":0,"end":4,"label":"Ort é"},{"start":5,"end":6.5,"label":null}]', '["b","a"]', "1"),
        ("[]", "{}", "2"),
    ]
    assert json.loads(cells(file)[0][0]) == spans
    listed = read(json.dumps([{"spans": spans}, {"spans": []}]), "t.json")
    assert json.loads(cells(listed)[0][0]) == spans


def test_a_surrogate_without_its_other_half_is_replaced() -> None:
    file = read('{"a": "\\ud83d\\udc0c", "\\ud83d": "x\\udc0c", "b": ["\\ud83d"]}\n{"a": "y"}\n', "t.jsonl")
    assert file.names == ("a", "\ufffd", "b")
    assert cells(file)[0] == ("\U0001f40c", "x\ufffd", '["\ufffd"]')
    assert "".join(map("".join, cells(file))).encode()


def test_latin_1_where_it_is_not_utf_8() -> None:
    file = read('{"stadt": "Köln"}\n{"stadt": "Bonn"}\n'.encode("latin-1"), "t.jsonl")
    assert content(file) == {"stadt": ["Köln", "Bonn"]}
    assert file.notes == ("the file is not in UTF-8; it was read as Latin-1",)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", r"t\.jsonl holds no rows; write each object on one line, such as \{"),
        (" \n\n", "holds no rows"),
        ("[]", "holds no rows"),
        (" [ ] ", "holds no rows"),
        ("{}\n{}\n", "holds no columns: its objects have no keys"),
        (
            '{"a": 1}\n\n{"a": 2\n',
            r"t\.jsonl, line 3 is not an object of JSON: Expecting ',' delimiter \(character 8\); write each object on",
        ),
        ("{'a': 1}\n", r"line 1 is not an object of JSON: Expecting property name enclosed in double quotes"),
        ('{\n  "a": 1\n}\n', "line 1 is not an object of JSON"),
        ('{"a": 1}\n{"a": 2},\n', "line 2: there is more after the object, from character 9 on"),
        ('{"a": 1} {"a": 2}\n', "line 1: there is more after the object, from character 9 on"),
        ('{"a": 1}\n[1, 2]\n', "line 2 is a list, and must be an object; write each object on one line"),
        ('{"a": 1}\n"x"\n', "line 2 is a text, and must be an object"),
        ("7\n", "line 1 is a number, and must be an object"),
        ("null\n", "line 1 is null, and must be an object"),
        ("true\n", "line 1 is true or false, and must be an object"),
        ("a,b\n1,2\n", r"line 1 is not an object of JSON: Expecting value \(character 1\)"),
        ('{"a": 1, "b": 2, "a": 3}\n', "line 1: the key 'a' is there twice in an object; rename or remove one"),
        ('{"a": {"c": 1, "c": 3}}\n', "line 1: the key 'c' is there twice"),
        ('{"a": 1, " a ": 2}\n', "2 columns are named 'a', and names must be distinct"),
        ('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}\n", "line 1: lists or objects are nested too deeply"),
        ('["id", "text"]\n["1", "x"]\n', "row 1 is a text, and must be an object"),
        ('[{"a": 1}, 2]', "row 2 is a number, and must be an object"),
        ('[{"a": 1},\n {"a": }]', r"row 2 is not an object of JSON: Expecting value \(line 2, character 8\)"),
        ('[{"a": 1},\n{"a": 2}\n{"a": 3}]', "line 3: after row 2, a comma or ] is missing; is the file complete"),
        ('[{"a": 1},\n{"a": 2}', "after row 2, a comma or ] is missing"),
        ('[{"a": 1},]', r"row 2 is not an object of JSON"),
        ('[{"a": 1}] [', "there is more after the list"),
        ("[] x", "there is more after the list"),
        ('{"a": "x\0"}\n', r"is not text: it contains NUL bytes. Save it as JSON lines in UTF-8"),
        ('{"a": 1}\n'.encode("utf-16"), "is not text"),
        (gzip.compress(b'{"a": 1}\n', mtime=0)[:-5], "cannot be unpacked"),
    ],
)
def test_what_is_not_a_table_is_an_error(text: str | bytes, words: str) -> None:
    with pytest.raises(InvalidValueError, match=words):
        read(text, "t.jsonl")


def test_what_is_wrong_is_found_in_large_files_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_content, "_WHOLE_FILE", -1)
    for data, words in (
        (b'{"a": 1}\n\n{"b"}\n', "line 3 is not an object of JSON"),
        (b"", "holds no rows"),
        (b"{}\n", "holds no columns"),
        (b'{"a": "\xff"}\n', r"cannot be read: .*; save it as JSON lines in UTF-8"),
        (gzip.compress(b'{"a": 1}\n' * 1000, mtime=0)[:-5], "cannot be read"),
        (b"[1]", "row 1 is a number"),
    ):
        Path("t.jsonl").write_bytes(data)
        with pytest.raises(InvalidValueError, match=words):
            list(read_chunks(Path("t.jsonl")))
    with pytest.raises(InvalidValueError, match="there is no file"):
        list(read_chunks(Path("none.jsonl")))
    with pytest.raises(InvalidValueError, match="is a folder"):
        list(read_chunks(Path("x.jsonl").absolute().parent))
    with pytest.raises(InvalidValueError, match="there is no file"):
        read_columns(Path("none.jsonl"))


def test_keys_of_all_chunks_are_columns_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("t.jsonl").write_text(lines({"a": 1}, {"b": "x"}, {"a": 2, "c": [1]}))
    for large in (False, True):
        monkeypatch.setattr(file_content, "_WHOLE_FILE", -1 if large else 2**20)
        parts = [*read_chunks(Path("t.jsonl"), 2)]
        assert [part.names for part in parts] == [("a", "b", "c")] * 2
        assert [row for part in parts for row in cells(part)] == [("1", "", ""), ("", "x", ""), ("2", "", "[1]")]


def test_a_key_for_every_row_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_content, "MOST_CELLS", 1000)
    assert len(read(lines(*({f"k{n % 10}": n} for n in range(100))), "t.jsonl")) == 100
    with pytest.raises(InvalidValueError, match="at most 1,000 cells are read; leave columns out, or save it as CSV"):
        read(lines(*({f"k{n}": n} for n in range(100))), "t.jsonl")


VALUE = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(max_size=3), st.lists(st.integers(0, 9), max_size=2), st.just({})
)


def cell(value: Any) -> str:
    """The cell of a value, by the rules of JSON alone."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, separators=(",", ":"))


@given(st.lists(st.dictionaries(st.sampled_from(["a", "b", "é", "d e"]), VALUE), min_size=1, max_size=8), st.booleans())
def test_any_objects_come_back(objects: list[dict[str, Any]], listed: bool) -> None:
    keys = [*dict.fromkeys(key for each in objects for key in each)]
    text = json.dumps(objects) if listed else lines(*objects)
    if not keys:
        with pytest.raises(InvalidValueError, match="holds no columns"):
            read(text, "t.json")
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_reader, "BLOCK", 3)
        file = read(text, "t.json")
    assert file.names == tuple(keys)
    assert cells(file) == [tuple(cell(each.get(key)) for key in keys) for each in objects]
