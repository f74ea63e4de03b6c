"""Predictions made elsewhere in a real browser: labels without the prediction, verdicts, and the start of a check."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from suffice.project.events import EventKind
from tests.project.prediction_projects import rows
from tests.web.browsing import Watched, call, served, write_rows
from tests.web.test_accessibility import has_axe, violations
from tests.web.test_page_check import shown, status_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser

OPEN = {"bypass_csp": True}


def accessible(watched: Watched) -> None:
    """Nothing on the page is found by axe-core, where it is installed."""
    if has_axe():
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
        answer = call("GET", f"{server.url}api/project", headers=server.headers).json()
        keys = {name: str(place) for place, name in enumerate(answer["classes"], start=1)}
        assert page.is_visible(".check-line")
        item = watched.item()
        text = shown(page, "article")
        assert table["body"][item] in text
        assert str(table["p"][item]) not in text
        assert table["llm"][item] not in text
        accessible(watched)
        needed = status_of(server)["check"]["size"]
        for _ in range(needed - 1):
            watched.press(keys[truth[watched.item()]])
        page.keyboard.press(keys[truth[watched.item()]])
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
        watched.press("2")
        assert page.input_value("#correction") == ""
        watched.press("1")
        watched.settle()
        server.project = tmp_path / "answers.check.suffice"
        assert sorted(label for _, label in server.labels()) == ["right", "wrong"]
        first, second = server.events(EventKind.labelled)
        assert (first.data.get("correction"), second.data.get("correction")) == ("another payer", None)
        watched.close()


class Waiting(Watched):
    """A page without an item at first."""

    def enter(self, person: str) -> None:
        self.page.goto(self.server.link)
        self.page.fill("#your-name", person)
        self.page.keyboard.press("Enter")
        self.page.wait_for_selector("text=No row waits for an answer")


@pytest.mark.slow
def test_a_check_starts_in_a_window_if_no_target_was_given(browser: "Browser", tmp_path: Path) -> None:
    _, table = rows(120)
    data = write_rows(tmp_path / "answers.csv", list(table), list(zip(*table.values(), strict=True)))
    with served(data, "--prediction", "llm", "--text", "body", "--id", "id") as server:
        watched = Waiting(browser, server, "Ann", **OPEN)
        page = watched.page
        accessible(watched)
        page.click("article >> text=Start a check")
        page.fill("#prediction-target", "none")
        page.click("dialog button.primary")
        page.wait_for_selector("dialog .problem:not(:empty)")
        assert status_of(server)["check"] is None
        accessible(watched)
        page.fill("#prediction-target", "10")
        page.fill("#prediction-expected", "-1")
        page.click("dialog button.primary")
        page.wait_for_selector("dialog .problem:has-text('of at least 0 %')")
        assert status_of(server)["check"] is None
        page.fill("#prediction-expected", "2")
        page.click("dialog button.primary")
        watched.item()
        check = status_of(server)["check"]
        assert (check["state"], check["at_most"], check["expected"]) == ("open", 0.1, 0.02)
        assert "The check is planned for 2\u00a0% wrong." in page.inner_text(".check-line")
        watched.close()
