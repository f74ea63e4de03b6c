"""Threads: one BLAS thread for small work, and objects that only one thread may use at a time."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from threading import RLock
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from threadpoolctl import ThreadpoolController

from suffice.errors import SufficeError

_P = ParamSpec("_P")
_R = TypeVar("_R")


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


@contextmanager
def one_thread() -> Iterator[None]:
    """Run with one BLAS thread; also as a decorator.

    A second thread makes small computations slower, and much slower on a busy machine.
    """
    # Reading the setting is much faster than changing it, and often no change is needed.
    if all(library.num_threads == 1 for library in _blas().lib_controllers):
        yield
    else:
        with _blas().limit(limits=1):
            yield


class SingleUse:
    """Detects that another thread is using an object. A copy belongs to the copied object."""

    def __init__(self) -> None:
        self._lock = RLock()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            raise SufficeError(
                "another thread is using this object; use one for each thread, or protect it with a threading.Lock"
            )

    def __exit__(self, *raised: object) -> None:
        self._lock.release()

    def __reduce__(self) -> Any:
        return SingleUse, ()


class _UsedByOne(Protocol):
    _single_use: SingleUse


_S = TypeVar("_S", bound=_UsedByOne)


def one_at_a_time(method: Callable[Concatenate[_S, _P], _R]) -> Callable[Concatenate[_S, _P], _R]:
    """Make a method raise an error while another thread is in a method of the same object.

    The object has the attribute ``_single_use``. A method may call others.

    Raises:
        SufficeError: By the method, if another thread is using the object.
    """

    @wraps(method)
    def called(owner: _S, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        with owner._single_use:
            return method(owner, *args, **kwargs)

    return called
