"""Which item a person is asked for next, when several people label at once."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from suffice.session.settings import Settings
from suffice.session.state import ProjectState

BY_MODEL = "the model is least sure of it"
AT_RANDOM = "drawn at random"
SECOND_OPINION = "a second opinion: somebody else has labelled it too"
AGAIN = "asked before and not answered yet"


class Assignment(NamedTuple):
    """An item that a person is asked for.

    Attributes:
        position: The item.
        until: Until when nobody else is asked for it, in seconds since 1970.
        why: Why this one.
        new: Whether it is asked for now; otherwise it was before, and was not answered.
    """

    position: int
    until: float
    why: str
    new: bool = True


class AssignmentRequest(NamedTuple):
    """What is asked for.

    Attributes:
        person: Who will label.
        number: How many items, at most.
        queue: The model's choice, the most useful first.
        order: All items, in the order in which they come where the model says nothing.
        now: The moment.
    """

    person: str
    number: int
    queue: Sequence[int]
    order: NDArray[np.intp]
    now: float


def choose(state: ProjectState, settings: Settings, request: AssignmentRequest) -> list[Assignment]:
    """The next items for a person: those not answered yet, second opinions, the model's choice, then any other.

    Args:
        state: Where the project stands.
        settings: What it is about.
        request: Who asks for how many.

    Returns:
        At most so many; none that is with somebody else.
    """
    now, until = request.now, request.now + settings.lease
    open_ones = [(item, lease) for item, lease in state.mine(request.person) if lease.until > now]
    asked = [_kept(state, item, lease.until, now=now, until=until) for item, lease in open_ones]
    taken = {each.position for each in asked}
    for item, why in _candidates(state, settings, request):
        if len(asked) >= request.number:
            break
        lease = state.lease(item)
        # One that ends much later than any could was given by a clock that ran ahead.
        held = lease is not None and now < lease.until <= until + settings.lease and lease.person != request.person
        if item in taken or held:
            continue
        taken.add(item)
        asked.append(Assignment(item, until, why))
    return asked[: request.number]


def wants_second(settings: Settings, item: int) -> bool:
    """Whether two people are asked for an item: so for a share of them, drawn by the seed."""
    return crc32(f"{settings.seed}:{item}".encode()) < settings.overlap * 2**32


def _kept(state: ProjectState, item: int, ends: float, *, now: float, until: float) -> Assignment:
    # Half-way through, it is asked for anew, so that it does not run out under somebody's hands.
    fresh = ends - now > (until - now) / 2.0
    return Assignment(item, ends if fresh else until, state.why(item) or AGAIN, new=not fresh)


def _candidates(state: ProjectState, settings: Settings, request: AssignmentRequest) -> Iterator[tuple[int, str]]:
    if settings.overlap > 0.0:
        for item in state.single_opinions(request.person):
            if wants_second(settings, item):
                yield item, SECOND_OPINION
    # Before the model has begun, its choice is as good as any.
    why = BY_MODEL if state.n_labelled >= settings.initial else AT_RANDOM
    yield from ((int(item), why) for item in request.queue if state.is_open(int(item)))
    yield from ((int(item), AT_RANDOM) for item in state.open_among(request.order))
