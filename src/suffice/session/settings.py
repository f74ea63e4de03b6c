"""What a labelling project is about: fixed when it is made, and kept in its journal."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from suffice.criteria import Criterion, criterion_from_dict
from suffice.errors import InvalidValueError, upgrade_advice

Task = Literal["classification", "regression"]
Shown = Literal["table", "text", "image"]


@dataclass(frozen=True)
class Settings:
    """What a project is about.

    Attributes:
        name: Its name, for a person.
        task: Whether labels are classes or numbers.
        classes: Names of the classes, in the order of their keys; empty for numbers.
        target: What the label is called: the name of its column in an export.
        shown: How an item is shown: as a row, a text, or an image.
        columns: Names of the cells of an item.
        main: The column that is the text or the path of the image, or None for a row.
        model: Which model learns: gp, ridge or logistic.
        rule: The stopping rule, as :meth:`suffice.Criterion.state_dict` gives it.
        seed: Seed of all randomness.
        initial: Labels asked for at random before the model chooses.
        overlap: Share of the items that a second person is asked for too, from 0 to 1.
        lease: Seconds that an item asked for stays with one person.
        source: Name of the file or folder that the items came from.
        root: The folder that images are read from, and nothing outside it; empty where there are none.
        notes: What was done to the data, in sentences.
    """

    name: str
    task: Task
    classes: tuple[str, ...]
    target: str
    shown: Shown
    columns: tuple[str, ...]
    main: str | None
    model: str
    rule: Mapping[str, Any]
    seed: int = 0
    initial: int = 10
    overlap: float = 0.0
    lease: float = 600.0
    source: str = ""
    root: str = ""
    notes: tuple[str, ...] = field(default=())

    def as_dict(self) -> dict[str, Any]:
        """The settings as JSON values."""
        return asdict(self) | {"rule": dict(self.rule)}

    @staticmethod
    def from_dict(saved: Mapping[str, Any]) -> "Settings":
        """What :meth:`as_dict` gave, also after a round trip through JSON.

        Raises:
            InvalidValueError: It does not fit.
        """
        known = {each.name for each in fields(Settings)}
        if unknown := set(saved) - known:
            raise InvalidValueError(
                f"the project was made by a later version of suffice: it knows {', '.join(sorted(unknown))}; "
                f"{upgrade_advice()}"
            )
        lists = {name: tuple(saved[name]) for name in ("classes", "columns", "notes") if name in saved}
        return Settings(**{**saved, **lists})

    def criterion(self) -> Criterion:
        """The stopping rule, that has seen nothing."""
        return criterion_from_dict(self.rule)
