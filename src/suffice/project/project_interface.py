"""The interface of a project for modules that read its items and labels. It avoids circular imports."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from suffice.numerics import Floats
from suffice.project.settings import Settings

if TYPE_CHECKING:
    from suffice.project.learned_files import LearnedFiles
    from suffice.project.state import ProjectState


class ReadableProject(Protocol):
    """A project that is read.

    :class:`suffice.project.project_contents.ProjectContents` and :class:`suffice.project.Project` are such projects.
    """

    @property
    def settings(self) -> Settings:
        """Settings of the project."""

    @property
    def current_settings(self) -> Settings:
        """The settings with the current model."""

    @property
    def size(self) -> int:
        """Number of items."""

    @property
    def X(self) -> Floats:  # noqa: N802 - the field's own name
        """Features of its items."""

    @property
    def lock(self) -> AbstractContextManager[Any]:
        """Lock to hold while the state is read."""

    @property
    def learned_files(self) -> "LearnedFiles":
        """Files with the saved state of its learner."""

    @property
    def made_with(self) -> Mapping[str, Any]:
        """Options with which its data was read."""

    @property
    def deferred_features(self) -> Mapping[str, Any] | None:
        """How its features are computed after it was made; None if they were computed before."""

    @property
    def first_settings(self) -> Settings:
        """The original settings."""

    @property
    def n_items_made(self) -> int:
        """Number of items when the project was created."""

    def state(self) -> "ProjectState":
        """Present state."""

    def rows(self, positions: Sequence[int]) -> list[tuple[str, ...]]:
        """Names of several items, each with its cells."""

    def transformer(self) -> Any:
        """The fitted transformer of columns into features."""

    def row_transformer(self) -> Any:
        """The same for ``transform`` only; it may have been read from a file."""
