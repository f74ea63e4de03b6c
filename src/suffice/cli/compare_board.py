"""The leaderboard on a terminal: as many of its columns as there is room for."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table as Shown

if TYPE_CHECKING:
    from suffice.report.table import ReportTable

#: Columns that go first where there is little room, from the most dispensable on.
_DISPENSABLE: Final = (
    *("µs a step", "its interval", "premature %", "labels over", "stops %", "to the first"),
    *("90 % interval", "typical", "90 % point", "median", "set by"),
)
#: Letters of a rule's name on a line, where there is little room.
_NARROW: Final = 120, 26
#: Where nobody looks at a terminal every column is there, whatever its width.
_WIDE: Final = 200


def show_board(console: Console, table: "ReportTable", references: Sequence[str]) -> None:
    """Print a leaderboard; what there is no room for is left out, and named.

    Args:
        console: Where.
        table: The leaderboard.
        references: Rules to be shown faintly, as they stand in the table.
    """
    if not console.is_terminal:
        console.width = _WIDE
    dispensable = [name for name in _DISPENSABLE if name in table.head]
    left_out: list[str] = []
    longest = _NARROW[1] if console.width < _NARROW[0] else None
    shown = _shown(table, left_out, references, longest)
    while _needed(console, shown) > console.width and len(left_out) < len(dispensable):
        left_out.append(dispensable[len(left_out)])
        shown = _shown(table, left_out, references, longest)
    console.print()
    console.print(shown, soft_wrap=False)
    if left_out:
        console.print(f"No room for: {', '.join(reversed(left_out))}. The report has them.", style="dim")


def _needed(console: Console, shown: Shown) -> int:
    """Letters across that a table needs to be shown whole."""
    return Measurement.get(console, console.options.update(width=1000), shown).maximum


def _shown(table: "ReportTable", left_out: Sequence[str], references: Sequence[str], longest: int | None) -> Shown:
    kept = [at for at, name in enumerate(table.head) if name not in left_out]
    shown = Shown(
        title=table.title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0)
    )
    for at in kept:
        name, words = table.head[at], table.head[at] in ("rule", "set by")
        # On two lines, so that a head is no wider than its numbers.
        head = name if words else "\n".join(name.rsplit(" ", 1))
        shown.add_column(
            head,
            justify="left" if words else "right",
            vertical="bottom",
            no_wrap=name != "rule",
            max_width=longest if name == "rule" else None,
        )
    for row in table.rows:
        style = "dim" if row[1] in references else "bold" if row[0] == "1" else ""
        shown.add_row(*(escape(row[at]) for at in kept), style=style)
    return shown
