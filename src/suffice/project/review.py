"""Review of a project: labels that are likely wrong, with the predictions of the model."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from suffice.presentation.item_words import (
    REVIEW_NOTE,
    review_sentences,
    suspicious_label_sentence,
    too_few_to_review_sentence,
)
from suffice.presentation.text_format import item_summary
from suffice.project.events import Label, moment

if TYPE_CHECKING:
    from suffice.project.labelling_project import Project
    from suffice.project.settings import Settings
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
        wrong: Probability that the label is wrong.
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
    wrong: float
    sentence: str


@dataclass(frozen=True)
class Review:
    """Labels that are worth a second look, because they are likely wrong.

    Attributes:
        labels: The labels that are listed, the likeliest to be wrong first.
        total: Number of labels that are worth a second look.
        n_labelled: Number of labels that the model has learned.
        expected: Expected number of wrong labels among those listed.
        expected_all: Expected number of wrong labels among all that are open to review.
        at_least: Smallest probability of being wrong at which a label is worth a second look.
        sentence: The result in words.
        note: What the list means.
    """

    labels: tuple[ReviewedLabel, ...]
    total: int
    n_labelled: int
    expected: float
    expected_all: float
    at_least: float
    sentence: str
    note: str = REVIEW_NOTE

    def as_dict(self) -> dict[str, Any]:
        """The same as JSON values."""
        return asdict(self) | {"labels": [asdict(label) for label in self.labels]}


def review(project: "Project", ranked: Sequence["SuspiciousLabel"], most: int) -> Review:
    """Labels that are worth a second look, without confirmed labels and items of a check.

    Args:
        project: The project.
        ranked: All labels that the model has learned, the likeliest to be wrong first.
        most: Maximal number of labels to list.
    """
    # It loads the models, for which the page need not wait.
    from suffice.session.suspicious_labels import FEWEST

    at_least = worth_reviewing(project.settings)
    if not ranked:
        return Review((), 0, 0, 0.0, 0.0, at_least, too_few_to_review_sentence(FEWEST))
    open_labels = project.model_results.open_to_review(ranked)
    worth = [label for label in open_labels if label.wrong >= at_least]
    listed, main = worth[:most], project.settings.main
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
            wrong=wrong.wrong,
            sentence=suspicious_label_sentence(wrong.label, wrong.prediction, wrong.wrong, wrong.deviation),
        )
        for wrong, item in zip(listed, items, strict=True)
        if wrong.item in by_item
    )
    found = Review(
        labels,
        len(worth),
        len(ranked),
        expected=sum(label.wrong for label in listed),
        expected_all=sum(label.wrong for label in open_labels),
        at_least=at_least,
        sentence="",
    )
    about = asdict(found) | {"listed": len(labels), "priced": at_least < _MORE_LIKELY_WRONG}
    return replace(found, sentence=" ".join(review_sentences(about)))


# Labels that are more likely wrong than right are always worth a second look.
_MORE_LIKELY_WRONG: Final = 0.5


def worth_reviewing(settings: "Settings") -> float:
    """Smallest probability of being wrong at which a label is worth a second look.

    A second look costs as much as a label, and a wrong label that is found saves the cost of a mistake. So a label is
    worth it if its probability of being wrong is at least the ratio of the two costs. A label that is more likely wrong
    than right is always worth it; so is every one for numbers, whose mistakes have other units.

    Examples:
        >>> from suffice import LabelWorth
        >>> from suffice.project.settings import Settings
        >>> rule = LabelWorth(label_cost=0.5, mistake_cost=10.0).state_dict()
        >>> worth_reviewing(Settings("p", "classification", ("a", "b"), "y", "table", ("x",), None, "logistic", rule))
        0.05
    """
    costs = settings.costs() if settings.task == "classification" else None
    if costs is None or costs[1] is None:
        return _MORE_LIKELY_WRONG
    return min(_MORE_LIKELY_WRONG, costs[0] / costs[1])
