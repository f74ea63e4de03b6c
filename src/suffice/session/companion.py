"""A thread that follows a project and learns in the background, so that nobody waits for the model."""

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from types import TracebackType
from typing import Any, Final, NamedTuple, Protocol

from suffice.criteria import Verdict
from suffice.errors import SufficeError
from suffice.session.insight import Insight
from suffice.session.learning import Follower, Predictions, reason
from suffice.session.settings import Settings
from suffice.session.state import Call, State
from suffice.special import Floats

# Seconds after which the journal is looked at for what other processes wrote.
_POLL: Final = 1.0
# While there is much to learn: seconds between two insights, and between two looks for the best items.
_PUBLISH, _CHOOSE = 1.0, 4.0
# Somebody who did something within so many seconds will want an item soon.
_ACTIVE: Final = 600.0
_LEAST_QUEUE, _MOST_QUEUE, _ITEMS_A_PERSON = 4, 100, 3
# Seconds that are waited for the end of what cannot be interrupted.
_LEAVING: Final = 10.0


class Followed(Protocol):
    """What there is to be known of a project: :class:`suffice.session.project.Project` has it."""

    @property
    def settings(self) -> Settings:
        """What it is about."""

    @property
    def X(self) -> Floats:  # noqa: N802 - the field's own name
        """Features of its items."""

    @property
    def lock(self) -> AbstractContextManager[Any]:
        """To be held while the state is read."""

    def state(self) -> State:
        """Where it stands."""

    def advise(self, verdict: Verdict) -> bool:
        """Write down that the rule says stop, or no longer does."""


class _Look(NamedTuple):
    """What a look at the project found: what is to be learned, how many items to have ready, whether advice stands."""

    calls: list[Call]
    queue: int
    advised: bool


def queue_size(people: int, left: int) -> int:
    """Items to have ready: a few for each person, so that the next ones are there while the model learns.

    Args:
        people: How many label.
        left: Items neither labelled nor skipped.

    Examples:
        >>> queue_size(1, 1000), queue_size(20, 1000), queue_size(20, 7)
        (4, 60, 7)
    """
    return min(max(_LEAST_QUEUE, _ITEMS_A_PERSON * people), _MOST_QUEUE, left)


class Companion:
    """Follows a project in a thread of its own: learns new labels, keeps items ready, and says when it is enough.

    Whatever fails there is said in the insight, and tried again when labels change; labelling goes on meanwhile.

    Args:
        project: The project.

    Attributes:
        insight: What the model makes of the labels learned so far. It is replaced whole; reading it never waits.
    """

    def __init__(self, project: Followed) -> None:
        self._project = project
        self.insight = Insight()
        self._news = threading.Condition()
        self._woken = self._closing = False
        # What was given up, in calls; -1 while all is well.
        self._given_up = -1
        self._follower: Follower | None = None
        self._in_use = threading.Lock()
        self._done: _Look | None = None
        # Looks at the project so far, and the last of which everything was learned, or given up.
        self._looks = self._settled = 0
        # Whether the past is being learned from the first label on: what it says on the way is not of now.
        self._afresh = True
        self._chosen = float("-inf")
        self._thread = threading.Thread(target=self._run, name="suffice companion", daemon=True)

    def __enter__(self) -> "Companion":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        """Begin to follow."""
        if not self._thread.is_alive():
            self._thread.start()

    def close(self) -> None:
        """Stop following. What is being learned is left where it is; it follows from the journal anyway."""
        with self._news:
            self._closing = True
            self._news.notify_all()
        if self._thread.is_alive():
            self._thread.join(_LEAVING)

    def wake(self) -> None:
        """Say that the journal has something new, which is otherwise seen within a second."""
        with self._news:
            self._woken = True
            self._news.notify_all()

    def wait(self, calls: int, timeout: float) -> bool:
        """Wait until the model has learned.

        Args:
            calls: How many labels and skips it is to have learned, at least.
            timeout: Seconds after which to go on without.

        Returns:
            Whether it has. Where it cannot learn, the answer is no at once.
        """
        with self._news:
            self._news.wait_for(lambda: self._closing or max(self.insight.calls, self._given_up) >= calls, timeout)
            return self.insight.calls >= calls

    def wait_settled(self, timeout: float) -> bool:
        """Wait until everything that the journal holds now is learned, corrections and what was undone included.

        Args:
            timeout: Seconds after which to go on without.

        Returns:
            Whether it is.
        """
        with self._news:
            wanted = self._looks + 1
            self._woken = True
            self._news.notify_all()
            self._news.wait_for(lambda: self._closing or self._settled >= wanted, timeout)
            return self._settled >= wanted and self._given_up < 0

    @property
    def gave_up(self) -> bool:
        """Whether the model cannot learn the labels that there are; the insight says why."""
        return self._given_up >= 0

    def predictions(self) -> Predictions:
        """What the model says of all items, as far as it has learned; it goes on learning meanwhile.

        Raises:
            SufficeError: It has not begun.
        """
        with self._in_use:
            if self._follower is None:
                raise SufficeError(self.insight.problem or "the model has no prediction yet: it has not begun to learn")
            predictor = self._follower.predictor()
        return predictor.predict(self._project.X)

    def _run(self) -> None:
        while not self._closing:
            try:
                behind = self._round()
            except Exception as error:
                # The journal could not be read or written: it is tried again soon.
                self._done, behind = None, False
                self._publish(replace(self.insight, problem=_sentence(error)))
            if not behind:
                self._rest()

    def _round(self) -> bool:
        """Learn for about a second, and say what came of it; whether there is more to do."""
        with self._news:
            self._looks += 1
        number, look = self._looks, self._look()
        if look == self._done:
            self._settle(number)
            return False
        try:
            insight = self._learned(look)
        except Exception as error:
            # No use to try again before something has changed.
            self._done, self._given_up, self._afresh = look, len(look.calls), True
            self._publish(replace(self.insight, problem=_sentence(error)))
            self._settle(number)
            return False
        if self._closing:
            return False
        self._afresh |= insight.calls < self.insight.calls
        behind = insight.verdict is not None and insight.calls < len(look.calls)
        self._given_up = -1 if insight.verdict is not None else len(look.calls)
        self._afresh |= insight.verdict is None
        self._publish(_on_the_way(insight, len(look.calls)) if behind and self._afresh else insight)
        if behind:
            return True
        self._afresh = insight.verdict is None
        if insight.verdict is not None and insight.verdict.stop != look.advised:
            self._project.advise(insight.verdict)
        self._done = look
        self._settle(number)
        return False

    def _settle(self, number: int) -> None:
        with self._news:
            self._settled = number
            self._news.notify_all()

    def _look(self) -> _Look:
        since = time.time() - _ACTIVE
        with self._project.lock:
            state = self._project.state()
            people = sum(each.last >= since for each in state.people.values())
            return _Look(state.calls(), queue_size(people, state.left), state.advice is not None)

    def _learned(self, look: _Look) -> Insight:
        with self._in_use:
            if self._follower is None:
                self._follower = Follower(self._project.settings, self._project.X)
            follower = self._follower
            follower.follow(look.calls, patience=self._patience(_PUBLISH))
            due = follower.calls == len(look.calls) or time.monotonic() - self._chosen > _CHOOSE
            if self._closing:
                return self.insight
            insight = follower.insight(queue=look.queue if due else 0)
        if not due:
            return replace(insight, queue=self.insight.queue)
        self._chosen = time.monotonic()
        return insight

    def _patience(self, seconds: float) -> Callable[[], bool]:
        end = time.monotonic() + seconds
        return lambda: self._closing or time.monotonic() > end

    def _publish(self, insight: Insight) -> None:
        with self._news:
            self.insight = insight
            self._news.notify_all()

    def _rest(self) -> None:
        with self._news:
            self._news.wait_for(lambda: self._woken or self._closing, _POLL)
            self._woken = False


def _on_the_way(insight: Insight, calls: int) -> Insight:
    """What is said while the past is learned from its first label on: how far that is, and no verdict of a part."""
    reason = f"the model has learned {insight.calls:,} of {calls:,} labels and skips so far"
    undecided = Verdict(
        stop=False, value=None, threshold=None, ready=False, reason=reason, rule="", n_labelled=insight.n_labelled
    )
    return replace(insight, verdict=undecided, forecast=None, purchase=None, stopped_at=None)


def _sentence(error: Exception) -> str:
    return f"The model does not follow the labels: {reason(error)}. No label is lost, and it is tried again."
