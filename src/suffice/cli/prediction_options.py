"""Options of commands about predictions that were made elsewhere."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from suffice.errors import InvalidValueError

if TYPE_CHECKING:
    from suffice.project.checked_predictions import PredictionOptions


@dataclass(frozen=True, kw_only=True)
class PredictionChoice:
    """Which columns are predictions, and how people answer; None if an option was not given."""

    prediction: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Check this column of predictions that were made elsewhere, such as labels by a language model; no "
            "model is trained. May be given several times, to compare columns.",
            show_default=False,
        ),
    ] = None
    probability: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="With --prediction: column with the confidence in each prediction, from 0 to 1.",
            show_default=False,
        ),
    ] = None
    group: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="With --prediction: guarantee the error in each group of this column too.",
            show_default=False,
        ),
    ] = None
    answer: Annotated[
        str | None,
        typer.Option(
            metavar="WAY",
            help="With --prediction: blind, people label without seeing the prediction; or verdict, they see it and "
            "say whether it is right.",
            show_default="blind; verdict for texts",
        ),
    ] = None
    show: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="With --prediction: show this column too; may be given several times. With --text or --image, no "
            "other column is shown.",
            show_default=False,
        ),
    ] = None
    spans: Annotated[
        str | None,
        typer.Option(
            metavar="START,END",
            help="With --prediction: columns with the first and last position of a part of the text to mark.",
            show_default=False,
        ),
    ] = None

    @property
    def given(self) -> bool:
        """Whether a column of predictions is named.

        Raises:
            InvalidValueError: Another option is given without it.
        """
        others = [name for name, value in vars(self).items() if value is not None and name != "prediction"]
        if others and not self.prediction:
            raise InvalidValueError(f"--{others[0]} is for --prediction; name the column of predictions too")
        return bool(self.prediction)

    def options(self, *, numbers: bool, classes: tuple[str, ...]) -> "PredictionOptions":
        """The options for reading the predictions.

        Args:
            numbers: Whether the predictions are numbers.
            classes: Classes that were named.

        Raises:
            InvalidValueError: An option cannot be used.
        """
        from suffice.project.checked_predictions import PredictionOptions

        spans = None
        if self.spans is not None:
            names = tuple(name.strip() for name in self.spans.split(","))
            if len(names) != 2 or not all(names):
                raise InvalidValueError(f"--spans must be two columns, as in start,end, not {self.spans!r}")
            spans = (names[0], names[1])
        answer = None if self.answer is None else self.answer.strip().lower()
        return PredictionOptions(
            columns=tuple(self.prediction or ()),
            probability=self.probability,
            group=self.group,
            answer=answer,  # type: ignore[arg-type]
            numbers=numbers or None,
            classes=classes,
            spans=spans,
            show=tuple(self.show or ()),
        )
