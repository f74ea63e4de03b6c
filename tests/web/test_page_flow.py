"""The way of a newcomer in a real browser: an uploaded file, labels, a telephone, a check, and the finished file."""

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.web.browsing import call, write_rows
from tests.web.test_page_check import end_of_check, status_of
from tests.web.test_page_finish import Labeller, download, learned_status
from tests.web.test_page_projects import FolderServer, ListPage, server

if TYPE_CHECKING:
    from playwright.sync_api import Browser

__all__ = ["server"]

N = 300
_X = np.random.default_rng(3).uniform(size=(N, 2)).round(3)
NAMES = ["order", "length", "width"]
ROWS = [(f"A-{k:04}", *map(float, row)) for k, row in enumerate(_X)]
KINDS = np.where(_X[:, 0] < 0.5, "short", "long").tolist()


class ProjectServer:
    """The address of a project of a server of a folder, for what asks a server of one project."""

    def __init__(self, server: FolderServer, url: str) -> None:
        self.url, self.headers = url, server.headers


def written(folder: Path, ending: str) -> Path:
    if ending == "csv":
        return write_rows(folder / "orders.csv", NAMES, ROWS)
    book = pytest.importorskip("openpyxl").Workbook()
    for row in [NAMES, *ROWS]:
        book.active.append(row)
    book.save(folder / "orders.xlsx")
    return folder / "orders.xlsx"


def upload_and_label(watched: ListPage, table: Path) -> None:
    """Create a project from a file, and label 30 items."""
    page = watched.page
    page.set_input_files("#file", str(table))
    page.wait_for_selector("#new:visible")
    page.fill("#classes", "short\nlong")
    page.fill("#person", "Ann")
    page.click("text=Create project")
    for _ in range(30):
        watched.press("1" if KINDS[watched.item()] == "short" else "2")
    watched.settle()


def return_and_set_a_goal(watched: ListPage) -> None:
    """Open the project from the list, label an item by touch, and set a goal: at most 10 % of all labels."""
    page = watched.page
    assert "30 of 300" in page.inner_text(".line").replace("\u00a0", " ")
    page.tap(".line a")
    page.wait_for_selector("#your-name:visible, article[data-ready=true]")
    if page.is_visible("#your-name"):
        page.fill("#your-name", "Ann")
        page.keyboard.press("Enter")
    item = watched.item()
    page.tap(f".classes button:has-text('{KINDS[item]}')")
    page.wait_for_selector(f"article[data-ready=true]:not([data-item='{item}'])")
    watched.go("settings")
    page.fill("#setting-at_most", "10")
    page.select_option("#setting-of", "all")
    page.tap("form.settings:has(#setting-of) >> text=Save")
    watched.said("The settings are saved.")
    watched.go("export")
    assert "in the folder of the projects;" in page.inner_text("#view-export code")


def check_and_finish(watched: ListPage, project: Any) -> dict[str, bytes]:
    """Label until a check is advised, answer it, and save the final files."""
    page, script = watched.page, Labeller(project, KINDS, "Ann")
    while not (status_of(project)["goal"]["plan"] or {}).get("check_now"):
        assert script.label(10), "no check was ever advised"
        learned_status(project)
    watched.go("label")
    page.tap(".banner >> text=Start the check >> visible=true")
    page.tap("dialog button.primary:has-text('Start the check')")
    page.wait_for_selector(".check-line", timeout=60_000)
    while (status_of(project)["check"] or {}).get("state") == "open":
        assert script.label(5)
    end_of_check(page)
    page.wait_for_selector(".banner >> text=Finish", timeout=30_000)
    watched.until("document.documentElement.scrollWidth <= 360")
    page.tap(".banner >> text=Finish")
    return dict(download(page, f"dialog a[aria-label='Final file as {name}']") for name in ("CSV", "Excel (XLSX)"))


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["xlsx", "csv"])
def test_from_an_uploaded_file_to_the_finished_one(
    browser: "Browser",
    server: FolderServer,
    tmp_path: Path,
    ending: str,
) -> None:
    openpyxl, pandas = pytest.importorskip("openpyxl"), pytest.importorskip("pandas")
    watched = ListPage(browser, server, "")
    upload_and_label(watched, written(tmp_path, ending))
    project: Any = ProjectServer(server, f"{server.url}p/orders.suffice/")
    assert watched.page.url.startswith(project.url)
    watched.close()
    # Later, on a telephone.
    phone = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True, "accept_downloads": True}
    watched = ListPage(browser, server, "", why=False, **phone)
    watched.until("document.documentElement.scrollWidth <= 360")
    return_and_set_a_goal(watched)
    files = check_and_finish(watched, project)
    watched.close()

    goal = status_of(project)["goal"]
    assert call("GET", f"{project.url}api/final?format=csv", headers=project.headers).content == files["final.csv"]
    frame = pandas.read_csv(io.BytesIO(files["final.csv"]), keep_default_na=False)
    assert frame["order"].tolist() == [row[0] for row in ROWS]
    assert frame["length"].tolist() == _X[:, 0].tolist()
    assert (frame["label"] != KINDS).sum() <= goal["reached"]["wrong_at_most"] <= 30
    head, *rows = openpyxl.load_workbook(io.BytesIO(files["final.xlsx"])).active.iter_rows(values_only=True)
    assert [row[head.index("label")] for row in rows] == frame["label"].tolist()
    assert pandas.read_excel(io.BytesIO(files["final.xlsx"]))["order"].tolist() == frame["order"].tolist()
