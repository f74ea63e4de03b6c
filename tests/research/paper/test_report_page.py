"""The report as a page: complete, well formed, self-contained, and safe whatever a name holds."""

import struct
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from suffice.errors import SufficeError
from suffice.report.figures import Drawn
from suffice.report.html_page import ReportTable
from suffice_research.paper.claims import ClaimFinding
from suffice_research.paper.paper_report import PaperReportContents, report, write_report
from tests.reading import Reader

HOSTILE = """<script>alert("x")</script> & 'q' </style></table>"""


def finding(claim: str = "It correlates", protocol: str = "published", verdict: str = "holds") -> ClaimFinding:
    return ClaimFinding(claim, "figure 2", protocol, verdict, f"Words on {claim}, {protocol}.")


def png(width: int, height: int) -> bytes:
    """A white picture."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    lines = zlib.compress((b"\0" + b"\xff" * width) * height)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", lines) + chunk(b"IEND", b"")


def picture(folder: Path, name: str, title: str = "A title") -> Drawn:
    path = folder / "picture.png"
    path.write_bytes(png(30, 20))
    return Drawn(name, title, f"Caption of {name}.", f"What {name} shows.", path, path.with_suffix(".pdf"))


@pytest.fixture
def contents(tmp_path: Path) -> PaperReportContents:
    names = ("published-one", "corrected-two", "slips")
    return PaperReportContents(
        "The experiments",
        findings=[
            finding(),
            finding("It stops", verdict="holds in part"),
            finding("It costs little", verdict="not tested"),
            finding(protocol="corrected", verdict="does not hold"),
            finding("It stops", "corrected", "holds"),
        ],
        tables=[
            ReportTable(name, f"Table of {name}", ("a", "b"), (("x", f"cell of {name}"),), f"Note on {name}.")
            for name in names
        ],
        figures=[picture(tmp_path, "published-first"), picture(tmp_path, "corrected-second")],
        skipped=[("corrected bdnn/mnist", "PyTorch is not installed")],
        provenance=[("Command", "suffice reproduce --seeds 10")],
    )


def test_everything_is_there(contents: PaperReportContents) -> None:
    read = Reader(report(contents))
    for each in contents.findings:
        assert each.claim in read.text
        assert each.words in read.text
    for table in contents.tables:
        assert table.title in read.text
        assert f"cell of {table.name}" in read.text
        assert table.note in read.text
    assert read.alts == ["What published-first shows.", "What corrected-second shows."]
    assert "Caption of corrected-second." in read.text
    assert "corrected bdnn/mnist: PyTorch is not installed" in read.text
    assert "suffice reproduce --seeds 10" in read.text


def test_it_is_read_from_top_to_bottom(contents: PaperReportContents) -> None:
    page = report(contents)
    marks = [
        '<nav aria-labelledby="contents">',
        '<section id="summary"',
        '<section id="published"',
        'id="published-first"',
        "Table of published-one",
        '<section id="corrected"',
        'id="corrected-second"',
        "Table of corrected-two",
        '<section id="further"',
        '<section id="reading"',
        '<section id="skipped"',
        '<section id="provenance"',
    ]
    places = [page.index(mark) for mark in marks]
    assert places == sorted(places)


def test_the_claims_are_counted(contents: PaperReportContents) -> None:
    text = Reader(report(contents)).text
    assert "As published: 1 of 2 claims holds, 1 holds in part, 1 was not tested." in text
    assert "Corrected: 1 of 2 claims holds, 1 does not hold." in text
    several = [finding(str(number), verdict="does not hold") for number in range(3)]
    assert "As published: 0 of 3 claims hold, 3 do not hold." in Reader(report(PaperReportContents("t", several))).text


def test_what_the_findings_are_judged_from_comes_before_them(contents: PaperReportContents) -> None:
    told = [
        f"Judged from {number} of the 12 experiments, run as {how}." for number, how in ((2, "published"), (1, "told"))
    ]
    text = Reader(report(replace(contents, scope=told))).text
    places = [text.index(sentence) for sentence in (*told, "It correlates\n")]
    assert places == sorted(places)
    assert "Judged from" not in Reader(report(contents)).text


def test_what_was_found_under_both_protocols_stands_under_one_claim(contents: PaperReportContents) -> None:
    read = Reader(report(contents))
    assert read.tags.count("article") == 3
    assert read.text.count("It correlates\n") == 1
    for verdict in ("holds", "holds in part", "does not hold", "not tested"):
        assert f" {verdict}</span>" in report(contents)


def test_it_is_well_formed_and_its_links_lead_somewhere(contents: PaperReportContents) -> None:
    read = Reader(report(contents))
    assert len(read.ids) == len(set(read.ids))
    inside = [address[1:] for address in read.addresses if address.startswith("#")]
    assert inside
    assert set(inside) <= set(read.ids)
    assert read.tags.count("h1") == 1
    assert read.tags.count("main") == 1


def test_it_needs_nothing_from_elsewhere(contents: PaperReportContents) -> None:
    page = report(contents)
    read = Reader(page)
    assert all(address.startswith(("#", "data:image/png;base64,")) for address in read.addresses)
    assert "script" not in read.tags
    assert "link" not in read.tags
    for word in ("http://", "https://", "url(", "@import"):
        assert word not in page


def test_pictures_say_their_size_so_that_the_page_does_not_jump(contents: PaperReportContents) -> None:
    assert 'width="30" height="20"' in report(contents)


def test_whatever_a_name_holds_it_stays_text(tmp_path: Path) -> None:
    hostile = PaperReportContents(
        HOSTILE,
        findings=[ClaimFinding(HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE)],
        scope=[HOSTILE],
        tables=[ReportTable("published-t", HOSTILE, (HOSTILE,), ((HOSTILE,),), HOSTILE)],
        figures=[replace(picture(tmp_path, "published-f", HOSTILE), caption=HOSTILE, alt=HOSTILE)],
        skipped=[(HOSTILE, HOSTILE)],
        provenance=[(HOSTILE, HOSTILE)],
    )
    read = Reader(report(hostile))
    assert "script" not in read.tags
    assert read.text.count(HOSTILE) >= 13
    assert read.alts == [HOSTILE]


def test_a_title_that_asks_is_not_closed_by_a_full_stop(tmp_path: Path) -> None:
    page = report(PaperReportContents("t", figures=[picture(tmp_path, "published-f", "Is it so?")]))
    assert "<strong>Is it so?</strong>" in page
    assert "<strong>A title.</strong>" in report(PaperReportContents("t", figures=[picture(tmp_path, "published-f")]))


def test_with_nothing_to_say_it_says_so() -> None:
    read = Reader(report(PaperReportContents("The experiments")))
    assert "No claim was judged" in read.text
    assert {"summary", "reading"} <= set(read.ids)
    assert not {"published", "corrected", "further", "skipped", "provenance"} & set(read.ids)


def test_it_is_written_whole_and_always_the_same(contents: PaperReportContents, tmp_path: Path) -> None:
    path = tmp_path / "out" / "report.html"
    path.parent.mkdir()
    write_report(path, contents)
    first = path.read_bytes()
    write_report(path, contents)
    assert path.read_bytes() == first == report(contents).encode()
    assert list(path.parent.iterdir()) == [path]


def test_a_name_that_is_no_text_is_written_too(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    write_report(path, PaperReportContents("t", provenance=[("Command", "suffice \udce9")]))
    assert rb"suffice \udce9" in path.read_bytes()


def test_what_cannot_be_read_or_written_is_said(contents: PaperReportContents, tmp_path: Path) -> None:
    with pytest.raises(SufficeError, match="cannot be written"):
        write_report(tmp_path / "missing" / "report.html", contents)
    contents.figures[0].png.unlink()
    path = tmp_path / "report.html"
    with pytest.raises(SufficeError, match=r"picture\.png cannot be read"):
        write_report(path, contents)
    assert not path.exists()
