"""Run tests with several kernels of OpenBLAS: ``make test-processors``, or ``python -m tests.processors Haswell Zen``.

numpy and scipy multiply matrices with OpenBLAS, which has a kernel for each kind of processor. Kernels add in different
orders, so the last bits of their results differ. A test that passes with the kernel of one machine can fail on another.
OpenBLAS uses the kernel that the variable ``OPENBLAS_CORETYPE`` names. That it really does is asserted with
threadpoolctl, here and in each process of the tests (:mod:`tests.kernel_plugin`). Kernels that this processor cannot
run are listed as not tested.
"""

import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.kernel_plugin import REPORTED

ROOT: Final = Path(__file__).parents[1]
#: Kernels by architecture, those first that differ most from each other.
KERNELS: Final = {
    "x86_64": ("Prescott", "Haswell", "SkylakeX", "Sandybridge", "Zen"),
    "aarch64": ("ARMV8", "NEOVERSEN1", "CORTEXA57"),
}
#: Option for a run after ``make test``.
BESIDE_OWN: Final = "--beside-own"
#: Fewest kernels that must be tested.
FEWEST: Final = 3
#: What depends on the results of OpenBLAS.
FOLDERS: Final = ("tests/tables", "tests/models", "tests/project")
#: Tests there of files, people, checks and given predictions, which a run after ``make test`` leaves out.
OTHERS: Final = (
    *("accounts", "agreement_of_people", "chance_answers", "check_labels", "checked_predictions", "clock", "crash"),
    *("crash_kinds", "crash_processes", "damage", "deferred_features", "journal", "layouts", "past_defects", "people"),
    *("permissions", "project", "project_contents", "project_folder", "project_together", "reliability"),
    *("setting_history", "start_of_checks", "storage", "storage_server", "unsure", "uploaded_files"),
)
# Other names of the architectures.
_NAMES: Final = {"amd64": "x86_64", "arm64": "aarch64"}
_PROBE: Final = """
import numpy as np, scipy.linalg
from tests.kernel_plugin import require_kernel
require_kernel()
A = np.random.default_rng(0).normal(size=(300, 300))
for each in (A, A.astype(np.float32)):
    np.linalg.svd(each @ each.T)
    scipy.linalg.cho_factor(each @ each.T + 300 * np.eye(300, dtype=each.dtype))
"""


def environment(kernel: str) -> dict[str, str]:
    """The variables of a process that uses a kernel."""
    return {**os.environ, "OPENBLAS_CORETYPE": kernel, "SUFFICE_KERNEL": kernel, "OMP_NUM_THREADS": "1"}


def reason_against(kernel: str) -> str:
    """Why a kernel cannot be tested on this machine; empty if it can."""
    probe = subprocess.run(
        [sys.executable, "-c", _PROBE], cwd=ROOT, env=environment(kernel), capture_output=True, text=True, check=False
    )
    if probe.returncode < 0:
        return f"this processor cannot run it (signal {-probe.returncode})"
    return "" if probe.returncode == 0 else probe.stderr.strip().splitlines()[-1]


def tested(kernel: str, options: Sequence[str]) -> bool:
    """Run the tests with a kernel; return whether they passed."""
    workers = str(min(4, 1 + (os.cpu_count() or 1)))
    command = ["-m", "pytest", "-p", "tests.kernel_plugin", "--dist", "worksteal", "-n", workers, "-q", "-rfE"]
    start = time.monotonic()
    run = subprocess.run([sys.executable, *command, *options, *FOLDERS], cwd=ROOT, env=environment(kernel), check=False)
    print(
        f"{kernel}: {'passed' if run.returncode == 0 else 'failed'} in {time.perf_counter() - start:.0f} s", flush=True
    )
    return run.returncode == 0


def own_kernel() -> str:
    """The kernel that OpenBLAS chooses on this processor."""
    probe = "import numpy; from tests.kernel_plugin import used_kernels; print(*used_kernels())"
    run = subprocess.run([sys.executable, "-c", probe], cwd=ROOT, capture_output=True, text=True, check=True)
    return run.stdout.strip()


def main(arguments: Sequence[str]) -> int:
    """Test kernels, all of this architecture or those that are named; arguments with a dash are passed to pytest.

    With ``--beside-own`` only as many are tested as are needed beside the one that ``make test`` uses, without
    :data:`OTHERS`.
    """
    machine = platform.machine().lower()
    known = KERNELS.get(_NAMES.get(machine, machine), ())
    options = [each for each in arguments if each.startswith("-") and each != BESIDE_OWN]
    named = [each for each in arguments if not each.startswith("-")]
    own = own_kernel() if BESIDE_OWN in arguments else ""
    if own:
        options += [f"--ignore=tests/project/test_{name}.py" for name in OTHERS]
    against = {kernel: reason_against(kernel) for kernel in named or known}
    usable = [kernel for kernel, reason in against.items() if not reason]
    enough = usable
    if own:
        # That of this processor is tested by `make test`, whatever its name is.
        enough = [kernel for kernel in usable if REPORTED.get(kernel.lower(), kernel.lower()) != own.lower()]
        enough = enough[: FEWEST - 1]
        against |= {kernel: "others are enough" for kernel in usable if kernel not in enough}
        against |= {own: "it is that of make test"}
    failed = [kernel for kernel in enough if not tested(kernel, options)]
    for kernel, reason in against.items():
        print(f"{kernel}: " + (f"not tested, {reason}" if reason else "failed" if kernel in failed else "passed"))
    count = len(enough) + bool(own)
    if not named and count < FEWEST:
        print(f"only {count} of the kernels of {machine} can be tested here; {FEWEST} are needed")
        return 1
    return 1 if failed or len(usable) < len(named) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
