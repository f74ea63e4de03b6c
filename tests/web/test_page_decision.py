"""The decision in a real browser: the same words and numbers in every place, and another model for the project."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from suffice.project.events import EventKind
from tests.project.test_switching import LABELS, circle
from tests.web.browsing import Server, Watched, call, served

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


def status_of(server: Server) -> dict[str, Any]:
    told: dict[str, Any] = call("GET", f"{server.url}api/status", headers=server.headers).json()
    return told


def plain(text: str) -> str:
    return " ".join(text.replace("\u00a0", " ").split())


def shown(page: "Page", selector: str) -> str:
    return plain(page.inner_text(selector))


def require_one_message(watched: Watched, server: Server) -> dict[str, Any]:
    """Banner, card, title, progress view and report show the decision of the status, and no other."""
    page = watched.page
    watched.go("label")
    watched.until("document.querySelector('.learning')?.textContent === ''")
    page.wait_for_timeout(2500)
    decision: dict[str, Any] = status_of(server)["decision"]
    headline, figure, note = (decision[name] for name in ("headline", "error_figure", "error_note"))
    assert shown(page, ".verdict .error-now") == plain(f"{figure} {note}")
    stops = decision["answer"] in ("enough", "limit", "complete")
    assert page.title().startswith(f"{headline} · ") == stops
    assert page.get_attribute(".banner", "class") == f"banner verdict {decision['tone']}"
    assert shown(page, ".banner h2") == headline
    assert shown(page, ".banner .next") == plain(decision["next_step"])
    assert shown(page, ".banner .figure b") == plain(figure)
    # One statement: the headline stands once on the screen.
    assert shown(page, "#view-label").count(headline) == 1
    for each in decision["sentences"][1:]:
        assert plain(each) in shown(page, ".banner")
    if stops:
        # The figure states the error already.
        assert plain(decision["summary"]) not in shown(page, ".banner")
        assert plain(decision["remedy"]) in shown(page, ".banner")
    watched.go("progress")
    page.wait_for_selector(".state.large")
    assert shown(page, ".state.large") == headline
    assert shown(page, "#view-progress .error-now") == plain(f"{figure} {note}")
    assert plain(decision["outlook_note"]) in shown(page, "#view-progress")
    for each in decision["sentences"][1:]:
        assert plain(each) in shown(page, "#view-progress")
    with page.expect_popup() as popup:
        page.evaluate("open('api/report')")
    report = plain(popup.value.inner_text("body"))
    assert f"{headline} {plain(decision['summary'])}" in report
    assert plain(f"{figure} {note}") in report
    popup.value.close()
    watched.go("label")
    return decision


@pytest.mark.slow
def test_the_model_that_is_chosen_on_the_labels(browser: "Browser", tmp_path: Path) -> None:
    circle(tmp_path / "points.suffice", 103, at_most=0.05, of="all", choose_model=True).close()
    with served(tmp_path / "points.suffice") as server:
        watched = Watched(browser, server, "Ann")
        watched.go("progress")
        watched.page.wait_for_selector("#view-progress:has-text('Compared on 10')", timeout=60_000)
        [changed] = server.events(EventKind.model_changed)
        choice = status_of(server)["model"]["choice"]
        assert (changed.person, changed.data["model"]) == ("", choice["model"])
        told = plain(shown(watched.page, "#view-progress"))
        assert plain(f"Model: {status_of(server)['model']['description']}. {' '.join(choice['sentences'])}") in told
        watched.close()


@pytest.mark.slow
def test_a_better_model_is_offered_while_labelling_goes_on(browser: "Browser", tmp_path: Path) -> None:
    circle(tmp_path / "points.suffice", 69, mistake_cost=100.0).close()
    with served(tmp_path / "points.suffice") as server:
        watched = Watched(browser, server, "Ann")
        page = watched.page
        watched.settle()
        watched.go("progress")
        page.wait_for_selector("#view-progress:has-text('Another model is better')", timeout=60_000)
        decision = status_of(server)["decision"]
        assert decision["answer"] == "keep going"
        page.click("#view-progress button:has-text('Switch to')")
        page.click("dialog .primary")
        page.wait_for_selector("dialog", state="detached")
        watched.settle()
        [changed] = server.events(EventKind.model_changed)
        assert changed.data["model"] == decision["alternative"]["name"]
        watched.close()


@pytest.mark.slow
def test_one_message_and_another_model(browser: "Browser", tmp_path: Path) -> None:
    circle(tmp_path / "points.suffice", 69).close()
    with served(tmp_path / "points.suffice") as server:
        watched = Watched(browser, server, "Ann")
        page = watched.page
        watched.press("1" if LABELS[watched.item()] == "inside" else "2")
        watched.settle()
        page.wait_for_selector(".banner.limit", timeout=60_000)
        assert require_one_message(watched, server)["answer"] == "limit"

        page.click(".banner >> text=Switch to kernel features")
        dialog = shown(page, "dialog")
        assert "All 70 labels and all skips are kept" in dialog
        assert "instead of Bayesian logistic regression" in dialog
        page.click("dialog >> text=Cancel")
        assert not server.events(EventKind.model_changed)
        page.click(".banner >> text=Switch to kernel features")
        page.click("dialog .primary")
        page.wait_for_selector("dialog", state="detached")
        watched.settle()
        page.wait_for_selector(".banner.limit", state="detached", timeout=60_000)
        [changed] = server.events(EventKind.model_changed)
        assert (changed.person, changed.data["model"]) == ("Ann", "kernel")
        assert require_one_message(watched, server)["answer"] in ("keep going", "enough")
        assert status_of(server)["model"]["name"] == "kernel"
        watched.go("progress")
        assert "Model: Bayesian logistic regression on kernel features." in shown(page, "#view-progress")
        watched.close()
