"""Files that somebody sends: what is refused, what is guessed, and the project from them."""

import gzip
import io
import json
import os
import struct
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from suffice.errors import InvalidValueError
from suffice.project.archives import ArchiveLimits
from suffice.project.create import open_project
from suffice.project.labelling_project import ConflictError
from suffice.project.read_items import ReadingOptions, read_items
from suffice.project.storage import StorageFullError
from suffice.project.uploaded_files import (
    UPLOADS,
    NoUploadError,
    ProjectWish,
    Upload,
    UploadLimits,
    UploadStore,
    UploadTooLargeError,
    checked_name,
    suggested_name,
)

LIMITS = UploadLimits(
    size=200_000, table=400_000, rows=50, columns=6, lines=500, archive=ArchiveLimits(entries=20, unpacked=300_000)
)
NAMES = ("id", "body", "age", "label")
ROWS = [
    (k, f"text number {k} of {'many' if k % 3 else 'few'} words", k % 7, "" if k > 6 else "spam" if k % 2 else "ham")
    for k in range(12)
]


def text_of(names: Sequence[str], rows: Sequence[Sequence[object]], separator: str = ",") -> bytes:
    return "\n".join(separator.join(map(str, row)) for row in [names, *rows]).encode()


def workbook(names: Sequence[str], rows: Sequence[Sequence[object]]) -> bytes:
    openpyxl = pytest.importorskip("openpyxl")
    book, file = openpyxl.Workbook(), io.BytesIO()
    for row in [names, *rows]:
        book.active.append([None if cell == "" else cell for cell in row])
    book.save(file)
    return file.getvalue()


def parquet_of(columns: Mapping[str, Any], **options: Any) -> bytes:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    file = io.BytesIO()
    parquet.write_table(arrow.table(dict(columns)), file, **options)
    return file.getvalue()


def image(red: int = 10, size: tuple[int, int] = (8, 8)) -> bytes:
    pillow = pytest.importorskip("PIL.Image")
    file = io.BytesIO()
    pillow.new("RGB", size, (red, 200 - red, 30)).save(file, "PNG")
    return file.getvalue()


def archive(files: Mapping[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as made:
        for name, content in files.items():
            made.writestr(name, content)
    return file.getvalue()


IMAGES = {f"pets/{k}.png": image(k * 9) for k in range(6)}
SENT: dict[str, Callable[[], bytes]] = {
    "mails.csv": lambda: text_of(NAMES, ROWS),
    "mails.csv.gz": lambda: gzip.compress(text_of(NAMES, ROWS)),
    "mails.tsv": lambda: text_of(NAMES, ROWS, "\t"),
    "mails.xlsx": lambda: workbook(NAMES, ROWS),
    "mails.jsonl": lambda: "\n".join(json.dumps(dict(zip(NAMES, row, strict=True))) for row in ROWS).encode(),
    "mails.parquet": lambda: parquet_of(dict(zip(NAMES, map(list, zip(*ROWS, strict=True)), strict=True))),
    "mails.zip": lambda: archive({"data/mails.csv": text_of(NAMES, ROWS)}),
}


@pytest.fixture
def store(tmp_path: Path) -> UploadStore:
    return UploadStore(tmp_path, LIMITS)


def sent(store: UploadStore, name: str, content: bytes) -> Upload:
    upload = store.start(name, None)
    with store.writing(upload) as write:
        for start in range(0, len(content), 50_000):
            write(content[start : start + 50_000])
    store.read(upload)
    return upload


def refusal(store: UploadStore, name: str, content: bytes) -> str:
    """The message with which a file is refused; nothing of it stays."""
    with pytest.raises(InvalidValueError) as caught:
        sent(store, name, content)
    folder = store._folder.parent
    assert [*folder.iterdir()] == []
    message = str(caught.value)
    assert "--" not in message
    assert str(folder) not in message
    return message


@pytest.mark.parametrize("name", SENT)
def test_every_format_is_guessed_and_becomes_the_same_project(store: UploadStore, tmp_path: Path, name: str) -> None:
    upload = sent(store, name, SENT[name]())
    content = upload.content
    assert content is not None
    assert [(guess.name, guess.role) for guess in content.columns] == [
        ("id", "id"),
        ("body", "text"),
        ("age", "feature"),
        ("label", "label"),
    ]
    assert content.columns[3].labels.classes == ("ham", "spam")
    assert (content.size, len(content.rows), content.rows[1][1]) == (12, 5, "text number 1 of many words")
    folder = store.create(upload, ProjectWish("my mails", person="Ann"))
    assert folder == "my mails.suffice"
    # The same roles as the command guesses and is told.
    with open_project(tmp_path / folder) as project:
        settings = project.settings
        assert (settings.name, settings.main, settings.shown) == ("my mails", "body", "text")
        assert (settings.columns, settings.classes) == (("body", "age"), ("ham", "spam"))
        assert project.item(3).id == "3"
        assert [project.state().label_of(k) for k in (0, 1, 7)] == ["ham", "spam", None]
    assert not (tmp_path / UPLOADS).exists()
    assert store.create(upload, ProjectWish("another")) == folder


def test_an_archive_of_images_is_kept_beside_the_project(store: UploadStore, tmp_path: Path) -> None:
    windows = {path.replace("/", "\\"): content for path, content in IMAGES.items()}
    content = sent(store, "pets.zip", archive(windows)).content
    assert content is not None
    assert content.images[0] == "pets/0.png"
    store.clear()
    added = {"__MACOSX/pets/._0.png": b"x", "pets/.DS_Store": b"x", "pets/notes.pdf": b"x"}
    added |= {"readme.txt": b"x", "a.json": b"{"}
    upload = sent(store, "pets.zip", archive(IMAGES | added))
    assert upload.content is not None
    assert (upload.content.kind, upload.content.size) == ("images", 6)
    assert upload.content.notes == ("3 files were left out: a.json, pets/notes.pdf, readme.txt",)
    assert not (upload.unpacked / "readme.txt").exists()
    with pytest.raises(InvalidValueError, match="write the classes, or choose numbers"):
        store.create(upload, ProjectWish("pets"))
    (tmp_path / "taken").mkdir()
    with pytest.raises(ConflictError, match="there is a folder with the name 'taken'"):
        store.create(upload, ProjectWish("taken", classes=("cat", "dog")))
    assert not (tmp_path / "pets").exists()
    assert store.create(upload, ProjectWish("pets", classes=("cat", "dog"))) == "pets.suffice"
    with open_project(tmp_path / "pets.suffice") as project:
        assert project.settings.root == str((tmp_path / "pets").resolve())
        assert project.item(0).image == "pets/0.png"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pets", "pets.suffice", "taken"]


def test_a_table_with_its_images(store: UploadStore, tmp_path: Path) -> None:
    rows = [(f"pets/{k}.png", k, "cat" if k < 3 else "dog") for k in range(6)]
    table = text_of(("photo", "weight", "class"), rows)
    upload = sent(store, "pets.zip", archive(IMAGES | {"pets.csv": table}))
    assert upload.content is not None
    assert [guess.role for guess in upload.content.columns] == ["image", "feature", "label"]
    store.create(upload, ProjectWish("pets"))
    with open_project(tmp_path / "pets.suffice") as project:
        assert (project.settings.shown, project.settings.classes) == ("image", ("cat", "dog"))
    alone = sent(store, "pets.csv", table)
    assert alone.content is not None
    assert alone.content.columns[0].role == "feature"
    assert "upload a ZIP archive with this table and the images" in alone.content.columns[0].reason


def test_files_beside_a_table_and_folders_named_by_class_are_told(store: UploadStore) -> None:
    table = text_of(("photo", "class"), [(path, "cat" if "3" in path else "dog") for path in IMAGES])
    content = sent(store, "pets.zip", archive(IMAGES | {"pets.csv": table, "readme.txt": b"x"})).content
    assert content is not None
    assert (content.kind, content.notes) == ("table", ("1 file was left out: readme.txt",))
    assert [guess.role for guess in content.columns] == ["image", "label"]
    # A text is a table if there is nothing else.
    alone = sent(store, "mails.zip", archive({"mails.txt": text_of(NAMES, ROWS)})).content
    assert alone is not None
    assert (alone.kind, alone.size) == ("table", 12)
    by_class = {f"scans/{k % 3}/{k}.png": image(k * 9) for k in range(6)}
    content = sent(store, "a.zip", archive(by_class)).content
    assert content is not None
    assert content.notes == (
        "the images are in 3 folders (0, 1, 2); if these names are classes: they are not used as labels",
    )
    content = sent(store, "a.zip", archive(by_class | {"a.png": image()})).content
    assert content is not None
    assert content.notes == ()


@pytest.mark.parametrize("below", ["", "some data/"])
def test_an_image_that_is_missing_in_an_archive(store: UploadStore, tmp_path: Path, below: str) -> None:
    table = text_of(("photo", "class"), [("pets/1.png", "cat"), ("pets/9.png", "dog"), ("pets/2.png", "dog")])
    files = {f"{below}{path}": content for path, content in IMAGES.items()}
    upload = sent(store, "pets.zip", archive(files | {f"{below}pets.csv": table}))
    assert upload.content is not None
    said = "line 3: there is no image 'pets/9.png' in the archive; correct the path"
    assert upload.content.notes == (said,)
    with pytest.raises(InvalidValueError) as caught:
        store.create(upload, ProjectWish("missing"))
    assert str(caught.value).endswith(said)
    assert str(tmp_path) not in str(caught.value)
    assert not (tmp_path / "missing").exists()


def test_every_guess_is_explained(store: UploadStore) -> None:
    names = ("code", "first", "second", "same", "none", "target")
    rows = [(f"c{k}", f"a b c {k}", f"d e f g {k}", 1, "", k * 1.5) for k in range(30)]
    content = sent(store, "a.csv", text_of(names, rows)).content
    assert content is not None
    assert [(guess.role, guess.reason) for guess in content.columns] == [
        ("feature", "'code' is different in nearly each row; it is shown, and the model does not use it."),
        ("feature", "'first' holds texts too; those of 'second' are longer."),
        ("text", "'second' has the longest texts (5 words on average); 'first' is a text too."),
        ("ignored", "'same' is the same in each row."),
        ("ignored", "'none' is empty."),
        ("label", "'target' has the name of a label, and holds 30 labels that are numbers."),
    ]
    assert content.columns[0].labels.problem != ""
    assert (content.columns[5].labels.classes, content.columns[5].labels.count) == ((), 30)


def test_several_texts_and_a_column_of_names_of_images_are_explained(store: UploadStore) -> None:
    names = ("a", "b", "c", "d", "photo", "kind")
    rows = [
        (*(f"some words of {name} {k}" for name in "abc"), f"the words of the longest {k}", f"{k}.png", "xy"[k % 2])
        for k in range(30)
    ]
    content = sent(store, "t.csv", text_of(names, rows)).content
    assert content is not None
    reasons = {guess.name: guess.reason for guess in content.columns}
    assert reasons["photo"] == "'photo' holds names of images; upload a ZIP archive with this table and the images."
    assert reasons["d"] == "'d' has the longest texts (6 words on average); 'a', 'b' and 'c' are texts too."


def test_the_longest_of_several_texts_and_a_column_named_like_an_id(store: UploadStore, tmp_path: Path) -> None:
    names = ("Mail no", "from", "subject", "body", "label")
    rows = [
        (100 - k, f"the person {k} abroad", f"about thing {k}", f"{'word ' * 9}{k}", "spam" if k % 2 else "ham")
        for k in range(12)
    ]
    upload = sent(store, "a.csv", text_of(names, rows))
    assert upload.content is not None
    guesses = {guess.name: guess for guess in upload.content.columns}
    assert [guesses[name].role for name in names] == ["id", "feature", "feature", "text", "label"]
    assert guesses["body"].reason == (
        "'body' has the longest texts (10 words on average); 'from' and 'subject' are texts too."
    )
    # The same values with decimals, or twice the same one, name nothing.
    for cells in ([k + 0.5 for k in range(12)], [k // 2 for k in range(12)]):
        other = [(cell, *row[1:]) for cell, row in zip(cells, rows, strict=True)]
        content = sent(store, "a.csv", text_of(names, other)).content
        assert content is not None
        assert content.columns[0].role == "feature"
    store.create(upload, ProjectWish("mails"))
    with open_project(tmp_path / "mails.suffice") as project:
        assert (project.settings.main, project.item(0).id) == ("body", "100")
    # What is only named like an id can be information.
    store.create(sent(store, "a.csv", text_of(names, rows)), ProjectWish("other", roles={"Mail no": "feature"}))
    with open_project(tmp_path / "other.suffice") as project:
        assert (project.settings.columns[0], project.item(0).id) == ("Mail no", "1")
    # The command chooses none, and says how to choose.
    path = tmp_path / "mails.csv"
    path.write_bytes(text_of(names, rows))
    notes = read_items(path, ReadingOptions(target="label")).notes
    assert "3 columns are texts ('from', 'subject', 'body'); name the one to read with --text" in notes
    notes = read_items(path, ReadingOptions(target="label", text="body")).notes
    assert not any("columns are texts" in note for note in notes)


def test_what_a_person_changes_counts(store: UploadStore, tmp_path: Path) -> None:
    upload = sent(store, "mails.csv", text_of(NAMES, ROWS))
    create = store.create
    for wish, words in [
        (ProjectWish("m", roles={"nix": "text"}), "the file has no column 'nix'"),
        (ProjectWish("m", roles={"age": "text"}), "'body' and 'age' are both chosen as the text"),
        (ProjectWish("m", roles={"id": "feature"}), "'id' is different in each row"),
        (ProjectWish("m", classes=("a", "b"), numbers=True), "labels are classes or numbers"),
        (ProjectWish("m", classes=("ham", "eggs")), "none of the classes 'ham', 'eggs'; .* add it to the classes"),
        (ProjectWish("m", roles={"label": "ignored"}), "write the classes, or choose numbers"),
        (ProjectWish("m", roles={"body": "label", "label": "ignored"}), "looks like an identifier or free text"),
        (ProjectWish("../m"), "the name of the project must have"),
    ]:
        with pytest.raises(InvalidValueError, match=words) as caught:
            create(upload, wish)
        assert "--" not in str(caught.value)
        assert str(tmp_path) not in str(caught.value)
    roles: Any = {"label": "ignored", "age": "label", "body": "feature"}
    create(upload, ProjectWish("m", roles=roles, numbers=True))
    with open_project(tmp_path / "m.suffice") as project:
        assert (project.settings.task, project.settings.target, project.state().n_labelled) == ("regression", "age", 12)
        assert project.settings.columns == ("body",)
    with pytest.raises(ConflictError, match="there is a project with the name 'm' already"):
        create(sent(store, "mails.csv", text_of(NAMES, ROWS)), ProjectWish("m"))


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.docx", b"x", "'a.docx' cannot be read; upload CSV"),
        ("a.csv", b"", "the file 'a.csv' is empty"),
        ("a.csv", b"1,2\n3,4\n", "the first line holds numbers only"),
        ("a.csv", b"a,b\n1,2\n", "a.csv holds 1 item; at least 2 are required"),
        ("a.csv", b"a\0b,c\n1,2\n", "NUL bytes"),
        ("a.csv", text_of(("a", "b"), [(1, 2)] * 51), "at most 50 rows and 6 columns"),
        ("a.csv", b"a,b,c,d,e,f,g\n" * 9, "at most 50 rows and 6 columns"),
        ("a.csv", b'a,b\n"' + b"\n" * 501, "at most 50 rows"),
        ("a.csv", gzip.compress(b"a,b\n" + b"1,2\n" * 150_000, mtime=0), "the table unpacks to more than 0 MiB"),
        ("a.csv.gz", gzip.compress(b"a,b\n1,2\n", mtime=0)[:-9], "cannot be unpacked"),
        ("a.jsonl", b'{"a": 1\n', "a.jsonl"),
        ("a.parquet", b"PAR1 nothing", "not a Parquet file that can be read"),
        ("a.xlsx", b"a,b\n1,2\n", "is not an Excel workbook"),
        ("a.xlsx", archive({"xl/a.xml": b"0" * 17_000_000}), "the workbook unpacks to"),
        ("a.xlsx", archive({"a.txt": b"x"}), "is an archive but not an Excel workbook"),
        ("a.zip", b"PK\x03\x04 nothing", "'a.zip' is not a ZIP archive that can be read"),
        ("a.zip", archive({"../a.png": image()}), "the path '../a.png', which is outside of a folder"),
        ("a.zip", archive({"/etc/a.png": image()}), "the path '/etc/a.png', which is outside of a folder"),
        ("a.zip", archive({"C:\\a.png": image()}), "which is outside of a folder"),
        ("a.zip", archive({"a\\..\\..\\b.png": image()}), "which is outside of a folder"),
        ("a.zip", archive({f"{k}.png": b"x" for k in range(21)}), "more than 20 files"),
        ("a.zip", archive({f"{k}.png": bytes(100_000) for k in range(4)}), "unpacks to more than 0 MiB"),
        ("a.zip", archive({"a.png": image(), "b.png": b"<svg>"}), "1 file of 2 is not an image .* (b.png)"),
        ("a.zip", archive({"a.png": image()}), "holds 1 image and no table"),
        ("a.zip", archive({"a.csv": b"a,b", "b.csv": b"a,b"}), "holds 2 tables (a.csv, b.csv)"),
        ("a.zip", archive({"a.zip": archive(IMAGES)}), "holds 0 images and no table"),
        ("a.zip", archive({"a/b.png": image(), "a\\b.png": image()}), "has two files of the name 'b.png'"),
        ("a.zip", archive({"a.png": image(), "A.PNG/../a.png": b""}), "which is outside of a folder"),
    ],
)
def test_what_cannot_be_used_is_refused_and_removed(store: UploadStore, name: str, content: bytes, words: str) -> None:
    for word in words.split(" .* "):
        assert word in refusal(store, name, content)


def with_entry(name: str, mode: int = 0, flags: int = 0, stated: int | None = None) -> bytes:
    """An archive with one image whose list of contents says something else."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        entry = zipfile.ZipInfo(name)
        entry.external_attr = mode << 16
        made.writestr(entry, image())
    content = bytearray(file.getvalue())
    at = content.index(b"PK\x01\x02")
    struct.pack_into("<H", content, at + 8, flags)
    if stated is not None:
        struct.pack_into("<I", content, at + 24, stated)
    return bytes(content)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (with_entry("a.png", mode=0o120777), "has the link 'a.png'"),
        (with_entry("a.png", flags=1), "is protected by a password"),
        (with_entry("a.png", stated=5), "Bad CRC-32"),
        (with_entry("a.png", stated=4 * 10**9), "unpacks to more than 0 MiB"),
        (with_entry(f"{'x' * 300}.png"), "cannot be written"),
    ],
)
def test_archives_that_lie(store: UploadStore, content: bytes, words: str) -> None:
    assert words in refusal(store, "a.zip", content)


def test_an_archive_with_a_high_ratio_is_refused(tmp_path: Path) -> None:
    store = UploadStore(tmp_path, UploadLimits(archive=ArchiveLimits(ratio=100)))
    content = archive({"a.bmp": bytes(40_000_000)})
    assert len(content) < 50_000
    assert "times its size, more than 100" in refusal(store, "a.zip", content)


def test_equal_texts_of_a_parquet_file_count_each_time(tmp_path: Path) -> None:
    # A megabyte is stored once, and is in memory for each row.
    content = parquet_of({"text": ["x" * 2**20] * 20, "n": np.arange(20)})
    assert len(content) < 200_000
    small = UploadStore(tmp_path, UploadLimits(table=2**24))
    assert "unpacks to more than 16 MiB" in refusal(small, "a.parquet", content)
    rows = parquet_of({"n": np.zeros(600_000)}, compression="zstd")
    assert "at most 500,000 rows" in refusal(UploadStore(tmp_path), "a.parquet", rows)


def test_a_file_that_is_too_large_is_refused_while_it_is_sent(store: UploadStore, tmp_path: Path) -> None:
    with pytest.raises(UploadTooLargeError, match="a file must have at most"):
        store.start("a.csv", 200_001)
    upload = store.start("a.csv", None)

    def send() -> None:
        with store.writing(upload) as write:
            write(b"x" * 150_000)
            assert [path.stat().st_mode & 0o777 for path in upload.folder.iterdir()] == [0o600]
            write(b"x" * 50_001)

    with pytest.raises(UploadTooLargeError):
        send()
    assert [*tmp_path.iterdir()] == []
    with pytest.raises(NoUploadError):
        store.get(upload.id)


def test_a_full_disk_is_said(store: UploadStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 1000})())
    with pytest.raises(StorageFullError, match="disk of the folder of projects is full"):
        store.start("a.csv", 10)


def test_uploads_that_nobody_uses_are_removed(
    store: UploadStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = [store.start("a.csv", None) for _ in range(8)]
    for upload in slow:
        upload.lock.acquire()
    with pytest.raises(ConflictError, match="8 files are being sent; try again"):
        store.start("a.csv", None)
    for upload in slow:
        upload.lock.release()
        store.discard(upload.id)
    uploads = [sent(store, "a.csv", text_of(NAMES, ROWS)) for _ in range(9)]
    assert not uploads[0].folder.exists()
    assert all(upload.folder.exists() for upload in uploads[1:])
    # That of a server that was killed.
    left = tmp_path / UPLOADS / "left"
    left.mkdir()
    os.utime(left, (0.0, time.time() - 90_000.0))
    now = time.monotonic()
    monkeypatch.setattr("time.monotonic", lambda: now + 3601.0)
    kept = sent(store, "a.csv", text_of(NAMES, ROWS))
    assert [path.name for path in (tmp_path / UPLOADS).iterdir()] == [kept.folder.name]
    store.discard(kept.id)
    assert [*tmp_path.iterdir()] == []


def test_folders_in_the_name_of_a_file_are_left_out(store: UploadStore, tmp_path: Path) -> None:
    for name in ("../../a.csv", "/../../a.csv", "a.csv/../../a.csv", "..\\..\\a.csv", "C:\\a.csv"):
        upload = sent(store, name, text_of(NAMES, ROWS))
        assert (upload.name, upload.file.name) == ("a.csv", "upload.csv")
        assert upload.file.resolve().parent.parent == (tmp_path / UPLOADS).resolve()
    for name in ("a.csv\x00.zip.csv", "a\n.csv"):
        with pytest.raises(InvalidValueError, match="without control characters"):
            store.start(name, None)


@pytest.mark.parametrize("name", ["", " ", ".a", "a.", "a/b", "a\\b", "con", "LPT1.x", "a\0", "x" * 101, "é" * 60])
def test_names_that_are_no_folder(name: str) -> None:
    with pytest.raises(InvalidValueError, match="the name of the project must have"):
        checked_name(name)


def test_every_suggested_name_can_be_used() -> None:
    for name in ("../../x.csv", "con.csv", "\ud800.csv", f"{'é' * 300}.zip", "a<b>.csv", ". .csv", "a.csv.gz"):
        assert checked_name(suggested_name(name)) == suggested_name(name)
