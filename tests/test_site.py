"""The site: every public name has a page, and every page is reachable."""

import importlib
import inspect
import json
import re
import shlex
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import suffice as sf
from tests.processes import run_suffice, start_suffice
from tests.simulated_person import SimulatedPerson

DOCS = Path(__file__).parent.parent / "docs"
MODULES = (
    *("suffice", "suffice.acquisition", "suffice.checks", "suffice.criteria", "suffice.divergence", "suffice.engines"),
    *("suffice.learner", "suffice.models", "suffice.posteriors", "suffice.project", "suffice.tables"),
    *("suffice.testing", "suffice_research.data", "suffice_research.recommendation"),
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


def executed_words() -> set[str]:
    """All words of the examples that a test runs: in docstrings, on pages, of the gallery and of frameworks."""
    root = DOCS.parent
    texts = [path.read_text() for folder in ("snippets", "examples") for path in (DOCS / folder).glob("*.py")]
    for page in (root / "README.md", *DOCS.glob("*.md")):
        texts += re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    for module in (*root.glob("src/**/*.py"), *root.glob("research/src/**/*.py")):
        texts += re.findall(r"^ *(?:>>>|\.\.\.) (.*)$", module.read_text(), re.MULTILINE)
    return {word for text in texts for word in re.findall(r"\w+", text)}


def has_own_example(value: object) -> bool:
    """Whether the docstring of a function or class has an example, or that of a part of the class."""
    parts = [part for name, part in vars(value).items() if name[0] != "_"] if isinstance(value, type) else []
    return any(">>>" in (inspect.getdoc(each) or "") for each in (value, *parts))


def internal_names() -> dict[str, set[str]]:
    """The names that the reference lists as internal, by module."""
    text = (DOCS / "api.md").read_text().partition("## Internal names\n")[2].partition("\n## ")[0]
    listed: dict[str, set[str]] = {}
    for path in re.findall(r"^- `([\w.]+)`", text, re.MULTILINE):
        module, _, name = path.rpartition(".")
        listed.setdefault(module, set()).add(name)
    return listed


def test_every_public_name_has_an_example_that_is_executed() -> None:
    words = executed_words()
    found: dict[str, set[str]] = {}
    for module in map(importlib.import_module, MODULES):
        public = {name: value for name in module.__all__ if not isinstance(value := getattr(module, name), ModuleType)}
        if missing := {name for name, value in public.items() if name not in words and not has_own_example(value)}:
            found[module.__name__] = missing
    assert found == internal_names()


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
        *("Get started", "Label", "Check and finish", "In your loop", "How it decides"),
        *("What it guarantees", "Research", "Reference", "Contribute"),
    ]
    listed = [line for block in re.findall(r"```{toctree}\n(.*?)```", index, re.DOTALL) for line in block.split()]
    missing = {path.stem for path in DOCS.glob("*.md")} - {"index", *listed}
    assert not missing


def test_pages_are_short_enough_to_read() -> None:
    """The list of all public names is the exception."""
    assert [path.name for path in DOCS.glob("*.md") if len(path.read_text().splitlines()) > 350] == ["api.md"]


@pytest.fixture
def gallery(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(DOCS)
    yield importlib.import_module("gallery_pages")
    sys.modules.pop("gallery_pages")


def example_names() -> list[str]:
    return sorted(path.stem for path in (DOCS / "examples").glob("*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("name", example_names())
def test_an_example_of_the_gallery_runs_from_its_own_folder_and_draws(
    name: str, gallery: ModuleType, tmp_path: Path
) -> None:
    for module in {"network": ["torch"], "framework": ["skactiveml"]}.get(name, []):
        pytest.importorskip(module)
    picture = tmp_path / "figure.png"
    printed = gallery.run(name, picture)
    stored = (DOCS / "examples" / f"{name}.txt").read_text()
    # What is printed in detail depends on the versions of other packages.
    assert printed.count("\n") == stored.count("\n") > 0
    assert picture.stat().st_size > 5_000


def test_the_gallery_shows_every_example_and_offers_it_as_a_notebook(gallery: ModuleType) -> None:
    assert sorted(gallery.NAMES) == example_names()
    shown = (DOCS / "gallery.md").read_text()
    for name in gallery.NAMES:
        assert shown.count(f"gallery/{name}\n") == 2, "a card, and the navigation"
        code = [cell.source for cell in gallery.cells(name) if not cell.is_text]
        assert all(source in gallery.page(name) for source in code)
        made = json.loads(gallery.notebook(name))
        assert [cell["source"] for cell in made["cells"] if cell["cell_type"] == "code"] == code
        assert (made["nbformat"], len({cell["id"] for cell in made["cells"]})) == (4, len(made["cells"]))


@pytest.mark.slow
def test_the_commands_of_the_tutorial_lead_to_a_guarantee(tmp_path: Path) -> None:
    text = (DOCS / "tutorial.md").read_text()
    (program,) = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    commands = [shlex.split(line)[1:] for line in re.findall(r"^suffice .*", text, re.MULTILINE)]
    assert [command[0] for command in commands] == ["serve", "status", "check", "export"]
    serve, status, check, export = commands
    made: dict[str, Any] = {}
    exec(program, made)
    truth = list(made["reviews"].values())
    with start_suffice(*serve, "--port", "0", "--no-token", "--json") as server:
        person = SimulatedPerson(json.loads(server.stdout.readline())["url"] if server.stdout else "", truth)
        while not (found := person.label(5))["words"][0].startswith("Time for a check"):
            assert found["n_labelled"] < 150
        assert "Time for a check" in run_suffice(*status).stdout
        started = run_suffice(*check)
        assert started.returncode == 0, started.stderr
        # One at a time: the guarantee is about the model of the check, until it learns more.
        while "Guaranteed" not in " ".join((found := person.label(1))["words"]):
            assert found["n_labelled"] < 200, found["words"]
        assert "Guaranteed: at most" in run_suffice(*status).stdout
        assert run_suffice(*export).returncode == 0
        server.send_signal(signal.SIGINT)
        server.communicate()
    # The sentences that the page quotes are those of the program, with other numbers.
    elsewhere = {"Check the predictions", "You can stop now"}
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    quoted = [" ".join(each.split()) for each in re.findall(r'"([A-Z][^"]+)"', prose)]
    told = "\n".join(person.said).replace("\u00a0", " ")
    for sentence in set(quoted) - elsewhere:
        assert re.search(re.sub(r"\d+(\\\.\d+)?", r"[\\d.]+", re.escape(sentence)), told), sentence
    assert len(quoted) >= 7
    assert text.index("suffice check") < text.index("Export after the guarantee") < text.index("suffice export")
    files = re.findall(r"^\| `([\w.]+)` \|", text, re.MULTILINE)
    assert len(files) == 4
    for name in files:
        assert (tmp_path / "reviews.suffice" / "export" / name).exists(), name


def test_the_decision_diagram_is_what_its_program_draws_and_names_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(DOCS)
    diagram = importlib.import_module("rule_diagram")
    assert (DOCS / "images" / "which-rule.svg").read_text() == diagram.diagram()
    for name, _ in (*(answer for _, answer in diagram.STEPS), diagram.LAST):
        assert name in sf.criteria.RULES or name == "ErrorGuarantee"
