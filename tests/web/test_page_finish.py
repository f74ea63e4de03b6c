"""A goal for all labels in a real browser: from the texts to the final file and its statement."""

import io
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from suffice.project import Project, create_project
from suffice.project.read_items import clean
from tests.web.browsing import Server, Watched, call, served, write_rows
from tests.web.test_page_check import end_of_check, shown, status_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

DATA = os.environ.get("SUFFICE_DATA")
TEXTS = Path(DATA or "") / "text" / "sms_spam.tsv"
needs_texts = pytest.mark.skipif(DATA is None or not TEXTS.is_file(), reason="the texts: not in SUFFICE_DATA")
KEYS = {"ham": "1", "spam": "2"}


def texts(n: int) -> tuple[list[str], list[str]]:
    """Some real messages, and whether each is ham or spam."""
    lines = TEXTS.read_text(encoding="utf-8").splitlines()
    chosen = np.random.default_rng(0).permutation(len(lines))[:n]
    kinds, bodies = zip(*(lines[k].split("\t", 1) for k in chosen), strict=True)
    return list(bodies), list(kinds)


class Labeller:
    """A script that labels as a person does, with the right labels."""

    def __init__(self, server: Server, kinds: list[str], person: str) -> None:
        self._server, self._kinds, self._person = server, kinds, person

    def label(self, n: int) -> int:
        """Label the next items, and return their number."""
        asked = self._post("next", n=n)["items"]
        for each in asked:
            self._post("labels", item=each["item"], label=self._kinds[each["item"]])
        return len(asked)

    def _post(self, path: str, **sent: Any) -> Any:
        url, sent = f"{self._server.url}api/{path}", {"person": self._person, **sent}
        answer = call("POST", url, headers=self._server.headers, json=sent)
        assert answer.status_code == 200, answer.text
        return answer.json()


def learned_status(server: Server) -> dict[str, Any]:
    """The status once the model has learned all labels."""
    for _ in range(600):
        told = status_of(server)
        if not told["behind"]:
            return told
        time.sleep(0.1)
    raise AssertionError("the model does not learn")


def download(page: "Page", selector: str) -> tuple[str, bytes]:
    """Click a link, and return the name and the content of the file that is saved."""
    with page.expect_download() as saved:
        page.click(selector)
    return saved.value.suggested_filename, Path(saved.value.path()).read_bytes()


def set_goal(watched: Watched) -> None:
    """Set the goal on the page: at most 5 % of all labels."""
    page = watched.page
    watched.go("settings")
    page.wait_for_selector("#setting-of")
    page.fill("#setting-at_most", "5")
    page.select_option("#setting-of", "all")
    page.click("form.settings:has(#setting-of) >> text=Save")
    watched.said("The settings are saved.")
    watched.go("label")
    page.wait_for_selector(".verdict .goal:has-text('at most 5 % of all 1,000 labels are wrong (50).')")


def label_until_a_check(watched: Watched, kinds: list[str]) -> None:
    """Label, a few items by keys, until a check is advised; the page then leads to it."""
    page, server = watched.page, watched.server
    for _ in range(5):
        watched.press(KEYS[kinds[watched.item()]])
    watched.settle()
    script, told = Labeller(server, kinds, "Ben"), status_of(server)
    while not (told["goal"]["plan"] and told["goal"]["plan"]["check_now"]):
        assert script.label(10), "no check was ever advised"
        told = learned_status(server)
    early = call("GET", f"{server.url}api/final", headers=server.headers)
    assert early.status_code == 409
    assert "the goal is not reached" in early.json()["detail"]
    page.wait_for_selector(".banner >> text=Start the check", timeout=30_000)
    goal = status_of(server)["goal"]
    # The page may have asked for the state before the last labels of the other person.
    page.wait_for_selector(f".verdict .goal-bar[aria-valuenow='{goal['by_people']}']", timeout=30_000)
    assert goal["plan"]["sentence"] in shown(page, ".verdict .goal")


def answer_the_check(watched: Watched, kinds: list[str]) -> None:
    """Start the check on the page, and answer it, a few items by keys."""
    page, server = watched.page, watched.server
    page.click(".banner >> text=Start the check")
    assert "The check ends by itself when the goal is proven." in shown(page, "dialog")
    page.click("dialog button.primary:has-text('Start the check')")
    page.wait_for_selector(".check-line", timeout=60_000)
    assert "at most 5 % of all labels wrong" in shown(page, ".check-line")
    for _ in range(3):
        page.wait_for_selector(".item .chip:has-text('check item')")
        watched.press(KEYS[kinds[watched.item()]])
    watched.settle()
    # The items on the page are Ann's.
    script = Labeller(server, kinds, "Ann")
    while status_of(server)["check"]["state"] == "open":
        assert script.label(5)
    assert status_of(server)["goal"]["sentences"][0] in end_of_check(page)


def saved_files(watched: Watched) -> dict[str, bytes]:
    """The files that the page offers once the goal is reached."""
    page, goal = watched.page, status_of(watched.server)["goal"]
    page.wait_for_selector(".banner >> text=Finish", timeout=30_000)
    watched.go("progress")
    page.wait_for_selector("#view-progress .goal-bar.done")
    assert shown(page, "#view-progress .goal p b") == goal["sentences"][0]
    assert page.is_hidden("#view-progress >> text=Details: what the stopping rule compares")
    page.click("#view-progress >> text=Finish")
    links = [f"a[aria-label='Final file as {name}']" for name in ("CSV", "Excel (XLSX)", "JSON lines", "Parquet")]
    files = dict(download(page, f"dialog {link}") for link in [*links, ".final-files >> text=Save the statement"])
    assert sorted(files) == ["final.csv", "final.jsonl", "final.parquet", "final.xlsx", "statement.html"]
    page.click("dialog >> text=Close")
    return files


@needs_texts
@pytest.mark.slow
def test_a_thousand_texts_from_the_start_to_the_final_file(browser: "Browser", tmp_path: Path) -> None:
    openpyxl, pandas = pytest.importorskip("openpyxl"), pytest.importorskip("pandas")
    bodies, kinds = texts(1000)
    data = write_rows(tmp_path / "mails.csv", ["id", "body"], [(f"m{k}", body) for k, body in enumerate(bodies)])
    with served(data, "--text", "body", "--classes", "ham,spam", "--target", "kind") as server:
        watched = Watched(browser, server, "Ann", accept_downloads=True)
        page = watched.page
        set_goal(watched)
        label_until_a_check(watched, kinds)
        answer_the_check(watched, kinds)
        goal = status_of(server)["goal"]
        files = saved_files(watched)
        # On a telephone nothing is wider than the screen.
        page.set_viewport_size({"width": 360, "height": 700})
        for view in ("progress", "label", "export", "settings"):
            watched.go(view)
            watched.until("document.documentElement.scrollWidth <= 360")
        again = call("GET", f"{server.url}api/final?format=xlsx", headers=server.headers)
        assert again.content == files["final.xlsx"]
        watched.close()

    frame = pandas.read_csv(io.BytesIO(files["final.csv"]), keep_default_na=False)
    assert frame["id"].tolist() == [f"m{k}" for k in range(1000)]
    counts = frame["source"].value_counts().to_dict()
    assert counts["person"] + counts["check"] == goal["by_people"] < 700
    assert counts["model"] == goal["rows"] - goal["by_people"]
    # True errors: none among labels of people, and no more than are allowed.
    wrong = frame["label"] != kinds
    assert wrong.sum() <= goal["reached"]["wrong_at_most"] <= 50
    assert not wrong[frame["source"] != "model"].any()
    assert set(frame["labelled_by"]) == {"Ann", "Ben", ""}
    assert ((frame["labelled_at"] == "") == (frame["source"] == "model")).all()

    labels = frame["label"].tolist()
    head, *rows = openpyxl.load_workbook(io.BytesIO(files["final.xlsx"])).active.iter_rows(values_only=True)
    assert head == tuple(frame.columns)
    assert [row[head.index("label")] for row in rows] == labels
    assert pandas.read_excel(io.BytesIO(files["final.xlsx"]))["label"].tolist() == labels
    assert pandas.read_json(io.BytesIO(files["final.jsonl"]), lines=True)["label"].tolist() == labels
    parquet = pandas.read_parquet(io.BytesIO(files["final.parquet"]))
    assert parquet["label"].tolist() == labels
    # A project replaces control characters, and removes spaces before a text.
    assert parquet["body"].tolist() == [clean(body).lstrip() for body in bodies]
    assert f"At most {goal['reached']['wrong_at_most']} of all 1,000 labels" in files["statement.html"].decode()


_X = np.random.default_rng(3).uniform(size=400)
SIDES = np.where(_X < 0.5, "left", "right").tolist()


def finished_sides(place: Path, **options: Any) -> Project:
    """A project of two classes whose goal is reached."""
    project = create_project(place, {"x": _X}, classes=["left", "right"], seed=2, at_most=0.1, of="all", **options)
    for asked in project.next("ann", 30):
        project.label(asked.position, SIDES[asked.position], person="ann")
    project.start_check(person="ann")
    while project.reached_goal() is None:
        (asked,) = project.next("bob")
        project.label(asked.position, SIDES[asked.position], person="bob")
    return project


@pytest.mark.slow
def test_what_the_page_says_of_wrong_labels_of_people(browser: "Browser", tmp_path: Path) -> None:
    finished_sides(tmp_path / "sides.suffice", annotator_error=0.05).close()
    with served(tmp_path / "sides.suffice") as server:
        watched = Watched(browser, server, "Ann")
        page = watched.page
        goal = status_of(server)["goal"]
        watched.go("progress")
        page.wait_for_selector("#view-progress .goal-bar.done")
        said = shown(page, "#view-progress .goal")
        assert "at most 5 % are taken to be wrong" in said
        assert "No check proves the 5 %." in said
        watched.go("export")
        page.wait_for_selector("#view-export >> text=See the statement")
        assert goal["sentences"][0] in shown(page, "#view-export .goal")
        # The guarantee of the predictions alone is not shown beside that of all labels.
        assert page.is_hidden("#view-export h3:has-text('Guarantee')")
        page.goto(f"{server.url}api/final/statement")
        assert "More errors of people than stated." in page.inner_text("main")
        assert f"At most {goal['reached']['wrong_at_most']} of all 400 labels" in page.inner_text("main")
        watched.close()


@pytest.mark.slow
def test_a_screening_on_the_page(browser: "Browser", tmp_path: Path) -> None:
    place, kinds = tmp_path / "sides.suffice", np.where(_X < 0.3, "left", "right").tolist()
    given: dict[str, Any] = {"classes": ["left", "right"], "seed": 2, "at_most": 0.1, "of": "all", "positive": "left"}
    with create_project(place, {"x": _X}, **given) as project:
        for item in np.argsort(_X)[:150].tolist():
            project.label(item, kinds[item], person="ann")
    with served(place) as server:
        watched = Watched(browser, server, "Ann")
        page = watched.page
        goal = learned_status(server)["goal"]
        page.wait_for_selector(".verdict .goal:has-text('at most 10 % of the items of class')")
        assert goal["sentences"][0] in shown(page, ".verdict .goal")
        page.wait_for_selector(".banner >> text=Start the check", timeout=30_000)
        page.click(".banner >> text=Start the check")
        assert all(sentence in shown(page, "dialog") for sentence in goal["check_sentences"])
        page.click("dialog button.primary:has-text('Start the check')")
        page.wait_for_selector(".check-line", timeout=60_000)
        assert "at most 10 % of class 'left' missed" in shown(page, ".check-line")
        assert "counts as an item of the class" in page.inner_html(".check-line")
        page.wait_for_selector(".check-plot figcaption:has-text('answers of the class')")
        script = Labeller(server, kinds, "Ann")
        while status_of(server)["check"]["state"] == "open":
            assert script.label(5)
        end_of_check(page)
        page.wait_for_selector(".banner >> text=Finish", timeout=30_000)
        reached = status_of(server)["goal"]["reached"]
        assert reached["figure"].replace("\u00a0", " ") in shown(page, ".banner")
        assert "of left found, guaranteed" in shown(page, ".banner")
        watched.go("settings")
        page.wait_for_selector("form.settings:has(#setting-of):has-text('which may be missed')")
        assert "of the items of class “left”, which may be missed" in shown(page, "form.settings:has(#setting-of)")
        assert page.is_hidden("#setting-annotator_error")
        page.goto(f"{server.url}api/final/statement")
        said = f"{reached['found']} found, at most {reached['missed_at_most']} missed"
        assert said in page.inner_text("main")
        watched.close()
