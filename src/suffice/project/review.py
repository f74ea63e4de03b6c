"""Review of a project: labels that are likely wrong, with the predictions of the model."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from suffice.presentation.item_words import (
    REVIEW_NOTE,
    review_sentence,
    suspicious_label_sentence,
    too_few_to_review_sentence,
)
from suffice.presentation.text_format import item_summary
from suffice.project.events import Label, moment

if TYPE_CHECKING:
    from suffice.project.labelling_project import Project
    from suffice.session.suspicious_labels import SuspiciousLabel


@dataclass(frozen=True)
class ReviewedLabel:
    """A label that is likely wrong.

    Attributes:
        item: The item.
        id: Its name.
        summary: Its contents in one line.
        label: The label that counts.
        person: Who gave it.
        at: Time of the label, in UTC.
        prediction: Prediction of a model without the label.
        probability: Probability of the label; for numbers, of a label at least as far from the prediction.
        deviation: For numbers the standard deviation of the label given all others; None for classes.
        sentence: The same in words.
    """

    item: int
    id: str
    summary: str
    label: Label
    person: str
    at: str
    prediction: Label
    probability: float
    deviation: float | None
    sentence: str


@dataclass(frozen=True)
class Review:
    """Labels that are likely wrong.

    Attributes:
        labels: The least likely labels, the least likely first.
        total: Number of labels that are likely wrong.
        n_labelled: Number of labels that the model has learned.
        sentence: The result in words.
        note: What the list means.
    """

    labels: tuple[ReviewedLabel, ...]
    total: int
    n_labelled: int
    sentence: str
    note: str = REVIEW_NOTE

    def as_dict(self) -> dict[str, Any]:
        """The same as JSON values."""
        return asdict(self) | {"labels": [asdict(label) for label in self.labels]}


def review(project: "Project", ranked: Sequence["SuspiciousLabel"], most: int) -> Review:
    """Labels that are likely wrong, without confirmed labels and items of a check.

    Args:
        project: The project.
        ranked: All labels that the model has learned, the least likely first.
        most: Maximal number of labels to list.
    """
    # It loads the models, for which the page need not wait.
    from suffice.session.suspicious_labels import FEWEST

    if not ranked:
        return Review((), 0, 0, too_few_to_review_sentence(FEWEST))
    likely_wrong = [label for label in project.model_results.open_to_review(ranked) if label.likely_wrong]
    listed, main = likely_wrong[:most], project.settings.main
    with project.lock:
        by_item = {labelled.item: labelled for labelled in project.state().labelled()}
    items = project.contents.items([label.item for label in listed])
    labels = tuple(
        ReviewedLabel(
            item=wrong.item,
            id=item.id,
            summary=item_summary(item.cells, main),
            label=wrong.label,
            person=by_item[wrong.item].person,
            at=moment(by_item[wrong.item].at),
            prediction=wrong.prediction,
            probability=wrong.probability,
            deviation=wrong.deviation,
            sentence=suspicious_label_sentence(wrong.label, wrong.prediction, wrong.probability, wrong.deviation),
        )
        for wrong, item in zip(listed, items, strict=True)
        if wrong.item in by_item
    )
    sentence = review_sentence(len(listed), len(likely_wrong), len(ranked))
    return Review(labels, len(likely_wrong), len(ranked), sentence)
