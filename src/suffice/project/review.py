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
from suffice.session.suspicious_labels import FEWEST, SuspiciousLabel

if TYPE_CHECKING:
    from suffice.project.labelling_project import Project


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
        return asdict(self) | {"labels": [asdict(each) for each in self.labels]}


def review(project: "Project", ranked: Sequence[SuspiciousLabel], most: int) -> Review:
    """Labels that are likely wrong, without confirmed labels and items of a check.

    Args:
        project: The project.
        ranked: All labels that the model has learned, the least likely first.
        most: Maximal number of labels to list.
    """
    if not ranked:
        return Review((), 0, 0, too_few_to_review_sentence(FEWEST))
    found = [each for each in project.open_to_review(ranked) if each.likely_wrong]
    listed, main = found[:most], project.settings.main
    with project.lock:
        by_item = {each.item: each for each in project.state().labelled()}
    items = project.items([each.item for each in listed])
    labels = tuple(
        ReviewedLabel(
            item=each.item,
            id=item.id,
            summary=item_summary(item.cells, main),
            label=each.label,
            person=by_item[each.item].person,
            at=moment(by_item[each.item].at),
            prediction=each.prediction,
            probability=each.probability,
            deviation=each.deviation,
            sentence=suspicious_label_sentence(each.label, each.prediction, each.probability, each.deviation),
        )
        for each, item in zip(listed, items, strict=True)
        if each.item in by_item
    )
    return Review(labels, len(found), len(ranked), review_sentence(len(listed), len(found), len(ranked)))
