"""Files that somebody sends to harm: what is no image, too many pixels, columns and rows, HTML, and formulas."""

import binascii
import csv
import io
import json
import struct
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from suffice.project.create import create_project
from suffice.project.final_files import all_rows_file, final_file
from suffice.project.project_folder import ProjectFolder
from suffice.project.uploaded_files import UploadStore
from suffice.web.access import granted_access
from suffice.web.folder_server import folder_app
from tests.project.test_uploaded_files import (
    IMAGES,
    LIMITS,
    archive,
    image,
    parquet_of,
    refusal,
    text_of,
    workbook,
)
from tests.web.test_folder import create, upload
from tests.web.test_page_projects import FolderServer, ListPage, server
from tests.web.web_projects import make_project, script_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser

__all__ = ["server"]

HTML = "<img src=x onerror=\"document.title='hacked'\"><b>bold</b>"
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


@pytest.fixture
def store(tmp_path: Path) -> UploadStore:
    return UploadStore(tmp_path, LIMITS)


def png(width: int, height: int) -> bytes:
    """A small file of a large image."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        checksum = binascii.crc32(kind + content)
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)

    packer, rows = zlib.compressobj(9), b""
    for _ in range(height):
        rows += packer.compress(bytes(1 + width // 8))
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    parts = [chunk(b"IHDR", header), chunk(b"IDAT", rows + packer.flush()), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


NO_IMAGES = {
    "svg.png": SVG,
    "html.jpg": b"<!DOCTYPE html><script>alert(1)</script>",
    "script.gif": b"GIF89a/*<svg/onload=alert(1)>*/=1;alert(1)//",
    "signature.png": b"\x89PNG\r\n\x1a\n" + SVG,
    "cut.png": image()[:40],
    "postscript.bmp": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n",
    "tiff.png": b"II*\x00\x08\x00\x00\x00\x00\x00\x00\x00",
    "empty.webp": b"",
}


@pytest.mark.parametrize("name", NO_IMAGES)
def test_files_that_are_named_like_images_are_refused(store: UploadStore, name: str) -> None:
    said = refusal(store, "a.zip", archive({"a.png": image(), name: NO_IMAGES[name]}))
    assert f"1 file of 2 is not an image that can be read ({name})" in said


@pytest.mark.parametrize("side", [7_200, 20_000])
def test_a_small_file_of_an_image_with_too_many_pixels_is_refused(store: UploadStore, side: int) -> None:
    content = png(side, side)
    assert len(content) < 100_000
    said = refusal(store, "a.zip", archive({"a.png": image(), "large.png": content}))
    assert "1 file of 2 is not an image that can be read (large.png)" in said


def test_a_scalable_image_is_left_out_and_never_sent(tmp_path: Path) -> None:
    with folder_app(ProjectFolder(tmp_path), granted_access("127.0.0.1"), "me") as app:
        script = script_of(app)  # type: ignore[arg-type]
        sent = upload(script, archive({**IMAGES, "pets/drawing.svg": SVG, "pets/page.html": SVG}), "pets.zip").json()
        assert "drawing.svg" in json.dumps(sent)
        assert len(sent["images"]) == len(IMAGES)
        assert create(script, sent, classes=["cat", "dog"]).status_code == 200
        for item in range(len(IMAGES)):
            answer = script.get(f"/p/pets.suffice/api/items/{item}/image")
            assert (answer.headers["content-type"], answer.headers["x-content-type-options"]) == (
                "image/png",
                "nosniff",
            )
            assert "default-src" in answer.headers["content-security-policy"]
    kept = [path.name for path in (tmp_path / "pets.suffice").rglob("*")]
    assert not [name for name in kept if name.endswith((".svg", ".html"))]


WIDE = tuple(f"c{k}" for k in range(7))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", lambda: text_of(WIDE, [range(7)] * 3)),
        ("a.tsv", lambda: text_of(WIDE, [range(7)] * 3, "\t")),
        ("a.jsonl", lambda: b"\n".join(json.dumps(dict.fromkeys(WIDE, 1)).encode() for _ in range(3))),
        # Each row has a column of its own.
        ("a.jsonl", lambda: b"\n".join(json.dumps({"x": 1, f"c{k}": 1}).encode() for k in range(20))),
        ("a.parquet", lambda: parquet_of({name: [1, 2, 3] for name in WIDE})),
        ("a.xlsx", lambda: workbook(WIDE, [tuple(range(7))] * 3)),
        ("a.csv", lambda: text_of(WIDE[:2], [(1, 2)] * 60)),
        ("a.tsv", lambda: text_of(WIDE[:2], [(1, 2)] * 60, "\t")),
        ("a.jsonl", lambda: b"\n".join(json.dumps({"x": k, "y": 1}).encode() for k in range(60))),
        ("a.parquet", lambda: parquet_of({"x": list(range(60)), "y": [1] * 60})),
        ("a.xlsx", lambda: workbook(WIDE[:2], [(1, 2)] * 60)),
        ("a.zip", lambda: archive({"a.csv": text_of(WIDE, [range(7)] * 3)})),
        ("a.zip", lambda: archive({"a.jsonl": b'{"x": 1, "y": 2}\n' * 60})),
    ],
)
def test_tables_with_too_many_columns_or_rows_are_refused(store: UploadStore, name: str, content: Any) -> None:
    assert "at most 50 rows and 6 columns" in refusal(store, name, content())


def test_a_workbook_in_an_archive_cannot_be_a_bomb(store: UploadStore) -> None:
    bomb = archive({"[Content_Types].xml": b"<x/>", "xl/worksheets/sheet1.xml": b"0" * 17_000_000})
    assert "unpacks to" in refusal(store, "a.zip", archive({"a.xlsx": bomb}, zipfile.ZIP_STORED))


SIGNS = ("=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "\uff1d1", '=HYPERLINK("http://x")')


def test_nothing_is_a_formula_in_any_exported_workbook(tmp_path: Path) -> None:
    texts = [*SIGNS, *(f"plain {k}" for k in range(32))]
    data = tmp_path / "mails.csv"
    with data.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["=id", "@text", "+n"], *([f"={k}", text, k] for k, text in enumerate(texts))])
    options: dict[str, Any] = {"classes": ["=no", "@yes"], "target": "-kind", "at_most": 0.2, "of": "all", "seed": 1}
    with create_project(tmp_path / "p.suffice", data, id="=id", **options) as project:
        for item in range(35):
            project.label(item, "=no" if item % 2 else "@yes", person="+Ann")
        files = [final_file(project, project.final_labels(), "xlsx")]
        files.append(all_rows_file(project, None, "xlsx"))
        for exported in files:
            with zipfile.ZipFile(io.BytesIO(exported.content)) as book:
                sheets = b"".join(book.read(name) for name in book.namelist() if "worksheets" in name)
                assert not [name for name in book.namelist() if "external" in name.lower() or "vba" in name.lower()]
            assert b"<f" not in sheets
            for sign in ("=0", "=1+1", "@SUM(A1)", "=no", "@yes", "+Ann", "=id", "@text", "+n"):
                assert f'preserve">{sign}<'.encode() in sheets, sign
            # A person who edits such a cell does not make it a formula either.
            assert sheets.count(b's="2" t="inlineStr"') >= len(SIGNS)


def test_html_in_the_list_of_projects_and_in_a_preview_is_shown_as_text(
    browser: "Browser", server: FolderServer, tmp_path: Path
) -> None:
    folder = tmp_path / "labels"
    make_project(folder / "a & b.suffice", name=HTML).close()
    make_project(folder / "<b>bold<b>.suffice").close()
    watched = ListPage(browser, server, "")
    page = watched.page
    page.wait_for_selector("tr:has-text('onerror'), li:has-text('onerror'), a:has-text('onerror')")
    assert page.locator("img[src=x], main b:text('bold')").count() == 0
    rows = [(f"id {k}", f"{HTML} number {k} with some more words", "x" if k % 2 else "y") for k in range(12)]
    table = tmp_path / "odd.csv"
    with table.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["id", HTML, "<i>label</i>"], *rows])
    page.set_input_files("#file", str(table))
    page.wait_for_selector("#new:visible")
    assert HTML in page.inner_text(".scroll")
    assert page.locator("img[src=x], .scroll b, .scroll i").count() == 0
    assert "hacked" not in page.title()
    watched.close()
