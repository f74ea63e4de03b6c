"""Predictions made elsewhere in a real browser: labels without the prediction, verdicts, and the start of a check."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.project.prediction_projects import rows
from tests.web.browsing import Watched, served, write_rows
from tests.web.test_accessibility import AXE, violations
from tests.web.test_page_check import shown, status_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser

OPEN = {"bypass_csp": True}


def accessible(watched: Watched) -> None:
    """Nothing on the page is found by axe-core, where it is installed."""
    if AXE.exists():
        assert violations(watched.page) == []


@pytest.mark.slow
def test_labels_without_the_prediction_until_the_target_is_proven(browser: "Browser", tmp_path: Path) -> None:
    truth, table = rows(150, error=0.0)
    truth[:3] = table["llm"][:3]
    data = write_rows(tmp_path / "answers.csv", list(table), list(zip(*table.values(), strict=True)))
    options = ("--prediction", "llm", "--probability", "p", "--text", "body", "--id", "id", "--at-most", "20%")
    with served(data, *options, "--seed", "0") as server:
        watched = Watched(browser, server, "Ann", **OPEN)
        page = watched.page
        classes = [
            each["name"] if isinstance(each, dict) else each
            for each in page.evaluate("fetch('api/project').then((r) => r.json())")["classes"]
        ]
        assert page.is_visible(".check-line")
        item = watched.item()
        text = shown(page, "article")
        assert table["body"][item] in text
        assert str(table["p"][item]) not in text
        assert table["llm"][item] not in text
        accessible(watched)
        needed = status_of(server)["check"]["size"]
        for _ in range(needed - 1):
            row = watched.item()
            watched.press(str(classes.index(truth[row]) + 1))
        page.keyboard.press(str(classes.index(truth[watched.item()]) + 1))
        page.wait_for_selector(".verdict >> text=Your target is guaranteed", timeout=30_000)
        assert status_of(server)["result"]["guaranteed"]
        page.wait_for_selector("a:has-text('See the statement')")
        accessible(watched)
        watched.close()


@pytest.mark.slow
def test_verdicts_with_a_correction_a_marked_part_and_readable_json(browser: "Browser", tmp_path: Path) -> None:
    n = 40
    # A character outside the basic plane counts as one, as in Python.
    texts = [f"🐌 Ms Example {k} pays the bill." for k in range(n)]
    found = [json.dumps({"payer": f"Ms Example {k}", "kind": "bill"}) for k in range(n)]
    table = [
        (k, text, made, 2, 2 + len(f"Ms Example {k}")) for k, (text, made) in enumerate(zip(texts, found, strict=True))
    ]
    data = write_rows(tmp_path / "answers.csv", ("id", "body", "llm", "start", "end"), table)
    options = ("--prediction", "llm", "--text", "body", "--id", "id", "--spans", "start,end", "--at-most", "20%")
    with served(data, *options) as server:
        watched = Watched(browser, server, "Ann", **OPEN)
        page = watched.page
        item = watched.item()
        assert page.inner_text("article mark") == f"Ms Example {item}"
        assert page.inner_text(".judged pre") == json.dumps({"payer": f"Ms Example {item}", "kind": "bill"}, indent=2)
        accessible(watched)
        page.fill("#correction", "another payer")
        page.keyboard.press("Escape")
        page.click("text=wrong >> nth=0") if False else watched.press("2")
        assert page.input_value("#correction") == ""
        watched.press("1")
        watched.settle()
        server.project = tmp_path / "answers.check.suffice"
        assert sorted(label for _, label in server.labels()) == ["right", "wrong"]
        from suffice.project.events import EventKind

        first, second = server.events(EventKind.labelled)
        assert (first.data.get("correction"), second.data.get("correction")) == ("another payer", None)
        watched.close()


@pytest.mark.slow
def test_a_check_starts_in_a_window_if_no_target_was_given(browser: "Browser", tmp_path: Path) -> None:
    _, table = rows(120)
    data = write_rows(tmp_path / "answers.csv", list(table), list(zip(*table.values(), strict=True)))
    with served(data, "--prediction", "llm", "--text", "body", "--id", "id") as server:
        watched = Watched.__new__(Watched)
        watched.enter = lambda person: None  # type: ignore[method-assign]
        Watched.__init__(watched, browser, server, "Ann", **OPEN)
        page = watched.page
        page.goto(server.link)
        page.fill("#your-name", "Ann")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=No row waits for an answer")
        accessible(watched)
        page.click(".item >> text=Start a check") if page.locator(
            ".item >> text=Start a check"
        ).count() else page.click("button:has-text('Start a check') >> nth=0")
        page.fill("#prediction-target", "none")
        page.click("dialog button.primary")
        page.wait_for_selector("dialog .problem:not(:empty)")
        assert status_of(server)["check"] is None
        accessible(watched)
        page.fill("#prediction-target", "10")
        page.click("dialog button.primary")
        watched.item()
        check = status_of(server)["check"]
        assert (check["state"], check["at_most"]) == ("open", 0.1)
        watched.close()
