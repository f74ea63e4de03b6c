"""A check in a real browser: what it costs, its items, its guarantee, and giving it up."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from suffice.project.create import create_project
from tests.project.test_screening_project import Y, labelled_screening
from tests.project.test_switching import LABELS, circle
from tests.web.browsing import Server, Watched, call, served

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

KEYS = {"inside": "1", "outside": "2"}
OTHER_SIZE = "dialog input[aria-label='Other number of items']"

# Notes what the window says while a check is started.
NOTE_START = """() => {
    const look = () => { window.start = document.querySelector('dialog p[role=status]')?.textContent || window.start };
    new MutationObserver(look).observe(document.body, { subtree: true, childList: true });
}"""


def status_of(server: Server) -> dict[str, Any]:
    told: dict[str, Any] = call("GET", f"{server.url}api/status", headers=server.headers).json()
    return told


def shown(page: "Page", selector: str) -> str:
    return " ".join(page.inner_text(selector).replace("\u00a0", " ").split())


def start(watched: Watched, size: int) -> None:
    page = watched.page
    page.click(".verdict >> text=Check the predictions")
    page.fill(OTHER_SIZE, str(size))
    page.wait_for_selector(f"dialog button:has-text('Start: label {size} random items')")
    page.click("dialog button.primary")
    page.wait_for_selector(".check-line")


def end_of_check(page: "Page", leave: str = "Go on labelling") -> str:
    """Wait for the window that ends a check, leave it by a button, and return what it said."""
    page.wait_for_selector("dialog h2:has-text('The check is complete')", timeout=60_000)
    assert page.evaluate("scrollY") == 0
    said = shown(page, "dialog")
    page.click(f"dialog >> text={leave}")
    return said


@pytest.mark.slow
def test_a_check_from_its_offer_to_its_guarantee(browser: "Browser", tmp_path: Path) -> None:
    circle(tmp_path / "points.suffice", 40).close()
    with served(tmp_path / "points.suffice") as server:
        watched = Watched(browser, server, "Ann")
        page = watched.page
        page.wait_for_selector(".verdict >> text=Check the predictions", timeout=60_000)
        page.click(".verdict >> text=Check the predictions")
        page.wait_for_selector("dialog input[type=radio]:checked")
        offer = shown(page, "dialog")
        assert all(text in offer for text in ("100 labels at most", "of the predictions for the"))
        # Nothing is started by looking.
        page.fill(OTHER_SIZE, "0")
        assert "Enter a whole number from 1 to" in shown(page, "dialog")
        assert page.is_disabled("dialog button.primary")
        page.click("dialog >> text=Not now")
        assert status_of(server)["check"] is None

        start(watched, 5)
        check = status_of(server)["check"]
        assert (check["state"], check["size"], check["answered"], check["person"]) == ("open", 5, 0, "Ann")
        assert shown(page, ".check-line b") == "Check: 0 of 5 answered"
        page.wait_for_selector(".item .chip:has-text('check item, drawn at random')")
        # The line of the check says what to do, and no second statement does.
        assert not page.is_visible(".banner h2")
        for _ in range(4):
            page.wait_for_selector(".item .chip:has-text('check item')")
            watched.press(KEYS[LABELS[watched.item()]])
        watched.settle()
        # A reload in the middle keeps the check.
        page.reload()
        page.wait_for_selector(".check-line b:has-text('4 of 5')")
        page.wait_for_selector(".item .chip:has-text('check item')")
        watched.press(KEYS[LABELS[watched.item()]])
        watched.settle()
        page.wait_for_selector(".verdict .guarantee")
        assert page.query_selector(".check-line") is None
        guarantee = status_of(server)["guarantee"]
        assert guarantee["about_present_model"]
        said = guarantee["sentences"][0].replace("\u00a0", " ")
        assert said.startswith("Guaranteed: at most")
        assert said in end_of_check(page)
        assert shown(page, ".verdict .guarantee b") == said
        assert shown(page, ".banner .figure b") == guarantee["figure"].replace("\u00a0", " ")
        watched.go("progress")
        assert said in shown(page, "#view-progress")
        with page.expect_popup() as popup:
            page.evaluate("open('api/report')")
        report = " ".join(popup.value.inner_text("body").replace("\u00a0", " ").split())
        assert said.removeprefix("Guaranteed: at").strip() in report
        popup.value.close()

        # Labelling goes on: the current model is another one.
        watched.go("label")
        watched.press(KEYS[LABELS[watched.item()]])
        watched.settle()
        page.wait_for_selector(".verdict .guarantee.earlier")
        assert "has no guarantee until it is checked" in shown(page, ".verdict .guarantee")
        watched.close()


@pytest.mark.slow
def test_after_a_check_text_curve_json_and_report_state_one_error(browser: "Browser", tmp_path: Path) -> None:
    circle(tmp_path / "points.suffice", 41).close()
    with served(tmp_path / "points.suffice") as server:
        watched = Watched(browser, server, "Ann")
        page = watched.page
        page.wait_for_selector(".verdict >> text=Check the predictions", timeout=60_000)
        page.wait_for_selector(".verdict .error-now:has-text('estimated from 41 labels')")
        start(watched, 30)
        for _ in range(30):
            page.wait_for_selector(".item .chip:has-text('check item')")
            watched.press(KEYS[LABELS[watched.item()]])
        watched.settle()
        told = end_of_check(page, "Download the results")
        assert "Further labels change the model. The guarantee does not hold for the changed model." in told
        page.wait_for_selector("#view-export:visible")
        watched.go("review")
        page.wait_for_selector(".review-head:has-text('(Answers of a check are not reviewed.)')", timeout=60_000)
        watched.go("label")
        page.wait_for_selector(".verdict .guarantee")
        page.wait_for_selector(".verdict .error-now:has-text('estimated from 71 labels of items drawn at random')")
        status = status_of(server)
        decision, error = status["decision"], status["decision"]["error"]
        # The JSON.
        assert status["error"]["estimates"][-1] == [71, error["value"], error["low"], error["high"]]
        assert status["error"]["random_labels"] == error["random_labels"] == 71
        figure = f"{100.0 * error['value']:.0f} %"
        interval = [f"{100.0 * error[end]:.0f}" for end in ("low", "high")]
        # The text beside the item, and the last point of the small curve.
        assert shown(page, ".verdict .error-now b") == figure == decision["error_figure"].replace("\u00a0", " ")
        assert "after 71 labels" in shown(page, ".verdict .error-now")
        curve = page.get_attribute(".verdict .spark svg", "aria-label") or ""
        assert curve.replace("\u00a0", " ").endswith(f"{figure} after 71 labels")
        # The view of the progress: text, last point of the curve, and last row of its table.
        watched.go("progress")
        assert shown(page, "#view-progress .error-now b") == figure
        chart = "#view-progress .chart:has(figcaption:text-is('The estimated error'))"
        assert shown(page, f"{chart} .readout") == f"At 71 labels: {figure} (estimated)"
        sentence = (page.get_attribute(f"{chart} svg", "aria-label") or "").replace("\u00a0", " ")
        assert f"After 71 labels the estimated error is {figure}, probably between {interval[0]} %" in sentence
        page.click(f"{chart} summary")
        row = shown(page, f"{chart} tbody tr:last-child").replace(" %", "").split()
        assert row == ["71", figure.removesuffix(" %"), *interval]
        # The report.
        with page.expect_popup() as popup:
            page.evaluate("open('api/report')")
        report = " ".join(popup.value.inner_text("body").replace("\u00a0", " ").split())
        popup.value.close()
        assert f"{figure} {' '.join(decision['error_note'].replace(chr(160), ' ').split())}" in report
        assert set(re.findall(r"bout ([\d.]+ %) of the [\d,]+ unlabelled items", report)) == {figure}
        assert "corrected with 71 labels" in report
        watched.close()


@pytest.mark.slow
def test_a_check_that_is_given_up_proves_nothing(browser: "Browser", tmp_path: Path) -> None:
    circle(tmp_path / "points.suffice", 40).close()
    with served(tmp_path / "points.suffice") as server:
        watched = Watched(browser, server, "Ann")
        page = watched.page
        page.wait_for_selector(".verdict >> text=Check the predictions", timeout=60_000)
        start(watched, 30)
        page.click("text=Stop the check")
        assert "It then guarantees nothing" in shown(page, "dialog")
        page.click("dialog >> text=Continue the check")
        assert status_of(server)["check"]["state"] == "open"
        page.click("text=Stop the check")
        page.click("dialog >> text=Stop it")
        page.wait_for_selector(".check-line", state="detached")
        found = status_of(server)
        assert (found["check"]["state"], found["guarantee"]) == ("aborted", None)
        watched.close()


@pytest.mark.slow
def test_an_item_on_the_screen_becomes_part_of_a_check(browser: "Browser", tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = {"a": rng.normal(size=24).tolist(), "b": rng.normal(size=24).tolist()}
    with create_project(tmp_path / "p", rows, classes=["inside", "outside"], seed=1) as project:
        for item in range(23):
            project.label(item, "inside" if rows["a"][item] > 0.0 else "outside", person="ann")
    with served(tmp_path / "p") as server:
        watched = Watched(browser, server, "Ann")
        page = watched.page
        assert watched.item() == 23
        assert page.query_selector(".item .chip") is None
        page.click(".verdict >> text=Check the predictions")
        page.fill(OTHER_SIZE, "1")
        page.click("dialog button:has-text('Start: label 1 random item')")
        page.wait_for_selector(".item .chip:has-text('check item')")
        assert watched.item() == 23
        watched.close()


@pytest.mark.slow
def test_a_screening_checks_what_was_missed(browser: "Browser", tmp_path: Path) -> None:
    labelled_screening(tmp_path).close()
    with served(tmp_path / "p.suffice") as server:
        watched = Watched(browser, server, "Ann")
        page = watched.page
        page.click(".verdict >> text=Check what was missed", timeout=60_000)
        page.wait_for_selector("dialog .offer")
        said = shown(page, "dialog")
        assert "which share of the class is found" in said
        page.click("dialog summary")
        assert "An item that you skip counts as missed." in shown(page, "dialog details")
        page.fill(OTHER_SIZE, "3")
        page.wait_for_selector("dialog button:has-text('Start: label 3 random items')")
        page.evaluate(NOTE_START)
        page.click("dialog button.primary")
        page.wait_for_selector(".check-line")
        # The window says what it waits for.
        assert re.search("model (learns the labels first|predicts all items)", page.evaluate("window.start"))
        check = status_of(server)["check"]
        assert (check["quantity"], check["class_name"]) == ("recall", "in")
        for _ in range(3):
            page.wait_for_selector(".item .chip:has-text('check item')")
            watched.press({"in": "1", "out": "2"}[str(Y[watched.item()])])
        watched.settle()
        page.wait_for_selector(".verdict .guarantee")
        assert "found" in shown(page, ".verdict .guarantee")
