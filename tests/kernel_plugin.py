"""A plugin of pytest that refuses to start if OpenBLAS does not use the kernel that ``SUFFICE_KERNEL`` names."""

import os

import pytest

# OpenBLAS reports the first name of a kernel that has several.
_REPORTED = {"prescott": "katmai"}


def require_kernel() -> None:
    """Raise an error unless each OpenBLAS of this process uses the requested kernel."""
    import numpy as np
    import scipy.linalg
    from threadpoolctl import threadpool_info

    wanted = os.environ["SUFFICE_KERNEL"]
    # Both libraries have an OpenBLAS of their own.
    assert np.linalg.norm(np.ones(4)) == scipy.linalg.norm(np.ones(4))
    found = sorted({str(each.get("architecture")) for each in threadpool_info() if each["internal_api"] == "openblas"})
    name = wanted.lower()
    if not found or {each.lower() for each in found} - {name, _REPORTED.get(name)}:
        raise RuntimeError(f"OpenBLAS uses {', '.join(found) or 'nothing'} instead of {wanted}")


def pytest_sessionstart(session: pytest.Session) -> None:  # noqa: ARG001
    """Check the kernel of each process of the tests."""
    require_kernel()
