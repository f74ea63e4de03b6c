"""``suffice plan``: how many answers a check takes, and what a sample has shown, without a project."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from suffice.arguments import real, whole
from suffice.checks.annotation_budget import annotation_budget
from suffice.checks.hypergeometric import exact_share
from suffice.cli.goal_options import Expected, expected_of
from suffice.cli.json_output import AsJson, print_json
from suffice.cli.project_options import plain_console
from suffice.cli.rule_options import share_of
from suffice.errors import InvalidValueError
from suffice.presentation.answer_plan_words import answer_table_rows
from suffice.presentation.text_format import count, percent_at_least, percent_at_most

_COLUMNS = ("wrong", "answers", "8 of 10 checks", "fixed size")


def plan_command(
    table: Annotated[
        Path | None,
        typer.Argument(
            metavar="TABLE",
            help="A table (CSV, Excel, JSON lines or Parquet) whose rows are counted, instead of --pool.",
            show_default=False,
        ),
    ] = None,
    pool: Annotated[
        int | None,
        typer.Option(metavar="NUMBER", help="Number of predictions from which a check is drawn.", show_default=False),
    ] = None,
    at_most: Annotated[
        str | None,
        typer.Option(metavar="SHARE", help="The target: at most this share is wrong, such as 5%.", show_default=False),
    ] = None,
    expected: Expected = None,
    of: Annotated[
        str,
        typer.Option(
            metavar="WHAT",
            help="What --at-most is about: predictions, as they are; or all, all final labels, for which people "
            "correct the wrong predictions that they find.",
        ),
    ] = "predictions",
    checked: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            help="Predictions that were drawn at random and checked; states what they show.",
            show_default=False,
        ),
    ] = None,
    wrong: Annotated[
        int | None, typer.Option(metavar="NUMBER", help="With --checked: how many were wrong.", show_default=False)
    ] = None,
    confidence: Annotated[str, typer.Option(metavar="SHARE", help="Confidence of all statements.")] = "95%",
    earlier_checks: Annotated[
        int, typer.Option(metavar="NUMBER", help="Checks of these predictions that were started before.")
    ] = 0,
    seconds: Annotated[
        float | None,
        typer.Option(metavar="NUMBER", help="Seconds that an answer takes, to state the time.", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Plan a check without a project: how many answers a target takes, or what a sample has shown.

    For a prediction in each row of a table: suffice plan answers.csv --at-most 5%

    How many answers of people prove that at most 5 % of 20,000 predictions are wrong:
    suffice plan --pool 20000 --at-most 5% --expected 2%

    What a random sample has shown: suffice plan --pool 20000 --checked 300 --wrong 7

    A check ends by itself as soon as the target is proven, so that the number of its answers depends on them. The
    command states the median, and the numbers within which one check of ten and nine checks of ten end. These are
    exact for a check that is started with the same --expected, if that share is wrong; a table has other shares. What
    a check proves does not depend on it.
    """
    target, guess = share_of(at_most, "--at-most"), expected_of(expected)
    alpha = float(1 - exact_share(share_of(confidence, "--confidence"), "--confidence"))
    if of not in ("predictions", "all"):
        raise InvalidValueError(f"--of must be predictions or all, not {of!r}")
    if seconds is not None:
        real(seconds, "--seconds", "above 0", lambda x: x > 0.0)
    if (checked is None) != (wrong is None):
        raise InvalidValueError("--checked and --wrong go together: how many were checked, and how many were wrong")
    if target is None and checked is None:
        raise InvalidValueError("give --at-most, the share of wrong predictions to prove, or --checked and --wrong")
    if target is None and (guess is not None or of != "predictions"):
        raise InvalidValueError(f"{'--expected' if guess is not None else '--of'} needs --at-most, the share to prove")
    number = 1 + whole(earlier_checks, "--earlier-checks", least=0)
    pool = _pool(table, pool)
    counts = None if checked is None or wrong is None else (checked, wrong)
    budget = annotation_budget(
        pool, at_most=target, expected=guess, counts=counts, corrected=of == "all", alpha=alpha, number=number
    )
    if as_json:
        print_json("plan", budget.as_dict(seconds))
        return
    console = plain_console()
    if table is not None:
        console.print(f"{table} has {count(pool, 'row')}; each counts as one prediction.")
    for sentence in budget.sentences(seconds):
        console.print(sentence)
    if target is not None and budget.table:
        about = "after corrections" if of == "all" else f"{percent_at_least(1.0 - alpha)} confidence"
        title = f"Answers to prove that at most {percent_at_most(target)} of {pool:,} are wrong ({about})"
        console.print(_shown([each.as_dict() for each in budget.table], title, seconds))


def _pool(table: Path | None, pool: int | None) -> int:
    """The number of predictions: that of ``--pool``, or of the rows of a table.

    Raises:
        InvalidValueError: Neither is given, or both; or the table cannot be read.
    """
    if table is None and pool is None:
        raise InvalidValueError(
            "give the number of predictions, as in --pool 20000, or a table whose rows are counted, as in suffice plan "
            "answers.csv"
        )
    if table is None:
        return whole(pool, "--pool", least=1)
    if pool is not None:
        raise InvalidValueError(f"--pool {pool} and the rows of {table} are two numbers of predictions; give one")
    from suffice.tables.file_reader import read_columns

    return len(read_columns(table))


def _shown(plans: list[dict[str, Any]], title: str, seconds: float | None) -> Table:
    """The table of plans."""
    shown = Table(box=SIMPLE_HEAD, title=title, title_justify="left", title_style="")
    names, rows = [*_COLUMNS, *([] if seconds is None else ["time"])], answer_table_rows(plans, seconds)
    # No check of fixed size corrects what it finds.
    kept = [k for k in range(len(names)) if any(row[k] for row in rows)]
    for k in kept:
        shown.add_column(names[k], justify="right")
    for row in rows:
        shown.add_row(*(row[k] for k in kept))
    return shown
