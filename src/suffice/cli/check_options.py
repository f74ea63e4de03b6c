"""Options of a check of a labelling project, or of predictions made elsewhere."""

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from suffice.arguments import whole
from suffice.cli.goal_options import Expected, expected_of, target_of
from suffice.cli.rule_options import share_of
from suffice.errors import InvalidValueError


@dataclass(frozen=True)
class CheckOptions:
    """Options about a check."""

    size: Annotated[
        int | None,
        typer.Option(
            metavar="ITEMS",
            help="Start a check of this many items, which guarantees what it shows.",
            show_default=False,
        ),
    ] = None
    at_most: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE",
            help="Start a check that ends when it has proven that at most this share of the predictions is wrong, such "
            "as 5%.",
            show_default=False,
        ),
    ] = None
    expected: Expected = None
    of: Annotated[
        str | None,
        typer.Option(
            metavar="WHAT",
            help="What --at-most is a share of: rest, the items without a label; or all, all final labels, of which "
            "those of people count as right. all alone starts the check for the goal of the project.",
            show_default="that of the project",
        ),
    ] = None
    annotator_error: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE",
            help="With --of all: the share of people's labels that may be wrong; it is subtracted from --at-most.",
            show_default="that of the project",
        ),
    ] = None
    recall_of: Annotated[
        str | None,
        typer.Option(
            metavar="CLASS",
            help="Guarantee which share of the items of this class is labelled or predicted as such.",
            show_default=False,
        ),
    ] = None
    precision_of: Annotated[
        str | None,
        typer.Option(
            metavar="CLASS",
            help="Guarantee which share of the items predicted as this class belongs to it.",
            show_default=False,
        ),
    ] = None
    tolerance: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            help="For numbers: guarantee how many predictions are off by more than this.",
            show_default=False,
        ),
    ] = None
    share: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE",
            help="For numbers: guarantee a tolerance that at most this share of the predictions exceeds, such as 10%.",
            show_default=False,
        ),
    ] = None
    only_labelled: Annotated[
        bool,
        typer.Option(
            "--only-labelled",
            help="With --recall-of: only labelled items count as found, not those that are predicted as the class.",
        ),
    ] = False
    exclude_unlabelable: Annotated[
        bool,
        typer.Option(
            "--exclude-unlabelable",
            help="Leave skipped items out of the guarantee; otherwise they count as wrong predictions.",
        ),
    ] = False
    confidence: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE",
            help="Confidence of all checks of the project together, such as 99%; fixed with the first check.",
            show_default="95%",
        ),
    ] = None
    earlier_checks: Annotated[
        int,
        typer.Option(
            metavar="NUMBER",
            help="Checks of these items that were started in other projects or programs, if not stated before.",
        ),
    ] = 0
    abort: Annotated[
        bool,
        typer.Option(
            "--abort", help="End the open check without a guarantee; its part of the error probability is used up."
        ),
    ] = False

    @property
    def quantity_given(self) -> bool:
        """Whether the quantity of the guarantee was given."""
        quantities = (self.recall_of, self.precision_of, self.tolerance, self.share)
        return any(quantity is not None for quantity in quantities)

    def arguments(self, person: str) -> dict[str, Any]:
        """The arguments of :meth:`suffice.project.Project.start_check`, without size and target.

        Raises:
            InvalidValueError: A share cannot be used.
        """
        return {
            "person": person,
            "expected": expected_of(self.expected),
            "recall_of": self.recall_of,
            "precision_of": self.precision_of,
            "tolerance": self.tolerance,
            "share": share_of(self.share, "--share"),
            "unlabelable_as": "excluded" if self.exclude_unlabelable else "wrong",
            "predicted_as_found": not self.only_labelled,
            "confidence": share_of(self.confidence, "--confidence"),
            "earlier_checks": self.earlier_checks,
            "of": target_of(self.of),
            "annotator_error": share_of(self.annotator_error, "--annotator-error"),
        }

    def require_for_predictions(self) -> None:
        """Raise an error for options that are not used with predictions made elsewhere.

        Raises:
            InvalidValueError: It names the option.
        """
        given = {"share": self.share, "only-labelled": self.only_labelled, "exclude-unlabelable": False}
        given["exclude-unlabelable"] = self.exclude_unlabelable
        if unused := [name for name, value in given.items() if value]:
            raise InvalidValueError(f"--{unused[0]} is not used with predictions made elsewhere; leave it out")
        whole(self.earlier_checks, "--earlier-checks", least=0)
        if self.size is not None:
            whole(self.size, "--size", least=1)
        if self.expected is not None and (self.size is not None or target_of(self.of) == "all"):
            raise InvalidValueError(
                "--expected plans a check that ends when --at-most is proven; leave it out with --size and --of all"
            )

    @property
    def starts(self) -> bool:
        """Whether a check is to start."""
        return self.size is not None or self.at_most is not None or target_of(self.of) == "all"

    def require_consistent(self) -> None:
        """Raise an error for options that do not go together.

        Raises:
            InvalidValueError: It names the options.
        """
        if self.size is not None:
            whole(self.size, "--size", least=1)
        if self.size is not None and self.at_most is not None:
            raise InvalidValueError(
                "--at-most starts a check that ends by itself, and --size one of that size; give one"
            )
        if self.size is not None and (self.of is not None or self.annotator_error is not None):
            raise InvalidValueError("--of and --annotator-error are for --at-most; leave them out with --size")
        if self.expected is not None and (self.size is not None or not self.starts):
            raise InvalidValueError("--expected plans a check for --at-most; give --at-most too, and no --size")
        if self.annotator_error is not None and target_of(self.of) == "rest":
            raise InvalidValueError("--annotator-error is for a goal about all labels; give --of all")
        whole(self.earlier_checks, "--earlier-checks", least=0)
        planned = self.size is not None or self.at_most is not None or self.expected is not None
        others = planned or self.quantity_given or self.confidence is not None or self.exclude_unlabelable
        others = others or self.earlier_checks > 0 or self.of is not None or self.annotator_error is not None
        if self.abort and others:
            raise InvalidValueError(
                "--abort ends the open check, and takes no other options of a check; leave them out"
            )
        if self.at_most is not None and (self.recall_of is not None or self.precision_of is not None):
            raise InvalidValueError(
                "--at-most starts a check of the error; for --recall-of and --precision-of give --size. Without --size "
                "they say what it costs"
            )
        if self.at_most is not None and self.exclude_unlabelable:
            raise InvalidValueError(
                "--at-most counts skipped items as wrong; leave --exclude-unlabelable out, or give --size"
            )
        if self.only_labelled and self.recall_of is None:
            raise InvalidValueError("--only-labelled says what counts as found; give --recall-of CLASS too")
        if self.size is None and self.share is not None:
            raise InvalidValueError("the size of a check with --share is not planned; give it with --size")
