"""Modules that are loaded when something of them is used."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from suffice.cli.late_modules import LateModule, load_late

MODULE = "suffice_slowly_loaded"


@pytest.fixture
def loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module that takes a while, and writes a line to this file each time that it is loaded."""
    lines = tmp_path / "loads"
    (tmp_path / f"{MODULE}.py").write_text(
        f"import time\nwith open({str(lines)!r}, 'a') as file: file.write('loaded\\n')\n"
        "time.sleep(0.2)\ndef double(x): return 2 * x\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    # Removed again at the end.
    monkeypatch.setitem(sys.modules, MODULE, None)
    del sys.modules[MODULE]
    return lines


def test_it_is_loaded_once_by_the_first_of_several_threads(loads: Path) -> None:
    load_late(MODULE)
    late = sys.modules[MODULE]
    assert isinstance(late, LateModule)
    assert not loads.exists()
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(late.double(4))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [8] * 8
    assert loads.read_text() == "loaded\n"
    assert not isinstance(sys.modules[MODULE], LateModule)
    # A module that imported it before has it too, and a missing attribute is an error as always.
    assert late.double(1) == 2
    with pytest.raises(AttributeError, match="triple"):
        _ = late.triple


def test_a_module_that_is_loaded_stays(loads: Path) -> None:
    __import__(MODULE)
    loaded = sys.modules[MODULE]
    load_late(MODULE)
    assert sys.modules[MODULE] is loaded
    assert loads.read_text() == "loaded\n"


def test_parts_of_a_late_package_can_be_imported() -> None:
    program = (
        "from suffice.cli.late_modules import load_late; load_late('scipy.stats');"
        "import scipy, sklearn.base, sys; assert 'scipy.stats._stats_py' not in sys.modules;"
        "from scipy.stats import norm; from scipy.stats.qmc import Sobol; import scipy.stats.distributions as d;"
        "assert d.norm is norm is scipy.stats.norm and Sobol; print('fine')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "fine\n"
