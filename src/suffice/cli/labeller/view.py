"""What the terminal labeller shows at one moment, as a value."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from suffice.cli.labeller.pictures import Picture
from suffice.project.events import Label
from suffice.project.items import Item
from suffice.project.learning_status import LearningStatus
from suffice.project.settings import Settings
from suffice.project.status_summary import CheckStatus

#: How the terminal shows the tone of a decision.
TONE_STYLES: Final = {"quiet": "bold", "on": "bold", "good": "bold green", "limit": "bold yellow"}


class Mode(Enum):
    """What a key does now."""

    label = "label"
    pick = "pick"
    correct = "correct"
    help = "help"


@dataclass(frozen=True)
class Message:
    """A sentence about the last key.

    Attributes:
        text: The sentence.
        bad: Whether something could not be done.
    """

    text: str = ""
    bad: bool = False


@dataclass(frozen=True)
class Given:
    """A label that was given, to be picked for correction.

    Attributes:
        item: Position of the item.
        id: Its name.
        summary: The beginning of what it shows.
        label: The label.
        person: Who gave it.
    """

    item: int
    id: str
    summary: str
    label: Label
    person: str


@dataclass(frozen=True)
class Counts:
    """How far the labelling is.

    Attributes:
        labelled: Items with a label.
        skipped: Items that were skipped.
        size: All items.
        classes: Labels of each class, in the order of the classes.
        checks: What the checks of the project come to.
    """

    labelled: int = 0
    skipped: int = 0
    size: int = 0
    classes: tuple[int, ...] = ()
    checks: CheckStatus = field(default_factory=CheckStatus)


@dataclass(frozen=True)
class LabellerView:
    """All that is on the screen.

    Attributes:
        settings: What the project is about.
        person: Who labels.
        counts: How far it is.
        learning_status: What the model says.
        item: The item to label or to correct, or None where nothing is left.
        why: Why it is this one.
        picture: Its image, once it is there.
        top: First line of it that is shown.
        mode: What a key does.
        typed: What was typed so far.
        message: About the last key.
        given: Labels to pick from, the newest first.
    """

    settings: Settings
    person: str
    counts: Counts
    learning_status: LearningStatus
    item: Item | None = None
    why: str = ""
    picture: Picture | None = None
    top: int = 0
    mode: Mode = Mode.label
    typed: str = ""
    message: Message = Message()
    given: tuple[Given, ...] = ()


def shown_label(label: Label) -> str:
    """A label in a sentence.

    Examples:
        >>> shown_label("spam"), shown_label(4.0)
        ('spam', '4')
    """
    return label if isinstance(label, str) else f"{label:.12g}"
