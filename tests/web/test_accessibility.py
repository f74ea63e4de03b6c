"""Every view of the page, its windows and the report, checked by axe-core: light and dark, wide and narrow."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.project.test_screening_project import N, Y
from tests.web.browsing import Server, Watched, served, write_rows

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

AXE = Path(__file__).parents[2] / "node_modules" / "axe-core" / "axe.min.js"
VIEWS = ("label", "progress", "labels", "review", "export", "settings")


MISSING = "axe-core is not installed; make lint-js installs it"


def has_axe() -> bool:
    """Whether axe-core is there; in continuous integration, which must not pass without it, the test fails."""
    if not AXE.exists() and (os.environ.get("SUFFICE_CI") or os.environ.get("CI")):
        pytest.fail(MISSING)
    return AXE.exists()


def require_axe() -> None:
    """Skip the test without axe-core."""
    if not has_axe():
        pytest.skip(MISSING)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    require_axe()
    folder = tmp_path_factory.mktemp("axe")
    rows = [(f"text number {k} of {'many' if k % 3 else 'few'} words", k) for k in range(N)]
    data = write_rows(folder / "texts.csv", ("text", "id"), rows)
    guide = folder / "guide.md"
    guide.write_text("# Guide\n\n- *in* is relevant, see [here](https://example.org)\n- `out` is not\n")
    with served(data, "--text", "text", "--classes", "in,out", "--guidelines", str(guide)) as server:
        yield server


@pytest.fixture(scope="module")
def labelled(server: Server, browser: "Browser") -> Server:
    watched = Watched(browser, server, "Ann")
    for _ in range(14):
        watched.press("1" if Y[watched.item()] == "in" else "2")
    watched.settle()
    watched.page.close()
    return server


def violations(page: "Page") -> list[str]:
    """What axe-core finds: the rule, and the first places."""
    page.add_script_tag(path=AXE)
    found: list[dict[str, Any]] = page.evaluate("async () => (await axe.run()).violations")
    return [f"{each['id']}: {json.dumps([node['html'][:120] for node in each['nodes'][:3]])}" for each in found]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scheme", "width"),
    [("light", 1280), ("dark", 390)],
)
def test_no_view_has_a_violation(browser: "Browser", labelled: Server, scheme: str, width: int) -> None:
    options: dict[str, Any] = {"color_scheme": scheme, "viewport": {"width": width, "height": 800}, "bypass_csp": True}
    watched = Watched(browser, labelled, "Ann", **options)
    found = {}
    for view in VIEWS:
        watched.go(view)
        watched.page.wait_for_selector(f".tabs a[data-view={view}][aria-current=page]")
        watched.page.wait_for_timeout(400)
        found[view] = violations(watched.page)
    # On a narrow page it is under Progress only.
    watched.go("progress")
    watched.page.click("text=Check the predictions >> visible=true")
    watched.page.wait_for_selector("dialog .offer")
    found["check"] = violations(watched.page)
    watched.page.goto(f"{labelled.url}api/report")
    found["report"] = violations(watched.page)
    watched.page.close()
    assert {view: each for view, each in found.items() if each} == {}
