"""Projects that are made on one processor and used on another: features of new rows, also without saved files."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from suffice.project.learned_files import FOLDER
from tests.processors import ROOT, environment, reason_against

# Kernels of OpenBLAS; each machine runs two of them.
KERNELS = ("Prescott", "Haswell", "SkylakeX", "ARMV8", "NEOVERSEN1", "CORTEXA57")
N = 240
SCRIPT = """
import json, sys
import numpy as np
from tests.kernel_plugin import require_kernel
from suffice.project.create import create_project, open_project
require_kernel()
task, place, rows, new = sys.argv[1], sys.argv[2], *map(json.loads, sys.argv[3:5])
classes = [f"class {k}" for k in range(int(sys.argv[5]))]
if task == "make":
    create_project(place, rows, classes=classes, id="name", text="text", seed=1).close()
with open_project(place) as project:
    X = project.row_transformer().transform(
        {name: cells for name, cells in new.items() if name != "name"}
    )
print(json.dumps(np.asarray(X).tolist()))
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
    usable = [kernel for kernel in KERNELS if not reason_against(kernel)][:2]
    if len(usable) < 2:
        pytest.skip("OpenBLAS has fewer than two kernels for this processor")
    return usable


def features(kernel: str, *arguments: str) -> Any:
    command = [sys.executable, "-c", SCRIPT, *arguments]
    run = subprocess.run(command, cwd=ROOT, env=environment(kernel), capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return np.array(json.loads(run.stdout))


@pytest.mark.parametrize(("texts", "classes"), [(same_sized, 2), (mixed, 30)])
def test_new_rows_have_the_same_features_on_another_processor(
    texts: Any, classes: int, kernels: list[str], tmp_path: Path
) -> None:
    rows = table(texts(N))
    new = {name: [cells[k] for k in (5, 100, 31)] for name, cells in rows.items()}
    given = [str(tmp_path / "p"), json.dumps(rows), json.dumps(new), str(classes)]
    made = features(kernels[0], "make", *given)
    assert made.shape[1] > 2
    # With the saved transformer, and with one that is fitted again.
    assert np.abs(features(kernels[1], "open", *given) - made).max() <= 1e-9
    shutil.rmtree(tmp_path / "p" / FOLDER)
    assert np.abs(features(kernels[1], "open", *given) - made).max() <= 1e-5
