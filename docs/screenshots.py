"""Makes the screenshots of the labelling page in the documentation, with real data and a simulated annotator.

From the root of the repository, with the data sets (``suffice data fetch adult newsgroups``) and chromium::

    .venv/bin/python docs/screenshots.py [--only NAME ...]

Each case is a project that is served by ``suffice serve`` and labelled through its HTTP interface with the true labels,
one at a time, each learned before the next is asked for. The pictures are taken with a real browser.
"""

import argparse
import csv
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import chdir, contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
from playwright.sync_api import Page, sync_playwright
from sklearn.datasets import load_diabetes

from suffice_research.data.catalogue import data_folder
from suffice_research.data.set_readers import read_texts

IMAGES: Final = Path(__file__).parent / "images"
WIDTH, HEIGHT = 1280, 800
#: Labels between two looks at the decision.
STEP: Final = 5
GROUPS: Final = ("rec.autos", "comp.graphics", "talk.politics.guns", "rec.sport.hockey", "sci.med", "sci.space")


class Served:
    """A project in the browser, with an annotator who knows the truth.

    Args:
        url: Where it is served.
        truth: The label of each item.
        page: A page of the browser.
    """

    def __init__(self, url: str, truth: Sequence[Any], page: Page) -> None:
        self._url, self._truth, self._page = url, truth, page
        self._named = False

    def _ask(self, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=600) as answer:
            return json.load(answer)

    def status(self) -> dict[str, Any]:
        """The status once everything is learned."""
        while (found := self._ask("api/status"))["behind"]:
            time.sleep(0.05)
        return dict(found)

    def label(self, n: int) -> dict[str, Any]:
        """Answer so many items."""
        for _ in range(n):
            (given,) = self._ask("api/next", {"person": "Ann", "n": 1})["items"]
            self._ask("api/labels", {"person": "Ann", "item": given["item"], "label": self._truth[given["item"]]})
            self.status()
        return self.status()

    def label_until(self, most: int, done: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Label until a condition holds, or so many items have a label."""
        found = self.status()
        while found["n_labelled"] < most and not (found["n_labelled"] > STEP and done(found)):
            found = self.label(min(STEP, most - found["n_labelled"]))
        print(f"  {found['n_labelled']} labels:", *found["words"], sep="\n    ", flush=True)
        return found

    def check(self, size: int) -> None:
        """Start a check and answer all of it."""
        self._ask("api/checks", {"person": "Ann", "size": size})
        found = self.label(size)
        print(f"  a check of {size}:", *found["words"], sep="\n    ", flush=True)

    def prove(self, at_most: float) -> None:
        """Start a check for a target, and answer until it has ended."""
        self._ask("api/checks", {"person": "Ann", "at_most": at_most})
        while (found := self.label(1))["check"]["state"] == "open":
            pass
        print(f"  a check for {at_most:g}:", *found["words"], sep="\n    ", flush=True)

    def picture(self, name: str, view: str = "", *, height: int = HEIGHT) -> None:
        """Take a picture of a view, or of the report."""
        page = self._page
        page.set_viewport_size({"width": WIDTH, "height": height})
        page.goto(self._url + (view or "#label"))
        page.reload()
        if not self._named:
            # The browser remembers the name.
            page.fill("#your-name", "Ann")
            page.keyboard.press("Enter")
            self._named = True
        if not view:
            page.wait_for_selector("article[data-ready=true]")
        page.wait_for_load_state("networkidle")
        page.wait_for_timeout(1500)
        page.screenshot(path=IMAGES / f"{name}.png")
        print(f"  docs/images/{name}.png", flush=True)


@contextmanager
def started(*arguments: str) -> Iterator[str]:
    """Start a server, and return its address."""
    command = [sys.executable, "-m", "suffice", "serve", *arguments, "--port", "0", "--no-token", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            yield str(json.loads(process.stdout.readline())["url"])
        finally:
            process.terminate()


@contextmanager
def served(page: Page, file: Path, truth: Sequence[Any], *options: str) -> Iterator[Served]:
    """Serve a file as a new project."""
    with started(str(file), *options) as url:
        yield Served(url, truth, page)


def written(path: Path, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Path:
    """Write a table."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([columns, *rows])
    return path


def ends(status: dict[str, Any]) -> bool:
    """Whether the decision is to stop."""
    return status["decision"]["answer"] in ("enough", "limit")


def adult(page: Page, folder: Path) -> None:
    """A table of two classes: the page, the progress and the report name the same numbers; then a check."""
    with (data_folder() / "tables" / "adult.csv").open(encoding="utf-8") as file:
        columns, *rows = csv.reader(file)
    chosen = [rows[k] for k in np.random.default_rng(0).permutation(len(rows))[:4000]]
    truth = [row[-1] for row in chosen]
    data = written(folder / "adult.csv", columns[:-1], [row[:-1] for row in chosen])
    with served(page, data, truth, "--classes", "<=50K,>50K", "--target", "income") as project:
        project.label_until(60, lambda _: False)
        project.picture("page-label")
        project.label_until(600, ends)
        project.picture("decision-adult")
        project.picture("page-progress", "#progress", height=1100)
        project.picture("page-report", "api/report", height=1000)
        project.check(100)
        project.picture("page-guarantee")


def texts(page: Page, folder: Path) -> None:
    """Short texts of six classes, at the number of labels where version 0.6 said "you can stop now"."""
    found = read_texts("newsgroups")
    pairs = [
        (" ".join(text.split())[:200], group.split(".")[-1])
        for text, group in zip(*found, strict=True)
        if group in GROUPS and len(text.split()) > 5
    ]
    chosen = [pairs[k] for k in np.random.default_rng(0).permutation(len(pairs))[:4901]]
    data = written(folder / "messages.csv", ["message"], [[text] for text, _ in chosen])
    classes = ",".join(group.split(".")[-1] for group in GROUPS)
    with served(page, data, [group for _, group in chosen], "--text", "message", "--classes", classes) as project:
        project.label_until(283, lambda _: False)
        project.picture("decision-texts")


def table(page: Page, folder: Path) -> None:
    """A table of 354 patients with a number to predict."""
    found = load_diabetes(as_frame=True, scaled=False)
    frame, progression = found.data[:354], found.target[:354].tolist()
    frame.to_csv(folder / "diabetes.csv", index=False)
    with served(page, folder / "diabetes.csv", progression, "--regression", "--target", "progression") as project:
        project.label_until(354, ends)
        project.picture("decision-table")


def tutorial(page: Page, folder: Path) -> None:
    """The project of the tutorial, with the file that its program makes."""
    text = (IMAGES.parent / "tutorial.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    found: dict[str, Any] = {}
    with chdir(folder):
        exec(program, found)
    truth = list(found["reviews"].values())
    options = ("--text", "review", "--classes", "good,bad", "--at-most", "10%")
    with served(page, folder / "reviews.csv", truth, *options) as project:
        project.picture("tutorial-start")
        project.label_until(20, lambda _: False)
        project.picture("tutorial-label")
        project.label_until(150, lambda status: status["words"][0].startswith("Time for a check"))
        project.picture("tutorial-stop")
        project.prove(0.1)
        project.picture("tutorial-guarantee")
        project.picture("tutorial-report", "api/report", height=1000)


def planner(page: Page, folder: Path) -> None:
    """The planner on the page of a folder of projects, with the values that it begins with."""
    with started("--projects", str(folder)) as url:
        page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
        page.goto(url)
        page.click("#plan summary")
        page.wait_for_selector("#plan svg")
        page.mouse.move(0, 0)
        page.wait_for_timeout(500)
        page.locator("#plan").screenshot(path=IMAGES / "planner.png")
        print("  docs/images/planner.png", flush=True)


CASES: Final = {"adult": adult, "texts": texts, "table": table, "tutorial": tutorial, "planner": planner}


def main() -> None:
    """Make the pictures that are asked for."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--only", nargs="+", choices=sorted(CASES), default=sorted(CASES))
    chosen = reader.parse_args().only
    browser_path = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as driver, tempfile.TemporaryDirectory() as folder:
        browser = driver.chromium.launch(
            executable_path=browser_path, args=["--headless", "--no-sandbox", "--disable-gpu"]
        )
        for name in chosen:
            print(name, flush=True)
            CASES[name](browser.new_context(color_scheme="light").new_page(), Path(folder))
        browser.close()


if __name__ == "__main__":
    main()
