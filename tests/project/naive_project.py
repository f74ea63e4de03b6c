"""What a project should do, said again in the plainest way: lists that are gone through from the beginning."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from suffice.project.events import Label
from suffice.project.state import Answer, LabelledItem, Lease, Opinion, Person, SkippedItem


class RefusedError(Exception):
    """This cannot be done now."""


@dataclass
class Act:
    """A label, a skip or a correction that stands."""

    kind: str
    person: str
    item: int
    label: Label | None
    at: float


@dataclass
class NaiveCheck:
    """A check that was started."""

    items: list[int]
    quantity: str
    class_name: str | None
    excluded: bool
    model: str
    learned: list[Answer]
    labelled: list[int]
    unlabelled: list[int]
    skipped: list[int]
    aborted: bool = False
    holds: bool = True


@dataclass
class NaiveProject:
    """A project without a journal, that forgets what was undone."""

    size: int
    lease: float
    initial: int = 10
    share: float = 0.2
    acts: list[Act] = field(default_factory=list)
    done: list[int] = field(default_factory=list)
    leases: list[tuple[int, str, float]] = field(default_factory=list)
    seen: dict[str, float] = field(default_factory=dict)
    drawn: dict[int, bool] = field(default_factory=dict)
    flags: list[bool] = field(default_factory=list)
    checks: list[NaiveCheck] = field(default_factory=list)
    model: str = "logistic"

    def asked(self, person: str, answer: list[tuple[int, float]], n: int, now: float) -> None:
        """Check what a person was asked for, and remember it."""
        mine = [(item, until) for item, who, until in self.leases if who == person and until > now]
        kept = [(item, until if until - now > self.lease / 2 else now + self.lease) for item, until in mine]
        free = [
            item
            for item in range(self.size)
            if self.status(item) == "open" and all(item != other or until <= now for other, _, until in self.leases)
        ]
        # Items of an open check come first: those asked for before, then others in the order in which they were drawn.
        pending = self.pending()
        known = [each for each in kept if each[0] in pending][:n]
        drawn = [item for item in pending if item in free and item not in [each for each, _ in mine]]
        drawn = drawn[: n - len(known)]
        others = [each for each in kept if each[0] not in pending][: n - len(known) - len(drawn)]
        kept = known + others
        assert answer[: len(known)] == known
        after = len(known) + len(drawn)
        assert [item for item, _ in answer[len(known) : after]] == drawn
        assert answer[after : after + len(others)] == others
        fresh = answer[len(known) : after] + answer[after + len(others) :]
        assert all(item in free and until == now + self.lease for item, until in fresh)
        assert len({item for item, _ in answer}) == len(answer) == min(n, len(mine) + len(free))
        renewed = [each for each in kept if each not in mine]
        for item, until in renewed:
            self.leases = [(k, who, until if k == item else old) for k, who, old in self.leases]
        for item, until in fresh:
            before = [each for each in self.leases if each[0] == item]
            if before and before[0][1] == person:
                self.leases[self.leases.index(before[0])] = (item, person, until)
                continue
            self._take_back(item)
            self.leases.append((item, person, until))
        if renewed or fresh:
            self.seen[person] = now

    def drew(self, fresh: list[tuple[int, bool]], queue: list[int]) -> None:
        """Check which of the new items were drawn at random, and remember it."""
        started = sum(self.status(item) == "labelled" for item in range(self.size)) >= self.initial
        chosen = [item for item in queue if self.status(item) == "open"]
        for item, random in fresh:
            turn = sum(self.flags) < self.share * (len(self.flags) + 1) - 1e-9
            assert random == (not started or turn or item not in chosen)
            self.drawn[item] = random
            self.flags += [random] if started else []

    def label(self, person: str, item: int, label: Label, now: float) -> bool:
        """Label; whether there is something new to write."""
        mine = [act for act in self.of(item) if act.kind == "label" and act.person == person]
        if mine and mine[0].label != label:
            raise RefusedError
        return not mine and self._act(Act("label", person, item, label, now))

    def skip(self, person: str, item: int, now: float) -> bool:
        """Skip; whether there is something new to write."""
        if any(act.kind == "label" and act.person == person for act in self.of(item)):
            raise RefusedError
        mine = [act for act in self.of(item) if act.kind == "skip" and act.person == person]
        return not mine and self._act(Act("skip", person, item, None, now))

    def correct(self, person: str, item: int, label: Label, now: float) -> bool:
        """Correct; always something new."""
        if self.status(item) != "labelled":
            raise RefusedError
        return self._act(Act("correction", person, item, label, now))

    def undo(self, person: str, now: float) -> int:
        """Undo; the item that it was about."""
        mine = [act for act in self.acts if act.person == person]
        if not mine:
            raise RefusedError
        act = mine[-1]
        before = self.status(act.item)
        self.acts = [each for each in self.acts if each is not act]
        labels = [each for each in self.of(act.item) if each.kind == "label" and each.person == person]
        if act.kind != "correction" and not labels:
            self._take_back(act.item)
            self.leases.insert(0, (act.item, person, now + self.lease))
        self._reorder(act.item, before)
        self._outside(act.item)
        self.seen[person] = now
        return act.item

    def start(self, items: list[int], quantity: str, class_name: str | None, *, excluded: bool) -> None:
        """Start a check of some items."""
        if self.pending():
            raise RefusedError
        self._let_go()
        every = list(range(self.size))
        check = NaiveCheck(
            items,
            quantity,
            class_name,
            excluded,
            self.model,
            self.answers(),
            [item for item in every if self.status(item) == "labelled"],
            [item for item in every if self.status(item) != "labelled"],
            [item for item in every if self.status(item) == "skipped"],
        )
        for item in items:
            if self.status(item) == "open":
                self.drawn[item] = False
                self._take_back(item)
        self.checks.append(check)

    def abort(self) -> None:
        """Abort the open check."""
        if not self.pending():
            raise RefusedError
        self._let_go()
        self.checks[-1].aborted = True

    def pending(self) -> list[int]:
        """Items of the newest check without an answer, if it was not aborted."""
        if not self.checks or self.checks[-1].aborted:
            return []
        return [item for item in self.checks[-1].items if self.status(item) == "open"]

    def is_random(self, item: int) -> bool:
        """Whether an item counts as drawn at random."""
        held = self._held()
        return (held is not None and item in self._prefix(held)) or self.drawn.get(item, False)

    def answers(self) -> list[Answer]:
        """All labels and skips."""
        return [Answer(item, self.label_of(item), self.is_random(item)) for item in self.done]

    def learned(self) -> list[Answer]:
        """What the model learns."""
        held = self._held()
        return self.answers() if held is None else held.learned

    def checked(self) -> list[Answer]:
        """What the model learns when labelling goes on after a complete check."""
        held = self._held()
        if held is None or self.pending():
            return []
        before = {answer.item: answer.label for answer in held.learned}
        prefix = self._prefix(held)
        later = [item for item in self.done if before.get(item) is None]
        later = [item for item in later if item not in before or self.label_of(item) is not None]
        return [Answer(item, self.label_of(item), item in prefix) for item in later]

    def wrong(self, check: NaiveCheck, predict: Callable[[int], Label]) -> tuple[int, int, int] | None:
        """Wrong items, size and pool of a complete check of the error or of a precision; None if it is not complete."""
        if check.aborted or any(self.status(item) == "open" for item in check.items):
            return None
        pool = [item for item in check.unlabelled if not (check.excluded and item in check.skipped)]
        if check.quantity == "precision":
            pool = [item for item in pool if predict(item) == check.class_name]
        wrong = len([item for item in check.items if self.label_of(item) not in (None, predict(item))])
        absent = len([item for item in check.items if self.status(item) == "skipped"])
        if check.excluded:
            return wrong, len(check.items) - absent, len(pool) - absent
        return wrong + absent, len(check.items), len(pool)

    def _held(self) -> NaiveCheck | None:
        return self.checks[-1] if self.checks and self.checks[-1].holds else None

    def _prefix(self, check: NaiveCheck) -> list[int]:
        found: list[int] = []
        for item in check.items:
            if self.status(item) == "open" or check.quantity == "precision":
                break
            found += [] if item in check.skipped else [item]
        return found

    def _let_go(self) -> None:
        held = self._held()
        if held is not None:
            self.drawn |= dict.fromkeys(self._prefix(held), True)
            held.holds = False

    def _outside(self, item: int) -> None:
        held = self._held()
        if held is not None and item not in held.items and not self.pending():
            self._let_go()

    def of(self, item: int) -> list[Act]:
        """What stands of an item."""
        return [act for act in self.acts if act.item == item]

    def status(self, item: int) -> str:
        """Open, labelled or skipped."""
        kinds = {act.kind for act in self.of(item)}
        return "labelled" if kinds & {"label", "correction"} else "skipped" if kinds else "open"

    def counting(self, item: int) -> Act | None:
        """The act whose label counts."""
        corrections = [act for act in self.of(item) if act.kind == "correction"]
        labels = [act for act in self.of(item) if act.kind == "label"]
        return corrections[-1] if corrections else labels[0] if labels else None

    def label_of(self, item: int) -> Label | None:
        """The label that counts."""
        act = self.counting(item)
        return None if act is None else act.label

    def opinions(self, item: int) -> tuple[Opinion, ...]:
        """What people said."""
        return tuple(
            Opinion(act.person, act.label, act.at)
            for act in self.of(item)
            if act.kind == "label" and act.label is not None
        )

    def picture(self, now: float) -> dict[str, Any]:
        """What can be compared with a state."""
        items = range(self.size)
        labelled = [item for item in self.done if self.status(item) == "labelled"]
        skipped = [item for item in self.done if self.status(item) == "skipped"]
        labels = [self.label_of(item) for item in labelled]
        return {
            "answers": self.answers(),
            "learned": self.learned(),
            "checked": self.checked(),
            "n_learned": len([answer for answer in self.learned() if answer.label is not None]),
            "pending": self.pending(),
            "checks": [(each.items, each.aborted, self._answered(each)) for each in self.checks],
            "random": [self.is_random(item) for item in items],
            "drawn": (len(self.flags), sum(self.flags)),
            "labels": [self.label_of(item) for item in items],
            "open": [self.status(item) == "open" for item in items],
            "is_skipped": [self.status(item) == "skipped" for item in items],
            "opinions": [self.opinions(item) for item in items],
            "corrected": [any(act.kind == "correction" for act in self.of(item)) for item in items],
            "labelled": [self._labelled(item) for item in labelled],
            "skipped": [SkippedItem(item, self.of(item)[0].person, self.of(item)[0].at) for item in skipped],
            "counts": {label: labels.count(label) for label in labels if label is not None},
            "numbers": (len(labelled), len(skipped), self.size - len(self.done)),
            "people": {name: Person(self._counting(name, labelled), last) for name, last in self.seen.items()},
            "leases": {item: Lease(who, until) for item, who, until in self.leases if until > now},
            "mine": {
                name: [(item, Lease(who, until)) for item, who, until in self.leases if who == name]
                for name in self.seen
            },
            "missing": {name: [item for item in items if self._misses(item, name)] for name in self.seen},
        }

    def _answered(self, check: NaiveCheck) -> dict[int, Label | None]:
        return {item: self.label_of(item) for item in check.items if self.status(item) != "open"}

    def _misses(self, item: int, person: str) -> bool:
        opinions = self.opinions(item)
        settled = any(
            act.kind == "correction" or (act.kind == "skip" and act.person == person) for act in self.of(item)
        )
        return 0 < len(opinions) < 3 and person not in [each.person for each in opinions] and not settled

    def _counting(self, person: str, labelled: list[int]) -> int:
        return sum(self._labelled(item).person == person for item in labelled)

    def _labelled(self, item: int) -> LabelledItem:
        act = self.counting(item)
        assert act is not None
        assert act.label is not None
        corrected, random = act.kind == "correction", self.is_random(item)
        return LabelledItem(item, act.label, act.person, act.at, corrected, self.opinions(item), random)

    def _act(self, act: Act) -> bool:
        before = self.status(act.item)
        self.acts.append(act)
        self._take_back(act.item)
        self._reorder(act.item, before)
        self._outside(act.item)
        self.seen[act.person] = act.at
        return True

    def _reorder(self, item: int, before: str) -> None:
        if self.status(item) != before:
            self.done = [each for each in self.done if each != item]
            self.done += [item] if self.status(item) != "open" else []

    def _take_back(self, item: int) -> None:
        self.leases = [each for each in self.leases if each[0] != item]
