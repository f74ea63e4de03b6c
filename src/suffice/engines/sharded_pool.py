"""Pools in shards. Each shard is scored or updated in its own process, and returns only candidates.

A shard of a Gaussian process is a part of the pool with a copy of the posterior's factor. For every block of picks the
driver sends each shard the new labelled points and the new rows of the factor, and receives its points of largest
variance. Nothing else is exchanged. The messages are kept, so that a lost shard can be created again from its part of
the pool. It repeats the same steps, and its numbers are the same to the last digit.

For every pick of a classifier the driver sends each shard the posterior of the weights, and receives its most useful
points. Such a shard stores its points and which of them are left out, but no history. A lost shard is created again
from its part of the pool and the points to leave out.

The shards of a :class:`Shards` object are in this process, or on the workers of a Dask cluster.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from suffice.engines.class_pool import ScoredPool, UncertainPool, score_ranks, smallest
from suffice.engines.tracked_rows import KernelRows
from suffice.engines.variance_pool import SINGLE, Indices, MemoryPool, PoolCandidates, largest
from suffice.engines.variance_reduction import KernelSums, sample_memory
from suffice.errors import SufficeError
from suffice.models.gaussian_state import KernelState
from suffice.models.kernels import GaussianKernel
from suffice.models.laplace import LaplaceWeights
from suffice.numerics import Floats

# Seconds between two checks of a worker that has not answered, and time limit for a replacement of a lost worker.
_LOOK: Final = 1.0
_PATIENCE: Final = 120.0
# How often a shard is created again in one exchange.
_TRIES: Final = 5


class ShardPrior(NamedTuple):
    """Parameters of the model that a shard needs.

    Attributes:
        length_scale: Length scale of the kernel.
        noise: Noise variance.
        capacity: Number of labels to allocate memory for.
        dtype: Number type of the rows.
    """

    length_scale: tuple[float, ...]
    noise: float
    capacity: int
    dtype: str


class ShardMessage(NamedTuple):
    """Message to a shard.

    Attributes:
        features: New labelled points, ``k x D``.
        lower: Their rows of the factor, ``k x n`` with all labels so far.
        taken: Points to leave out from now on, by their number in the whole pool.
    """

    features: Floats
    lower: Floats
    taken: Indices

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return sum(each.nbytes for each in self)


class ShardAnswer(NamedTuple):
    """The points of largest variance of a shard.

    Attributes:
        indices: Their numbers in the whole pool, ascending.
        features: ``B x D``.
        scores: Their variances.
        rest: Largest variance of the others, plus the largest rounding error.
        rest_index: Lowest number among the others of that variance.
        tie: Variances closer than this are equal up to rounding.
    """

    indices: Indices
    features: Floats
    scores: Floats
    rest: float
    rest_index: int
    tie: float

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return self.indices.nbytes + self.features.nbytes + self.scores.nbytes


class Shard:
    """A part of the pool with a copy of the posterior.

    Args:
        start: Number of its first row in the whole pool.
        rows: The rows, ``m x D``; or path, first and last row of a .npy file, which the shard reads.
        prior: The model.
    """

    def __init__(self, start: int, rows: Any, prior: Any) -> None:
        if isinstance(rows, tuple):
            path, first, last = rows
            rows = np.load(path, mmap_mode="r")[first:last]
        self._start, self._points = start, np.ascontiguousarray(rows, dtype=np.float64)
        self._pool = self._scored(prior)
        self._kept: Any = None

    def _scored(self, prior: Any) -> Any:
        """Return the points with a new posterior before any label."""
        dtype = np.dtype(prior.dtype)
        return MemoryPool(self._followed(prior), dtype)

    def _followed(self, prior: ShardPrior) -> KernelRows:
        kernel, width = GaussianKernel(prior.length_scale), self._points.shape[1]
        self._state = KernelState(kernel, prior.noise, width, prior.capacity)
        return KernelRows(self._state, self._points, prior.capacity, np.dtype(prior.dtype))

    def tell(self, message: ShardMessage) -> None:
        """Apply new labels, and points to leave out."""
        self._state.adopt(message.features, message.lower)
        inside = (message.taken >= self._start) & (message.taken < self._start + len(self._points))
        self._pool.take(message.taken[inside] - self._start)
        self._pool.follow()

    def step(self, message: ShardMessage, n: int) -> ShardAnswer:
        """Apply a message, and return the ``n`` points of largest variance."""
        self.tell(message)
        found = self._pool.top(n)
        scores = self._pool.variances(found.indices)
        return ShardAnswer(
            found.indices + self._start, found.features, scores, found.rest, found.rest_index + self._start, found.tie
        )

    def mark(self, message: ShardMessage) -> None:
        """Apply a message, and store the state of the shard for :meth:`rewind`."""
        self.tell(message)
        self._kept = self._state.mark(), self._pool.mark()

    def rewind(self) -> None:
        """Restore the state of the mark."""
        state, pool = self._kept
        self._state.rewind(state)
        self._pool.rewind(pool)

    def features(self, indices: Indices) -> Floats:
        """Features of some of its points, by their number in the whole pool."""
        return self._points[indices - self._start]


class SumsPrior(NamedTuple):
    """Parameters for a shard that scores points by the reduction of the mean variance.

    Attributes:
        model: The model.
        sample: A sample of the whole pool, ``q x D``.
    """

    model: ShardPrior
    sample: Floats


class SumsAnswer(NamedTuple):
    """The points of a shard whose label could reduce the mean variance most.

    Attributes:
        indices: Their numbers in the whole pool, ascending.
        low: Lower bounds on the reduction.
        high: Upper bounds on the reduction. The difference is due to rounding.
    """

    indices: Indices
    low: Floats
    high: Floats

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return sum(each.nbytes for each in self)


class SumsShard(Shard):
    """A part of the pool, scored by the reduction of the mean variance of the whole pool.

    Args:
        start: Number of its first row in the whole pool.
        rows: As for :class:`Shard`.
        prior: The model and the sample, :class:`SumsPrior`.
    """

    def _scored(self, prior: SumsPrior) -> KernelSums:
        rows, dtype = self._followed(prior.model), np.dtype(prior.model.dtype)
        return KernelSums(self._state, rows, prior.sample, prior.model.capacity, dtype)

    def step(self, message: ShardMessage, n: int) -> Any:
        """Apply a message, and return the points that could be best, computed in double precision."""
        del n
        self.tell(message)
        found = self._pool.contenders()
        self._pool.compute(found)
        found = self._pool.contenders(found)
        return SumsAnswer(found + self._start, *self._pool.bounds(found))


def shard_memory(features: int, labels: int, itemsize: int, *, sums: bool = False) -> int:
    """Return the bytes that a shard keeps for each point, in addition to the point itself.

    Args:
        features: Number of features.
        labels: Number of labels to allocate memory for.
        itemsize: Bytes of a number in the rows.
        sums: Whether points are scored by the reduction of the mean variance.

    Examples:
        >>> shard_memory(8, 500, 8)
        4144
    """
    # Scaled points; half squares, variances now and before, places, numbers, flags and scores; the rows.
    found = 8 * features + 80 + labels * itemsize
    return found + sample_memory(10**6, 0) // 10**6 + 64 if sums else found


class Shards(ABC):
    """All shards of a pool, in the order of their rows.

    Args:
        starts: Number of the first row of each shard, and at the end the number of rows of the pool.

    Attributes:
        exchanges: Number of exchanges with all shards.
        bytes_sent: Bytes of arrays that were sent to the shards.
        bytes_received: Bytes of arrays that were received.
    """

    def __init__(self, starts: Sequence[int]) -> None:
        self.starts = np.asarray(starts, dtype=np.intp)
        self.exchanges = self.bytes_sent = self.bytes_received = 0
        # The calls that a new shard has to repeat, and how many of them were before the mark.
        self._log: list[tuple[str, tuple[Any, ...]]] = []
        self._marked = 0

    def __len__(self) -> int:
        return len(self.starts) - 1

    @abstractmethod
    def _call(self, method: str, arguments: tuple[Any, ...], which: Sequence[int]) -> list[Any]:
        """Call a method of some shards, and return their answers; a lost shard is created again first."""

    def _exchange(self, method: str, *arguments: Any) -> list[Any]:
        answers = self._call(method, arguments, range(len(self)))
        self.exchanges += 1
        self.bytes_sent += len(self) * sum(each.nbytes for each in arguments if isinstance(each, ShardMessage))
        self.bytes_received += sum(getattr(each, "nbytes", 0) for each in answers)
        self._log.append((method, arguments))
        return answers

    def ask(
        self,
        method: str,
        *arguments: Any,
        which: Sequence[int] | None = None,
        repeat: Sequence[tuple[str, tuple[Any, ...]]] = (),
    ) -> list[Any]:
        """Call a method of shards, and return their answers.

        Args:
            method: Name of the method.
            arguments: Its arguments.
            which: Numbers of the shards; all if left out.
            repeat: The calls, methods and arguments, that bring a new shard to the state of the others after this one.
        """
        asked = range(len(self)) if which is None else which
        answers = self._call(method, arguments, asked)
        self.exchanges += 1
        self.bytes_sent += len(asked) * sum(getattr(each, "nbytes", 0) for each in arguments)
        self.bytes_received += sum(getattr(each, "nbytes", 0) for each in answers)
        self._log = list(repeat)
        return answers

    def step(self, message: ShardMessage, n: int) -> list[Any]:
        """Send a message to all shards, and collect the best points of each."""
        return self._exchange("step", message, n)

    def mark(self, message: ShardMessage) -> None:
        """Send a message to all shards, and let them store their states."""
        self._exchange("mark", message)
        self._marked = len(self._log)

    def rewind(self) -> None:
        """Restore the states of the mark in all shards."""
        self._call("rewind", (), range(len(self)))
        del self._log[self._marked :]

    def features(self, indices: Indices) -> Floats:
        """Features of some points, from the shards that have them."""
        owner = np.searchsorted(self.starts, indices, side="right") - 1
        found: Any = None
        for k in np.unique(owner):
            part = np.flatnonzero(owner == k)
            rows = self._call("features", (indices[part],), [int(k)])[0]
            found = np.zeros((len(indices), rows.shape[1])) if found is None else found
            found[part] = rows
        return np.zeros((0, 0)) if found is None else np.asarray(found)

    def _repeat(self, call: Callable[..., Any]) -> None:
        """Bring a new shard to the state of the others."""
        for method, arguments in self._log:
            call(method, *arguments)


class LocalShards(Shards):
    """Shards in this process.

    Args:
        rows: The rows of each shard.
        prior: The model.
        make: The class of the shards.
    """

    def __init__(self, rows: Sequence[Any], prior: Any, make: Callable[..., Any] = Shard) -> None:
        super().__init__([0, *np.cumsum([len(each) for each in rows])])
        self._shards = [make(int(start), each, prior) for start, each in zip(self.starts, rows, strict=False)]

    def _call(self, method: str, arguments: tuple[Any, ...], which: Sequence[int]) -> list[Any]:
        return [getattr(self._shards[k], method)(*arguments) for k in which]


class DaskShards(Shards):
    """Shards on the workers of a Dask cluster, as actors.

    If a worker is lost, its shards are created again on another one, or on its replacement.

    Args:
        client: A ``distributed.Client``.
        rows: The rows of each shard: an array, a future of one, a part of
            :class:`~suffice.engines.worker_rows.WorkerRows`, or path, first and last row of a .npy file that the
            workers can read.
        sizes: Number of rows of each shard.
        prior: The model.
        make: The class of the shards.

    Attributes:
        lost: Number of times that a shard was created again.
    """

    def __init__(
        self, client: Any, rows: Sequence[Any], sizes: Sequence[int], prior: Any, *, make: Callable[..., Any] = Shard
    ) -> None:
        super().__init__([0, *np.cumsum(sizes)])
        self._client, self._rows, self._prior, self._make, self.lost = client, list(rows), prior, make, 0
        self._places: list[str] = [""] * len(rows)
        self._actors: list[Any] = [None] * len(rows)
        for k in range(len(rows)):
            self._start(k)

    def _workers(self) -> list[str]:
        return sorted(self._client.scheduler_info(n_workers=-1)["workers"])

    def _start(self, k: int) -> None:
        """Create a shard, and bring it to the state of the others; repeat this if its worker is lost meanwhile."""
        for _ in range(_TRIES):
            try:
                self._make_on_a_worker(k)
                self._repeat(lambda method, *arguments: self._answer(k, self._ask(k, method, arguments)))
                return
            except _LostError:
                self.lost += 1
        raise self._gone(k)

    @staticmethod
    def _gone(k: int) -> SufficeError:
        return SufficeError(f"shard {k} was lost {_TRIES} times; look at the logs of the workers")

    def _make_on_a_worker(self, k: int) -> None:
        """Create a shard on the worker with the fewest shards.

        Raises:
            _LostError: The worker was lost meanwhile.
        """
        end = time.monotonic() + _PATIENCE
        while not (workers := self._workers()):
            if time.monotonic() > end:
                raise SufficeError("no worker of the cluster is left; start some, and resume from the last checkpoint")
            time.sleep(_LOOK)
        place = min(workers, key=lambda each: (self._places.count(each), each))
        self._places[k] = place
        rows = self._rows[k]
        try:
            if isinstance(rows, np.ndarray):
                rows = self._client.scatter(rows, workers=[place], hash=False)
            elif hasattr(rows, "on"):
                rows = rows.on(place)
            made = self._client.submit(
                self._make, int(self.starts[k]), rows, self._prior, actor=True, workers=[place], pure=False
            )
        except (OSError, TimeoutError):
            raise _LostError from None
        # An actor belongs to the client that is current when it arrives.
        with self._client.as_current():
            self._actors[k] = self._answer(k, made)

    def _call(self, method: str, arguments: tuple[Any, ...], which: Sequence[int]) -> list[Any]:
        # All requests are sent before the first answer is awaited.
        asked = {k: self._ask(k, method, arguments) for k in which}
        answers = []
        for k in which:
            for _ in range(_TRIES):
                try:
                    answers.append(self._answer(k, asked[k]))
                    break
                except _LostError:
                    self.lost += 1
                    self._start(k)
                    asked[k] = self._ask(k, method, arguments)
            else:
                raise self._gone(k)
        return answers

    def _ask(self, k: int, method: str, arguments: tuple[Any, ...]) -> Any:
        """Send a request to a shard; None if it is known to be lost."""
        try:
            with self._client.as_current():
                return getattr(self._actors[k], method)(*arguments)
        except RuntimeError:
            return None

    def _answer(self, k: int, asked: Any) -> Any:
        """Return the answer of a shard. Wait for a slow worker; a lost worker raises an error."""
        while True:
            try:
                if asked is None:
                    raise _LostError
                return asked.result(timeout=_LOOK)
            except TimeoutError:
                if self._places[k] not in self._workers():
                    raise _LostError from None
            except Exception as error:
                # Dask reports a lost worker in several ways. If the worker exists, the error is that of the shard.
                if isinstance(error, SufficeError | _LostError):
                    raise
                time.sleep(_LOOK)
                if self._places[k] in self._workers() and not _is_loss(error):
                    raise
                raise _LostError from None


class _LostError(Exception):
    """The worker of a shard is gone."""


def _is_loss(error: Exception) -> bool:
    named = type(error).__name__ in ("KilledWorker", "CancelledError", "FutureCancelledError", "CommClosedError")
    return isinstance(error, OSError) or named or "Actor" in str(error)


class _Told:
    """The part of a posterior that was sent to shards, and the new part. Base of pools in shards.

    Args:
        state: The posterior to follow.
        shards: The shards, or a function that creates them at first use.
    """

    def __init__(self, state: KernelState, shards: Shards | Callable[[], Shards]) -> None:
        self._state, self._given = state, shards
        self._sent, self._taken = 0, np.zeros(0, dtype=np.intp)

    @property
    def _shards(self) -> Shards:
        if not isinstance(self._given, Shards):
            self._given = self._given()
        return self._given

    def _message(self) -> ShardMessage:
        """Return the message with everything that was not sent yet."""
        old, state, taken = self._sent, self._state, self._taken
        self._sent, self._taken = state.n, np.zeros(0, dtype=np.intp)
        return ShardMessage(state.features[old:].copy(), state.lower[old:].copy(), taken)

    def follow(self) -> None:
        """Do nothing: the shards are updated with the next request."""

    def features(self, indices: Indices) -> Floats:
        """Features of some points."""
        return self._shards.features(np.asarray(indices, dtype=np.intp))

    def take(self, indices: Indices) -> None:
        """Leave points out from now on."""
        self._taken = np.append(self._taken, np.asarray(indices, dtype=np.intp))

    def jump(self) -> None:
        """Do nothing: a Gaussian process is followed label by label."""

    def tidy(self) -> None:
        """Do nothing: points that are taken are not removed."""

    def mark(self) -> int:
        """Present state."""
        self._shards.mark(self._message())
        return self._sent

    def rewind(self, mark: int) -> None:
        """Go back to the last mark."""
        self._shards.rewind()
        self._sent, self._taken = mark, self._taken[:0]


class ShardedPool(_Told):
    """A pool in shards, scored by latent variance; see :class:`suffice.engines.VariancePool`.

    The picks are those of a pool in memory, including ties.

    Args:
        state: The posterior to follow.
        shards: The shards, or a function that creates them at first use.
        single: Whether their rows are in single precision.
    """

    def __init__(self, state: KernelState, shards: Shards | Callable[[], Shards], *, single: bool = False) -> None:
        super().__init__(state, shards)
        self._slack = SINGLE if single else 0.0

    def top(self, n: int) -> PoolCandidates:
        """The ``n`` points of largest variance, ties to the lowest index."""
        answers = self._shards.step(self._message(), n)
        indices = np.concatenate([each.indices for each in answers])
        scores = np.concatenate([each.scores for each in answers])
        features = np.concatenate([each.features for each in answers])
        tie = max(each.tie for each in answers)
        rows, left, first = largest(scores, n, tie)
        # The best of the others: of those that no shard has returned, and of those that are not needed.
        others = [(each.rest, each.rest_index) for each in answers if each.rest > -np.inf]
        if first < len(scores):
            others.append((left + self._slack, int(indices[first])))
        rest = max((score for score, _ in others), default=-np.inf)
        near = [index for score, index in others if score >= rest - 2.0 * tie]
        size = int(self._shards.starts[-1])
        return PoolCandidates(indices[rows], features[rows], None, rest, min(near, default=size), tie)


class ShardedSums(_Told):
    """A pool in shards, scored by the reduction of its mean variance.

    It is a :class:`suffice.engines.variance_reduction.ReductionPool`. Each shard computes the points that could be its
    best in double precision. A pick takes one exchange, and the picks are those of a pool in memory.

    Args:
        state: The posterior to follow.
        shards: Shards of the class :class:`SumsShard`, or a function that creates them at first use.
    """

    def __init__(self, state: KernelState, shards: Shards | Callable[[], Shards]) -> None:
        super().__init__(state, shards)
        self._found: Indices | None = None

    def follow(self) -> None:
        """Discard the last result: the shards are updated with the next request."""
        self._found = None

    def contenders(self, computed: Indices | None = None) -> Indices:
        """Points whose score could be the largest, within the bounds of rounding; ascending.

        Args:
            computed: Ignored, because the shards have computed all points that they return.
        """
        del computed
        if self._found is None:
            answers = self._shards.step(self._message(), 1)
            best = max((float(each.low.max(initial=0.0)) for each in answers), default=0.0)
            self._found = np.concatenate([each.indices[each.high >= best] for each in answers])
        return self._found

    def plan(self, first: int, most: int) -> None:
        """Return None: picks are not planned."""
        del first, most

    def compute(self, indices: Indices) -> None:
        """Do nothing: the shards have computed them."""


# Number of points that a shard returns in addition to those requested, so that most ties need no second exchange.
_SPARE: Final = 8


class ClassPrior(NamedTuple):
    """The score of the points of a shard.

    Attributes:
        score: Function of a posterior and the features of some rows that returns how useful each label would be.
            Workers import it.
        averaged: For a score that ranks points of two classes by how close the prediction is to 1/2: whether the
            prediction is averaged over the posterior. None for other scores.
    """

    score: Callable[[Any, Floats], Floats]
    averaged: bool | None = None

    def by_evenness(self, posterior: Any) -> bool:
        """Whether there are two classes and the score ranks points by how close the prediction is to 1/2."""
        return self.averaged is not None and posterior.weights.ndim == 1


class ClassMessage(NamedTuple):
    """Message to a shard of a classifier's pool.

    Attributes:
        posterior: The posterior of the weights.
        taken: Points to leave out from now on, by their number in the whole pool.
    """

    posterior: LaplaceWeights
    taken: Indices

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return self.posterior.nbytes + self.taken.nbytes


class ClassAnswer(NamedTuple):
    """The most useful points of a shard.

    Attributes:
        indices: Their numbers in the whole pool.
        values: Their scores; for scores by closeness to 1/2, their distances from it.
        rest: The largest score of the others; -inf if no other point is relevant.
    """

    indices: Indices
    values: Floats
    rest: float = -np.inf

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return self.indices.nbytes + self.values.nbytes


class ClassShard(Shard):
    """A part of a classifier's pool.

    Args:
        start: Number of its first row in the whole pool.
        rows: As for :class:`~suffice.engines.sharded_pool.Shard`.
        prior: The score, :class:`ClassPrior`.
    """

    def _scored(self, prior: ClassPrior) -> ScoredPool:
        self._prior = prior
        self._even: UncertainPool | None = None
        self._left_out: list[Indices] = []
        return ScoredPool(self._points, prior.score)

    def take(self, indices: Indices) -> None:
        """Leave points out from now on, by their number in the whole pool."""
        inside = (indices >= self._start) & (indices < self._start + len(self._points))
        here = indices[inside] - self._start
        self._left_out.append(here)
        for pool in (self._pool, self._even):
            if pool is not None:
                pool.take(here)

    def best(self, message: ClassMessage, n: int) -> ClassAnswer:
        """Return the candidates for the ``n`` most useful points of all shards."""
        self.take(message.taken)
        if self._prior.by_evenness(message.posterior):
            found, distance = self._evenly().leading(message.posterior, n)
            return ClassAnswer(found + self._start, distance)
        rows, scores = self._pool.scores(message.posterior)
        if n + _SPARE >= len(rows):
            return ClassAnswer(rows + self._start, scores)
        parted = np.argpartition(-scores, n + _SPARE)
        chosen = parted[: n + _SPARE]
        return ClassAnswer(rows[chosen] + self._start, scores[chosen], float(scores[parted[n + _SPARE]]))

    def ranked(self, message: ClassMessage, n: int, largest: float) -> ClassAnswer:
        """Return the ``n`` most useful points, ties to the lowest index, given the largest score of all shards."""
        self.take(message.taken)
        rows, scores = self._pool.scores(message.posterior)
        chosen = np.argsort(score_ranks(scores, largest), kind="stable")[:n]
        return ClassAnswer(rows[chosen] + self._start, scores[chosen])

    def _evenly(self) -> UncertainPool:
        """Return the pool for scores by closeness to 1/2, which is created at first use."""
        if self._even is None:
            self._even = UncertainPool(self._points, averaged=bool(self._prior.averaged))
            for indices in self._left_out:
                self._even.take(indices)
        return self._even


class ShardedClasses:
    """A classifier's pool in shards; see :class:`suffice.engines.class_pool.ClassPool`.

    The picks are those of a pool in memory, including ties. A pick takes one exchange. A second one is needed if more
    points tie for it than a shard has returned.

    Args:
        shards: Shards of the class :class:`ClassShard`, or a function that creates them at first use.
        prior: The ``prior`` of the shards.
        source: The features, if the pool can be kept for other classes and posteriors.
    """

    def __init__(self, shards: Shards | Callable[[], Shards], prior: ClassPrior, source: Any = None) -> None:
        self._given, self._prior, self.source = shards, prior, source
        self._all = self._new = np.zeros(0, dtype=np.intp)

    @property
    def shards(self) -> Shards:
        """The shards."""
        if not isinstance(self._given, Shards):
            self._given = self._given()
        return self._given

    def take(self, indices: Indices) -> None:
        """Leave points out from now on. The shards are updated with the next request."""
        self._new = np.append(self._new, np.asarray(indices, dtype=np.intp))

    def nearest(self, posterior: Any, n: int) -> Indices:
        """The ``n`` most useful points, most useful first; ties to the lowest index."""
        sent = posterior if isinstance(posterior, LaplaceWeights) else posterior.frozen()
        message = ClassMessage(sent, self._new)
        # A point may be taken twice; it is left out by the shards before their next answer.
        self._all, self._new = np.append(self._all, self._new), self._new[:0]
        repeat = [("take", (self._all,))]
        indices, values, rest = _joined(self.shards.ask("best", message, n, repeat=repeat))
        if self._prior.by_evenness(sent):
            return indices[smallest(values, n)]
        largest = float(values.max(initial=0.0))
        ranks = score_ranks(values, largest)
        order = np.argsort(ranks, kind="stable")[:n]
        last = ranks[order[-1]] if len(order) else np.inf
        if rest > -np.inf and score_ranks(np.array([rest]), largest)[0] <= last:
            told = ClassMessage(sent, self._new)
            indices, values, _ = _joined(self.shards.ask("ranked", told, n, largest, repeat=repeat))
            order = np.argsort(score_ranks(values, largest), kind="stable")[:n]
        return indices[order]


def _joined(answers: list[ClassAnswer]) -> tuple[Indices, Floats, float]:
    """Return indices, ascending, values, and the largest score among the points that no shard has returned."""
    indices = np.concatenate([each.indices for each in answers])
    values = np.concatenate([each.values for each in answers])
    order = np.argsort(indices)
    return indices[order], values[order], max(each.rest for each in answers)
