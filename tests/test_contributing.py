"""CONTRIBUTING.md is current: its figure, its files and names exist, and its rule can be added as it says."""

import importlib
import importlib.util
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.learner import test_backends
from tests.structure import ROOT

SOURCE = ROOT / "src" / "suffice"
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
CODE = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", TEXT, flags=re.DOTALL | re.MULTILINE))
GUIDES = ("Add a rule", "Add a model", "Add an export format", "Add an adapter")


@pytest.fixture(scope="module")
def layers() -> ModuleType:
    spec = importlib.util.spec_from_file_location("layers", ROOT / "docs" / "layers.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def section(title: str) -> str:
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", TEXT, flags=re.DOTALL | re.MULTILINE)
    assert found is not None, title
    return found[1]


@pytest.mark.slow
def test_the_figure_of_the_layers_is_current(layers: ModuleType) -> None:
    assert layers.FIGURE.read_text(encoding="utf-8") == layers.layers_svg(), "run: python docs/layers.py"


@pytest.mark.slow
def test_the_figure_can_be_read_on_a_telephone(layers: ModuleType) -> None:
    svg = layers.layers_svg()
    (width,) = re.findall(r'<svg [^>]*\bwidth="(\d+)"', svg)
    shown = min(1.0, 358 / int(width))  # 390 pixels less the margins of a page
    assert min(int(size) for size in re.findall(r"font-size:(\d+)px", svg)) * shown >= 11.0
    letters = max(len(re.sub(r"<[^>]*>", "", text)) for text in re.findall(r"<text .*?</text>", svg))
    assert letters * 7.5 < int(width), "a line is longer than the figure"


@pytest.mark.slow
def test_the_figure_has_every_package_in_an_order_in_which_imports_point_down(layers: ModuleType) -> None:
    rows: list[list[str]] = layers.contract_layers()
    place = {name: number for number, row in enumerate(rows) for name in row}
    packages = {path.stem for path in (ROOT / "src" / "suffice").iterdir() if not path.name.startswith("_")}
    assert place.keys() == layers.CONTENTS.keys() == packages - {"py"}
    for name, imported in layers.direct_imports().items():
        assert all(place[other] >= place[name] for other in imported if name in place)


@pytest.mark.parametrize("title", GUIDES)
def test_a_guide_has_at_most_six_steps(title: str) -> None:
    assert 1 <= len(re.findall(r"^\d\. ", section(title), flags=re.MULTILINE)) <= 6


def test_files_that_are_named_exist() -> None:
    named = [text for text in CODE if re.fullmatch(r"[\w.-]+(/[\w.-]+)*", text) and ("/" in text or "." in text)]
    paths = [text for text in named if "/" in text or text.endswith((".md", ".toml"))]
    assert len(paths) > 15
    created = {".venv/bin/pre-commit"}
    assert [path for path in paths if path not in created and not (ROOT / path).exists()] == []


def test_names_and_targets_that_are_named_exist() -> None:
    names = [text for text in CODE if re.fullmatch(r"suffice(\.\w+)+", text)]
    assert len(names) >= 4
    for name in names:
        module, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(module), attribute), name
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^make ([\w-]+)|`make ([\w-]+)`", TEXT, flags=re.MULTILINE):
        assert re.search(rf"^{''.join(target)}:", makefile, flags=re.MULTILINE), target


ADDED = """
import pytest
import suffice as sf
from suffice.criteria import RULES
from suffice.cli.rule_options import named_rules
from suffice.criteria.base import example_rule, rule_info, rule_summary
from suffice.errors import InvalidValueError, MissingInputError
from suffice.testing import check_criterion

rule = RULES["RestLimit"]
assert sf.RestLimit is rule and "RestLimit" in sf.criteria.__all__ and "RestLimit" in named_rules()
assert rule_summary(rule) == "Stop when few items of the pool have no label, as an example of a rule."
check_criterion(lambda: example_rule(rule))
with pytest.raises(MissingInputError, match="requires pool_size"):
    rule(3).observe(sf.Step(n_labelled=3))
with pytest.raises(InvalidValueError, match="most must be a whole number, 0 or more, not -1"):
    rule(-1)
(compared,) = rule_info(rule).compared
stops = [rule(setting).observe(sf.Step(n_labelled=50, pool_size=100)).stop for setting in compared.settings]
assert stops == sorted(stops, reverse=True) and any(stops) and not all(stops)
print(sf.__file__)
"""


def python_blocks(title: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", section(title), flags=re.DOTALL | re.MULTILINE)


def copied_package(folder: Path) -> Path:
    """Copy the package, with the bytecode of its files, so that the processes of a test need not compile them."""
    return Path(shutil.copytree(SOURCE, folder / "suffice"))


def touched(package: Path) -> set[str]:
    """The source files of a copy of the package that are new or changed."""
    files = [path.relative_to(package) for path in package.rglob("*") if path.is_file()]
    return {
        str(file)
        for file in files
        if "__pycache__" not in file.parts
        and not ((SOURCE / file).is_file() and (SOURCE / file).read_bytes() == (package / file).read_bytes())
    }


def replace_once(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1, (file.name, old)
    file.write_text(text.replace(old, new), encoding="utf-8")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with the rule of the guide, added as its steps say."""
    (code,) = python_blocks("Add a rule")
    copied = copied_package(tmp_path_factory.mktemp("rule"))
    module = copied / "criteria" / "budget.py"
    text = module.read_text(encoding="utf-8")
    (names,) = re.findall(r"^__all__ = \[(.*?)\]", text, flags=re.DOTALL | re.MULTILINE)
    listed = sorted([*re.findall(r'"(\w+)"', names), "RestLimit"])
    text = text.replace(f"__all__ = [{names}]", f"__all__ = {json.dumps(listed)}")
    module.write_text(f"{text}\n\n{code}", encoding="utf-8")
    return copied


def run_python(*arguments: str, package: Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(package.parent), str(ROOT)])
    return subprocess.run(
        [sys.executable, *arguments],
        env={"PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "COLUMNS": "200"},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )


# One process runs several commands, because each process imports the package again.
COMMANDS = """
import json, sys
from suffice.cli.app import run

for command in json.loads(sys.argv[1]):
    sys.argv[1:] = command
    try:
        status = run()
    except SystemExit as end:
        status = end.code
    assert not status, (command, status)
    print(end="\\0")
"""


def run_commands(*commands: list[str], package: Path, cwd: Path) -> list[str]:
    """Return what each command prints."""
    done = run_python("-c", COMMANDS, json.dumps(commands), package=package, cwd=cwd)
    assert done.returncode == 0, done.stderr
    printed = done.stdout.split("\0")
    assert printed.pop() == ""
    assert len(printed) == len(commands)
    return printed


def written_table(folder: Path) -> str:
    """A table with a column of classes and one of numbers."""
    rows = [f"{k % 7},{k % 5},{'ab'[k % 2]},{k % 3}.5" for k in range(60)]
    (folder / "table.csv").write_text("\n".join(["u,v,class,number", *rows]) + "\n", encoding="utf-8")
    return "table.csv"


def test_a_rule_is_added_as_the_steps_say(package: Path) -> None:
    done = run_python("-c", ADDED, package=package)
    assert done.stderr == ""
    assert Path(done.stdout.strip()).parent == package


def test_a_rule_touches_one_source_file_and_commands_have_it(package: Path, tmp_path: Path) -> None:
    assert touched(package) == {"criteria/budget.py"}
    table = written_table(tmp_path)
    options = ["--target", "class", "--rule", "RestLimit", "--json"]
    [printed] = run_commands(["run", table, *options], package=package, cwd=tmp_path)
    told = json.loads(printed)
    assert (told["decision"]["rule"], told["stopped"]) == ("RestLimit", True)


@pytest.mark.slow
def test_the_added_rule_passes_the_tests_and_checks_that_the_steps_name(package: Path) -> None:
    steps = section("Add a rule")
    assert "pytest tests/criteria -k NAME" in steps
    options = ["-n", "0", "-q", "-p", "no:cacheprovider", "-o", "addopts="]
    tested = run_python(
        "-m", "pytest", *options, "tests/criteria/test_every_rule.py", "-k", "RestLimit", package=package
    )
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert re.search(r"[1-9]\d* passed", tested.stdout), tested.stdout
    module, configuration = package / "criteria" / "budget.py", f"--config={ROOT / 'pyproject.toml'}"
    for command in (["ruff", "format", "--check"], ["ruff", "check"]):
        assert " ".join(command[:2]) in steps
        done = run_python("-m", *command, "--no-cache", configuration, str(module), package=package)
        assert done.returncode == 0, done.stdout + done.stderr


POSTERIOR = """
@dataclass(frozen=True)
class MeanPosterior:
    \"\"\"The posterior of one number.\"\"\"

    mean: float
    variance: float


@register_kl(MeanPosterior, MeanPosterior)
def mean_kl(p: MeanPosterior, q: MeanPosterior) -> float:
    \"\"\"KL divergence of two normal distributions.\"\"\"
    ratio = p.variance / q.variance
    return 0.5 * (ratio - 1.0 - math.log(ratio) + (p.mean - q.mean) ** 2 / q.variance)


"""
FACTORY = """
def _constant(options: ModelRequest) -> Any:
    from suffice.models.constant import ConstantMean

    return ConstantMean()


"""


@pytest.fixture(scope="module")
def with_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with the small model family of the tests, and a posterior of its own, added as above."""
    copied = copied_package(tmp_path_factory.mktemp("model"))
    model = inspect.getsource(test_backends.ConstantMean).replace("Gaussian(", "MeanPosterior(")
    imports = (
        "import math\nfrom dataclasses import dataclass\nfrom typing import Any\n\nimport numpy as np\n"
        "from sklearn.base import BaseEstimator, RegressorMixin\n\nfrom suffice.divergence import register_kl\n"
        "from suffice.numerics import Floats\n\n"
    )
    (copied / "models" / "constant.py").write_text(f"{imports}{POSTERIOR}{model}", encoding="utf-8")
    names = copied / "models" / "__init__.py"
    replace_once(names, '    "BayesianRidge",\n', '    "BayesianRidge",\n    "ConstantMean",\n')
    replace_once(names, '    "DropoutNetwork": ', '    "ConstantMean": "constant",\n    "DropoutNetwork": ')
    backend = inspect.getsource(test_backends.ConstantBackend).replace(
        "class ", "@register_backend(ConstantMean)\nclass "
    )
    imports = (
        "from typing import Any\n\nimport numpy as np\n\nimport suffice as sf\n"
        "from suffice.divergence import KLPair\nfrom suffice.errors import InvalidValueError\n"
        "from suffice.learner.backend import Backend, RunSettings, StepResults, register_backend\n"
        "from suffice.models.constant import ConstantMean\n\n\n"
    )
    (copied / "learner" / "constant_backend.py").write_text(f"{imports}{backend}", encoding="utf-8")
    factory = copied / "models" / "factory.py"
    replace_once(factory, "\n_NUMBERS: Final[", f"{FACTORY}_NUMBERS: Final[")
    declared = '    "constant": ModelFamily(_NUMBERS, "one number for all items", _constant),\n'
    replace_once(factory, '    "logistic": ModelFamily(', f'{declared}    "logistic": ModelFamily(')
    return copied


USED_MODEL = """
import numpy as np
import suffice as sf
from suffice.models.factory import MODEL_FAMILIES, make_model, model_names
from suffice.project import create_project

assert "constant" in model_names("regression") and "ConstantMean" in sf.models.__all__
X, y = np.arange(40.0)[:, None], np.arange(40.0) % 3.0
trace = sf.simulate(sf.models.ConstantMean(), X, y, steps=5, rule=sf.Budget(9))
assert len(trace) and trace.kl_new_old.min() > 0.0
posterior = sf.models.ConstantMean().fit(X, y).posterior_
assert sf.kl(posterior, posterior) == 0.0
learner = sf.ActiveLearner(make_model("constant"), X, criterion=sf.Budget(15), seed=0)
while not learner.tell(item := learner.ask(), y[item]).stop:
    pass
assert len(learner.labelled) == 15
again = sf.ActiveLearner.from_state(learner.state_dict(), make_model("constant"), X)
assert again.ask() == learner.ask()
project = create_project("p.suffice", {"x": X[:, 0]}, regression=True, target="y", model="constant", rule=sf.Budget(30))
for _ in range(12):
    [asked] = project.next("ann")
    project.label(asked.position, float(y[asked.position]), person="ann")
project.close()
"""


def test_a_model_touches_four_source_files_and_loops_projects_and_commands_have_it(
    with_model: Path, tmp_path: Path
) -> None:
    assert touched(with_model) == {
        *("models/constant.py", "models/__init__.py", "models/factory.py", "learner/constant_backend.py"),
    }
    done = run_python("-c", USED_MODEL, package=with_model, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    table = written_table(tmp_path)
    options = ["--target", "number", "--ignore", "class", "--model", "constant", "--rule", "ErrorStability", "--json"]
    status, run, *helps = run_commands(
        *(["status", "p.suffice", "--json"], ["run", table, *options], ["run", "--help"], ["label", "--help"]),
        package=with_model,
        cwd=tmp_path,
    )
    told = json.loads(status)
    assert told["n_labelled"] == 12
    assert "one number for all items" in json.dumps(told)
    assert "constant" in json.dumps(json.loads(run))
    assert all("constant" in text for text in helps)


USED_FORMAT = """
import json
from fastapi import FastAPI
from suffice.web.routes import file_router

app = FastAPI()
app.include_router(file_router)
paths = app.openapi()["paths"]
for path in ("/api/export/labels", "/api/export/rows", "/api/final"):
    (found,) = [each for each in paths[path]["get"]["parameters"] if each["name"] == "format"]
    assert "tsv" in json.dumps(found), found
    assert "text/tab-separated-values" in paths[path]["get"]["responses"]["200"]["content"]
"""


@pytest.fixture(scope="module")
def with_format(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with the format of the guide, added as its steps say."""
    copied = copied_package(tmp_path_factory.mktemp("format"))
    declared, function = python_blocks("Add an export format")
    replace_once(copied / "tables" / "table_formats.py", '    "jsonl": ', f'{declared}    "jsonl": ')
    module = copied / "tables" / "file_writer.py"
    replace_once(module, "def write_json_lines(", f"{function}\n\ndef write_json_lines(")
    return copied


def test_an_export_format_touches_two_source_files_and_commands_and_the_interface_have_it(
    with_format: Path, tmp_path: Path
) -> None:
    assert touched(with_format) == {"tables/table_formats.py", "tables/file_writer.py"}
    project = tmp_path / "t.suffice"
    project.mkdir()
    shutil.copy(ROOT / "tests" / "project" / "projects_of_1_0_0rc1" / "numbers.sqlite", project / "project.sqlite")
    (tmp_path / "new.csv").write_text("a,b\n0.5,0.25\n", encoding="utf-8")
    *_, export_help = run_commands(
        ["export", "t.suffice", "--format", "tsv"],
        ["export", "t.suffice", "--all-rows", "all.tsv"],
        ["predict", "t.suffice", "new.csv", "--out", "new.tsv"],
        ["export", "--help"],
        package=with_format,
        cwd=tmp_path,
    )
    head, *rows = (project / "export" / "labels.tsv").read_text(encoding="utf-8").splitlines()
    assert head.split("\t")[:4] == ["id", "a", "b", "y"]
    assert [len(row.split("\t")) for row in rows] == [len(head.split("\t"))] * 24
    assert len((tmp_path / "all.tsv").read_text(encoding="utf-8").splitlines()) == 41
    assert (tmp_path / "new.tsv").read_text(encoding="utf-8").splitlines()[0].startswith("a\tb\ty")
    assert "tsv" in export_help
    done = run_python("-c", USED_FORMAT, package=with_format, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
