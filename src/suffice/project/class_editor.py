"""Changes of the classes of a project."""

from collections.abc import Mapping, Sequence

from suffice.errors import InvalidValueError
from suffice.project.events import ClassChange, Draft, EventKind, checked_person, checked_request
from suffice.project.journal import ConflictError, ProjectJournal, WriteReceipt
from suffice.project.prediction_settings import CheckedPredictions
from suffice.project.state import ProjectState


class ClassEditor:
    """Adds, renames, merges, reorders and removes classes of a project.

    Args:
        journal: Journal of the project.
    """

    def __init__(self, journal: ProjectJournal) -> None:
        self._journal = journal

    def present(self) -> tuple[str, ...]:
        """The current classes, with the changes of other processes; empty if the labels are numbers."""
        with self._journal.lock:
            self._journal.state()
            return self._journal.settings.classes

    def change(
        self,
        classes: Sequence[str],
        moved: Mapping[str, str] | None = None,
        *,
        person: str,
        before: Sequence[str] | None = None,
        request: str | None = None,
    ) -> WriteReceipt:
        """Change the classes; see :meth:`suffice.project.Project.change_classes`."""
        message = Draft(EventKind.classes_changed, checked_person(person), request=checked_request(request))
        wanted, moves = list(classes), dict(moved or {})

        def decide(state: ProjectState, _: float) -> Draft:
            settings = self._journal.settings
            present = settings.classes
            if not present:
                raise InvalidValueError("the labels of this project are numbers, so it has no classes to change")
            if before is not None and tuple(before) != present:
                raise ConflictError(
                    f"the classes were changed meanwhile and are now {', '.join(present[:20])}; look at them, then try "
                    "again"
                )
            change = ClassChange.checked(present, wanted, moves)
            if change.after == present and not change.moved:
                raise ConflictError("the project has exactly these classes already")
            if settings.checked is not None:
                _require_predictions_kept(settings.checked, change)
            _require_allowed(state, change)
            data = change.event_data()
            if settings.descriptions:
                data["descriptions"] = change.descriptions(settings.descriptions)
            if settings.positive is not None:
                if settings.positive in change.removed:
                    raise ConflictError(
                        f"{settings.positive!r} is the class that is looked for, so it cannot be removed"
                    )
                data["positive"] = change.label(settings.positive)
            if settings.may_miss:
                after = [change.label(name) for name in settings.may_miss if name not in change.removed]
                data["may_miss"] = list(dict.fromkeys(after))
            return Draft(EventKind.classes_changed, message.person, data=data, request=message.request)

        return self._journal.write_once(message, decide)

    def add(self, name: str, *, person: str) -> WriteReceipt:
        """Add a class, after the others."""
        before = self.present()
        if name.strip() in before:
            raise ConflictError(f"the project has the class {name.strip()!r} already")
        return self.change([*before, name], person=person, before=before)

    def rename(self, old: str, new: str, *, person: str) -> WriteReceipt:
        """Give a class another name that no other class has."""
        before = self.present()
        if new.strip() in before:
            raise ConflictError(f"the project has the class {new.strip()!r} already; merge the two instead")
        classes = [new if name == old else name for name in before]
        return self.change(classes, {old: new}, person=person, before=before)

    def merge(self, names: Sequence[str], into: str, *, person: str) -> WriteReceipt:
        """Merge several classes; see :meth:`suffice.project.Project.merge_classes`."""
        before, target = self.present(), into.strip()
        merged = [name for name in names if name != target]
        after = [name for name in before if name not in merged]
        if target not in before:
            after.insert(min((before.index(name) for name in merged if name in before), default=len(after)), target)
        return self.change(after, dict.fromkeys(merged, target), person=person, before=before)

    def reorder(self, order: Sequence[str], *, person: str) -> WriteReceipt:
        """Change the order of the classes, and with it their keys."""
        before = self.present()
        if sorted(order) != sorted(before):
            raise InvalidValueError(f"order must name each class once; the classes are {', '.join(before)}")
        return self.change(order, person=person, before=before)

    def remove(self, name: str, *, person: str) -> WriteReceipt:
        """Remove a class that nobody has used."""
        before = self.present()
        if name not in before:
            raise InvalidValueError(f"the project has no class {name!r}; it has {', '.join(before)}")
        return self.change([other for other in before if other != name], person=person, before=before)


def _require_allowed(state: ProjectState, change: ClassChange) -> None:
    """Raise an error if a removed class has labels, or if a check is open and its answers could change."""
    used = next((name for name in change.removed if state.acts.uses_class(name)), None)
    if used is not None:
        raise ConflictError(f"the class {used!r} has labels, so it cannot be removed; merge it into another one")
    if state.checks.open_check is not None and not change.keeps_answers:
        raise ConflictError(
            "a check is open, and its answers must keep their meaning: classes can be renamed and reordered now; "
            "to add, merge or remove some, complete the check or stop it first"
        )


def _require_predictions_kept(checked: CheckedPredictions, change: ClassChange) -> None:
    """Raise an error if predictions made elsewhere would get other classes."""
    if checked.answer == "verdict":
        raise ConflictError(
            "people say whether a prediction is right, so the answers right and wrong cannot be changed"
        )
    if change.after[: len(change.before)] != change.before:
        raise ConflictError(
            "the predictions of this project were made elsewhere and have these classes, so classes can only be added "
            "after them; to rename or merge some, change the file and make another project"
        )
