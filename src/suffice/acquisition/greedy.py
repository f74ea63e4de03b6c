"""BatchBALD: labels that tell most about the parameters together, not one by one."""

from typing import Any, Final, NamedTuple

import numpy as np

from suffice.acquisition.candidates import candidates
from suffice.acquisition.choosers import Indices
from suffice.acquisition.joint import Configurations
from suffice.acquisition.search import TIE, Search
from suffice.arguments import whole
from suffice.errors import InvalidValueError
from suffice.models.threads import one_thread
from suffice.special import Floats

# What configurations that are left out may add to a gain, over the whole batch, in nats.
_NEGLIGIBLE: Final = 1e-13


class BatchBALD(NamedTuple):
    """A batch, in the order in which it was chosen.

    Attributes:
        indices: Of the candidates.
        gains: What each label tells about the parameters, given the labels before it, in nats.
        exact: How many of the picks, from the first, were made by exact gains; the others by estimates.
        evaluated: How many gains were worked out, one for every candidate at the start among them.
        bounded: How many times a gain was bounded from above instead, for a fraction of the work.
    """

    indices: Indices
    gains: Floats
    exact: int
    evaluated: int
    bounded: int


def batchbald(
    probs: Any,
    batch_size: int,
    *,
    configurations: int = 100_000,
    seed: int | np.random.Generator = 0,
    lazy: bool = True,
) -> BatchBALD:
    r"""Choose candidates greedily by what their labels tell about the parameters together.

    The gain of a candidate next to a batch with labels :math:`y_1 \dots y_m` is the mutual information

    .. math:: I(y; w \mid y_1 \dots y_m) = H(y \mid y_1 \dots y_m) - \frac{1}{K} \sum_k H(y \mid w_k)

    by which BatchBALD's score of the batch grows, with :math:`p(w)` uniform over the ``K`` samples.

    **Exact**, up to 1e-13 nats and rounding, as long as the configurations of the labels that can matter (all
    :math:`C^{m+1}` of them, at most) are no more than ``configurations``. Left out are only those whose mass times
    :math:`\min(\log C, H[w \mid y_1 \dots y_m])`, which is the most that a gain can lose, adds up to less than that.

    **Estimated** beyond: ``configurations // C`` of the batch's configurations are kept, the same for all candidates;
    those that matter most stay as they are, the rest are drawn by ``seed`` with weights that are right on average. Next
    to a given batch the estimate of a gain is right on average, never negative, and its error vanishes as
    ``configurations`` grows.

    **Lazy**: a candidate is passed over when an upper bound of its gain (an older gain, or the gain with configurations
    merged) is below a gain already found. In the exact stage an older gain is a bound since the score is submodular;
    for estimates it is none, and they are bounded by merging the very configurations that they are made from, which
    raises them with certainty. So the picks are those of ``lazy=False`` in both stages.

    **Ties**: gains within 1e-10 nats of the best count as equal, and the lowest index of them is picked. No batch gains
    more than :math:`\log K`: once its labels tell which sample it is, all gains are 0 and the picks go by index.

    Args:
        probs: Probability of each class under each sample of the posterior, ``N x K x C``: a numpy array, or a torch
            tensor of any floating precision, worked on where it lives. Sums over the classes may miss 1 by 1e-4, or by
            8 units in the last place of half precision; every row is divided by its sum.
        batch_size: How many to choose, at most ``N``.
        configurations: How many configurations of labels, that of the candidate among them, are weighed for a gain;
            ``C`` at least. Memory is a few times ``8 K configurations / C`` bytes.
        seed: Of the draws, or what makes them; matters only where gains are estimated.
        lazy: False works out every candidate's gain for every pick.

    Returns:
        The picks in order, their gains, and how they were found.

    Raises:
        InvalidTypeError: ``probs`` is not made of real numbers.
        InvalidValueError: It does not hold probabilities, or a number is out of its range.

    Reference: [Kirsch2019] algorithm 1; [Minoux1978] for the lazy choice; [FearnheadClifford2003] for the draws.

    Examples:
        The second candidate is the first again: the most informative one by one, but not after it.

        >>> first, other = [1.0, 1.0, 0.0, 0.0], [0.95, 0.05, 0.95, 0.05]
        >>> heads = np.array([first, first, other])
        >>> batch = batchbald(np.stack([heads, 1.0 - heads], axis=2), 2)
        >>> batch.indices, batch.gains.round(4), batch.exact
        (array([0, 2]), array([0.6931, 0.4946]), 2)
    """
    pool = candidates(probs)
    n, samples, classes = pool.shape
    batch_size = _size(batch_size, n)
    if whole(configurations, "configurations", least=1) < classes:
        raise InvalidValueError(f"configurations must be {classes} or more, one for each class, not {configurations}")
    rng = seed if isinstance(seed, np.random.Generator) else np.random.default_rng(whole(seed, "seed", least=0))
    with one_thread():
        search = Search(pool, lazy=lazy)
        picks, exact, labels = [search.take()], 1, Configurations.of_nothing(samples)
        for _ in range(batch_size - 1):
            latest = pool.one(picks[-1][0])
            labels = labels.joined(latest, most=configurations // classes, negligible=_NEGLIGIBLE / batch_size, rng=rng)
            exact += labels.exact
            if lazy and labels.doubt() <= TIE:
                # No label can tell more than is left to know: the rest are ties.
                rest = search.rest(batch_size - len(picks))
                picks += [(index, 0.0) for index in rest]
                exact += (len(rest) - 1) * labels.exact
                break
            search.look(labels)
            picks.append(search.take())
    indices, gains = zip(*picks, strict=True)
    return BatchBALD(np.array(indices, dtype=np.intp), np.array(gains), exact, search.evaluated, search.bounded)


def _size(batch_size: int, n: int) -> int:
    if n == 0:
        raise InvalidValueError("probs must hold at least one candidate, but holds none")
    if whole(batch_size, "batch_size", least=1) > n:
        raise InvalidValueError(f"batch_size must be at most the number of candidates, {n}, not {batch_size}")
    return int(batch_size)
