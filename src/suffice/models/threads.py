"""One BLAS thread for small work: a second costs more than it brings, and very much more on a busy machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


@contextmanager
def one_thread() -> Iterator[None]:
    """Run with one BLAS thread; also as a decorator."""
    # To look takes far less time than to set, and there is often nothing to set.
    if all(library.num_threads == 1 for library in _blas().lib_controllers):
        yield
    else:
        with _blas().limit(limits=1):
            yield
