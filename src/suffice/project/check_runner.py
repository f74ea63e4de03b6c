"""Checks of a project: start, abort, and the guarantees that they prove."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from suffice.arguments import whole
from suffice.checks import Guarantee, spent_alpha
from suffice.checks.random_source import PROJECT_STREAM, check_rng
from suffice.checks.sequential_terms import planned_share
from suffice.errors import InvalidValueError
from suffice.numerics import Floats
from suffice.project.events import Draft, Event, EventKind, checked_person, checked_request
from suffice.project.journal import ConflictError, ProjectJournal, WriteReceipt
from suffice.project.learning_status import Predictions
from suffice.project.project_check import CheckDraw, ProjectCheck, ProjectGuarantee, drawn_items, rounded_numbers
from suffice.project.project_contents import ProjectContents
from suffice.project.settings import Settings
from suffice.project.state import Answer, ProjectState
from suffice.session.goals import TargetOf
from suffice.session.model_check import (
    CheckedQuantity,
    checked_quantity,
    sequential_terms,
    shared_alpha,
    sized_quantity,
)

# Maximal number of attempts to predict for a check while other people add labels.
_TRIES: Final = 5
#: Returns the predictions of a model for all items, with their probabilities if they are known. Arguments: the name of
#: the model, and the answers to learn.
Predict = Callable[[str, list[Answer]], Predictions | NDArray[Any]]


class CheckSize(NamedTuple):
    """The size of a check that is to start.

    Attributes:
        size: Number of items; None for a sequential check.
        expected: For a sequential check, the expected share of wrong predictions, or None.
        elsewhere: Number of checks of these items that were started elsewhere and are not counted yet; None for those
            of the settings.
    """

    size: int | None
    expected: float | None
    elsewhere: int | None


class _Predicted(NamedTuple):
    """Predictions for all items, and the probability of each; None if it is not known."""

    labels: NDArray[Any]
    probabilities: Floats | None


class CheckRunner:
    """Starts and aborts checks of a project, and returns their guarantees.

    Args:
        journal: Journal of the project.
        contents: Contents of the project.
    """

    def __init__(self, journal: ProjectJournal, contents: ProjectContents) -> None:
        self._journal, self._contents = journal, contents

    def all(self) -> list[ProjectCheck]:
        """All checks in the order in which they started, aborted ones included, with the answers that count now."""
        with self._journal.lock:
            return self._journal.state().checks.all()

    def guarantee(self) -> ProjectGuarantee | None:
        """The newest guarantee, and whether it covers the current model; None if there is none."""
        with self._journal.lock:
            state = self._journal.state()
            return state.guarantee(self._journal.settings.using(state.model).model)

    def require_none_open(self) -> None:
        """Raise an error if a check is open.

        Raises:
            ConflictError: One is open.
        """
        with self._journal.lock:
            _require_none_open(self._journal.state())

    def alpha(self, confidence: float | None = None) -> float:
        """The error probability of all checks of the project together.

        Args:
            confidence: The confidence. If left out, that of the first check, or that of the settings if there is no
                check yet.

        Raises:
            InvalidValueError: It is not between 0 and 1, or not that of the first check.
        """
        with self._journal.lock:
            return self._alpha(confidence, self._journal.state())

    def _alpha(self, confidence: float | None, state: ProjectState) -> float:
        """As :meth:`alpha`."""
        if confidence is None and state.checks.alpha is None:
            confidence = self._journal.settings.confidence
        return shared_alpha(confidence, state.checks.alpha)

    def start(  # noqa: PLR0913 - one quantity of several, by keyword
        self,
        size: int | None = None,
        *,
        person: str,
        at_most: float | None = None,
        expected: float | None = None,
        request: str | None = None,
        recall_of: str | None = None,
        precision_of: str | None = None,
        tolerance: float | None = None,
        share: float | None = None,
        unlabelable_as: str = "wrong",
        predicted_as_found: bool = True,
        confidence: float | None = None,
        earlier_checks: int | None = None,
        of: TargetOf | None = None,
        annotator_error: float | None = None,
        predict: Predict | None = None,
        shared: Mapping[str, Any] | None = None,
    ) -> WriteReceipt:
        """Draw a random check of the unlabelled items; see :meth:`suffice.project.Project.start_check`.

        Besides its arguments, ``shared`` has fields of
        :class:`suffice.session.model_check.CheckedQuantity` for predictions made elsewhere.
        """
        name, sent = checked_person(person), checked_request(request)
        if self._contents.features_missing:
            # The model that is checked depends on the features.
            _ = self._contents.X
        n_items = None if size is None else whole(size, "size", least=1)
        elsewhere = None if earlier_checks is None else whole(earlier_checks, "earlier_checks", least=0)
        given = {"recall_of": recall_of, "precision_of": precision_of, "tolerance": tolerance, "share": share}
        with self._journal.lock:
            self._journal.state()
            settings = self._journal.settings
        classes = settings.classes
        target = {"at_most": at_most, "of": of, "annotator_error": annotator_error, "tolerance": tolerance}
        if n_items is None and all(value is None for value in (recall_of, precision_of, share)):
            target = _with_goal(target, settings)
        given["tolerance"] = target.pop("tolerance")
        asked = checked_quantity(
            settings.task,
            list(classes),
            given,
            unlabelable_as=unlabelable_as,
            predicted_as_found=predicted_as_found,
            screening_for=settings.positive if target["of"] == "all" else None,
        )
        conditions = {"of": target["of"] or "rest", "annotator_error": target["annotator_error"] or 0.0}
        asked = replace(sized_quantity(asked, n_items, target["at_most"], size="size", **conditions), **(shared or {}))
        plan = CheckSize(n_items, expected, elsewhere)
        message = Draft(EventKind.check_started, name, data={"size": n_items, **asked.as_dict()}, request=sent)

        def earlier_event(state: ProjectState) -> Event | None:
            """The event of an earlier request; raise an error if there is none and no check can start."""
            event = self._journal.earlier_event(state, message)
            if event is None:
                _require_none_open(state)
                self._alpha(confidence, state)
            return event

        def attempt(model: str, answers: list[Answer], predictions: _Predicted) -> WriteReceipt | None:
            """Start the check, unless the answers or the model have changed."""

            def decide(state: ProjectState, _: float) -> tuple[list[Draft], Event | None]:
                event = earlier_event(state)
                if event is not None:
                    return [], event
                self._journal.require_classes(classes)
                same_model = self._journal.settings.using(state.model).model == model
                if not same_model or state.answers() != answers or len(predictions.labels) != state.labels.size:
                    return [], None
                draw = self._draw(state, asked, predictions, plan, self._alpha(confidence, state))
                return [Draft(EventKind.check_started, name, data=draw.event_data(), request=sent)], None

            events, event = self._journal.write(decide)
            if events:
                return WriteReceipt(events[0].seq, None, False)
            return None if event is None else WriteReceipt(event.seq, None, True)

        for _ in range(_TRIES):
            with self._journal.lock:
                state = self._journal.state()
                answers, model = state.answers(), self._journal.settings.using(state.model).model
                event = earlier_event(state)
            if event is not None:
                return WriteReceipt(event.seq, None, True)
            # Without the lock, because learning and predicting take time.
            receipt = attempt(model, answers, self._predictions(model, answers, predict))
            if receipt is not None:
                return receipt
        raise ConflictError(
            "a check cannot start now: labels come faster than the model learns and predicts; try again when fewer "
            "people label"
        )

    def abort(self, *, person: str, request: str | None = None) -> WriteReceipt:
        """Abort the open check; see :meth:`suffice.project.Project.abort_check`."""
        message = Draft(EventKind.check_aborted, checked_person(person), request=checked_request(request))

        def decide(state: ProjectState, _: float) -> Draft:
            open_check = state.checks.open_check
            if open_check is None:
                raise ConflictError("no check is open, so there is none to abort")
            data = {"number": open_check.number}
            return Draft(EventKind.check_aborted, message.person, data=data, request=message.request)

        return self._journal.write_once(message, decide)

    def _predictions(self, model: str, answers: list[Answer], predict: Predict | None) -> _Predicted:
        """Predictions for all items, in the form in which a check stores them."""
        from suffice.project.learned_project import predictions_after

        contents = self._contents
        found = (
            predictions_after(contents.settings.using(model), contents.X, answers, contents.learned_files)
            if predict is None
            else predict(model, answers)
        )
        known = found.probabilities if isinstance(found, Predictions) else None
        probable = None if known is None else known.max(axis=1)
        if contents.settings.checked is not None and contents.settings.checked.probability is not None:
            probable = 1.0 - found.uncertainty  # type: ignore[union-attr]
        predictions = np.asarray(found.labels if isinstance(found, Predictions) else found)
        if predictions.shape != (contents.size,):
            raise InvalidValueError(
                f"predict must return one prediction for each of the {contents.size:,} items of the project; their "
                f"shape is {predictions.shape}"
            )
        numbers = contents.settings.task == "regression"
        labels = rounded_numbers(predictions.astype(np.float64)) if numbers else predictions
        return _Predicted(labels, probable)

    def _draw(
        self, state: ProjectState, asked: CheckedQuantity, predictions: _Predicted, plan: CheckSize, alpha: float
    ) -> CheckDraw:
        """The next check of the current model."""
        settings = self._journal.settings
        before, number = state.labels.items_before(), state.checks.number_after(settings.earlier_checks)
        if plan.elsewhere is not None:
            number = state.checks.next_number + plan.elsewhere
        rng = check_rng(settings.seed, PROJECT_STREAM, number)
        predicted = predictions.labels[before.unlabelled]
        items, pool = drawn_items(plan.size, asked, before, predicted, rng)
        spent = spent_alpha(number if asked.batch_check is None else asked.batch_check, alpha)
        if asked.share is not None:
            # This raises an error with the required number of items if there are too few.
            Guarantee.of_tolerance(np.zeros(len(items)), asked.share, pool, alpha=spent)
        terms = None
        if asked.at_most is not None:
            labels = [state.labels.by_item[item] for item in before.labelled]
            terms = sequential_terms(asked, pool, spent, plan.expected, labels)
            target = asked.at_most if asked.of == "rest" else terms.allowed / terms.pool
            asked = replace(asked, expected=planned_share(target, plan.expected))
        probable = None
        if asked.of == "all" or asked.accept is not None:
            known = predictions.probabilities
            probable = None if known is None else known[before.unlabelled]
        return CheckDraw(
            items,
            pool,
            number,
            alpha,
            asked,
            settings.using(state.model).model,
            settings.classes,
            before,
            predicted,
            terms=terms,
            probabilities=probable,
        )


def _with_goal(target: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """The target of a check, with values of the project's goal about all labels where none is given."""
    goal = settings.goal
    if goal is None or target["of"] == "rest":
        return dict(target)
    own: dict[str, Any] = {"at_most": goal.at_most, "of": goal.of, "annotator_error": goal.annotator_error}
    own["tolerance"] = settings.tolerance
    return {name: own[name] if value is None else value for name, value in target.items()}


def _require_none_open(state: ProjectState) -> None:
    draw = state.checks.open_check
    if draw is not None:
        pending, size = len(state.checks.pending()), len(draw.items)
        of = f" of its {size:,} items" if draw.terms is None else " more items"
        raise ConflictError(f"a check is open: {pending:,}{of} have no answer; answer them, or abort the check")
