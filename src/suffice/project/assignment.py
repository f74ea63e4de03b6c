"""Assignment of items to people: which items a person is asked for next, and why."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from suffice.arguments import whole
from suffice.project.events import Draft, EventKind, checked_person
from suffice.project.journal import ProjectJournal
from suffice.project.settings import Settings
from suffice.project.state import ProjectState

BY_MODEL = "the model is least sure of it"
#: The reason for an item in a screening.
BY_RELEVANCE = "by the model it is the likeliest to be relevant"
AT_FIRST = "drawn at random: the model starts from such items"
TO_ESTIMATE = "drawn at random, to estimate the error"
#: The reason for an item if the model has chosen no free item.
AT_RANDOM = "drawn at random"
SECOND_OPINION = "a second opinion: somebody else has labelled it too"
AGAIN = "asked before and not answered yet"
#: The reason for an item of a random check.
IN_CHECK = "drawn at random for the check"
# Products of a share and a count may be above a whole number by rounding.
_ROUNDING: Final = 1e-9


class Assignment(NamedTuple):
    """An item that a person is asked for.

    Attributes:
        position: The item.
        until: End of the reservation, in seconds since 1970.
        why: Reason for this item.
        new: Whether this is the first request; False if the person was asked before and has not answered.
        random: Whether a new item was drawn at random; None for second opinions, items that were asked for before, and
            items of a check.
        check: Whether it is an item of the open check. The model's prediction must not be shown for it.
    """

    position: int
    until: float
    why: str
    new: bool = True
    random: bool | None = None
    check: bool = False

    def event_data(self, *, started: bool) -> dict[str, Any]:
        """Data for the journal, as JSON values.

        Args:
            started: Whether the model has its first labels.
        """
        data: dict[str, Any] = {"until": self.until, "why": self.why}
        return data if self.random is None else data | {"random": self.random, "started": started}


class AssignmentRequest(NamedTuple):
    """A request for items.

    Attributes:
        person: The person who will label.
        number: Maximal number of items.
        queue: Items chosen by the model, the most useful first.
        order: All items, in the order in which random items are drawn. It does not depend on labels.
        now: The present time, by the clock of the leases.
    """

    person: str
    number: int
    queue: Sequence[int]
    order: NDArray[np.intp]
    now: float


def choose(state: ProjectState, settings: Settings, request: AssignmentRequest) -> list[Assignment]:
    """The next items for a person: items of an open check, unanswered items, second opinions, then new items.

    Before the model has started, new items are drawn at random. Afterwards a share of the new items is drawn at random,
    see :func:`is_random`. The other items are chosen by the model, or at random if the model has chosen none.

    Args:
        state: The state of the project.
        settings: Settings of the project.
        request: The person and the number of items.

    Returns:
        At most the requested number of items. Items that are reserved for other people are not included.
    """
    now, until = request.now, request.now + settings.lease
    pending = state.checks.pending().tolist()
    in_check = frozenset(pending)
    reserved = [(item, lease) for item, lease in state.assigned.of_person(request.person) if lease.until > now]
    unanswered = [_asked_again(state, item, lease.until, now=now, until=until) for item, lease in reserved]
    of_check = [
        assignment._replace(why=IN_CHECK, check=True) for assignment in unanswered if assignment.position in in_check
    ]
    asked = of_check[: request.number]
    taken = {item for item, _ in reserved}

    def free(items: Iterable[int]) -> Iterator[int]:
        """The items that are neither reserved nor assigned in this call."""
        for item in items:
            lease = state.assigned.lease_of(item)
            held = lease is not None and now < lease.until and lease.person != request.person
            if item not in taken and not held:
                taken.add(item)
                yield item

    for item in islice(free(pending), request.number - len(asked)):
        asked.append(Assignment(item, until, IN_CHECK, check=True))
    others = [assignment for assignment in unanswered if assignment.position not in in_check]
    asked += others[: request.number - len(asked)]
    seconds = free(_further_opinions(state, settings, request.person))
    for item in islice(seconds, request.number - len(asked)):
        asked.append(Assignment(item, until, SECOND_OPINION))
    if len(asked) < request.number and (settings.checked is None or settings.goal is not None):
        # Predictions made elsewhere are checked only, unless the goal is about all labels.
        new = _new_items(state, settings, request, free)
        drawn = islice(new, request.number - len(asked))
        asked += [Assignment(item, until, why, random=random) for item, why, random in drawn]
    return asked


def has_started(state: ProjectState, settings: Settings) -> bool:
    """Whether there are enough labels for the model to start."""
    return state.n_labelled >= settings.initial


def is_random(share: float, asked: int, random: int) -> bool:
    """Whether the next new item must be drawn at random.

    Args:
        share: Share of random items.
        asked: New items that were asked for since the model started.
        random: Number of these items that were drawn at random.

    Examples:
        >>> [is_random(0.2, asked, random) for asked, random in ((0, 0), (1, 1), (4, 1), (5, 1))]
        [True, False, False, True]
    """
    return random < share * (asked + 1) - _ROUNDING


def wants_second(settings: Settings, item: int) -> bool:
    """Whether several people are asked for an item. This holds for a share of the items, drawn with the seed."""
    return crc32(f"{settings.pick_seed}:{item}".encode()) < settings.overlap * 2**32


def _asked_again(state: ProjectState, item: int, ends: float, *, now: float, until: float) -> Assignment:
    # The reservation is renewed after half of its time, so that it does not end while the person is labelling.
    fresh = ends - now > (until - now) / 2.0
    return Assignment(item, ends if fresh else until, state.assigned.why(item) or AGAIN, new=not fresh)


def _further_opinions(state: ProjectState, settings: Settings, person: str) -> Iterator[int]:
    if settings.overlap > 0.0:
        missing = state.acts.missing_opinions(person, settings.opinions)
        yield from (item for item in missing if wants_second(settings, item))


# Number of items of the permutation that are examined together.
_LOOKED_AT: Final = 4096


def _permuted(state: ProjectState, order: NDArray[np.intp]) -> Iterator[int]:
    """Iterate over the open items in the order of the permutation, without reading more of the pool than needed."""
    for start in range(0, len(order), _LOOKED_AT):
        yield from map(int, state.labels.open_among(order[start : start + _LOOKED_AT]))


def _new_items(
    state: ProjectState,
    settings: Settings,
    request: AssignmentRequest,
    free: Callable[[Iterable[int]], Iterator[int]],
) -> Iterator[tuple[int, str, bool]]:
    """Items that nobody has answered, each with the reason and whether it is drawn at random."""
    drawn = free(_permuted(state, request.order))
    if not has_started(state, settings):
        yield from ((item, AT_FIRST, True) for item in drawn)
        return
    chosen = free(int(item) for item in request.queue if state.labels.is_open(int(item)))
    asked, random = state.assigned.n_asked, state.assigned.n_random
    by_choice = BY_MODEL if settings.positive is None else BY_RELEVANCE
    while True:
        to_check = is_random(settings.random_share, asked, random)
        item = None if to_check else next(chosen, None)
        by_model = item is not None
        if item is None:
            item = next(drawn, None)
        if item is None:
            return
        yield item, by_choice if by_model else TO_ESTIMATE if to_check else AT_RANDOM, not by_model
        asked, random = asked + 1, random + (not by_model)


class ItemAssigner:
    """Assigns items to people, and writes the assignments to the journal.

    Args:
        journal: Journal of the project.
    """

    def __init__(self, journal: ProjectJournal) -> None:
        self._journal = journal
        # Cache of the order, with the numbers of items that it was drawn for.
        self._order: tuple[tuple[int, int | None], NDArray[np.intp]] | None = None

    def next(self, person: str, n: int = 1, *, queue: Sequence[int] = ()) -> list[Assignment]:
        """The next items for a person, reserved for a while; see :meth:`suffice.project.Project.next`."""
        name, size = checked_person(person), whole(n, "n", least=1)

        def decide(state: ProjectState, now: float) -> tuple[list[Draft], list[Assignment]]:
            settings = self._journal.settings
            request = AssignmentRequest(name, size, queue, self.random_order(state), now)
            assignments = choose(state, settings, request)
            started = has_started(state, settings)
            drafts = [
                Draft(EventKind.asked, name, assignment.position, assignment.event_data(started=started))
                for assignment in assignments
                if assignment.new
            ]
            return drafts, [
                assignment._replace(until=self._journal.wall_time(assignment.until)) for assignment in assignments
            ]

        return self._journal.write(decide)[1]

    def random_order(self, state: ProjectState) -> NDArray[np.intp]:
        """The order in which items are drawn at random. It changes when items are added.

        Args:
            state: The present state.
        """
        drawn_for = state.labels.size, state.n_items_made
        if self._order is None or self._order[0] != drawn_for:
            seed = [self._journal.settings.pick_seed, 7, *([] if state.n_items_made is None else [state.labels.size])]
            self._order = drawn_for, np.random.default_rng(seed).permutation(state.labels.size)
        return self._order[1]
