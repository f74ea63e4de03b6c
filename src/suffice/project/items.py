"""Items to label, as they were read: cells for people, and features for the model."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from suffice.models.factory import DefaultModel
from suffice.numerics import Floats
from suffice.project.events import Label
from suffice.project.settings import Shown, Task
from suffice.tables.table_cells import TableCells

#: Receives the progress of creating a project: the activity, the number of items done, and of all; 0 and 0 if unknown.
ItemProgress = Callable[[str, int, int], None]


def no_progress(what: str, done: int, total: int) -> None:
    """Report no progress."""


class RowNumbers(Sequence[str]):
    """The numbers of rows from 1 on, as names of items.

    Args:
        size: How many.

    Examples:
        >>> names = RowNumbers(3)
        >>> list(names), names[2], names[:2]
        (['1', '2', '3'], '3', ['1', '2'])
    """

    def __init__(self, size: int) -> None:
        self._rows = range(1, size + 1)

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[str]:
        return map(str, self._rows)

    def __getitem__(self, key: Any) -> Any:
        return list(map(str, self._rows[key])) if isinstance(key, slice) else str(self._rows[key])


@dataclass(frozen=True, eq=False)
class Items:
    """Everything that is read from a file or folder when a project is created.

    Attributes:
        shown: How an item is shown.
        ids: A distinct name for each item.
        columns: Names of the cells.
        cells: The cells of each item as text; empty if a value is missing. Cells of a large Parquet file are read from
            the file whenever they are iterated over.
        main: The column that is the text or the path of the image, or None.
        X: Features, ``n x D``, finite.
        task: The task, as given or determined from existing labels.
        classes: Classes, given or found among the labels; empty for numbers.
        labels: Existing labels, by position.
        notes: What was done to the data, in sentences.
        root: Folder of the images, or None.
        transformer: Fitted transformer that computes the same features for new rows (of a table) or paths (of images).
            None if the features were given.
        components: First column and column after the last of each text whose components a classifier chooses from.
        default: The model for these features if none is named; None if there is no choice.
        reading: How the data was read, as JSON values: ``text``, ``embed`` and ``id`` as they were given, and
            ``features``, whether these were given. It is needed to compute the same features for new rows.
        deferred: How the features are computed from the cells later, as JSON values; see
            :func:`suffice.project.item_features.computed_features`. None if ``X`` holds them.

    Examples:
        >>> from suffice.project.read_items import ReadingOptions, read_items
        >>> options = ReadingOptions(classes=("spam", "ham"), text="text")
        >>> items = read_items({"text": ["win now", "see you", "click here"]}, options)
        >>> len(items), items.main, items.task
        (3, 'text', 'classification')
    """

    shown: Shown
    ids: Sequence[str]
    columns: tuple[str, ...]
    cells: TableCells
    main: str | None
    X: Floats
    task: Task
    classes: tuple[str, ...]
    labels: Mapping[int, Label]
    notes: tuple[str, ...]
    root: Path | None = None
    transformer: Any = None
    components: tuple[tuple[int, int], ...] = ()
    reading: Mapping[str, Any] | None = None
    default: DefaultModel | None = None
    deferred: Mapping[str, Any] | None = None

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Item:
    """One item, for a person.

    Attributes:
        position: Its place in the project, from 0.
        id: Its name.
        cells: Names and values of its cells.
        image: The file of its image, if it is one, relative to the project's root.

    Examples:
        >>> Item(position=0, id="mail-7", cells=(("body", "win now"),)).cells
        (('body', 'win now'),)
    """

    position: int
    id: str
    cells: tuple[tuple[str, str], ...]
    image: str | None = None
