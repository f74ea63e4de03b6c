r"""A test of whether the answers of a person agree with those of others no more than by chance.

A *comparison* is an item that the person and others have answered, with the label of the others. Its *chance* :math:`q`
is the share of this label among the earlier answers of the person: a person who does not look at the items, and chooses
labels with these shares, gives the label with this probability. With *agreement* :math:`a`, the person gives it with
probability :math:`q + a (1 - q)`: 0 is chance, and 1 is to give it always.

The null hypothesis is that the agreement is at least :math:`a_0` = 0.3 at each comparison, given all earlier ones. The
evidence against it is the likelihood ratio of chance and of this agreement,

.. math:: M_n = \prod_{i \le n} \begin{cases} q_i / (q_i + a_0 (1 - q_i)) & \text{the same label,} \\
          1 / (1 - a_0) & \text{another label.} \end{cases}

Under the null hypothesis, the expectation of each factor, given all earlier comparisons, is at most 1:

.. math:: 1 - (a - a_0) \frac{a_0}{(1 - a_0) (q + a_0 (1 - q))} (1 - q) \le 1 \quad \text{for } a \ge a_0 .

So :math:`M_n` is a non-negative supermartingale with :math:`M_0 = 1`, and by Ville's inequality
:math:`P[\sup_n M_n \ge 1 / \epsilon] \le \epsilon`. This holds for any number of comparisons and of looks at them.
"""

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

#: The agreement beyond chance that a person has under the null hypothesis, from 0 (chance) to 1.
LEAST_AGREEMENT: Final = 0.3
#: Probability of a false alarm in a project, of all people and all looks together.
FALSE_ALARMS: Final = 0.01
# The first people share this part of it equally; those after them share the rest.
_FIRST_PEOPLE: Final = 10
_PART_OF_FIRST: Final = 0.8
#: Agreement that chance would reach with a smaller probability is not called chance.
CONSISTENT: Final = 0.05


class ComparedAnswer(NamedTuple):
    """An answer of a person, compared with the label of others.

    Attributes:
        same: Whether it is the same label.
        chance: Probability of this label by chance: its share among the earlier answers of the person.
    """

    same: bool
    chance: float


class ChanceTest(NamedTuple):
    """Result of the test.

    Attributes:
        compared: Number of comparisons.
        same: Number of them with the same label.
        expected: Number of the same labels that is expected by chance.
        probability: Probability of at least so many by chance.
        evidence: Logarithm of the evidence against the least agreement.
    """

    compared: int
    same: int
    expected: float
    probability: float
    evidence: float

    def is_alarm(self, false_alarms: float) -> bool:
        """Whether the answers are no better than chance.

        They contradict the least agreement, and do not contradict chance. The second condition can only prevent alarms.

        Args:
            false_alarms: Probability of an alarm for a person with at least the least agreement.
        """
        return self.evidence >= -math.log(false_alarms) and self.probability > CONSISTENT


def chance_test(comparisons: Sequence[ComparedAnswer]) -> ChanceTest:
    """Test the comparisons of a person.

    Args:
        comparisons: All comparisons of the person.

    Examples:
        >>> careless = chance_test([ComparedAnswer(same, 0.5) for same in [True, False] * 80])
        >>> careless.is_alarm(0.001), chance_test([ComparedAnswer(True, 0.5)] * 160).is_alarm(0.001)
        (True, False)
    """
    lost = -math.log1p(-LEAST_AGREEMENT)
    evidence = math.fsum(
        math.log(chance / (chance + LEAST_AGREEMENT * (1.0 - chance))) if same else lost for same, chance in comparisons
    )
    same = sum(each.same for each in comparisons)
    chances = [each.chance for each in comparisons]
    return ChanceTest(len(chances), same, math.fsum(chances), _at_least(same, chances), evidence)


def _at_least(count: int, chances: Sequence[float]) -> float:
    """Probability that at least so many of independent events happen."""
    numbers = np.zeros(len(chances) + 1)
    numbers[0] = 1.0
    for seen, chance in enumerate(chances, start=1):
        numbers[1 : seen + 1] = numbers[1 : seen + 1] * (1.0 - chance) + numbers[:seen] * chance
        numbers[0] *= 1.0 - chance
    return min(1.0, float(numbers[count:].sum()))


def chance_of(count: int, answers: int, labels: int) -> float:
    """Probability of a label by chance, from the earlier answers of a person.

    Half an answer of each label is added, so that it is above 0 and below 1.

    Args:
        count: Number of earlier answers with this label.
        answers: Number of all earlier answers.
        labels: Number of labels to choose from, at least 2.

    Examples:
        >>> chance_of(0, 0, 2), chance_of(3, 4, 2)
        (0.5, 0.7)
    """
    return (count + 0.5) / (answers + 0.5 * labels)


def false_alarms_of(place: int) -> float:
    """Probability of a false alarm about one person, so that all together are at most :data:`FALSE_ALARMS`.

    It depends on the person's place in the order in which people began, so that it does not change when others begin.

    Args:
        place: The place, from 0.

    Examples:
        >>> round(sum(false_alarms_of(place) for place in range(10)), 10), round(false_alarms_of(10), 10)
        (0.008, 0.001)
    """
    if place < _FIRST_PEOPLE:
        return FALSE_ALARMS * _PART_OF_FIRST / _FIRST_PEOPLE
    later = place - _FIRST_PEOPLE + 1
    return FALSE_ALARMS * (1.0 - _PART_OF_FIRST) / (later * (later + 1))
