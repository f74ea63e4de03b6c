"""The interface of a project that readers of its items and labels use, so that a project can use them in turn."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from suffice.numerics import Floats
from suffice.project.settings import Settings

if TYPE_CHECKING:
    from suffice.project.learned_files import LearnedFiles
    from suffice.project.state import ProjectState


class ReadableProject(Protocol):
    """A project that is read; :class:`suffice.project.labelling_project.Project` is one."""

    @property
    def settings(self) -> Settings:
        """Settings of the project."""

    @property
    def current_settings(self) -> Settings:
        """The settings with the model that learns now."""

    @property
    def size(self) -> int:
        """Number of items."""

    @property
    def X(self) -> Floats:  # noqa: N802 - the field's own name
        """Features of its items."""

    @property
    def lock(self) -> AbstractContextManager[Any]:
        """To be held while the state is read."""

    @property
    def learned_files(self) -> "LearnedFiles":
        """Files of what its model has learned."""

    @property
    def made_with(self) -> Mapping[str, Any]:
        """Options with which its data was read."""

    @property
    def first_settings(self) -> Settings:
        """The settings that it was made with."""

    @property
    def n_items_made(self) -> int:
        """Number of items that it was made with."""

    def state(self) -> "ProjectState":
        """Present state."""

    def rows(self, positions: Sequence[int]) -> list[tuple[str, ...]]:
        """Names of several items, each with its cells."""

    def transformer(self) -> Any:
        """The fitted transformer that makes features."""
