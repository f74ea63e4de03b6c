"""Every test runs on one BLAS thread: two make small fits slower, and results depend on the split."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "suffice", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], max_examples=100
)
settings.load_profile("suffice")

# This script works with suffice 0.6.0 only.
collect_ignore = ["session/projects_of_0_6_0/create_projects.py"]


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: "os.PathLike[str]", monkeypatch: pytest.MonkeyPatch) -> None:
    """No test or documented example leaves a file behind."""
    monkeypatch.chdir(tmp_path)
