"""A plugin of pytest that refuses to start if OpenBLAS does not use the kernel that ``SUFFICE_KERNEL`` names."""

import os

import pytest

#: OpenBLAS reports the first name of a kernel that has several.
REPORTED = {"prescott": "katmai"}


def used_kernels() -> list[str]:
    """The kernels that the OpenBLAS of numpy and that of scipy use in this process."""
    import numpy as np
    import scipy.linalg
    from threadpoolctl import threadpool_info

    # Both are loaded when they are used.
    assert np.linalg.norm(np.ones(4)) == scipy.linalg.norm(np.ones(4))
    return sorted({str(each.get("architecture")) for each in threadpool_info() if each["internal_api"] == "openblas"})


def require_kernel() -> None:
    """Raise an error unless each OpenBLAS of this process uses the requested kernel."""
    wanted, found = os.environ["SUFFICE_KERNEL"], used_kernels()
    name = wanted.lower()
    if not found or {each.lower() for each in found} - {name, REPORTED.get(name)}:
        raise RuntimeError(f"OpenBLAS uses {', '.join(found) or 'nothing'} instead of {wanted}")


def pytest_sessionstart(session: pytest.Session) -> None:  # noqa: ARG001
    """Check the kernel of each process of the tests."""
    require_kernel()
