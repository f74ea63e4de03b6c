"""A labelling run as it happens: in place on a terminal, a line now and then elsewhere."""

from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from suffice.cli.rule_values import RuleValues
from suffice.criteria import Verdict
from suffice.presentation.messages import RATIO_RULE
from suffice.presentation.text_chart import chart

_EVERY = 25


class LiveView:
    """Shows the newest verdict, the curve behind it, and how much of the pool is labelled.

    Args:
        console: Where to show it.
        pool: Size of the pool.
        threshold: Where the rule stops.
    """

    def __init__(self, console: Console, pool: int, threshold: float) -> None:
        self._console, self._pool, self._threshold = console, pool, threshold
        self._next = _EVERY
        self._live = Live(console=console, refresh_per_second=20) if self.animated else None

    @property
    def animated(self) -> bool:
        """Whether there is a terminal with somebody before it."""
        return self._console.is_terminal and not self._console.is_dumb_terminal and not self._console.quiet

    def __enter__(self) -> "LiveView":
        if self._live is not None:
            self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.__exit__(kind, error, trace)

    def show(self, verdicts: list[Verdict]) -> None:
        """Show where the run stands; the newest verdict is last."""
        newest = verdicts[-1]
        if self._live is not None:
            self._live.update(self._panel(verdicts))
        elif newest.n_labelled >= self._next and not newest.stop:
            self._next = (newest.n_labelled // _EVERY + 1) * _EVERY
            self._console.print(str(newest), soft_wrap=True)

    def go_on(self, n_labelled: int) -> None:
        """Say that the rest of the pool is labelled too, to see what more labels would have bought."""
        if self._live is not None:
            self._live.update(Text(f"enough; labelling the rest to compare: {n_labelled} of {self._pool}", style="dim"))

    def _panel(self, verdicts: list[Verdict]) -> Panel:
        newest = verdicts[-1]
        width = max(20, min(64, self._console.width - 16))
        caption, curve = self._curve(verdicts, width)
        count = f"{newest.n_labelled} of {self._pool} labelled"
        bar = Table.grid(padding=(0, 1))
        bar.add_row(ProgressBar(total=self._pool, completed=newest.n_labelled, width=width - 20), count)
        forecast = Text("" if newest.forecast is None else f"{newest.forecast} until it is enough")
        # Where there is no number to draw, the rule's own words have to do.
        shown = (Text(caption, style="dim"), Text("\n".join(curve), style="cyan")) if curve else (Text(newest.reason),)
        return Panel(Group(bar, forecast, *shown), title="suffice demo", width=width + 14)

    def _curve(self, verdicts: list[Verdict], width: int) -> tuple[str, list[str]]:
        """A heading and the curve below it."""
        plain = not self._console.encoding.lower().startswith("utf")
        if verdicts[-1].rule == RATIO_RULE:
            values = [v.value for v in verdicts if v.value is not None]
            caption = f"error ratio, and the threshold {self._threshold:g}"
            return caption, chart(values, self._threshold, width=width, height=9, plain=plain)
        found = RuleValues.of(verdicts)
        return found.caption, found.chart(width=width, height=9, plain=plain)
