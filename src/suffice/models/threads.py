"""One BLAS thread for small work: a second costs more than it brings, and very much more on a busy machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def one_thread() -> Iterator[None]:
    """Run with one BLAS thread; also as a decorator."""
    with _controller().limit(limits=1, user_api="blas"):
        yield
