"""A project served by a process of its own, and pages of a real browser that note whatever goes wrong in them."""

import csv
import json
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx
import pytest

from suffice.project.create import open_project
from suffice.project.events import Event, EventKind
from tests.processes import ForkedProcess, start_suffice

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
#: Waits in the page until an expression holds; a question for each look would take far more of the processor.
_WAIT = """async () => {
    for (let tries = 0; tries < 1500; tries++) {
        if (EXPRESSION) return true;
        await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return false;
}"""
# The details of the statement above the item are open, as for a person who has opened them before.
_WHY = "try { localStorage.setItem('suffice.why', 'open') } catch { /* no page yet */ }"
#: Said by a page whenever the policy stops something.
_TELL = "document.addEventListener('securitypolicyviolation', (e) => console.error('policy: ' + e.violatedDirective))"


@contextmanager
def chromium() -> "Iterator[Browser]":
    """The browser; the test is skipped by name where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--headless", "--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


class Server:
    """``suffice serve`` in a process of its own, which can be killed and started again at the same address."""

    def __init__(self, data: Path, *options: str) -> None:
        self.project = data.with_suffix(".suffice")
        self.url = self.token = ""
        self._arguments = ["serve", str(data), *options, "--json", "--port"]
        self._process: ForkedProcess | None = None

    def start(self) -> None:
        """Start, and wait until it answers."""
        port = urlsplit(self.url).port or 0
        self._process = start_suffice(*self._arguments, str(port), stderr=None)
        assert self._process.stdout is not None
        said = json.loads(self._process.stdout.readline())
        self.url, self.token = said["url"].partition("?")[0], said["token"]

    @property
    def link(self) -> str:
        """The address to open first, with the token."""
        return f"{self.url}?token={self.token}"

    @property
    def headers(self) -> dict[str, str]:
        """What a script sends."""
        return {"Authorization": f"Bearer {self.token}"}

    def kill(self) -> None:
        """End it as a power cut would."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def events(self, *kinds: EventKind) -> list[Event]:
        """What stands in the journal, of these kinds."""
        with open_project(self.project) as project:
            return [event for event in project.events() if event.kind in kinds]

    def labels(self) -> list[tuple[int, Any]]:
        """All labels of the journal in order, undone ones too: item and label."""
        return [(event.item or 0, event.data["label"]) for event in self.events(EventKind.labelled)]


@contextmanager
def served(data: Path, *options: str) -> Iterator[Server]:
    """A server of a file, stopped at the end."""
    server = Server(data, *options)
    server.start()
    try:
        yield server
    finally:
        server.kill()


def call(method: str, url: str, **options: Any) -> httpx.Response:
    """Ask a server as a script does; certificates, of which it has none, would take longer to read than its answer."""
    return httpx.request(method, url, timeout=60.0, verify=False, **options)


def write_rows(path: Path, names: Sequence[str], rows: Sequence[Sequence[object]]) -> Path:
    """Write a CSV file."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([names, *rows])
    return path


class Watched:
    """A page of one person, and everything that it asked for or complained of."""

    def __init__(self, browser: "Browser", server: Server, person: str, *, why: bool = True, **options: Any) -> None:
        self.server = server
        self.complaints: list[str] = []
        self.addresses: list[str] = []
        self._context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
        self._context.add_init_script(_TELL)
        if why:
            self._context.add_init_script(_WHY)
        self.page: Page = self._context.new_page()
        self.page.on("console", lambda said: self._note(said.type, said.text))
        self.page.on("pageerror", lambda error: self._note("error", str(error)))
        self.page.on("request", lambda request: self.addresses.append(request.url))
        self.enter(person)

    def enter(self, person: str) -> None:
        """Open the page and come in under a name."""
        self.page.goto(self.server.link)
        self.page.fill("#your-name", person)
        self.page.keyboard.press("Enter")
        self.item()

    def _note(self, kind: str, text: str) -> None:
        if kind in {"error", "warning"}:
            self.complaints.append(text)

    def item(self) -> int:
        """The item on the screen, once it may be answered."""
        article = self.page.wait_for_selector("article[data-ready=true]")
        assert article is not None
        return int(article.get_attribute("data-item") or -1)

    def press(self, key: str) -> int:
        """Answer the item on the screen by a key, wait for the next one, and say which was answered."""
        item = self.item()
        self.page.keyboard.press(key)
        self.page.wait_for_selector(f"article[data-ready=true]:not([data-item='{item}'])")
        return item

    def said(self, text: str) -> None:
        """Wait until the page says something in passing."""
        self.page.wait_for_selector(f"#toast.shown:has-text({json.dumps(text)})")

    def go(self, view: str) -> None:
        """Change the view."""
        self.page.click(f".tabs a[data-view={view}]")
        self.page.wait_for_selector(f"#view-{view}:visible")

    def settle(self) -> None:
        """Wait until the server has acknowledged everything."""
        self.until("Object.keys(sessionStorage).every((key) => !key.startsWith('suffice.outbox'))")

    def until(self, expression: str) -> None:
        """Wait until an expression holds; the browser's own way of waiting is what the page's policy forbids."""
        assert self.page.evaluate(_WAIT.replace("EXPRESSION", expression)), f"never came true: {expression}"

    def close(self, *, unreachable: bool = False) -> None:
        """Close the page; it must have asked its own server only, and have nothing to complain of."""
        self._context.close()
        foreign = {url for url in self.addresses if not url.startswith((self.server.url, "blob:", "data:"))}
        assert not foreign
        # A browser itself notes each request that finds no server, or one that was started anew and has another key.
        left = [text for text in self.complaints if not (unreachable and re.search(r"net::ERR_|403", text))]
        assert not left
