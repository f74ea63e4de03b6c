"""The contents of a project for reading: items, features, files of the learner, and the present state and settings."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from pathlib import Path
from typing import Any

from suffice.errors import InvalidValueError
from suffice.numerics import Floats
from suffice.project.events import shown
from suffice.project.items import Item
from suffice.project.journal import ProjectJournal
from suffice.project.learned_files import FOLDER, LearnedFiles
from suffice.project.settings import Settings
from suffice.project.state import ProjectState
from suffice.project.storage import (
    features_checksum,
    find_id,
    mapped_features,
    read_features,
    read_ids,
    read_items_at,
    read_rows_at,
)
from suffice.project.unmatched_ids import NoMatchError, id_difference


class ProjectContents:
    """Items and features of a project, and its present state and settings.

    Args:
        journal: Journal of the project.
    """

    def __init__(self, journal: ProjectJournal) -> None:
        self._journal = journal
        self._X: Floats | None = None
        self._transformer: Any = None
        journal.on_items_added(self._read_features_again)

    @property
    def lock(self) -> AbstractContextManager[Any]:
        """Lock to hold while the state is read."""
        return self._journal.lock

    @property
    def size(self) -> int:
        """Number of items."""
        return self._journal.size

    def state(self) -> ProjectState:
        """Present state of the project. Hold :attr:`lock` while reading it."""
        return self._journal.state()

    @property
    def settings(self) -> Settings:
        """Settings of the project, with the present classes and the original model."""
        return self._journal.settings

    @property
    def current_settings(self) -> Settings:
        """The settings with the present model."""
        with self.lock:
            return self.settings.using(self.state().model)

    @property
    def first_settings(self) -> Settings:
        """The settings that the project was made with."""
        return self._journal.first_settings

    @property
    def made_with(self) -> Mapping[str, Any]:
        """Options with which the data was read; empty in projects of version 0.11 or older."""
        with self.lock:
            made = self.state().made
        options: Mapping[str, Any] = {} if made is None else made.data.get("reading", {})
        return options

    @property
    def n_items_made(self) -> int:
        """Number of items that the project was made with; others were added later."""
        with self.lock:
            return self.state().n_items_made or self.size

    @property
    def folder(self) -> Path | None:
        """The folder of the project; None if it is in PostgreSQL."""
        file = self._journal.database.file
        return None if file is None else file.parent

    @property
    def X(self) -> Floats:  # noqa: N802 - the field's own name
        """Features of the items, ``n x D``. Large arrays are a memory map of a file in the folder of the project."""
        with self.lock:
            if self._X is None:
                file = self._journal.database.file
                with self._journal.reading() as connection:
                    self._X = None if file is None else mapped_features(connection, self.size, file)
                    if self._X is None:
                        self._X = read_features(connection, self.size)
            return self._X

    def transformer(self) -> Any:
        """The fitted transformer from a table with the project's columns to features, ``n x D``.

        A project does not store the transformer, because loading it would need pickle. It is fitted again to the items
        with which the project was made. Its output is then compared with the stored features.

        Raises:
            SufficeError: The features were given as a file, or cannot be computed again.
        """
        from suffice.project.item_features import fitted_transformer

        with self.lock:
            if self._transformer is None:
                self._transformer = fitted_transformer(self)
            return self._transformer

    @cached_property
    def learned_files(self) -> LearnedFiles:
        """Files with the state of the learner; a project in PostgreSQL has none."""
        return LearnedFiles(None if self.folder is None else self.folder / FOLDER, self._features_checksum)

    def items(self, positions: Sequence[int]) -> list[Item]:
        """Several items, in the order asked for.

        Raises:
            InvalidValueError: There is none at a position.
        """
        existing = [self._journal.position(position) for position in positions]
        with self._journal.reading() as connection:
            return read_items_at(connection, existing, self.settings)

    def position_of(self, name: str) -> int:
        """Position of the item of a name.

        Raises:
            NoMatchError: There is none; the message shows the id of an item that differs in its form only.
        """
        text = name.strip()
        with self._journal.reading() as connection:
            found = find_id(connection, text)
            if found is not None:
                return found
            difference = id_difference([text], read_ids(connection))
        near = "" if difference.cause is None else f"; there is {shown(difference.items[0])}"
        raise NoMatchError(f"there is no item with the id {shown(text)}{near}")

    def rows(self, positions: Sequence[int]) -> list[tuple[str, ...]]:
        """Names of several items, each with its cells, in the order asked for.

        Raises:
            InvalidValueError: There is none at a position.
        """
        if len(positions) and not (0 <= min(positions) <= max(positions) < self.size):
            raise InvalidValueError(f"there is no such item; the project has items 0 to {self.size - 1}")
        with self._journal.reading() as connection:
            return read_rows_at(connection, positions, len(self.settings.columns))

    def _features_checksum(self) -> str:
        with self._journal.database.reading() as connection:
            return features_checksum(connection)

    def _read_features_again(self) -> None:
        self._X = None
        self.learned_files.features_changed()
