"""Projects that are made on one processor and used on another: features of new rows, also without saved files."""

import json
import os
import subprocess
import sys
from itertools import islice
from typing import Any

import numpy as np
import pytest

from tests.processors import ROOT, environment, reason_against

# Kernels of OpenBLAS; each machine runs two of them.
KERNELS = ("Prescott", "Haswell", "SkylakeX", "ARMV8", "NEOVERSEN1", "CORTEXA57")
N = 240
# One process makes all projects, and another one uses them: with their saved transformers, and without.
SCRIPT = """
import json, shutil, sys
import numpy as np
from tests.kernel_plugin import require_kernel
from suffice.project.create import create_project, open_project
from suffice.project.learned_files import FOLDER
require_kernel()
folder, cases = sys.argv[2], json.loads(sys.argv[3])
def transformed(name):
    new = {column: cells for column, cells in cases[name]["new"].items() if column != "name"}
    with open_project(f"{folder}/{name}") as project:
        return np.asarray(project.row_transformer().transform(new)).tolist()
found = {}
for name, case in cases.items():
    if sys.argv[1] == "make":
        classes = [f"class {k}" for k in range(case["classes"])]
        create_project(f"{folder}/{name}", case["rows"], classes=classes, id="name", text="text", seed=1).close()
        found[name] = {"made": transformed(name)}
    else:
        found[name] = {"opened": transformed(name)}
        shutil.rmtree(f"{folder}/{name}/{FOLDER}")
        found[name]["fitted again"] = transformed(name)
print(json.dumps(found))
"""


def same_sized(n: int) -> list[str]:
    """Texts in pairs with words of their own: all components have the same size, and only some are kept."""
    return [f"alpha{k // 2} beta{k // 2} gamma{k // 2}" for k in range(n)]


def mixed(n: int) -> list[str]:
    rng = np.random.default_rng(0)
    return [" ".join(f"word{k}" for k in rng.integers(0, 60, 9)) for _ in range(n)]


def table(texts: list[str]) -> dict[str, list[Any]]:
    rng = np.random.default_rng(1)
    names = [f"row {k}" for k in range(len(texts))]
    return {"name": names, "text": texts, "size": rng.normal(size=len(texts)).tolist()}


@pytest.fixture(scope="module")
def kernels() -> list[str]:
    if "SUFFICE_KERNEL" in os.environ:
        pytest.skip("these tests choose kernels themselves")
    usable = list(islice((kernel for kernel in KERNELS if not reason_against(kernel)), 2))
    if len(usable) < 2:
        pytest.skip("OpenBLAS has fewer than two kernels for this processor")
    return usable


CASES = {"same sized": (same_sized, 2), "mixed": (mixed, 30)}


@pytest.fixture(scope="module")
def features(kernels: list[str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Features of the new rows of each case: where it was made, opened elsewhere, and fitted again there."""
    cases = {}
    for name, (texts, classes) in CASES.items():
        rows = table(texts(N))
        new = {column: [cells[k] for k in (5, 100, 31)] for column, cells in rows.items()}
        cases[name] = {"rows": rows, "new": new, "classes": classes}
    found: dict[str, dict[str, Any]] = {name: {} for name in CASES}
    arguments = [str(tmp_path_factory.mktemp("projects")), json.dumps(cases)]
    for kernel, task in zip(kernels, ("make", "open"), strict=True):
        command = [sys.executable, "-c", SCRIPT, task, *arguments]
        run = subprocess.run(command, cwd=ROOT, env=environment(kernel), capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr
        for name, arrays in json.loads(run.stdout).items():
            found[name] |= {what: np.array(rows) for what, rows in arrays.items()}
    return found


# In one process this is tested in test_saved_transformer.py.
@pytest.mark.slow
@pytest.mark.all_cases
@pytest.mark.parametrize("case", CASES)
def test_new_rows_have_the_same_features_on_another_processor(case: str, features: dict[str, dict[str, Any]]) -> None:
    found = features[case]
    assert found["made"].shape[1] > 2
    # With the saved transformer, and with one that is fitted again.
    assert np.abs(found["opened"] - found["made"]).max() <= 1e-9
    assert np.abs(found["fitted again"] - found["made"]).max() <= 1e-5
