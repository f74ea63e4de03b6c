"""The page in a real browser, with a real server: numbers, many classes, the advice to stop, and the other views."""

import csv
import io
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from suffice.project.events import EventKind
from tests.thoroughness import some
from tests.web.browsing import Server, Watched, call, served, write_rows

if TYPE_CHECKING:
    from playwright.sync_api import Browser

LONG = "a_name_without_any_place_to_break_it_that_goes_on_and_on_and_on_for_longer_than_a_telephone_is_wide"


@contextmanager
def serving_sizes(folder: Path) -> Iterator[Server]:
    """Rows that are easily told apart, and a rule that is soon content; two people label each."""
    rows = [(f"row {k}", (k * 37) % 100 - 50, LONG if k % 5 else "") for k in range(150)]
    data = write_rows(folder / "sizes.csv", ("id", "size", LONG), rows)
    options = ("--id", "id", "--classes", "small,large", "--target", "kind", "--threshold", "0.9", "--overlap", "1")
    with served(data, *options, "--ignore", LONG) as server:
        yield server


@pytest.fixture(scope="module")
def sizes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server for several tests, which run in any order."""
    with serving_sizes(tmp_path_factory.mktemp("sizes")) as server:
        yield server


@pytest.fixture
def new_sizes(tmp_path: Path) -> Iterator[Server]:
    """A server without labels."""
    with serving_sizes(tmp_path) as server:
        yield server


def size_of(item: int) -> int:
    return (item * 37) % 100 - 50


def post(server: Server, path: str, **body: Any) -> dict[str, Any]:
    """Do as a script does."""
    answer = call("POST", f"{server.url}api/{path}", json=body, headers=server.headers)
    answer.raise_for_status()
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.slow
def test_stop_is_advised_and_what_was_typed_is_exported(browser: "Browser", new_sizes: Server) -> None:
    typed = {item: "small" if size_of(item) < 0 else "large" for item in range(0, 60, 5)}
    for item, kind in typed.items():
        post(new_sizes, "labels", person="Ann", item=item, label=kind, request=f"first {item}")
    watched = Watched(browser, new_sizes, "Ann", accept_downloads=True)
    page = watched.page
    while not page.query_selector(".banner.good"):
        assert len(typed) < 60, "the rule is not content yet"
        kind = "small" if size_of(watched.item()) < 0 else "large"
        typed[watched.press("1" if kind == "small" else "2")] = kind
        watched.settle()
        watched.until(f"document.querySelector('#counter').textContent.startsWith('{len(typed)} of')")
        watched.until("document.querySelector('.learning')?.textContent === ''")
    assert page.inner_text(".banner h2") == "You can stop now"
    # Never without the error.
    assert page.inner_text(".banner .figure b") in page.inner_text(".banner details p >> nth=0")
    assert page.title().startswith("You can stop now")
    assert len(new_sizes.events(EventKind.advised)) >= 1

    page.reload()
    page.click(".banner >> text=Export")

    with page.expect_download() as download:
        page.click("a[aria-label='Labels as CSV']")
    assert download.value.suggested_filename == "labels.csv"
    rows = list(csv.DictReader(io.StringIO(download.value.path().read_text(encoding="utf-8-sig"))))
    assert {row["id"]: row["kind"] for row in rows} == {f"row {item}": kind for item, kind in typed.items()}
    assert {row["labelled_by"] for row in rows} == {"Ann"}
    with page.expect_download() as download:
        page.click("a[aria-label='Predictions as JSON lines']")
    assert len(download.value.path().read_text().splitlines()) == 150 - len(typed)
    with page.expect_download() as download:
        page.click("text=Save it")
    assert download.value.suggested_filename == "sizes.csv report.html"
    with page.expect_popup() as popup:
        page.click("text=See the report >> visible=true")
    assert "sizes.csv" in popup.value.inner_text("body")
    watched.close()


def with_labels(server: Server, least: int) -> None:
    """Label items until there are so many: other tests of the same server may not have run in this process."""
    done = {item for item, _ in server.labels()}
    for item in [each for each in range(150) if each not in done][: max(0, least - len(done))]:
        label = "small" if size_of(item) < 0 else "large"
        post(server, "labels", person="script", item=item, label=label, request=f"some {item}")


@pytest.mark.slow
def test_labels_are_corrected_in_the_table(browser: "Browser", sizes: Server) -> None:
    with_labels(sizes, 12)
    done = list(dict.fromkeys(item for item, _ in sizes.labels()))
    other = "large" if sizes.labels()[0][1] == "small" else "small"
    free = [item for item in range(150) if item not in done]
    for item in free[: 55 - len(done)]:
        post(sizes, "labels", person="script", item=item, label="small", request=f"fill {item}")
    post(sizes, "labels", person="Bob", item=done[0], label=other, request="another opinion")
    watched = Watched(browser, sizes, "Cem")
    page = watched.page
    watched.go("labels")
    page.wait_for_selector(".pager:has-text('1 to 50 of')")
    page.click("text=Older")
    page.wait_for_selector(".pager:has-text('51 to')")

    page.click("text=Disagreed")
    row = f"tr[data-item='{done[0]}']"
    page.wait_for_selector(f"{row} .chip:has-text('disagree')")
    watched.until("document.querySelectorAll('table.labels tbody tr').length === 1")
    assert f"Bob: {other}" in page.inner_text(row)

    page.click(f"{row} >> text=Correct")
    page.keyboard.press("Escape")
    page.click(f"{row} >> text=Correct")
    # Labels that come in meanwhile do not take away what somebody is editing.
    post(sizes, "labels", person="script", item=free[-1], label="small", request="meanwhile")
    page.wait_for_selector("#counter:has-text('56 of 150 labelled')")
    page.select_option(f"{row} select", other)
    page.click(f"{row} >> text=Save")
    watched.said("Corrected to")
    assert [event.item for event in sizes.events(EventKind.corrected)] == [done[0]]
    page.click(".segments >> text=Corrected")
    page.wait_for_selector(f"{row} .chip:has-text('corrected')")
    assert page.url.endswith("#labels/corrected")

    page.click(".segments >> text=All")
    page.keyboard.press("/")
    page.keyboard.type(f"row {done[1]}")
    watched.until("document.querySelectorAll('table.labels tbody tr').length < 20")
    page.click(f"tr[data-item='{done[1]}'] .id button")
    assert str(size_of(done[1])) in page.inner_text("dialog .cells")
    page.keyboard.press("Escape")
    page.go_back()
    page.wait_for_selector("#view-label:visible")
    watched.close()


@pytest.mark.slow
def test_progress_is_drawn_and_can_be_read_without_eyes_or_mouse(browser: "Browser", sizes: Server) -> None:
    with_labels(sizes, 30)
    if call("GET", f"{sizes.url}api/status", headers=sizes.headers).json()["agreement"] is None:
        item, label = sizes.labels()[0]
        post(sizes, "labels", person="Eve", item=item, label=label, request="the same opinion")
    watched = Watched(browser, sizes, "Dot")
    page = watched.page
    watched.go("progress")
    # The error comes first, and what the rule compares is folded.
    chart = ".chart svg[aria-label^='The estimated error. After']"
    page.wait_for_selector(chart)
    last = page.inner_text(".readout >> nth=0")
    # The page may draw the chart again at any moment: it is looked up when it is focused.
    page.focus(chart)
    page.keyboard.press("Home")
    assert page.inner_text(".readout >> nth=0") != last
    assert "probably between" in page.inner_text(".readout >> nth=0")
    page.click(".numbers summary >> nth=0")
    # The corrected label of another test may still be learned: then both numbers grow.
    for _ in range(150):
        told = call("GET", f"{sizes.url}api/status", headers=sizes.headers).json()
        rows, drawn = len(told["error"]["estimates"]), page.locator(".plain-table tbody tr").count()
        if rows == drawn:
            break
        time.sleep(0.2)
    assert rows == drawn >= 2
    assert page.locator(".chart svg:visible").count() == 1
    page.click("details.card > summary")
    ratio = ".chart svg[aria-label^='The error ratio and the threshold. After']"
    page.wait_for_selector(ratio)
    page.focus(ratio)
    page.keyboard.press("Home")
    assert "(threshold 0.9)" in page.inner_text(".readout >> nth=1")
    assert "certif" in page.inner_text("details.card > .stack")
    for name in ("small", "large"):
        assert name in page.inner_text(".bars")
    assert "Two people labelled the same" in page.inner_text("#view-progress")
    watched.close()


@pytest.mark.slow
def test_numbers_are_typed_and_words_refused(browser: "Browser", tmp_path: Path) -> None:
    data = write_rows(tmp_path / "people.csv", ("id", "age"), [(f"p{k}", k) for k in range(30)])
    with served(data, "--id", "id", "--regression", "--target", "weight") as server:
        watched = Watched(browser, server, "Fay")
        page = watched.page
        item = watched.item()
        for typed, told in [("abc", "not a number"), ("3,5", "3.5 with a point"), ("NaN", "not a number"),
                            ("1e999", "too large"), ("-inf", "not a number"), ("", "Type a number")]:  # fmt: skip
            page.fill("#number", typed)
            page.keyboard.press("Enter")
            page.wait_for_selector(f"#number-problem:has-text('{told}')")
            assert watched.item() == item
        assert not server.labels()
        page.fill("#number", "")
        # The box has the focus for each item, so nothing but the number needs to be typed; s is a letter there.
        for value in ("3.5", "-2", "1e3"):
            watched.item()
            page.keyboard.type(f"s{value}")
            assert page.input_value("#number") == f"s{value}"
            page.fill("#number", "")
            page.keyboard.type(value)
            watched.press("Enter")
            watched.settle()
        assert [label for _, label in server.labels()] == [3.5, -2.0, 1000.0]
        watched.item()
        page.keyboard.press("Escape")
        skipped = watched.press("s")
        watched.said("Skipped.")
        assert [event.item for event in server.events(EventKind.skipped)] == [skipped]
        watched.close()


@pytest.mark.slow
def test_one_of_many_classes_is_found_by_typing(browser: "Browser", tmp_path: Path) -> None:
    names = ["apple", "banana", "cherry", "date", "elder", "fig", "grape", "hazel", "iris", "juniper", "kiwi", "pear"]
    data = write_rows(tmp_path / "fruit.csv", ("id", "weight"), [(f"f{k}", k) for k in range(30)])
    with served(data, "--id", "id", "--classes", ",".join(names)) as server:
        watched = Watched(browser, server, "Gus")
        typed = [(watched.press("9"), "iris")]
        watched.item()
        watched.page.keyboard.press("/")
        watched.page.keyboard.type("ap")
        # Those that begin with it stand before those that only hold it.
        assert watched.page.locator("#view-label .classes.lots .answer span").all_inner_texts() == ["apple", "grape"]
        typed.append((watched.press("Enter"), "apple"))
        watched.item()
        watched.page.keyboard.type("kiwi")
        typed.append((watched.press("Enter"), "kiwi"))
        watched.page.keyboard.press("Escape")
        watched.settle()
        assert server.labels() == typed
        watched.close()


@pytest.mark.slow
def test_images_are_shown_and_enlarged(browser: "Browser", tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    folder = tmp_path / "pictures"
    folder.mkdir()
    for k in range(12):
        image.new("RGB", (20, 20), (k * 20, 0, 255 - k * 20)).save(folder / f"{k}.png")
    with served(folder, "--classes", "red,blue") as server:
        watched = Watched(browser, server, "Hal")
        watched.until("document.querySelector('img.picture').naturalWidth === 20")
        width = "document.querySelector('img.picture').clientWidth"
        usual = watched.page.evaluate(width)
        assert usual == 320
        for shown in (round(2.5 * usual), usual):
            watched.page.keyboard.press("z")
            assert watched.page.evaluate(width) == shown
        watched.page.click(".zoom")
        assert watched.page.get_attribute(".zoom", "aria-pressed") == "true"
        watched.press("1")
        # The next image has its usual size again.
        watched.until("document.querySelector('img.picture').naturalWidth === 20")
        assert watched.page.get_attribute(".zoom", "aria-pressed") == "false"
        watched.settle()
        watched.close()


@pytest.mark.slow
def test_answers_never_hide_an_item_and_show_the_names_of_classes(browser: "Browser", tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    folder = tmp_path / "pictures"
    folder.mkdir()
    for k in range(12):
        image.new("RGB", (28, 28) if k % 2 else (900, 700), (k * 20, 0, 200)).save(folder / f"{k}.png")
    classes = [f"talk.politics.of.place{k}" for k in range(10)]
    seen = """(() => {
        const { x, y, width, height } = document.querySelector('img.picture').getBoundingClientRect();
        const found = document.elementFromPoint(x + width / 2, y + height / 2);
        const cut = [...document.querySelectorAll('.classes .answer span')].filter((each) =>
            each.scrollHeight > each.clientHeight + 1 || each.scrollWidth > each.clientWidth);
        return width > 200 && found?.matches('img.picture') && !cut.length;
    })()"""
    with served(folder, "--classes", ",".join(classes)) as server:
        watched = Watched(browser, server, "Hal")
        for size in ((360, 740), (1280, 800)):
            watched.page.set_viewport_size({"width": size[0], "height": size[1]})
            for _ in range(2):
                watched.press("1")
                watched.settle()
                watched.until(seen)
        watched.close()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", some(["light", "dark"], every=2))
def test_nothing_sticks_out_of_a_telephone(browser: "Browser", sizes: Server, scheme: str) -> None:
    size = {"width": 390, "height": 844}
    watched = Watched(browser, sizes, "Ida", viewport=size, color_scheme=scheme, has_touch=True, is_mobile=True)
    for view in ("label", "progress", "labels", "export"):
        watched.go(view)
        watched.page.wait_for_timeout(200)
        assert watched.page.evaluate("document.documentElement.scrollWidth") <= 390
        nameless = watched.page.evaluate(
            "[...document.querySelectorAll('button, a, input, select')].filter((each) => "
            "!(each.textContent.trim() || each.ariaLabel || each.labels?.length)).map((each) => each.outerHTML)"
        )
        assert not nameless
    paper = "getComputedStyle(document.body).backgroundColor"
    before = watched.page.evaluate(paper)
    watched.page.click("#theme")
    after = watched.page.evaluate(paper)
    assert after != before
    watched.page.reload()
    watched.page.wait_for_selector("#view-export:visible")
    assert watched.page.evaluate(paper) == after
    watched.close()


@pytest.mark.slow
def test_the_last_items_are_with_somebody_else(browser: "Browser", tmp_path: Path) -> None:
    data = write_rows(tmp_path / "few.csv", ("id", "size"), [(f"row {k}", k) for k in range(4)])
    with served(data, "--id", "id", "--classes", "small,large", "--initial", "2") as server:
        asked = post(server, "next", person="script", n=2)["items"]
        with closing(Watched(browser, server, "Jon")) as watched:
            watched.press("1")
            watched.item()
            watched.page.keyboard.press("2")
            watched.page.wait_for_selector("article:has-text('Others are busy with the rest')")
            for each in asked:
                post(server, "labels", person="script", item=each["item"], label="small", request=f"r{each['item']}")
            watched.page.wait_for_selector("article:has-text('Nothing is left to label')")
