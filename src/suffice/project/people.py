"""People of a project: how long an answer takes them, how often they are right, and whether they answer by chance."""

from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from statistics import median
from typing import Any, Final

from suffice.checks.binomial import binomial_limits
from suffice.presentation.people_words import people_notes, person_sentences
from suffice.project.chance_answers import CONSISTENT, ComparedAnswer, chance_of, chance_test, false_alarms_of
from suffice.project.events import Event, EventKind, Label, moment
from suffice.project.labelling_pace import pace_of
from suffice.project.opinions import majority_of
from suffice.project.settings import Settings
from suffice.project.state import ProjectState

# Numbers are compared with the median of the earlier ones; so many are needed.
_FEWEST_NUMBERS: Final = 10
# The majority of fewer others is not taken as the truth.
_FEWEST_OTHERS: Final = 2


@dataclass(frozen=True)
class Accuracy:
    """How often the answers of a person were right.

    Attributes:
        items: Items with a known answer that the person has answered.
        right: Number of right answers.
        share: Share of right answers.
        low: Lower limit of the share (95 % confidence, Clopper and Pearson).
        high: Upper limit.
    """

    items: int
    right: int
    share: float
    low: float
    high: float


@dataclass(frozen=True)
class PersonRecord:
    """What is known about the answers of a person.

    Attributes:
        name: The name.
        labels: Number of items whose label that counts is by this person.
        answers: Number of items that the person has labelled.
        last: Time of the last activity, in UTC.
        seconds: Median time between two answers, in seconds, without breaks; None if it is not known.
        settled: Compared with the labels of items that somebody else has settled: corrected or confirmed. People settle
            mostly items on which others differ, so it is lower than for typical items. None if there is none.
        random: Compared on items drawn at random that at least two others have labelled, with the settled label if
            there is one, or otherwise with that of most others. None if there is none.
        compared: Number of answers that are compared with those of others, see
            :mod:`suffice.project.chance_answers`.
        same: Number of these with the same label.
        expected: Number of the same labels that is expected by chance.
        probability: Probability of at least so many by chance; None without comparisons.
        by_chance: Whether the answers agree with those of others no more than by chance.
    """

    name: str
    labels: int
    answers: int
    last: str
    seconds: float | None
    settled: Accuracy | None
    random: Accuracy | None
    compared: int
    same: int
    expected: float
    probability: float | None
    by_chance: bool

    def as_dict(self) -> dict[str, Any]:
        """The same as JSON values."""
        return asdict(self)


def people_summary(state: ProjectState, settings: Settings) -> dict[str, Any]:
    """The people of a project as JSON values, in numbers and in words.

    Args:
        state: The state of the project.
        settings: Settings of the project.

    Returns:
        ``people``, each with ``sentences``; and ``notes``, what has to be known to read them.
    """
    people = [record.as_dict() for record in people_records(state, settings)]
    return {
        "people": [each | {"sentences": person_sentences(each)} for each in people],
        "notes": people_notes(people),
    }


def people_records(state: ProjectState, settings: Settings) -> list[PersonRecord]:
    """What is known about the answers of each person who has labelled, those with the most labels first.

    Args:
        state: The state of the project.
        settings: Settings of the project.
    """
    truths = _Truths(state, settings)
    thresholds = _medians_before(state) if settings.task == "regression" else {}
    records = []
    for place, (name, person) in enumerate(state.people.items()):
        acts = [act for act in state.acts.of_person(name) if act.kind is EventKind.labelled]
        if not state.acts.has_label_of(name):
            continue
        found = chance_test(_comparisons(acts, partial(truths.by_others, name), thresholds, settings))
        by_chance = found.is_alarm(false_alarms_of(place))
        if by_chance:
            # Somebody may have settled the differences for this person.
            settled = chance_test(_comparisons(acts, partial(truths.in_settlement, name), thresholds, settings))
            by_chance = settled.probability > CONSISTENT
        records.append(
            PersonRecord(
                name=name,
                labels=person.labels,
                answers=len(acts),
                last=moment(person.last),
                seconds=pace_of(act.at for act in acts),
                settled=truths.accuracy(name, acts, truths.settled),
                random=truths.accuracy(name, acts, truths.on_random_items),
                compared=found.compared,
                same=found.same,
                expected=found.expected,
                probability=found.probability if found.compared else None,
                by_chance=by_chance,
            )
        )
    return sorted(records, key=lambda record: (-record.labels, record.name))


def _comparisons(
    acts: Sequence[Event],
    labels_of: Callable[[int], Sequence[Label]],
    thresholds: dict[int, float],
    settings: Settings,
) -> list[ComparedAnswer]:
    """The answers of a person, compared with the most frequent label of others.

    Numbers are compared by whether they are above the median of all numbers that were given before.

    Args:
        acts: Labels that the person gave, in order.
        labels_of: The labels of an item to compare with. It is left out if none is the most frequent.
        thresholds: For numbers, the result of :func:`_medians_before`.
        settings: Settings of the project.
    """
    found: list[ComparedAnswer] = []
    counts: Counter[Label] = Counter()
    numbers: list[float] = []
    for n, act in enumerate(acts):
        assert act.item is not None
        label, others = act.data["label"], labels_of(act.item)
        if settings.task == "classification":
            usual = majority_of(others)
            if usual is not None:
                found.append(ComparedAnswer(label == usual, chance_of(counts[usual], n, len(settings.classes))))
            counts[label] += 1
            continue
        threshold = thresholds.get(act.seq)
        above = None if threshold is None else majority_of([float(each) > threshold for each in others])
        if threshold is not None and above is not None:
            below = bisect_right(numbers, threshold)
            chance = chance_of(n - below if above else below, n, 2)
            found.append(ComparedAnswer((float(label) > threshold) is above, chance))
        insort(numbers, float(label))
    return found


class _Truths:
    """What others have said of the items that a person has labelled.

    Items with one label that nobody has corrected or confirmed are left out: nothing is known of them.
    """

    def __init__(self, state: ProjectState, settings: Settings) -> None:
        self._wanted, self._tolerance = settings.opinions - 1, settings.tolerance
        self._measurable = settings.task == "classification" or settings.tolerance is not None
        self._random = state.random_items()
        self._labels: dict[int, list[tuple[str, Label]]] = {}
        # The label that counts, who has corrected it, and who has confirmed it.
        self._settled: dict[int, tuple[Label, str | None, str | None]] = {}
        for item, label in state.labels.by_item.items():
            acts, confirmed_by = state.acts.of_item(item), state.labels.confirmed_by(item)
            if label is None or (len(acts) < 2 and confirmed_by is None):
                continue
            given = [(act.person, act.data["label"]) for act in acts if act.kind is EventKind.labelled]
            corrections = [act.person for act in acts if act.kind is EventKind.corrected]
            self._labels[item] = given
            if corrections or confirmed_by is not None:
                self._settled[item] = label, corrections[-1] if corrections else None, confirmed_by

    def others(self, person: str, item: int) -> list[Label]:
        """The labels of an item by other people, in order."""
        return [label for name, label in self._labels.get(item, ()) if name != person]

    def by_others(self, person: str, item: int) -> Sequence[Label]:
        """The labels of the first other people who were wanted for an item; empty while they are not complete.

        Later labels are left out, so that a comparison does not change any more.
        """
        others = self.others(person, item)[: self._wanted]
        return others if len(others) == self._wanted else ()

    def settled(self, person: str, item: int) -> Label | None:
        """The label that counts, if somebody else has corrected or confirmed it."""
        if item not in self._settled:
            return None
        label, corrected_by, confirmed_by = self._settled[item]
        return None if {corrected_by, confirmed_by} <= {None, person} else label

    def in_settlement(self, person: str, item: int) -> Sequence[Label]:
        """The settled label in a list, or nothing."""
        label = self.settled(person, item)
        return () if label is None else (label,)

    def on_random_items(self, person: str, item: int) -> Label | None:
        """The settled label of an item drawn at random with at least two others, or that of most of them."""
        if item not in self._random:
            return None
        others = self.others(person, item)
        if len(others) < _FEWEST_OTHERS:
            return None
        settled = self.settled(person, item)
        if settled is not None:
            return settled
        return majority_of(others) if self._tolerance is None else median(map(float, others))

    def accuracy(
        self, person: str, acts: Sequence[Event], truth_of: Callable[[str, int], Label | None]
    ) -> Accuracy | None:
        """How many answers are right; None if no truth is known, or numbers have no tolerance."""
        if not self._measurable:
            return None
        known = [
            (act.data["label"], truth)
            for act in acts
            if act.item is not None and (truth := truth_of(person, act.item)) is not None
        ]
        if not known:
            return None
        right = sum(self._is_right(label, truth) for label, truth in known)
        low, high = binomial_limits(right, len(known))
        return Accuracy(len(known), right, right / len(known), low, high)

    def _is_right(self, label: Label, truth: Label) -> bool:
        return label == truth if self._tolerance is None else abs(float(label) - float(truth)) <= self._tolerance


def _medians_before(state: ProjectState) -> dict[int, float]:
    """The median of all numbers that were given before each label, by the number of its event, if they are enough."""
    acts = [act for name in state.people for act in state.acts.of_person(name) if act.kind is EventKind.labelled]
    before: list[float] = []
    found: dict[int, float] = {}
    for act in sorted(acts, key=lambda act: act.seq):
        if len(before) >= _FEWEST_NUMBERS:
            found[act.seq] = before[(len(before) - 1) // 2]
        insort(before, float(act.data["label"]))
    return found
