"""Data sets from real servers on this machine, with and without ranges, honest and not, and from folders."""

import dataclasses
import errno
import hashlib
import io
import os
import re
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.errors import InvalidValueError, SufficeError
from suffice_research.data import catalogue
from suffice_research.data.catalogue import (
    SETS,
    DataFile,
    DataSet,
    FileSource,
    FileState,
    Recipe,
    as_it_is,
    blanks_for_commas,
    classes_as_numbers,
    set_status,
    sheets,
    with_line_endings,
    with_names,
)
from suffice_research.data.download import FetchResult, FetchStatus, fetch

DATA = os.environ.get("SUFFICE_DATA")
CONTENT = np.random.default_rng(0).bytes(300_000)
CHUNK = 8192  # what is kept of a connection that breaks off is a multiple of this


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Bypasses proxies; records the pauses between attempts instead of waiting."""
    pytest.importorskip("pooch", reason="pooch is not installed")
    made: list[float] = []
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr("pooch.core.time.sleep", made.append)
    return made


@dataclasses.dataclass
class Server:
    """What a server has and how it behaves; and what it was asked for.

    Attributes:
        files: By path.
        ranges: Whether it answers with a part where a part is asked for.
        break_off: After how many bytes of an answer the connection breaks; one entry an answer.
        statuses: What to answer instead; one entry an answer.
        moved: Path to path.
        chunked: Whether the length is left out.
        version: The tag of all files; none if empty.
        lies: Whether a range begins elsewhere than it should.
        asked: Path, range, condition.
        sent: Bytes of each answer.
    """

    files: dict[str, bytes]
    address: str = ""
    ranges: bool = True
    break_off: list[int] = dataclasses.field(default_factory=list)
    statuses: list[int] = dataclasses.field(default_factory=list)
    moved: dict[str, str] = dataclasses.field(default_factory=dict)
    chunked: bool = False
    version: str = '"1"'
    lies: bool = False
    asked: list[tuple[str, str, str]] = dataclasses.field(default_factory=list)
    agents: list[str] = dataclasses.field(default_factory=list)
    sent: list[int] = dataclasses.field(default_factory=list)


def handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            pass

        def do_GET(self) -> None:
            wanted, condition = self.headers.get("Range", ""), self.headers.get("If-Range", "")
            server.asked.append((self.path, wanted, condition))
            server.agents.append(self.headers.get("User-Agent", ""))
            if server.statuses:
                self.send_error(server.statuses.pop(0))
            elif self.path in server.moved:
                self.send_response(302)
                self.send_header("Location", server.moved[self.path])
                self.end_headers()
            elif self.path not in server.files:
                self.send_error(404)
            else:
                self.send_file(server.files[self.path], wanted, condition)

        def send_file(self, content: bytes, wanted: str, condition: str) -> None:
            found = re.fullmatch(r"bytes=(\d+)-", wanted)
            start = int(found[1]) if found and server.ranges and condition in ("", server.version) else 0
            if start and start >= len(content):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(content)}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.send_response(206 if start else 200)
            if start:
                first = start - 10 if server.lies else start
                self.send_header("Content-Range", f"bytes {first}-{len(content) - 1}/{len(content)}")
            if server.version:
                self.send_header("ETag", server.version)
            if not server.chunked:
                self.send_header("Content-Length", str(len(content) - start))
            self.end_headers()
            rest = content[start:]
            rest = rest[: server.break_off.pop(0)] if server.break_off else rest
            server.sent.append(len(rest))
            self.wfile.write(rest)

    return Handler


@contextmanager
def serving(files: dict[str, bytes], **behaviour: Any) -> Iterator[Server]:
    server = Server(files, **behaviour)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler(server)) as http:
        server.address = f"http://127.0.0.1:{http.server_address[1]}"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            http.shutdown()
            thread.join()


def zipped(files: dict[str, bytes]) -> bytes:
    with io.BytesIO() as stream:
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files.items():
                archive.writestr(name, content)
        return stream.getvalue()


def workbook(*tables: bytes, header: bytes = b"a\tb") -> bytes:
    """Tab-separated texts as the sheets of a workbook, with all the digits that a binary number has."""

    def cell(number: bytes) -> str:
        return f"<c><v>{float(number):.17g}</v></c>"

    def row(line: bytes) -> str:
        return "".join(["<row>", *map(cell, line.split(b"\t") if line else ()), "</row>"])

    names = "".join(f'<c t="s"><v>{k}</v></c>' for k in range(len(header.split(b"\t"))))
    start = '<?xml version="1.0"?><worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
    sheet = "{}<sheetData><row>{}</row>{}</sheetData></worksheet>"
    texts = [sheet.format(start, names, "".join(map(row, table.splitlines()))).encode() for table in tables]
    other = {"[Content_Types].xml": b"<Types/>", "xl/workbook.xml": b"<workbook/>", "xl/sharedStrings.xml": b"<sst/>"}
    return zipped(other | {f"xl/worksheets/sheet{k}.xml": text for k, text in enumerate(texts, start=1)})


def known(monkeypatch: pytest.MonkeyPatch, content: bytes, *sources: FileSource, path: str = "uci/mine.bin") -> DataSet:
    """Make a data set known as ``mine``: one file, with its checksum, from some sources."""
    file = DataFile(path, hashlib.sha256(content).hexdigest(), len(content), sources)
    about = dataclasses.replace(SETS["skin"], name="mine", files=(file,))
    monkeypatch.setattr(catalogue, "SETS", {"mine": about})
    return about


def fetched(folder: Path, **options: Any) -> FetchResult:
    (outcome,) = fetch(["mine"], folder, **options)
    return outcome


def stored(folder: Path) -> list[str]:
    """All files in a folder, and no folder of downloads that is empty."""
    assert not (folder / "downloads").is_dir() or any((folder / "downloads").iterdir())
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


# What a recipe makes of what public homes hand out


ROWS = st.lists(st.lists(st.integers(-9999, 9999).map(lambda n: n / 100), min_size=2, max_size=2), min_size=1)


@given(ROWS)
def test_a_sheet_becomes_the_text_it_was_made_from(rows: list[list[float]]) -> None:
    text = "\n".join("\t".join(f"{value:g}" for value in row) for row in rows).encode()
    other = b"1\t2\n" * (len(rows) + 1)
    # A workbook may end in rows without any number.
    assert list(sheets(workbook(other + b"\n\n", text))) == [other.rstrip(), text]


@given(ROWS)
def test_blanks_for_commas(rows: list[list[float]]) -> None:
    lines = [" ".join(map(str, row)) for row in rows]
    made = list(blanks_for_commas("\r\n".join(["a,b", *(line.replace(" ", ",") for line in lines)]).encode()))
    assert made == ["\n".join(lines).encode()]


@given(st.lists(st.booleans(), min_size=1), st.sampled_from(['"{}"', "{}"]))
def test_classes_as_numbers(classes: list[bool], quoted: str) -> None:
    named = "\r\n".join(f"0.5,{quoted.format('stable' if c else 'unstable')}" for c in classes)
    numbered = "\r\n".join(f"0.5,{c:d}" for c in classes)
    header = '"tau1","stab","stabf"\r\n'
    assert list(classes_as_numbers((header + named).encode())) == [(header + numbered).encode()]


@given(st.lists(st.tuples(st.integers(-99, 99), st.sampled_from(["Private", "<=50K", "A-b", "?"])), min_size=1))
def test_with_names(rows: list[tuple[int, str]]) -> None:
    came = "".join(f"{number}, {word}\n" for number, word in rows) + "\n"
    quoted = [f"{number}," + ("NA" if word == "?" else f'"{word}"') for number, word in rows]
    assert list(with_names("n", "w")(came.encode())) == ["\n".join(['"n","w"', *quoted]).encode()]


@given(
    st.lists(st.text("0123456789,. ", min_size=1), min_size=1),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.booleans(),
    st.booleans(),
)
def test_every_kind_of_line_ending_is_tried(lines: list[str], came: str, wanted: str, first: bool, last: bool) -> None:
    text = (came.join(lines) + came * first).encode()
    candidates = list(with_line_endings(text))
    assert candidates[0] == text
    assert (wanted.join(lines) + wanted * last).encode() in candidates


# Downloads


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("ranges", [False, True])
def test_a_file_as_it_is(ranges: bool, chunked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, int, int | None]] = []
    with serving({"/a.bin": CONTENT}, ranges=ranges, chunked=chunked) as server:
        about = known(monkeypatch, CONTENT, FileSource(f"{server.address}/a.bin"))
        outcome = fetched(tmp_path / "new" / "data", progress=lambda *now: told.append(now))
        assert (outcome.what, outcome.problem) == (FetchStatus.stored, "")
        assert outcome.path.read_bytes() == CONTENT
        assert told[-1] == (f"{server.address}/a.bin", len(CONTENT), None if chunked else len(CONTENT))
        assert [done for _, done, _ in told] == sorted({done for _, done, _ in told})
        assert server.agents[0].startswith("suffice/")
        assert stored(tmp_path / "new" / "data") == ["uci/mine.bin"]
        # What is right is never fetched again.
        assert fetched(tmp_path / "new" / "data").what is FetchStatus.there
        assert len(server.asked) == 1
    assert set_status(about.name, tmp_path / "new" / "data")[0].state is FileState.right


def test_an_interrupted_download_asks_only_for_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*now: Any) -> None:
        if now[1] > 100_000:
            raise KeyboardInterrupt

    with serving({"/a.bin": CONTENT}) as server:
        known(monkeypatch, CONTENT, FileSource(f"{server.address}/a.bin"))
        with pytest.raises(KeyboardInterrupt):
            fetched(tmp_path, progress=stop)
        (part,) = [name for name in stored(tmp_path) if name.endswith(".part")]
        have = (tmp_path / part).stat().st_size
        assert 100_000 < have < len(CONTENT)
        assert not (tmp_path / "uci" / "mine.bin").exists()
        assert fetched(tmp_path).what is FetchStatus.stored
        assert server.asked[1] == ("/a.bin", f"bytes={have}-", '"1"')
        assert server.sent[1] == len(CONTENT) - have
    assert (tmp_path / "uci" / "mine.bin").read_bytes() == CONTENT
    assert stored(tmp_path) == ["uci/mine.bin"]


@pytest.mark.parametrize("ranges", [False, True])
def test_a_connection_that_breaks_off_is_tried_again(
    ranges: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving({"/a.bin": CONTENT}, ranges=ranges, break_off=[9 * CHUNK, 10 * CHUNK + 5]) as server:
        known(monkeypatch, CONTENT, FileSource(f"{server.address}/a.bin"))
        assert fetched(tmp_path).what is FetchStatus.stored
        assert server.sent == [9 * CHUNK, 10 * CHUNK + 5, len(CONTENT) - (19 * CHUNK if ranges else 0)]
    assert stored(tmp_path) == ["uci/mine.bin"]


def test_a_connection_that_always_breaks_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving({"/a.bin": CONTENT}, break_off=[CHUNK, CHUNK, CHUNK]) as server:
        known(monkeypatch, CONTENT, FileSource(f"{server.address}/a.bin"))
        outcome = fetched(tmp_path)
        assert outcome.what is FetchStatus.failed
        assert f"broke off after {3 * CHUNK} of 300000 bytes; what has come is kept" in outcome.problem
        assert fetched(tmp_path).what is FetchStatus.stored
        assert server.asked[-1][1] == f"bytes={3 * CHUNK}-"


@pytest.mark.parametrize(("size", "version"), [(1000, '"1"'), (9 * CHUNK, ""), (9 * CHUNK, 'W/"1"')])
def test_what_cannot_be_continued_is_not_kept(
    size: int, version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving({"/a.bin": CONTENT}, break_off=[size] * 3, version=version) as server:
        known(monkeypatch, CONTENT, FileSource(f"{server.address}/a.bin"))
        problem = fetched(tmp_path).problem
        assert "broke off after" in problem
        assert "is kept" not in problem
        assert stored(tmp_path) == []
        assert fetched(tmp_path).what is FetchStatus.stored
        assert [wanted for _, wanted, _ in server.asked] == [""] * 4


def test_the_pauses_between_attempts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pauses: list[float]) -> None:
    with serving({"/a.bin": CONTENT}, statuses=[503] * 4) as server:
        known(monkeypatch, CONTENT, FileSource(f"{server.address}/a.bin"))
        assert fetched(tmp_path, retries=3).what is FetchStatus.failed
    assert pauses == [1, 2, 3]


def test_a_folder_needs_no_pooch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known(monkeypatch, CONTENT, FileSource("http://localhost/a.bin"))
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "a.bin").write_bytes(CONTENT)
    monkeypatch.setitem(sys.modules, "pooch", None)
    assert fetched(tmp_path / "data", mirror=str(tmp_path / "copy")).what is FetchStatus.stored


@pytest.mark.parametrize("version", ['"2"', ""])
def test_a_file_that_changed_between_two_parts(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = bytes(len(CONTENT))
    with serving({"/a.bin": old}, break_off=[90_000] * 3, version=version and '"1"') as server:
        known(monkeypatch, CONTENT, FileSource(f"{server.address}/a.bin"))
        assert fetched(tmp_path).what is FetchStatus.failed
        server.files["/a.bin"], server.version = CONTENT, version
        server.break_off.clear()
        # With a tag the server sends it anew; without one nothing is kept.
        assert fetched(tmp_path).what is FetchStatus.stored
    assert (tmp_path / "uci" / "mine.bin").read_bytes() == CONTENT


def test_a_range_that_begins_elsewhere_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving({"/a.bin": CONTENT}, break_off=[9 * CHUNK], lies=True) as server:
        known(monkeypatch, CONTENT, FileSource(f"{server.address}/a.bin"))
        assert fetched(tmp_path).what is FetchStatus.stored
        assert [wanted for _, wanted, _ in server.asked] == ["", f"bytes={9 * CHUNK}-", ""]


@pytest.mark.parametrize("length", [len(CONTENT), len(CONTENT) + 5])
def test_a_part_that_is_whole_already(length: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when the machine went down between the last byte and the checksum; or a part that is longer than the file."""
    with serving({"/a.bin": CONTENT}, break_off=[CHUNK] * 3) as server:
        known(monkeypatch, CONTENT, FileSource(f"{server.address}/a.bin"))
        fetched(tmp_path)
        next((tmp_path / "downloads").glob("*.part")).write_bytes((CONTENT + bytes(5))[:length])
        assert fetched(tmp_path).what is FetchStatus.stored
        assert server.sent[3:] == ([] if length == len(CONTENT) else [len(CONTENT)])
    assert stored(tmp_path) == ["uci/mine.bin"]


def test_an_archive_packed_in_another_way_is_stored_as_it_came(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = CONTENT[::-1]
    with serving({"/a.bin": other}) as server:
        about = known(monkeypatch, CONTENT, FileSource(f"{server.address}/a.bin"))
        (file,) = about.files
        assert file.sha256 in fetched(tmp_path).problem
        also = dataclasses.replace(file, also=(hashlib.sha256(other).hexdigest(),))
        monkeypatch.setattr(catalogue, "SETS", {"mine": dataclasses.replace(about, files=(also,))})
        assert fetched(tmp_path).what is FetchStatus.stored
    assert (tmp_path / "uci" / "mine.bin").read_bytes() == other


def test_busy_servers_and_those_that_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving({"/b.bin": CONTENT}, statuses=[503, 429], moved={"/a.bin": "/b.bin"}) as server:
        known(monkeypatch, CONTENT, FileSource(f"{server.address}/a.bin"))
        assert fetched(tmp_path).what is FetchStatus.stored
        assert [path for path, _, _ in server.asked] == ["/a.bin", "/a.bin", "/a.bin", "/b.bin"]


@pytest.mark.parametrize(("status", "asked"), [(404, 1), (403, 1), (503, 3)])
def test_what_a_server_refuses(status: int, asked: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving({}, statuses=[status] * asked) as server:
        known(monkeypatch, CONTENT, FileSource(f"{server.address}/a.bin"))
        outcome = fetched(tmp_path)
        assert f"{server.address}/a.bin answers {status} (" in outcome.problem
        assert f"By hand: download {server.address}/a.bin and save it as {outcome.path}" in outcome.problem
        assert len(server.asked) == asked
    assert stored(tmp_path) == []


def test_the_next_source_where_one_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving({"/b.bin": CONTENT, "/wrong.bin": CONTENT[::-1]}) as server:
        known(monkeypatch, CONTENT, *(FileSource(f"{server.address}/{name}.bin") for name in ("gone", "wrong", "b")))
        assert fetched(tmp_path).what is FetchStatus.stored
        assert [path for path, _, _ in server.asked] == ["/gone.bin", "/wrong.bin", "/b.bin"]
    assert stored(tmp_path) == ["uci/mine.bin"]


def test_without_a_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving({}) as server:
        gone = server.address
    file = known(monkeypatch, CONTENT, FileSource(f"{gone}/a.zip", "a.csv", blanks_for_commas)).files[0]
    files = file, dataclasses.replace(file, path="uci/b.csv", sources=(FileSource(f"{gone}/a.zip", "b.csv"),))
    monkeypatch.setattr(
        catalogue, "SETS", {"mine": dataclasses.replace(SETS["skin"], name="mine", files=files, home="the page")}
    )
    first, second = fetch(["mine"], tmp_path)
    assert f"{gone[7:]} cannot be reached: Connection refused" in first.problem
    made = f"download {gone}/a.zip (the page) to a folder and run suffice data fetch mine --from FOLDER, which makes"
    assert f"{made} {tmp_path / 'uci' / 'mine.bin'}" in first.problem
    assert f"By hand: save b.csv out of {gone}/a.zip (the page) as {tmp_path / 'uci' / 'b.csv'}" in second.problem
    assert stored(tmp_path) == []


def test_a_name_that_is_not_known_is_not_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pauses: list[float]
) -> None:
    known(monkeypatch, CONTENT, FileSource("http://nowhere.invalid/a.bin"), FileSource("http://nowhere.invalid/b.bin"))
    outcome = fetched(tmp_path)
    assert pauses == []
    # Both sources say the same, so it is said once.
    assert outcome.problem.count("nowhere.invalid cannot be reached") == 1


def test_more_than_can_be_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for chunked in (False, True):
        with serving({"/a.bin": CONTENT}, chunked=chunked) as server:
            known(monkeypatch, b"short", FileSource(f"{server.address}/a.bin"))
            assert "gives more than 10 bytes, which cannot be the file" in fetched(tmp_path).problem
        assert stored(tmp_path) == []


# Archives


def test_five_files_from_one_download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {f"{year}.csv": f"a,b\n{year},1\n".encode() for year in range(2011, 2016)}
    inner = zipped({f"data/{name}": text for name, text in texts.items()})
    with serving({"/a+b.zip": zipped({"readme.txt": b"", "deeper/inner.zip": inner})}) as server:
        files = tuple(
            DataFile(
                f"uci/{name}",
                hashlib.sha256(text).hexdigest(),
                len(text),
                (FileSource(f"{server.address}/a+b.zip", name),),
            )
            for name, text in texts.items()
        )
        both = {name: dataclasses.replace(SETS["skin"], name=name, files=files) for name in ("mine", "yours")}
        monkeypatch.setattr(catalogue, "SETS", both)
        outcomes = list(fetch(["mine", "yours", "mine"], tmp_path))
        assert [outcome.what for outcome in outcomes] == [FetchStatus.stored] * 5
        assert len(server.asked) == 1
    assert stored(tmp_path) == [f"uci/{name}" for name in texts]


def bomb() -> bytes:
    return zipped({"a.csv": bytes(3000)})


@pytest.mark.parametrize(
    ("came", "words"),
    [
        (b"<!DOCTYPE html><html><body>Please log in</body></html>", "what came is a web page, not the file"),
        (b"", "cannot be read: it is damaged or cut short"),
        (b"hello", "cannot be read: it is damaged or cut short"),
        (zipped({"a.csv": CONTENT})[:-2000], "cannot be read: it is damaged or cut short"),
        (zipped({"a.csv": CONTENT}).replace(CONTENT[5000:5010], bytes(10)), "damaged or cut short|checksum should be"),
        (zipped({"b.csv": CONTENT}), "has no file a.csv"),
        (zipped({"inner.zip": b"no archive"}), "cannot be read: it is damaged or cut short"),
        (zipped({"a.csv": b"other"}), "its SHA-256 checksum should be"),
        (bomb(), "a.csv in the zip archive that came unpacks to more than 0 MiB"),
    ],
    ids=["page", "empty", "text", "cut", "damaged", "other name", "inner", "other content", "bomb"],
)
def test_archives_that_are_not_what_is_meant(
    came: bytes, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "unpacks" in words:
        monkeypatch.setattr(catalogue, "MOST_BYTES", 2999)
    with serving({"/a.zip": came}) as server:
        known(monkeypatch, b"right", FileSource(f"{server.address}/a.zip", "a.csv"))
        outcome = fetched(tmp_path)
        assert outcome.what is FetchStatus.failed
        assert re.search(words, outcome.problem), outcome.problem
        assert f"{server.address}/a.zip" in outcome.problem
    assert stored(tmp_path) == []


WORDS = b'<w xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><row/><row><v>x</v></row></w>'


@pytest.mark.parametrize(
    "came",
    [
        b"no workbook",
        zipped({"xl/worksheets/sheet1.xml": b"<worksheet>"}),
        workbook(b"1\t2").replace(b"worksheets", b"worksheetz"),
        zipped({"xl/worksheets/sheet1.xml": WORDS}),
    ],
    ids=["text", "xml", "no sheet", "words"],
)
def test_workbooks_that_are_not_what_is_meant(came: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving({"/a.zip": zipped({"a.xlsx": came})}) as server:
        known(monkeypatch, b"right", FileSource(f"{server.address}/a.zip", "a.xlsx", sheets))
        outcome = fetched(tmp_path)
        assert re.search("cannot be read|does not give uci/mine.bin", outcome.problem), outcome.problem
    assert stored(tmp_path) == []


def test_the_wrong_checksum_is_named_with_the_right_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving({"/a.zip": zipped({"a.csv": b"other"})}) as server:
        known(monkeypatch, b"right", FileSource(f"{server.address}/a.zip", "a.csv"))
        problem = fetched(tmp_path).problem
    for content in (b"right", b"other"):
        assert f"{hashlib.sha256(content).hexdigest()} (5 bytes)" in problem
    assert "nothing was stored" in problem
    assert "suffice data fetch --from" in problem


# Copies


def test_a_copy_in_a_folder_or_at_an_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known(monkeypatch, CONTENT, FileSource("https://localhost/there/a.zip", "a.csv"))
    (tmp_path / "ours" / "uci").mkdir(parents=True)
    (tmp_path / "ours" / "uci" / "mine.bin").write_bytes(CONTENT)
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "a.zip").write_bytes(zipped({"a.csv": CONTENT}))
    for number, folder in enumerate(("ours", "theirs")):
        outcome = fetched(tmp_path / f"data{number}", mirror=str(tmp_path / folder))
        assert outcome.what is FetchStatus.stored
        assert outcome.path.read_bytes() == CONTENT
    with serving({"/x/uci/mine.bin": CONTENT, "/y/a.zip": zipped({"a.csv": CONTENT})}) as server:
        for number, address in enumerate((f"{server.address}/x", f"{server.address}/x/", f"{server.address}/y")):
            assert fetched(tmp_path / f"more{number}", mirror=address).what is FetchStatus.stored
        outcome = fetched(tmp_path / "last", mirror=f"{server.address}/z")
        assert f"{server.address}/z/uci/mine.bin answers 404" in outcome.problem
        assert "a.zip answers" not in outcome.problem


def test_copies_that_are_not_there_or_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known(monkeypatch, CONTENT, FileSource("https://localhost/there/a.zip", "a.csv"))
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    problem = fetched(tmp_path / "data", mirror=str(mirror)).problem
    assert f"{mirror}/uci/mine.bin cannot be read: No such file" in problem
    (mirror / "a.zip").write_bytes(b"no archive")
    assert (
        f"{mirror}/a.zip: the zip archive that came cannot be read"
        in fetched(tmp_path / "data", mirror=str(mirror)).problem
    )
    for wrong in (str(tmp_path / "nowhere"), "ftp://localhost/data", ""):
        with pytest.raises(
            InvalidValueError, match="must be an address that begins with http:// or https://, or a fol"
        ):
            fetched(tmp_path / "data", mirror=wrong)
    with pytest.raises(InvalidValueError, match="there is no data set 'hers'"):
        fetch(["mine", "hers"], tmp_path)


# The folder


def test_a_corrupt_file_is_replaced_and_only_by_a_right_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "uci" / "mine.bin"
    path.parent.mkdir()
    path.write_bytes(b"corrupt")
    with serving({"/a.bin": b"also wrong"}) as server:
        known(monkeypatch, CONTENT, FileSource(f"{server.address}/a.bin"))
        assert fetched(tmp_path).what is FetchStatus.failed
        assert path.read_bytes() == b"corrupt"
        server.files["/a.bin"] = CONTENT
        assert fetched(tmp_path).what is FetchStatus.replaced
    assert path.read_bytes() == CONTENT


def refused(*_: object, **__: object) -> bool:
    return False


def test_folders_that_cannot_be_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving({"/a.bin": CONTENT}) as server:
        known(monkeypatch, CONTENT, FileSource(f"{server.address}/a.bin"))
        (tmp_path / "file").touch()
        with pytest.raises(SufficeError, match=r"cannot be made: .*; set SUFFICE_DATA to a folder that can be written"):
            fetched(tmp_path / "file")
        (tmp_path / "data" / "uci" / "mine.bin").mkdir(parents=True)
        with pytest.raises(SufficeError, match=r"mine\.bin is a folder, where a file belongs; move it away"):
            fetched(tmp_path / "data")
        # As root is never refused.
        monkeypatch.setattr(os, "access", refused)
        with pytest.raises(SufficeError, match="cannot be written to: it is read-only"):
            fetched(tmp_path / "other")
        assert server.asked == []


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, *arguments: Any, **options: Any) -> Any:
        if path.suffix == ".part" and arguments and arguments[0] != "rb":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return opened(path, *arguments, **options)

    opened: Callable[..., Any] = Path.open
    with serving({"/a.bin": CONTENT}) as server:
        known(monkeypatch, CONTENT, FileSource(f"{server.address}/a.bin"))
        monkeypatch.setattr(Path, "open", full)
        with pytest.raises(SufficeError, match=r"\.part cannot be written: No space left on device"):
            fetched(tmp_path)


# The real data sets, from archives made of them in the shape of the public ones


def text(path: str) -> bytes:
    return (Path(DATA or "") / path).read_bytes()


def public(name: str) -> dict[str, bytes]:
    """What the public home of a data set hands out, by name."""
    content = text(SETS[name].files[0].path)
    if name == "power_plant":
        rows = content.splitlines()
        tables = [b"\n".join(rows[k:] + rows[:k]) for k in (1, 7, 0, 3, 5)]
        book = workbook(*tables, header=b"AT\tV\tAP\tRH\tPE")
        return {
            "combined+cycle+power+plant.zip": zipped({"CCPP/Readme.txt": b"", "CCPP/Folds5x2_pp.xlsx": book}),
        }
    if name == "protein":
        header = b'"RMSD","F1","F2","F3","F4","F5","F6","F7","F8","F9"\n'
        table = header + content.replace(b" ", b",")
        # The checksum of the public file, as several projects have recorded it.
        public_one = "4277cfcb4e91a181746cbc654f001b57951c9e6a80f4f795fdb5c807e0848f40"
        assert hashlib.sha256(table).hexdigest() == public_one
        return {"physicochemical+properties+of+protein+tertiary+structure.zip": zipped({"CASP.csv": table})}
    if name == "gas_emission":
        years = {f"gt_{file.path[-8:]}": text(file.path) for file in SETS[name].files}
        return {"gas+turbine+co+and+nox+emission+data+set.zip": zipped(years)}
    if name.startswith("grid"):
        named = re.sub(rb",([01])(?=\r)", lambda k: b',"stable"' if k[1] == b"1" else b',"unstable"', content)
        assert named != content
        return {"electrical+grid+stability+simulated+data.zip": zipped({"Data_for_UCI_named.csv": named})}
    if name in ("mnist", "newsgroups"):
        return {file.path.rpartition("/")[2]: text(file.path) for file in SETS[name].files}
    archive, member, checksum = {
        "skin": ("skin+segmentation", "Skin_NonSkin.txt", ""),
        "htru2": ("htru2", "HTRU_2.csv", ""),
        "sms_spam": ("sms+spam+collection", "SMSSpamCollection", SETS["sms_spam"].files[0].sha256),
        # The checksums of the public files, as several projects have recorded them.
        "letter": (
            "letter+recognition",
            "letter-recognition.data",
            "2b89f3602cf768d3c8355267d2f13f2417809e101fc2b5ceee10db19a60de6e2",
        ),
        "adult": ("adult", "adult.data", "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d"),
    }[name]
    if name in ("letter", "adult"):
        lines = content.replace(b'"', b"").splitlines()[1:]
        content = b"\n".join([*lines, b""])
    if name == "adult":
        content = re.sub(rb"\bNA\b", b"?", content).replace(b",", b", ") + b"\n"
    assert checksum in ("", hashlib.sha256(content).hexdigest())
    return {f"{archive}.zip": zipped({"Readme.txt": b"", member: content})}


@pytest.mark.slow
@pytest.mark.skipif(DATA is None, reason="the paper's data sets: SUFFICE_DATA is not set")
@pytest.mark.parametrize("name", SETS)
def test_the_real_data_sets(name: str, tmp_path: Path) -> None:
    if any(status.state is FileState.missing for status in set_status(name)):
        pytest.skip(f"{name}: not in the folder that SUFFICE_DATA names")
    with serving({f"/{path}": content for path, content in public(name).items()}) as server:
        outcomes = list(fetch([name], tmp_path, mirror=server.address))
    assert [outcome.problem for outcome in outcomes] == [""] * len(SETS[name].files)
    assert all(status.state is FileState.right for status in set_status(name, tmp_path))


@pytest.mark.parametrize("recipe", [as_it_is, blanks_for_commas, classes_as_numbers, with_names("a", "b")])
def test_recipes_that_take_anything(recipe: Recipe) -> None:
    for content in (b"", b"\n", CONTENT):
        assert len(list(recipe(content))) == 1
