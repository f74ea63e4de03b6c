"""The settings in a real browser: classes, for one person and for two at once."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from suffice.project.events import EventKind
from tests.web.browsing import Server, Watched, served, write_rows

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture
def sizes(tmp_path: Path) -> Iterator[Server]:
    rows = [(f"row {k}", (k * 37) % 100 - 50) for k in range(60)]
    data = write_rows(tmp_path / "sizes.csv", ("id", "size"), rows)
    with served(data, "--id", "id", "--classes", "small,large", "--target", "kind", "--initial", "4") as server:
        yield server


@pytest.mark.slow
def test_classes_are_changed_and_keys_follow(browser: "Browser", sizes: Server) -> None:
    with closing(Watched(browser, sizes, "Ann")) as ann, closing(Watched(browser, sizes, "Bob")) as bob:
        first = ann.press("1")
        ann.settle()
        page = ann.page
        ann.go("settings")
        page.fill("input[aria-label='Name of small']", "tiny")
        page.click("text=Add a class")
        page.keyboard.type("huge")
        page.click("button[aria-label='Move tiny down'], button[aria-label='Move small down']")
        page.click("text=Save the classes")
        ann.said("The classes are changed.")
        assert page.eval_on_selector_all(".class-rows input", "all => all.map((each) => each.value)") == [
            *("large", "tiny", "huge"),
        ]
        event = sizes.events(EventKind.classes_changed)[0]
        assert event.person == "Ann"
        assert event.data == {
            **{"before": ["small", "large"], "classes": ["large", "tiny", "huge"], "moved": {"small": "tiny"}},
        }
        # Everybody else is told, and their keys are those of the new classes.
        bob.until("document.querySelectorAll('#view-label .classes .answer').length === 3")
        item = bob.press("3")
        bob.settle()
        assert sizes.labels() == [(first, "small"), (item, "huge")]
        # A class is merged; a change that was begun before that is refused.
        bob.go("settings")
        bob.page.click("text=Add a class")
        page.select_option("select[aria-label='Merge huge into']", label="merge into tiny")
        page.click("text=Save the classes")
        ann.until("document.querySelectorAll('.class-rows li').length === 2")
        bob.page.wait_for_selector("text=Somebody has changed the classes meanwhile")
        bob.page.keyboard.type("x")
        bob.page.click("text=Save the classes")
        bob.page.wait_for_selector("text=The classes were changed meanwhile and are now large, tiny")
        bob.page.click("section.card:has(#classes-heading) >> text=Discard changes")
        bob.until("document.querySelectorAll('.class-rows li').length === 2")
        # The browser notes that the server refused.
        assert len(bob.complaints) == 1
        assert "409" in bob.complaints.pop()
        ann.go("labels")
        page.wait_for_selector("tr >> text=tiny")


@pytest.mark.slow
def test_a_class_with_labels_is_not_removed(browser: "Browser", sizes: Server) -> None:
    with closing(Watched(browser, sizes, "Ann")) as ann:
        ann.press("1")
        ann.settle()
        ann.go("settings")
        ann.page.click("text=Add a class")
        ann.until("document.querySelector(`button[aria-label='Remove small']`).disabled")
        assert not ann.page.is_disabled("button[aria-label='Remove the new class']")
        ann.page.click("text=Save the classes")
        ann.page.wait_for_selector("text=A class needs a name.")


@pytest.mark.slow
def test_whoever_is_unsure_says_why_and_somebody_labels_it(browser: "Browser", sizes: Server) -> None:
    with closing(Watched(browser, sizes, "Ann")) as ann:
        page = ann.page
        item = ann.item()
        page.keyboard.press("n")
        page.wait_for_selector("#reason:focus")
        page.keyboard.type("both s and u")
        page.keyboard.press("Enter")
        page.wait_for_selector(f"article[data-ready=true]:not([data-item='{item}'])")
        ann.said("Recorded: unsure.")
        other = ann.item()
        page.click("text=Unsure n")
        page.click("text=Skip it")
        page.wait_for_selector(f"article[data-ready=true]:not([data-item='{other}'])")
        ann.settle()
        assert [(each.item, dict(each.data)) for each in sizes.events(EventKind.skipped)] == [
            (item, {"unsure": True, "reason": "both s and u"}),
            (other, {}),
        ]
        ann.go("labels")
        page.click(".segments >> text=Unsure")
        page.wait_for_selector("td.given >> text=both s and u")
        ann.until("document.querySelectorAll('tbody tr').length === 1")
        page.click("td.actions >> text=Label")
        page.select_option("td.given select", "small")
        page.click("td.given >> text=Save")
        page.wait_for_selector("text=Nothing fits.")
        assert sizes.labels() == [(item, "small")]


@pytest.mark.slow
def test_guidelines_and_costs_are_changed(browser: "Browser", tmp_path: Path) -> None:
    rows = [(f"row {k}", (k * 37) % 100 - 50) for k in range(60)]
    data = write_rows(tmp_path / "costs.csv", ("id", "size"), rows)
    text = tmp_path / "guidelines.md"
    text.write_text("# Sizes\n\n- look *twice*, see [this](https://example.org/)\n\n<img src=x onerror=alert(1)>\n")
    options = ("--id", "id", "--classes", "small,large", "--guidelines", str(text))
    with served(data, *options) as server, closing(Watched(browser, server, "Ann")) as ann:
        page = ann.page
        panel = ".guidelines-text"
        assert page.inner_text(f"{panel} h3") == "Sizes"
        assert page.inner_text(f"{panel} em") == "twice"
        assert page.get_attribute(f"{panel} a", "rel") == "noopener noreferrer nofollow"
        assert "<img src=x onerror=alert(1)>" in page.inner_text(panel)
        page.click(".guidelines summary")
        page.reload()
        ann.item()
        assert not page.is_visible(panel)
        page.click(".guidelines summary")
        ann.go("settings")
        ann.until("document.querySelector('#setting-guidelines').value.startsWith('# Sizes')")
        page.fill("#setting-guidelines", "New **words**")
        page.fill("#description-0", "below zero")
        page.click("form.settings:has(#setting-guidelines) >> text=Save")
        ann.said("The settings are saved.")
        page.fill("#setting-mistake_cost", "ten")
        page.click("form.settings:has(#setting-overlap) >> text=Save")
        page.wait_for_selector("text=Cost of a mistake must be a number, such as 2 or 0.5.")
        page.fill("#setting-mistake_cost", "10")
        page.fill("#setting-at_most", "5 %")
        page.fill("#setting-overlap", "120")
        page.click("form.settings:has(#setting-overlap) >> text=Save")
        page.wait_for_selector("text=Overlap must be a number from 0 to 1")
        assert "422" in ann.complaints.pop()
        page.fill("#setting-overlap", "20")
        page.click("form.settings:has(#setting-overlap) >> text=Save")
        page.wait_for_selector(".history >> text=the cost of a mistake from 1 to 10")
        page.wait_for_selector(".history >> text=Ann")
        changes = [event.data["settings"] for event in server.events(EventKind.settings_changed)]
        assert changes[0] == {"guidelines": "New **words**", "descriptions": {"small": "below zero"}}
        assert (changes[1]["at_most"], changes[1]["overlap"]) == (0.05, 0.2)
        ann.go("label")
        assert page.inner_text(f"{panel} strong") == "words"
        assert "below zero" in page.inner_text(panel)
        assert page.get_attribute("button.answer >> nth=0", "title") == "small: below zero"
        ann.press("1")
        ann.settle()
