"""The site: every public name has a page, and every page is reachable."""

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parent.parent / "docs"
MODULES = (
    *("suffice", "suffice.acquisition", "suffice.checks", "suffice.criteria", "suffice.divergence", "suffice.engines"),
    *("suffice.learner", "suffice.models", "suffice.posteriors", "suffice.project", "suffice.recommendation"),
    *("suffice.tables", "suffice.testing"),
)
#: An alias of ``NDArray[np.int64]``, and the version.
WITHOUT_PAGE = {"suffice.acquisition.Indices", "suffice.__version__"}


@pytest.fixture
def api_pages(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    pytest.importorskip("sphinx")
    monkeypatch.syspath_prepend(DOCS)
    yield importlib.import_module("api_pages")
    sys.modules.pop("api_pages")


def test_every_public_name_has_a_page(api_pages: ModuleType) -> None:
    documented = {id(entry.value) for entry in api_pages.all_entries()}
    missing = [
        f"{module}.{name}"
        for module in MODULES
        for name in importlib.import_module(module).__all__
        if not isinstance(value := getattr(importlib.import_module(module), name), ModuleType)
        and id(value) not in documented
    ]
    assert set(missing) <= WITHOUT_PAGE


def test_every_page_of_the_reference_is_generated_once_and_says_how_to_import(api_pages: ModuleType) -> None:
    paths = [entry.path for entry in api_pages.all_entries()]
    assert len(paths) == len(set(paths)) > 250
    entry = api_pages.Entry("suffice.learner", "ActiveLearner", "ask, tell")
    assert "``from suffice import ActiveLearner``" in entry.page()
    assert ".. autoclass:: suffice.learner.ActiveLearner\n   :members: ask, tell\n" in entry.page()
    assert ":no-value:" in api_pages.Entry("suffice.criteria", "RULES").page()
    assert api_pages.Entry("suffice.acquisition.scores", "NAMES").imported == "from suffice.acquisition import NAMES"


def test_summaries_are_one_plain_sentence(api_pages: ModuleType) -> None:
    for entry in api_pages.all_entries():
        assert "\n" not in entry.summary
        assert ":`" not in entry.summary, entry.path


def test_the_navigation_has_every_page() -> None:
    index = (DOCS / "index.md").read_text()
    captions = re.findall(r":caption: (.*)", index)
    assert captions == [
        *("Get started", "Label", "In your loop", "How it decides"),
        *("What it guarantees", "Research", "Reference", "Contribute"),
    ]
    listed = [line for block in re.findall(r"```{toctree}\n(.*?)```", index, re.DOTALL) for line in block.split()]
    missing = {path.stem for path in DOCS.glob("*.md")} - {"index", *listed}
    assert not missing
