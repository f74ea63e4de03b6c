"""A check until a target is proven, in a real browser: to its proof, over a restart of the server, and given up."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from suffice.project import Project, create_project
from tests.web.browsing import Server, Watched, served
from tests.web.test_page_check import end_of_check, shown, status_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_X = np.random.default_rng(3).uniform(size=600)
SIDES = np.where(_X < 0.5, "left", "right")
# A few items are predicted wrong by every model.
SIDES[np.random.default_rng(4).permutation(600)[:18]] = "left"
KEYS = {"left": "1", "right": "2"}


def sides(place: Path, **options: Any) -> Project:
    """A project of two classes with 30 labels."""
    project = create_project(place, {"x": _X}, classes=["left", "right"], seed=2, **options)
    for asked in project.next("ann", 30):
        project.label(asked.position, str(SIDES[asked.position]), person="ann")
    return project


def open_dialog(watched: Watched) -> None:
    watched.page.wait_for_selector(".verdict >> text=Check the predictions", timeout=60_000)
    watched.page.click(".verdict >> text=Check the predictions")
    watched.page.wait_for_selector("dialog input[type=radio]:checked")


def least_answers(watched: Watched) -> int:
    """The least number of answers that the window states."""
    (least,) = re.findall(r"At least ([\d,]+) (?:are|is) needed", shown(watched.page, "#check-target-words"))
    return int(least.replace(",", ""))


def begin(watched: Watched) -> None:
    watched.page.click("dialog button.primary:has-text('Start: prove at most')")
    watched.page.wait_for_selector(".check-line")


def answer(watched: Watched, server: Server, *, wrong: bool = False) -> dict[str, Any]:
    """Answer an item of the check, and wait until the page shows the progress; the check of the status."""
    watched.page.wait_for_selector(".item .chip:has-text('check item')")
    label = str(SIDES[watched.item()])
    watched.press(KEYS[label] if not wrong else KEYS["left" if label == "right" else "right"])
    watched.settle()
    check: dict[str, Any] = status_of(server)["check"]
    if check["state"] == "open":
        watched.page.wait_for_selector(f".check-line b:has-text('{check['sentence']}')")
    return check


@pytest.mark.slow
def test_the_window_asks_for_a_target_or_a_size(browser: "Browser", tmp_path: Path) -> None:
    sides(tmp_path / "sides.suffice", at_most=0.2).close()
    with served(tmp_path / "sides.suffice") as server:
        watched = Watched(browser, server, "Ann")
        page = watched.page
        open_dialog(watched)
        # The target of the project is the first choice, with the least number of answers.
        assert page.input_value("#check-target") == "20"
        assert page.is_checked("#check-kind-target")
        page.wait_for_selector("#check-target-words p")
        assert least_answers(watched) > 1
        # Bad input is answered beside the box.
        for typed, said in (
            ("abc", "“abc” is not a share"),
            ("0", "above 0 % and below 100 %"),
            ("100", "above 0 % and below 100 %"),
            ("2,5", "Write 2.5 with a point"),
        ):
            page.fill("#check-target", typed)
            assert said in shown(page, "#check-target-problem")
            assert page.get_attribute("#check-target", "aria-invalid") == "true"
            assert page.is_disabled("dialog button.primary")
        # The other choice is a number of labels.
        page.click("#check-kind-size")
        assert page.is_visible("dialog input[aria-label='Other number of items']")
        assert shown(page, "#check-target-problem") == ""
        assert "Start: label" in shown(page, "dialog button.primary")
        page.fill("#check-target", "20 %")
        assert page.is_checked("#check-kind-target")
        assert page.is_hidden("dialog input[aria-label='Other number of items']")
        page.wait_for_selector("#check-target-words p")
        page.click("dialog >> text=Not now")
        assert status_of(server)["check"] is None
        watched.close()


@pytest.mark.slow
def test_a_check_from_its_target_to_its_proof(browser: "Browser", tmp_path: Path) -> None:
    sides(tmp_path / "sides.suffice", at_most=0.2).close()
    with served(tmp_path / "sides.suffice") as server:
        watched = Watched(browser, server, "Ann")
        page = watched.page
        open_dialog(watched)
        page.wait_for_selector("#check-target-words p")
        least = least_answers(watched)
        begin(watched)
        check = status_of(server)["check"]
        assert (check["at_most"], check["sequential"]["needed"], check["person"]) == (0.2, least, "Ann")
        assert page.query_selector(".check-line progress") is None
        answered = 0
        while check["state"] == "open":
            text = shown(page, "#view-label")
            assert text.count("The target is proven if") == 1
            assert "still to answer" not in text
            assert "of it are not yet" not in text
            plot = (page.get_attribute(".verdict .check-plot svg[role=img]", "aria-label") or "").replace("\u00a0", " ")
            assert check["sentence"] in plot
            check = answer(watched, server, wrong=answered == 2)
            answered += 1
        assert check["sequential"]["state"] == "proven"
        assert check["sequential"]["wrong"] >= 1
        assert check["sequential"]["answered"] == answered > least
        page.wait_for_selector(".verdict .guarantee")
        assert page.query_selector(".check-line") is None
        assert page.query_selector(".verdict .check-plot") is None
        guarantee = status_of(server)["guarantee"]
        assert (guarantee["value"], guarantee["allowed"]) == (0.2, check["sequential"]["allowed"])
        assert "at most 20 % of the predictions" in shown(page, ".verdict .guarantee b")
        assert shown(page, ".banner .figure b") == "≤ 20 %"
        assert "at most 20 % of the predictions" in end_of_check(page)
        watched.go("progress")
        wrong = check["sequential"]["wrong"]
        found = f"{wrong} wrong prediction{'' if wrong == 1 else 's'}"
        ended = f"Target: at most 20 % wrong. Proven after {answered} answers, with {found}."
        assert shown(page, ".check-about") == ended
        page.click("#view-progress .check-plot summary")
        assert shown(page, "#view-progress .check-plot tbody tr:first-child").split()[0] == "1"
        watched.close()


@pytest.mark.slow
def test_an_answer_of_a_check_that_is_corrected(browser: "Browser", tmp_path: Path) -> None:
    project = sides(tmp_path / "sides.suffice")
    project.start_check(30, person="ann")
    items = [asked.position for asked in project.next("ann", 30)]
    # Five answers are wrong at first.
    for k, item in enumerate(items):
        label = str(SIDES[item])
        project.label(item, label if k >= 5 else "left" if label == "right" else "right", person="ann")
    project.close()
    with served(tmp_path / "sides.suffice") as server:
        watched = Watched(browser, server, "Ann")
        page = watched.page
        before = status_of(server)["guarantee"]["value"]
        watched.go("labels")
        page.click(f"#view-labels tr[data-item='{items[0]}'] .actions button")
        assert "the guarantee states both numbers" in shown(page, ".editor")
        page.select_option(".editor select", str(SIDES[items[0]]))
        page.click(".editor button.primary")
        watched.said("Corrected to")
        guarantee = status_of(server)["guarantee"]
        assert (guarantee["corrections"], guarantee["value"] < before) == (1, True)
        watched.go("label")
        page.wait_for_selector(".verdict .guarantee:has-text('by the first answers, before 1 answer was corrected')")
        watched.close()


@pytest.mark.slow
def test_a_check_is_paused_over_a_restart(browser: "Browser", tmp_path: Path) -> None:
    sides(tmp_path / "sides.suffice").close()
    with served(tmp_path / "sides.suffice") as server:
        watched = Watched(browser, server, "Ann")
        page = watched.page
        open_dialog(watched)
        # Without a target a number of labels is the first choice, and the box has a suggestion.
        assert page.is_checked("#check-kind-size")
        assert page.input_value("#check-target") == ""
        assert (page.get_attribute("#check-target", "placeholder") or "").startswith("such as ")
        page.click("#check-kind-target")
        assert shown(page, "#check-target-problem") == "Enter a share in %, such as 5."
        page.fill("#check-target", "25")
        begin(watched)
        assert "To pause, just leave" in shown(page, ".check-line")
        for k in range(5):
            check = answer(watched, server, wrong=k == 1)
        said = shown(page, ".check-line b")
        assert said.startswith("Check: 5 answers, ")
        server.kill()
        page.wait_for_selector("#saving:visible")
        server.start()
        page.goto(server.link)
        page.wait_for_selector(".check-line")
        assert shown(page, ".check-line b") == said
        assert status_of(server)["check"] == check
        while check["state"] == "open":
            check = answer(watched, server)
        assert check["sequential"]["state"] == "proven"
        page.wait_for_selector(".verdict .guarantee")
        watched.close(unreachable=True)


@pytest.mark.slow
def test_a_check_for_a_target_is_given_up(browser: "Browser", tmp_path: Path) -> None:
    sides(tmp_path / "sides.suffice", at_most=0.1).close()
    with served(tmp_path / "sides.suffice") as server:
        watched = Watched(browser, server, "Ann")
        page = watched.page
        open_dialog(watched)
        page.wait_for_selector("#check-target-words p")
        begin(watched)
        for _ in range(3):
            answer(watched, server)
        page.click("text=Give the check up")
        said = shown(page, "dialog")
        assert "its part of the error probability is spent" in said
        assert "The labels are kept, and the model learns them." in said
        page.click("dialog >> text=Continue the check")
        assert status_of(server)["check"]["state"] == "open"
        page.click("text=Give the check up")
        page.click("dialog button.primary:has-text('Give it up')")
        page.wait_for_selector(".check-line", state="detached")
        found = status_of(server)
        assert (found["check"]["state"], found["guarantee"], found["n_labelled"]) == ("aborted", None, 33)
        assert found["held"] == 0
        watched.go("progress")
        given_up = "The check was given up after 3 answers: it proves nothing."
        page.wait_for_selector(f".check-about:has-text('{given_up}')")
        # On a telephone nothing is wider than the screen.
        page.set_viewport_size({"width": 360, "height": 700})
        watched.until("document.documentElement.scrollWidth <= 360")
        watched.close()
