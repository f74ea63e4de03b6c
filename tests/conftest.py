"""Every test runs on one BLAS thread: two make small fits slower, and results depend on the split."""

import os
import signal
from collections.abc import Iterator

os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "suffice", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], max_examples=100
)
settings.load_profile("suffice")

# This script works with suffice 0.6.0 only.
collect_ignore = ["project/projects_of_0_6_0/create_projects.py"]


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: "os.PathLike[str]", monkeypatch: pytest.MonkeyPatch) -> None:
    """No test or documented example leaves a file behind."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let SIGINT interrupt this process and those that the test starts.

    A background job (``nohup``, a job runner, ``&`` in a script) ignores SIGINT, and its children inherit that.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
