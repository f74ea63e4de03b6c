"""The contents of a project for reading: items, features, files of the learner, and the present state and settings."""

import json
import threading
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from pathlib import Path
from typing import Any

from suffice.errors import InvalidValueError, SufficeError
from suffice.numerics import Floats
from suffice.project.events import Draft, EventKind, shown
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
        # One thread at a time computes the features, or fits the transformer, without the lock of the journal.
        self._computing = threading.RLock()
        self._transformer: Any = None
        self._restored: Any = None
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
        """Settings of the project, with the current classes and the original model."""
        return self._journal.settings

    @property
    def current_settings(self) -> Settings:
        """The settings with the current model."""
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
    def deferred_features(self) -> Mapping[str, Any] | None:
        """How the features are computed after the project was made; None if they were computed before."""
        with self.lock:
            made = self.state().made
        return None if made is None else made.data.get("features")

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
        """Features of the items, ``n x D``. Large arrays are a memory map of a file in the folder of the project.

        Features that are missing are computed first, which may take minutes.

        Raises:
            SufficeError: They cannot be computed.
        """
        if self.features_missing:
            self._compute_features()
        with self.lock:
            if self._X is None:
                file = self._journal.database.file
                with self._journal.reading() as connection:
                    self._X = None if file is None else mapped_features(connection, self.size, file)
                    if self._X is None:
                        self._X = read_features(connection, self.size)
                # They may have been missing when the checksum was computed.
                self.learned_files.features_changed()
            return self._X

    @property
    def features_missing(self) -> bool:
        """Whether the features of the items are not computed yet."""
        with self.lock:
            return self._X is None and self.state().features_missing

    def _compute_features(self) -> None:
        """Compute the features from the cells of the items, and write them unless another process did."""
        from suffice.project.item_features import computed_features, keep_transformer

        with self._computing:
            if not self.features_missing:
                return
            if self._journal.database.read_only:
                raise SufficeError(
                    f"the features of the items are not computed yet, and {self._journal.place} is read-only; make it "
                    "writable, or copy it"
                )
            found = computed_features(self)
            # As it is after a round trip through JSON.
            first = json.loads(json.dumps({name: getattr(self.first_settings, name) for name in found.settings}))
            data = {"settings": found.settings, "before": first, "features": found.X.shape[1]}
            if self._journal.add_features(found.X, Draft(EventKind.settings_changed, data=data)):
                keep_transformer(self, found.transformer)

    def transformer(self) -> Any:
        """The fitted transformer from a table with the project's columns to features, ``n x D``.

        A project does not store the transformer, because loading it would need pickle. It is fitted again to the items
        with which the project was made. Its output is then compared with the stored features.

        Raises:
            SufficeError: The features were given as a file, or cannot be computed again.
        """
        from suffice.project.item_features import fitted_transformer, keep_transformer

        with self._computing:
            if self._transformer is None:
                self._transformer = fitted_transformer(self)
                keep_transformer(self, self._transformer)
            return self._transformer

    def row_transformer(self) -> Any:
        """A transformer with the method ``transform`` of :meth:`transformer`: as it was saved, or fitted again.

        Raises:
            SufficeError: As :meth:`transformer`.
        """
        from suffice.project.item_features import saved_transformer

        with self._computing:
            if self._transformer is None and self._restored is None:
                self._restored = saved_transformer(self)
            return self.transformer() if self._restored is None else self._restored

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
