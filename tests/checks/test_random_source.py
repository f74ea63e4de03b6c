"""The source of randomness of checks."""

import numpy as np
import pytest

from suffice.checks.random_source import check_rng


@pytest.mark.draws_anew
def test_without_a_seed_each_check_is_drawn_anew() -> None:
    anew = [check_rng(None, 1).permutation(40).tolist() for _ in range(2)]
    assert anew[0] != anew[1]


def test_a_seed_repeats_and_streams_are_separate() -> None:
    drawn = [check_rng(*given).permutation(40).tolist() for given in ((3, 1), (3, 1), (3, 2), (3, 1, 1), (4, 1))]
    assert drawn[0] == drawn[1]
    assert len({tuple(each) for each in drawn}) == 4


def test_a_generator_gives_another_one() -> None:
    given = [np.random.default_rng(5) for _ in range(2)]
    drawn = [check_rng(each, 1).permutation(40).tolist() for each in given]
    assert drawn[0] == drawn[1] != check_rng(given[0], 1).permutation(40).tolist()
