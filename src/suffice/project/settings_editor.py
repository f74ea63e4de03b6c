"""Changes of the settings and of the model of a project."""

from collections.abc import Mapping
from typing import Any

from suffice.project.events import Draft, Event, EventKind, checked_person, checked_request
from suffice.project.journal import ConflictError, ProjectJournal, WriteReceipt
from suffice.project.model_selection import chooses_model
from suffice.project.state import ModelComparison, ProjectState
from suffice.session.model_check import shared_alpha


class SettingsEditor:
    """Changes settings and the model of a project, and lists earlier changes.

    Args:
        journal: Journal of the project.
    """

    def __init__(self, journal: ProjectJournal) -> None:
        self._journal = journal

    def change(self, changes: Mapping[str, Any], *, person: str, request: str | None = None) -> WriteReceipt:
        """Change settings; see :meth:`suffice.project.Project.change_settings`."""
        message = Draft(EventKind.settings_changed, checked_person(person), request=checked_request(request))

        def decide(state: ProjectState, _: float) -> Draft:
            settings = self._journal.settings
            new = settings.checked_changes(changes)
            # The first check has fixed the confidence.
            shared_alpha(new.get("confidence"), state.checks.alpha)
            if not new:
                raise ConflictError("nothing changes: the settings have these values already")
            now = {key: getattr(settings, key) for key in new}
            # As it is after a round trip through JSON.
            before = {key: list(value) if isinstance(value, tuple) else value for key, value in now.items()}
            data = {"settings": new, "before": before}
            return Draft(EventKind.settings_changed, message.person, data=data, request=message.request)

        return self._journal.write_once(message, decide)

    def switch_model(self, model: str, *, person: str, request: str | None = None) -> WriteReceipt:
        """Replace the model; see :meth:`suffice.project.Project.switch_model`."""
        name, sent = checked_person(person), checked_request(request)
        changed = self._journal.settings.using(model)
        changed.estimator()
        changed.require_usable_rule()
        message = Draft(EventKind.model_changed, name, data={"model": model}, request=sent)

        def decide(state: ProjectState, _: float) -> Draft:
            if self._journal.settings.using(state.model).model == model:
                raise ConflictError(f"the project uses the model {model} already")
            return message

        return self._journal.write_once(message, decide)

    def record_comparison(self, comparison: ModelComparison, before: str) -> bool:
        """Record a comparison of models by the program, and let the best one learn; return whether it was written.

        Nothing is written if the model is not to be chosen any more, or was compared or changed meanwhile.

        Args:
            comparison: The comparison.
            before: Name of the model that was in use.
        """

        def decide(state: ProjectState, _: float) -> tuple[list[Draft], None]:
            settings = self._journal.settings
            known = state.comparison is not None and state.comparison.n_labelled >= comparison.n_labelled
            if known or not chooses_model(state, settings) or settings.using(state.model).model != before:
                return [], None
            drafts = [Draft(EventKind.models_compared, data=comparison._asdict())]
            if comparison.model != before:
                drafts.append(Draft(EventKind.model_changed, data={"model": comparison.model}))
            return drafts, None

        return bool(self._journal.write(decide)[0])

    def history(self) -> list[Event]:
        """The events that changed settings, classes or the model, the newest first.

        The event that is written with the features of the items is left out: nobody has changed anything.
        """
        with self._journal.lock:
            return self._journal.state().changed_by[::-1]
