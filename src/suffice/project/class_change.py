"""A change of the classes of a project: added, renamed, merged, reordered or removed classes, as one value."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from suffice.errors import InvalidValueError
from suffice.project.events import printable, shown

#: Most classes of a project.
MOST_CLASSES: Final = 200
#: Most characters of the name of a class.
LONGEST_CLASS: Final = 200


@dataclass(frozen=True)
class ClassChange:
    """The classes before and after a change, and which old class becomes which new one.

    Each old class has at most one successor: the class that it is moved to, or else the class of the same name. A class
    with one predecessor is kept or renamed, one with several is merged from them, and one without any is added. An old
    class without a successor is removed.

    Args:
        before: Names of the classes, in order.
        after: Names of the classes afterwards, in order.
        moved: Old names with the names that their labels have afterwards.

    Examples:
        >>> change = ClassChange(("cat", "dog", "eel"), ("cat", "fish", "pet"), {"dog": "cat", "eel": "fish"})
        >>> change.merged, change.renamed, change.added, change.removed
        (('cat',), {'eel': 'fish'}, ('pet',), ())
        >>> change.label("dog"), change.keeps_answers
        ('cat', False)
    """

    before: tuple[str, ...]
    after: tuple[str, ...]
    moved: Mapping[str, str]

    @staticmethod
    def checked(before: Sequence[str], after: Sequence[str], moved: Mapping[str, str]) -> "ClassChange":
        """A change whose names can be used.

        Raises:
            InvalidValueError: A name cannot be used, or a class is moved from or to one that is not there.
        """
        # Names that are there already may come from a table and are taken as they are.
        names = [name if name in before or not isinstance(name, str) else name.strip() for name in after]
        for name in names:
            fits = isinstance(name, str) and 1 <= len(name) <= LONGEST_CLASS and printable(name)
            if name not in before and not fits:
                raise InvalidValueError(
                    f"the name of a class must be 1 to {LONGEST_CLASS} characters without control characters, not "
                    f"{shown(name)}"
                )
        if not 2 <= len(names) <= max(MOST_CLASSES, len(before)):
            raise InvalidValueError(f"a project needs 2 to {MOST_CLASSES} classes, and these are {len(names)}")
        twice = next((name for name, number in Counter(names).items() if number > 1), None)
        if twice is not None:
            raise InvalidValueError(f"the class {shown(twice)} is there twice; classes must be distinct")
        targets = {old: new if new in before or not isinstance(new, str) else new.strip() for old, new in moved.items()}
        for old, new in targets.items():
            if old not in before:
                raise InvalidValueError(f"the project has no class {shown(old)}; it has {_listed(before)}")
            if new not in names:
                raise InvalidValueError(f"{shown(old)} is moved to {shown(new)}, which is none of the new classes")
        return ClassChange(tuple(before), tuple(names), {old: new for old, new in targets.items() if old != new})

    @staticmethod
    def from_event_data(data: Mapping[str, Any]) -> "ClassChange":
        """Create it from the result of :meth:`event_data`."""
        return ClassChange(tuple(data["before"]), tuple(data["classes"]), dict(data["moved"]))

    def event_data(self) -> dict[str, Any]:
        """Data for the journal, as JSON values."""
        return {"before": list(self.before), "classes": list(self.after), "moved": dict(self.moved)}

    def label(self, name: str) -> str:
        """The name that a label has afterwards."""
        return self.moved.get(name, name)

    def _origins(self) -> dict[str, list[str]]:
        origins: dict[str, list[str]] = {name: [] for name in self.after}
        for name in self.before:
            if self.label(name) in origins:
                origins[self.label(name)].append(name)
        return origins

    @property
    def added(self) -> tuple[str, ...]:
        """Classes that were not there."""
        return tuple(name for name, old in self._origins().items() if not old)

    @property
    def merged(self) -> tuple[str, ...]:
        """Classes that take in the labels of several."""
        return tuple(name for name, old in self._origins().items() if len(old) > 1)

    @property
    def renamed(self) -> dict[str, str]:
        """Old names of classes that have another name, with that name."""
        return {old[0]: name for name, old in self._origins().items() if len(old) == 1 and old[0] != name}

    @property
    def kept(self) -> dict[str, str]:
        """Old names of classes that are neither merged nor removed, with the names that they have afterwards."""
        return {old[0]: name for name, old in self._origins().items() if len(old) == 1}

    @property
    def removed(self) -> tuple[str, ...]:
        """Classes that are there no more, and whose labels go nowhere."""
        return tuple(name for name in self.before if self.label(name) not in self.after)

    def descriptions(self, before: Mapping[str, str]) -> dict[str, str]:
        """Descriptions of the classes afterwards; a class that others are merged into keeps its own."""
        moved = {self.label(name): text for name, text in before.items() if self.label(name) in self.after}
        own = {name: text for name, text in before.items() if name in self.after and self.label(name) == name}
        return {**moved, **own}

    @property
    def keeps_answers(self) -> bool:
        """Whether every answer means what it meant before: classes are only renamed or reordered."""
        return not (self.added or self.merged or self.removed)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
