"""The review in a real browser: unlikely labels, disagreements, skipped items, and predictions on request."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from suffice.project.create import open_project
from suffice.project.events import EventKind
from tests.web.browsing import Server, Watched, call, served, write_rows

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def size_of(item: int) -> int:
    return (item * 37) % 100 - 50


def post(server: Server, path: str, **body: Any) -> dict[str, Any]:
    answer = call("POST", f"{server.url}api/{path}", json=body, headers=server.headers)
    answer.raise_for_status()
    found: dict[str, Any] = answer.json()
    return found


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """80 rows, 40 labelled, items 3 and 8 wrongly; one disagreement, one skipped item."""
    data = write_rows(tmp_path / "sizes.csv", ("id", "size"), [(f"row {k}", size_of(k)) for k in range(80)])
    with served(data, "--id", "id", "--classes", "small,large", "--target", "kind") as server:
        rows = [
            {"id": f"row {k}", "label": "large" if (size_of(k) > 0) != (k in (3, 8)) else "small"} for k in range(40)
        ]
        post(server, "imports", person="Ann", rows=rows)
        post(server, "labels", person="Bob", item=12, label="small" if size_of(12) > 0 else "large")
        post(server, "skips", person="Bob", item=50)
        yield server


@pytest.mark.slow
def test_labels_are_confirmed_and_corrected_by_one_key(browser: "Browser", server: Server) -> None:
    with closing(Watched(browser, server, "Eve")) as seen:
        page = seen.page
        seen.go("review")
        page.wait_for_selector("#view-review article[data-item='3'], #view-review article[data-item='8']")
        said = page.inner_text("#view-review .said-of")
        assert "without this label the model says" in said
        first = int(page.get_attribute("#view-review article", "data-item") or -1)
        page.keyboard.press("c")
        seen.said("Confirmed")
        page.wait_for_selector(f"#view-review article:not([data-item='{first}'])", state="attached")
        second = int(page.get_attribute("#view-review article", "data-item") or -1)
        assert {first, second} == {3, 8}
        page.keyboard.press("2" if size_of(second) > 0 else "1")
        seen.said("Corrected")
        seen.settle()
        # One is confirmed and the other is right: neither is listed again.
        page.reload()
        page.wait_for_selector("#view-review .segments")
        seen.until("!document.querySelector('#view-review .review-head .muted').textContent.includes('Looking')")
        assert page.inner_text("#view-review").count("worth a second look") == 1
        listed = call("GET", f"{server.url}api/review", headers=server.headers).json()["labels"]
        assert not {3, 8} & {each["item"] for each in listed}
    assert [event.item for event in server.events(EventKind.confirmed)] == [first]
    (corrected,) = server.events(EventKind.corrected)
    assert (corrected.item, corrected.person, corrected.data["saw_prediction"]) == (second, "Eve", True)


@pytest.mark.slow
def test_disagreements_are_resolved_and_skipped_items_labelled(browser: "Browser", server: Server) -> None:
    with closing(Watched(browser, server, "Eve")) as seen:
        page = seen.page
        seen.go("review")
        page.click("#view-review [data-kind=unresolved]")
        page.wait_for_selector("#view-review article[data-item='12']")
        assert "Ann" in page.inner_text(".sides")
        assert "Bob" in page.inner_text(".sides")
        page.keyboard.press("1")
        seen.said("Corrected")
        page.wait_for_selector("#view-review p.empty:visible")
        page.keyboard.press("u")
        seen.said("Taken back")
        page.wait_for_selector("#view-review article[data-item='12']")
        page.keyboard.press("c")
        seen.said("Resolved")
        page.click("#view-review [data-kind=skipped]")
        page.wait_for_selector("#view-review article[data-item='50']")
        page.keyboard.press("2")
        seen.said("Recorded: large")
        seen.settle()
    with open_project(server.project) as project:
        state = project.state()
        assert state.acts.has_correction(12)
        assert state.label_of(50) == "large"
        assert not any(event.data.get("saw_prediction") for event in server.events(EventKind.corrected))


@pytest.mark.slow
def test_a_prediction_is_shown_to_whoever_wants_it(browser: "Browser", server: Server) -> None:
    with closing(Watched(browser, server, "Eve")) as seen:
        page = seen.page
        first = seen.item()
        assert page.inner_text(".prediction div") == ""
        seen.press("1")
        page.check("#show-predictions")
        page.wait_for_selector(".prediction p:has-text('The model says')")
        second = seen.press("1")
        seen.settle()
        page.wait_for_selector(".prediction p:has-text('The model says')")
        page.uncheck("#show-predictions")
        third = seen.press("1")
        fourth = seen.press("1")
        seen.settle()
    with open_project(server.project) as project:
        labelled = {each.item: each.saw_prediction for each in project.state().labelled()}
    # It was on the screen for the third before it was switched off.
    assert [labelled[item] for item in (first, second, third, fourth)] == [False, True, True, False]


@pytest.mark.slow
def test_in_a_check_there_is_no_prediction(browser: "Browser", server: Server) -> None:
    post(server, "checks", person="Ann", size=30)
    with closing(Watched(browser, server, "Eve")) as seen:
        seen.item()
        assert not seen.page.is_visible("#show-predictions")
    assert not server.events(EventKind.prediction_shown)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_review_fits_the_screen(browser: "Browser", server: Server, scheme: Any, width: int) -> None:
    with closing(
        Watched(browser, server, "Eve", color_scheme=scheme, viewport={"width": width, "height": 800})
    ) as seen:
        seen.page.evaluate("location.hash = '#review'")
        seen.page.wait_for_selector("#view-review article[data-item]:visible")
        seen.page.wait_for_selector("#view-review .cells")
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
