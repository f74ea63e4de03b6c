"""The frameworks that the adapters are tested with: requirements, versions, and the examples of the page."""

import re
import subprocess
import sys
from importlib.machinery import PathFinder
from pathlib import Path

import pytest

from tests.integrations import environments
from tests.integrations.snippets import SNIPPETS

PAGE = Path(__file__).parents[2] / "docs" / "frameworks.md"


def test_every_framework_has_tests() -> None:
    for name in environments.names():
        assert (Path(__file__).parent / f"test_{name}.py").is_file(), name


@pytest.mark.parametrize("name", [path.stem for path in sorted(environments.REQUIREMENTS.glob("*.txt"))])
def test_requirements_are_pinned(name: str) -> None:
    assert environments.pins(name)
    assert name not in environments.IN_DEVELOPMENT


def test_the_table_has_the_versions_that_are_required() -> None:
    tested = {row.framework: row.version for row in environments.read_table()}
    for name in environments.names():
        for framework, version in environments.pins(name).items() if name not in environments.IN_DEVELOPMENT else ():
            assert tested.get(framework) == version, f"run: make test-integrations NAMES={name}"
        for framework in environments.IN_DEVELOPMENT.get(name, []):
            assert framework in tested, f"run: make test-integrations NAMES={name}"


def test_the_page_shows_every_snippet_and_a_test_runs_it() -> None:
    shown = re.findall(r"\{literalinclude\} snippets/(\w+)\.py", PAGE.read_text())
    written = sorted(path.stem for path in SNIPPETS.glob("*.py"))
    assert sorted(shown) == written
    tests = "\n".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    assert [name for name in written if f'run_snippet("{name}")' not in tests] == []


def test_no_example_has_the_name_of_a_module_that_it_hides_from_its_own_folder() -> None:
    names = {path.stem for folder in ("snippets", "examples") for path in (SNIPPETS.parent / folder).glob("*.py")}
    assert len(names) > 20
    assert names.isdisjoint(sys.stdlib_module_names)
    # Other tests put the folders of the documentation on the path.
    installed = [path for path in sys.path if not Path(path).resolve().is_relative_to(SNIPPETS.parent)]
    assert not [name for name in names if PathFinder.find_spec(name, installed)]
    # What is shown, whether or not it is installed here.
    shown = {*environments.names(), *(name for each in environments.names() for name in environments.packages(each))}
    assert names.isdisjoint(name.replace("-", "_").lower() for name in shown)


def test_a_table_is_written_and_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "TABLE", tmp_path / "versions.md")
    monkeypatch.setattr(environments, "REQUIREMENTS", tmp_path)
    (tmp_path / "b.txt").write_text("# why\nb-framework[extra]==1.2.3\nother>=1\n")
    assert environments.pins("b") == {"b-framework": "1.2.3"}
    first = environments.Row("b-framework", "1.2.2", "`make test-integrations`", 3)
    environments.write_table([first, environments.Row("gone", "1", "`make test`", 1)])
    assert environments.read_table() == [first]
    environments.write_table([first._replace(version="1.2.3")])
    assert [row.version for row in environments.read_table()] == ["1.2.3"]


@pytest.mark.slow
def test_no_module_imports_its_framework() -> None:
    """A framework is imported when an object of the module is made."""
    folder = Path(__file__).parents[2] / "src" / "suffice" / "integrations"
    modules = [f"suffice.integrations.{path.stem}" for path in folder.glob("*.py") if path.stem != "__init__"]
    frameworks = "small_text asreview baal skorch torch optuna botorch gpytorch mlflow wandb arviz pymc numpyro"
    code = (
        "import sys, importlib; import suffice.integrations; "
        f"[importlib.import_module(name) for name in {modules!r}]; "
        f"print(*[name for name in {frameworks.split()!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_an_unknown_framework_is_refused() -> None:
    with pytest.raises(SystemExit, match=r"no framework other; there are .*scikit_activeml"):
        environments.main(["other"])
