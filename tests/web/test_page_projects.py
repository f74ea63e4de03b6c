"""The page of a folder of projects: the list, a file that is uploaded, its preview, and the first question."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from suffice.checks.annotation_budget import annotation_budget
from suffice.presentation.text_format import two_digits
from suffice.project.create import open_project
from tests.project.test_uploaded_files import NAMES, ROWS, workbook
from tests.web.browsing import Server, Watched, write_rows
from tests.web.test_accessibility import require_axe, violations
from tests.web.web_projects import make_project

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


class FolderServer(Server):
    """``suffice serve --projects`` in a process of its own."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._arguments = ["serve", "--projects", str(folder), "--json", "--port"]


class ListPage(Watched):
    """The page with the list of projects."""

    def enter(self, person: str) -> None:
        """Open the page; nobody is asked for a name there."""
        del person
        self.page.goto(self.server.link)
        self.page.wait_for_selector("#start:visible")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[FolderServer]:
    (tmp_path / "labels").mkdir()
    server = FolderServer(tmp_path / "labels")
    server.start()
    try:
        yield server
    finally:
        server.kill()


def test_from_the_list_to_the_first_question(browser: "Browser", server: FolderServer, tmp_path: Path) -> None:
    table = write_rows(tmp_path / "mails.csv", NAMES, ROWS)
    watched = ListPage(browser, server, "")
    page = watched.page
    assert page.inner_text("h2") == "Create your first project"
    # By the keyboard alone: the first button is the next step.
    for _ in range(3):
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "New project from a file"
    page.set_input_files("#file", {"name": "mails.docx", "mimeType": "x/y", "buffer": b"x"})
    page.wait_for_selector("#start-problem:has-text('cannot be read')")
    page.set_input_files("#file", str(table))
    page.wait_for_selector("#new:visible")
    assert page.evaluate("document.activeElement.id") == "new-heading"
    assert page.locator(".scroll tbody tr").count() == 5
    found = page.eval_on_selector_all(".roles select", "(all) => all.map((each) => each.value)")
    assert found == ["id", "text", "feature", "label"]
    assert "only column with longer texts" in page.inner_text("#reason-1")
    assert page.input_value("#classes") == "ham\nspam"
    choose_label_column(page)
    page.fill("#classes", "ham")
    page.click("text=Create project")
    page.wait_for_selector("#new-problem:has-text('At least two classes')")
    page.fill("#classes", "spam\nham\nadvert")
    page.click("text=Create project")
    page.wait_for_selector("#new-problem:has-text('Your name is missing')")
    page.fill("#person", "Ann")
    page.keyboard.press("Enter")
    # Nobody is asked for a name again.
    watched.item()
    assert page.url.startswith(f"{server.url}p/mails.suffice/")
    assert "advert" in page.inner_text(".classes")
    watched.press("2")
    watched.settle()
    page.click("text=All projects")
    page.wait_for_selector("h2:has-text('Next: continue with mails')")
    assert "labelled" in page.inner_text(".line")
    # A file that is dropped, and left again.
    drop_file(page, "book.xlsx", workbook(NAMES, ROWS))
    page.wait_for_selector("#new:visible")
    with page.expect_response("**/api/uploads/discard"):
        page.click("#new >> text=Cancel")
    page.wait_for_selector("#list:visible")
    # The browser notes each response that refuses something.
    watched.complaints = [text for text in watched.complaints if "422" not in text]
    watched.close()
    with open_project(server.project.parent / "labels" / "mails.suffice") as project:
        assert (project.settings.classes, project.settings.columns) == (("spam", "ham", "advert"), ("body",))
        assert [event.person for event in project.events()[:1]] == ["Ann"]
    assert sorted(path.name for path in (tmp_path / "labels").iterdir()) == ["mails.suffice", "token"]


def choose_label_column(page: "Page") -> None:
    """Choose another column of labels in the preview, and the first one again."""
    # One column at most is the label; its classes follow, until somebody types others.
    page.select_option("#role-2", "label")
    assert (page.input_value("#role-3"), page.input_value("#classes")) == ("feature", "0\n1\n2\n3\n4\n5\n6")
    assert "nothing would be left to label" in page.inner_text("#held")
    assert page.inner_text("#reason-2").startswith("You chose this. The guess was: ")
    assert page.inner_text("#reason-3").startswith("Now other information, because ")
    page.select_option("#role-3", "label")
    page.select_option("#role-2", "ignored")
    assert "holds 7 labels; they are kept, and you give the other 5" in page.inner_text("#held")
    assert page.input_value("#classes") == "ham\nspam"


def drop_file(page: "Page", name: str, content: bytes) -> None:
    page.evaluate(
        """([name, content]) => {
            const data = new DataTransfer();
            data.items.add(new File([new Uint8Array(content)], name));
            document.dispatchEvent(new DragEvent("drop", { dataTransfer: data, cancelable: true, bubbles: true }));
        }""",
        [name, list(content)],
    )


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 360)])
def test_the_list_and_the_preview_have_no_violation(
    browser: "Browser", server: FolderServer, tmp_path: Path, scheme: str, width: int
) -> None:
    require_axe()
    make_project(tmp_path / "labels" / "mails.suffice").close()
    (tmp_path / "labels" / "noise.suffice").mkdir()
    (tmp_path / "labels" / "noise.suffice" / "project.sqlite").write_bytes(b"noise")
    options: Any = {"color_scheme": scheme, "viewport": {"width": width, "height": 800}, "bypass_csp": True}
    watched = ListPage(browser, server, "", **options)
    found = {"list": violations(watched.page)}
    watched.page.set_input_files("#file", str(write_rows(tmp_path / "mails.csv", NAMES, ROWS)))
    watched.page.wait_for_selector("#new:visible")
    found["preview"] = violations(watched.page)
    wide = watched.page.evaluate("document.documentElement.scrollWidth")
    watched.page.close()
    assert (found, wide <= width) == ({"list": [], "preview": []}, True)


def test_a_check_is_planned_without_a_project(browser: "Browser", server: FolderServer) -> None:
    require_axe()
    watched = ListPage(browser, server, "", bypass_csp=True)
    page = watched.page
    page.click("#plan summary")
    page.wait_for_selector("#plan svg")
    result = "#plan [role=status]"
    told = page.inner_text(result).replace("\u00a0", " ")
    made = annotation_budget(20_000, at_most=0.05, expected=0.02)
    for sentence in made.sentences(10.0):
        assert sentence.replace("\u00a0", " ") in told
    rows = page.eval_on_selector_all("#plan tbody tr", "rows => rows.map((row) => row.innerText.split(/\\s*\\t\\s*/))")
    assert [row[0].replace("\u00a0", " ") for row in rows] == ["none", "1 %", "2 %", "3 %", "4 %"]
    assert [row[1] for row in rows] == [f"{two_digits(plan.median or 0):,}" for plan in made.table]
    # A sample that is there already.
    page.fill("#plan-checked", "300")
    page.wait_for_selector(f"{result}:has-text('Enter both')")
    page.fill("#plan-wrong", "7")
    page.wait_for_selector(f"{result}:has-text('That proves the target of at most 5')")
    assert page.query_selector("#plan svg") is None
    page.fill("#plan-wrong", "301")
    page.wait_for_selector(f"{result}:has-text('at most as many wrong as checked')")
    # Without a target only what the sample shows.
    page.fill("#plan-wrong", "12")
    page.fill("#plan-at-most", "")
    page.wait_for_selector(f"{result}:has-text('At most 6.4')")
    page.fill("#plan-at-most", "0.1")
    page.wait_for_selector(f"{result}:has-text('from 0.5 to below 100')")
    page.fill("#plan-checked", "")
    page.fill("#plan-wrong", "")
    page.fill("#plan-at-most", "5")
    page.fill("#plan-expected", "6")
    page.wait_for_selector(f"{result}:has-text('cannot be proven if 6')")
    page.check("#plan-corrected")
    page.wait_for_selector(f"{result}:has-text('are wrong after corrections')")
    assert violations(page) == []


def test_the_planner_on_a_telephone(browser: "Browser", server: FolderServer) -> None:
    watched = ListPage(browser, server, "")
    page = watched.page
    page.set_viewport_size({"width": 360, "height": 740})
    page.click("#plan summary")
    page.wait_for_selector("#plan svg")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    height = page.eval_on_selector("#plan svg text", "text => text.getBoundingClientRect().height")
    assert height > 10
