"""Every figure of the comparison, from the runs at hand."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from suffice.experiments.compare.board import Row
from suffice.report.compare.boards import Leaderboard
from suffice.report.compare.pareto import pareto_figure
from suffice.report.compare.regrets import regret_figure
from suffice.report.compare.stops import stops_figure
from suffice.report.style import Drawn, Sketch, draw_all


def draw_comparison(boards: Sequence[Leaderboard], points: Sequence[Row], folder: Path) -> list[Drawn]:
    """Draw the comparison, each figure as PNG and as PDF. The same runs give the same bytes.

    Args:
        boards: The rules ranked, kind by kind.
        points: What :func:`suffice.experiments.compare.board.curves` made.
        folder: Where the files go; made if it is not there.

    Raises:
        MissingExtraError: matplotlib is not installed.
        SufficeError: A file cannot be written.
    """
    return draw_all(sketches(boards, points), folder, "drawing figures")


def sketches(boards: Sequence[Leaderboard], points: Sequence[Row]) -> Iterator[Sketch]:
    """The figures one after the other, not yet in files."""
    kinds = [board for board in boards if board.key != "all"]
    for board in boards:
        yield regret_figure(board)
    for board in kinds:
        for model in dict.fromkeys(row["model"] for row in board.rows):
            sketch = pareto_figure(model, [point for point in points if point["model"] == model], board)
            if sketch is not None:
                yield sketch
    for board in kinds:
        for data in dict.fromkeys(row["data"] for row in board.rows):
            yield stops_figure(data, board)
