"""The page in a real browser: no answer looks chosen, items are found by keys and touch, and numbers have a range."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from suffice.project.create import open_project
from tests.web.browsing import Watched, served, write_rows

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# What the buttons of the classes look like, the colour of each class apart.
LOOKS = """() => [...document.querySelectorAll("#view-label .answer")].map((each) => {
    const style = getComputedStyle(each);
    return [style.backgroundColor, style.borderTopColor, style.outlineStyle, document.activeElement === each].join(" ");
})"""


SMALL: dict[str, Any] = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}


def find_by_keys(seen: Watched) -> None:
    """Go to an item by its id and label it, search the earlier answers, and read the list of keys."""
    page = seen.page
    page.keyboard.press("g")
    page.fill("#jump-id", "M-23")
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog .problem:has-text(\"there is no item with the id 'M-23'; there is 'm-23'\")")
    # The browser itself notes the response, which is 404.
    assert "404" in seen.complaints.pop()
    page.fill("#jump-id", "m-23")
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog .item:has-text('needle in the hay')")
    page.select_option("dialog select", "spam")
    page.click("dialog .editor >> text=Save")
    page.wait_for_selector("dialog:has-text('Labelled spam by Ann')")
    page.keyboard.press("Escape")
    seen.settle()

    page.keyboard.press("e")
    page.wait_for_selector("#view-labels table tr[data-item='23']")
    page.keyboard.press("/")
    page.keyboard.type("NEEDLE in")
    page.wait_for_selector("#view-labels tr[data-item='23'] .summary mark:has-text('needle in')")
    page.click("tr[data-item='23'] .id button")
    page.wait_for_selector("dialog .reading mark:has-text('needle in')")
    assert page.evaluate("document.querySelector('dialog mark').getBoundingClientRect().bottom < innerHeight")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    shortcuts = page.inner_text("dialog")
    assert all(each in shortcuts for each in ("earlier answers", "go to an item by its id", "take back"))


def find_by_touch(seen: Watched) -> None:
    """Answer, take it back, and find the search and the ids, on a small screen."""
    page, item = seen.page, seen.item()
    page.tap(".answer >> nth=0")
    page.wait_for_selector(f"article[data-ready=true]:not([data-item='{item}'])")
    assert len(set(page.evaluate(LOOKS))) == 1
    page.tap("button:has-text('Undo') >> visible=true")
    page.wait_for_selector(f"article[data-ready=true][data-item='{item}']")
    page.tap(".tabs a[data-view=labels]")
    page.tap("#search")
    page.tap("button:has-text('Go to an id')")
    page.wait_for_selector("#jump-id")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.slow
def test_no_answer_looks_chosen_and_items_are_found(browser: "Browser", tmp_path: Path) -> None:
    long = "one two three four five six seven eight nine ten " * 12
    rows = [(f"{long}{'needle in the hay' if k % 10 == 3 else ''} {long}", f"m-{k}") for k in range(40)]
    data = write_rows(tmp_path / "mails.csv", ("text", "id"), rows)
    with served(data, "--text", "text", "--classes", "ham,spam", "--id", "id") as server:
        with closing(Watched(browser, server, "Ann", why=False)) as seen:
            page = seen.page

            def answered(act: Any) -> int:
                item = seen.item()
                act()
                page.wait_for_selector(f"article[data-ready=true]:not([data-item='{item}'])")
                looks: list[str] = page.evaluate(LOOKS)
                assert len(set(looks)) == 1
                return item

            # The pointer rests on the button; the key comes while the button has the focus.
            answered(lambda: page.click(".answer >> text=spam"))
            answered(lambda: page.keyboard.press("1"))
            page.focus(".answer >> nth=0")
            answered(lambda: page.keyboard.press("Enter"))
            # From the item, Tab leads to the answers again.
            page.keyboard.press("Tab")
            assert page.evaluate("document.activeElement.matches('.answer')")
            # A pointer that moves shows where it is.
            page.hover(".answer >> nth=1")
            assert len(set(page.evaluate(LOOKS))) == 2
            assert not page.is_visible(".banner details .stack")

            find_by_keys(seen)
        with closing(Watched(browser, server, "Bob", why=False, **SMALL)) as seen:
            find_by_touch(seen)


@pytest.mark.slow
def test_a_number_outside_of_the_range_is_asked_about(browser: "Browser", tmp_path: Path) -> None:
    data = write_rows(tmp_path / "cars.csv", ("id", "size"), [(f"c-{k}", k / 7) for k in range(30)])
    options = ("--id", "id", "--regression", "--target", "weight", "--unit", "kg", "--lowest", "0", "--highest", "90")
    with served(data, *options) as server, closing(Watched(browser, server, "Ann")) as seen:
        page, item = seen.page, seen.item()
        assert "weight in kg" in page.inner_text("form.number")
        assert "Plausible: 0 to 90 kg." in page.inner_text("form.number")
        page.fill("#number", "900")
        page.keyboard.press("Enter")
        page.wait_for_selector("#number-problem:has-text('900 kg is outside of the plausible range, 0 to 90 kg')")
        assert seen.item() == item
        page.keyboard.press("Enter")
        page.wait_for_selector(f"article[data-ready=true]:not([data-item='{item}'])")
        page.fill("#number", "12")
        page.keyboard.press("Enter")
        seen.settle()
    with open_project(server.project) as project:
        assert sorted(project.state().counts()) == [12.0, 900.0]


@pytest.mark.slow
def test_a_number_far_from_all_labels_is_asked_about(browser: "Browser", tmp_path: Path) -> None:
    data = write_rows(tmp_path / "cars.csv", ("id", "size"), [(f"c-{k}", k / 7) for k in range(30)])
    with served(data, "--id", "id", "--regression", "--target", "weight") as server:
        with open_project(server.project) as project:
            for item in range(10):
                project.label(item, 4.0 + item, person="Bob")
        with closing(Watched(browser, server, "Ann")) as seen:
            page, item = seen.page, seen.item()
            page.wait_for_function("() => document.querySelector('.banner')")
            page.fill("#number", "4200")
            page.keyboard.press("Enter")
            page.wait_for_selector("#number-problem:has-text('4200 is far from all labels so far')")
            assert seen.item() == item
            page.keyboard.press("Enter")
            page.wait_for_selector(f"article[data-ready=true]:not([data-item='{item}'])")
            seen.settle()
    with open_project(server.project) as project:
        assert project.state().counts()[4200.0] == 1


@pytest.mark.slow
def test_the_tenth_of_ten_classes_has_a_key(browser: "Browser", tmp_path: Path) -> None:
    data = write_rows(tmp_path / "pets.csv", ("id", "size"), [(f"p-{k}", k / 7) for k in range(30)])
    classes = [f"kind {letter}" for letter in "abcdefghij"]
    options = ("--id", "id", "--classes", ",".join(classes))
    with served(data, *options) as server, closing(Watched(browser, server, "Ann")) as seen:
        page, item = seen.page, seen.item()
        assert page.locator("#view-label .classes .answer kbd").all_inner_texts() == [*"1234567890"]
        page.keyboard.press("0")
        page.wait_for_selector(f"article[data-ready=true]:not([data-item='{item}'])")
        seen.settle()
    with open_project(server.project) as project:
        assert project.state().counts() == {"kind j": 1}
