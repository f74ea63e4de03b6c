"""The examples of README and documentation run as they are printed."""

import re
import sys
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest
from sklearn.ensemble import RandomForestClassifier

from tests.thoroughness import thorough

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

LONG = {"any-model.md", "compare.md", "learners.md", "networks.md"}


@pytest.fixture(autouse=True)
def _smaller_forests(monkeypatch: pytest.MonkeyPatch) -> None:
    """The forests of the examples have fewer trees; in the slow tests, those that are printed."""
    if not thorough():
        monkeypatch.setattr("sklearn.ensemble.RandomForestClassifier", partial(RandomForestClassifier, 20))


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE)


@pytest.mark.no_cover
@pytest.mark.parametrize(
    "page",
    # Examples of these pages learn several runs or networks.
    [
        pytest.param(page, id=page.name, marks=[pytest.mark.slow] if page.name in LONG else [])
        for page in PAGES
        if blocks(page)
    ],
)
def test_examples_run(page: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    # A module of its own, so that the dataclasses of the examples find themselves.
    module = ModuleType(f"example_{page.stem.replace('-', '_')}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for block in blocks(page):
        exec(compile(block, str(page), "exec"), module.__dict__)
    for line in re.findall(r"^print\(.*\) +# (Stop .*)$", "\n".join(blocks(page)), flags=re.MULTILINE):
        assert line in capsys.readouterr().out


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "benchmarks/README.md", "research/README.md"])
def test_links_outside_the_documentation_lead_somewhere(page: str) -> None:
    """Sphinx checks the links of the documentation itself."""
    text = (ROOT / page).read_text(encoding="utf-8")
    links = [link.partition("#") for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    for path, _, anchor in links:
        found = (ROOT / page).parent / path if path else ROOT / page
        assert found.is_file(), path
        headings = re.findall(r"^#+ (.*)$", found.read_text(encoding="utf-8"), flags=re.MULTILINE) if anchor else []
        assert not anchor or anchor in {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in headings}


def test_there_are_examples() -> None:
    assert sum(len(blocks(page)) for page in PAGES) >= 10


@pytest.mark.parametrize(
    ("imported", "model", "texts"),
    [
        ("from sklearn.ensemble import HistGradientBoostingClassifier", "HistGradientBoostingClassifier()", False),
        (
            "from sklearn.feature_extraction.text import TfidfVectorizer\n"
            "from sklearn.linear_model import LogisticRegression\n"
            "from sklearn.pipeline import make_pipeline",
            "make_pipeline(TfidfVectorizer(), LogisticRegression())",
            True,
        ),
    ],
    ids=["boosting", "texts"],
)
def test_the_loop_of_the_readme_takes_other_models_without_another_change(
    imported: str, model: str, *, texts: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    (loop,) = [block for block in blocks(ROOT / "README.md") if "StopMonitor" in block]
    assert "RandomForestClassifier(random_state=0)" in loop
    changed = loop.replace("from sklearn.ensemble import RandomForestClassifier", imported)
    changed = changed.replace("RandomForestClassifier(random_state=0)", model)
    if texts:
        made = "X = np.array([f'{w} {k}' for k, w in enumerate(['good', 'bad'] * 300)]); y = np.array([0, 1] * 300)"
        changed = re.sub(r"X, y = load_breast_cancer.*", made, changed)
    exec(compile(changed, "README.md", "exec"), {})
    assert "unlabelled items" in capsys.readouterr().out
