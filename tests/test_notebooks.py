"""The notebooks show what is stored with them, and are short."""

import importlib
import json
import re
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import pytest

from tests.test_language import AVOIDED, AVOIDED_ON_PAGES, LONGEST, found

ROOT = Path(__file__).parents[1]
NAMES = sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))
LARGEST_PICTURE = 60_000


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(ROOT / "docs")
    yield importlib.import_module("notebook_pages")
    sys.modules.pop("notebook_pages")


@pytest.mark.slow
@pytest.mark.all_cases
@pytest.mark.usefixtures("all_trees")
@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_shows_what_is_stored_with_it(name: str, pages: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setenv("MPLBACKEND", "Agg")
    notebook = pages.Notebook(name)
    shown, stored = pages.told(notebook.run()), pages.told(notebook.outputs())
    if notebook.made_with() != version(pages.MODELS):
        # The models of other versions ask for other items.
        shown, stored = ([[len(each) > 0 for each in cell] for cell in cells] for cells in (shown, stored))
    assert shown == stored


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_short_and_says_what_it_does(name: str, pages: ModuleType) -> None:
    content = pages.Notebook(name).content
    cells = content["cells"]
    codes = [cell for cell in cells if cell["cell_type"] == "code"]
    assert (content["nbformat"], len({cell["id"] for cell in cells})) == (4, len(cells))
    assert cells[0]["source"][0].startswith("# ")
    assert len(codes) <= 15
    for cell in cells:
        assert all(len(line.rstrip("\n")) <= LONGEST for line in cell["source"])
        if cell["cell_type"] == "markdown":
            text = re.sub(r"`[^`]+`", "", "".join(cell["source"]))
            assert list(found(text, AVOIDED | AVOIDED_ON_PAGES)) == []
    pictures = pages.Notebook(name).pictures()
    assert len(pictures) <= 1
    assert all(len(picture) < LARGEST_PICTURE for picture in pictures.values())
    assert sum(len(json.dumps(cell["outputs"])) for cell in codes) < 2 * LARGEST_PICTURE


def test_the_site_has_all_notebooks(pages: ModuleType) -> None:
    assert sorted(pages.NAMES) == NAMES
    gallery = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    for name in NAMES:
        assert gallery.count(f"notebooks/{name}") == 2, "a link, and the navigation"
        page = pages.Notebook(name).page()
        for cell in pages.Notebook(name).content["cells"]:
            assert "".join(cell["source"]) in page
        for picture in pages.Notebook(name).pictures():
            assert f"]({picture})" in page


def test_cells_show_their_last_value_unless_a_semicolon_ends_them(pages: ModuleType) -> None:
    place = ModuleType("place")
    assert pages.told([pages._execute("x = 2\nprint('two')\nx", place, 1)]) == [["two\n", "2"]]
    assert pages.told([pages._execute("x + 1;", place, 2)]) == [[]]
    assert pages.told([pages._execute("x = 3", place, 3)]) == [[]]
    with pytest.raises(ZeroDivisionError):
        pages._execute("x / 0", place, 4)
