"""The paper's figures drawn again: their panels, that they can be read, and that they are the same each time."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib")

import matplotlib as mpl
from matplotlib.image import imread

from suffice.errors import MissingExtraError, SufficeError
from suffice.report.figures import Sketch, plain_style
from suffice_research.data.protocols import PROTOCOLS, PUBLISHED
from suffice_research.paper.outcome import RunOutcome, correlation, first_at_most
from suffice_research.paper.paper_report import draw_paper, sketches
from tests.reading import require_readable

pytestmark = pytest.mark.slow

ALL = [
    f"{protocol}-{name}"
    for protocol in PROTOCOLS
    for name in ("correlations", "scatter", "errors-gpr", "errors-brr", "errors-blr", "errors-bdnn", "same-place")
]


def run(
    name: str, protocol: str = "published", *, seed: int = 1, arm: str | None = None, steps: int = 120
) -> RunOutcome:
    """A run whose error and ratio fall, with some noise."""
    experiment, rng = PUBLISHED[name], np.random.default_rng(seed)
    time, first = np.arange(steps), experiment.counted_from
    ratio = np.where(time < first, 1.0, 1.3 * np.exp(-time / 30.0) * rng.uniform(0.8, 1.2, steps))
    error = 0.01 + np.exp(-time / 20.0) * rng.uniform(0.9, 1.1, steps)
    stops = {f"{each:g}": first_at_most(ratio, each, first) for each in experiment.thresholds}
    return RunOutcome(
        protocol=protocol,
        model=experiment.model,
        data=experiment.data,
        seed=seed,
        arm=arm,
        features=4,
        pool=5000,
        initial=experiment.initial,
        steps=steps,
        correlation=correlation(ratio, error, first),
        published_correlation=experiment.correlation,
        stops=stops,
        error_first=float(error[0]),
        error_best=float(error.min()),
        error_at_stop={each: None if at is None else float(error[at]) for each, at in stops.items()},
        seconds=1.0,
        ratio=ratio,
        error=error,
        counted_from=first,
    )


def never(outcome: RunOutcome) -> RunOutcome:
    """The same run, without a stop and without a correlation."""
    nothing: dict[str, Any] = dict.fromkeys(outcome.stops)
    return replace(outcome, correlation=None, stops=nothing, error_at_stop=nothing)


def everything() -> Iterator[RunOutcome]:
    for name in PUBLISHED:
        yield run(name)
        for seed in range(3):
            for arm in (None,) if name == "bdnn/mnist" else ("bought", "outside"):
                outcome = run(name, "corrected", seed=seed, arm=arm)
                yield never(outcome) if seed == 2 or name == "gpr/protein" else outcome


def drawn(*outcomes: RunOutcome) -> dict[str, Sketch]:
    with plain_style():
        return {each.name: each for each in sketches(outcomes)}


def panels(sketch: Sketch) -> list[str]:
    return [axis.get_title(loc="left").partition("\n")[0] for axis in sketch.figure.axes]


@pytest.fixture(scope="module")
def every() -> dict[str, Sketch]:
    return drawn(*everything())


def test_every_figure_of_the_paper_is_there_for_both_protocols(every: dict[str, Sketch]) -> None:
    assert list(every) == ALL


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_experiment_has_its_panel(every: dict[str, Sketch], protocol: str) -> None:
    scatter = panels(every[f"{protocol}-scatter"])
    assert len(scatter) == 12
    assert [title[:3] for title in scatter] == [f"({letter})" for letter in "abcdefghijkl"]
    assert scatter[7] == "(h) BRR Grid stability (r)"
    assert [len(every[f"{protocol}-errors-{model}"].figure.axes) for model in ("gpr", "brr", "blr", "bdnn")] == [
        4,
        4,
        3,
        2,
    ]
    # The network was tried on one data set, which leaves nothing to compare.
    assert panels(every[f"{protocol}-same-place"]) == ["GPR", "BRR", "BLR"]


def test_every_panel_has_something_in_it(every: dict[str, Sketch]) -> None:
    for sketch in every.values():
        for axis in sketch.figure.axes:
            assert axis.lines or axis.patches, sketch.name


@pytest.mark.parametrize("name", ALL)
def test_no_words_lie_on_others(every: dict[str, Sketch], name: str) -> None:
    require_readable(every[name].figure)


def test_the_longest_words_beside_a_bar_are_whole_in_the_picture() -> None:
    values = (-0.99, -0.98, None)
    given = [replace(run("gpr/protein", seed=seed), correlation=value) for seed, value in enumerate(values)]
    sketch = drawn(*given)["published-correlations"]
    Path("figures").mkdir()
    png = sketch.save(Path("figures")).png
    (said,) = [text for text in sketch.figure.axes[0].texts if "1 undefined" in text.get_text()]
    pixels = imread(png)[..., :3].min(axis=2)
    # The outermost pixels are white: nothing was cut off there.
    assert pixels[:, -3:].min() > 0.99
    assert said.get_window_extent().x1 < pixels.shape[1]


def test_missing_runs_leave_out_their_panel() -> None:
    found = drawn(run("brr/protein"), run("blr/htru2"))
    assert list(found) == [f"published-{name}" for name in ("correlations", "scatter", "errors-brr", "errors-blr")]
    assert panels(found["published-scatter"]) == ["(f) BRR Protein", "(k) BLR HTRU2"]
    assert panels(drawn(run("brr/protein"), run("brr/power_plant"))["published-same-place"]) == ["BRR"]


@pytest.mark.parametrize("arm", [None, "outside"])
@pytest.mark.parametrize("name", PUBLISHED)
def test_any_single_run_is_enough(name: str, arm: str | None) -> None:
    found = drawn(never(run(name, "corrected", arm=arm)))
    names = ("correlations", "scatter", f"errors-{PUBLISHED[name].model}")
    assert list(found) == [f"corrected-{each}" for each in names]
    for sketch in found.values():
        sketch.figure.draw_without_rendering()


def test_a_run_that_ended_before_it_counts_has_no_scatter_plot() -> None:
    found = drawn(never(run("gpr/protein", steps=5)))
    assert list(found) == ["published-correlations", "published-errors-gpr"]


def test_no_runs_give_no_figures(tmp_path: Path) -> None:
    assert draw_paper([], tmp_path / "figures") == []


def test_the_same_runs_give_the_same_bytes(tmp_path: Path) -> None:
    given = [run("bdnn/mnist", seed=seed) for seed in (1, 2)]
    first = draw_paper(given, tmp_path / "a" / "b")
    with mpl.rc_context({"axes.facecolor": "black", "font.size": 30.0, "savefig.dpi": 20}):
        second = draw_paper(given[::-1], tmp_path / "again")
    assert [each.name for each in first] == ["published-correlations", "published-scatter", "published-errors-bdnn"]
    for one, other in zip(first, second, strict=True):
        assert one.png.read_bytes() == other.png.read_bytes()
        assert one.pdf.read_bytes() == other.pdf.read_bytes()
        assert one.png.name == f"{one.name}.png"
        assert b"Date" not in one.pdf.read_bytes()
        assert one.title
        assert one.caption
        assert one.alt
    assert len(list((tmp_path / "again").iterdir())) == 6


def test_a_long_run_is_drawn_with_few_points_and_keeps_its_peaks() -> None:
    outcome = run("brr/grid_stability", steps=8000)
    outcome.error[4321] = 7.0
    (axis,) = drawn(outcome)["published-errors-brr"].figure.axes
    curve = axis.lines[0].get_ydata()
    assert len(curve) <= 600
    assert curve.max() == 7.0
    assert curve[-1] == outcome.error[-1]


def test_errors_over_decades_are_drawn_on_a_logarithmic_axis() -> None:
    outcome = run("gpr/protein")
    narrow = replace(outcome, error=1.0 + outcome.error)
    negative = replace(outcome, error=outcome.error - 0.5)
    scales = [drawn(each)["published-errors-gpr"].figure.axes[0].get_yscale() for each in (outcome, narrow, negative)]
    assert scales == ["log", "linear", "linear"]


def test_stops_stand_at_the_labels_of_the_median() -> None:
    given = [run("gpr/protein", "corrected", seed=seed, arm="bought") for seed in range(3)]
    (axis,) = drawn(*given)["corrected-errors-gpr"].figure.axes
    marked = [line.get_xdata()[0] for line in axis.lines if len(set(line.get_xdata())) == 1]
    labels = [sorted(11.0 + (each.stops[name] or 0) for each in given)[1] for name in ("0.05", "0.04", "0.03")]
    assert marked == labels
    beside = [text.get_text() for text in axis.child_axes[0].texts]
    assert beside == [f"{value:.0f}" for value in labels]


def test_captions_say_where_hyperparameters_came_from() -> None:
    bought, outside = (
        [run(name, "corrected", arm=arm) for name in ("gpr/protein", "gpr/power_plant")]
        for arm in ("bought", "outside")
    )
    for sketch in drawn(*bought).values():
        assert "Hyper-parameters from bought labels." in sketch.caption
    for sketch in drawn(*outside).values():
        assert "Hyper-parameters from labels outside the run." in sketch.caption
    both = drawn(*bought, *outside)
    assert "lighter" in both["corrected-correlations"].caption
    assert "Hyper-parameters from bought labels." in both["corrected-scatter"].caption
    assert "Dashed" in both["corrected-errors-gpr"].caption
    assert "Hollow" in both["corrected-same-place"].caption
    assert all("yper-parameters" not in sketch.caption for sketch in drawn(run("gpr/protein")).values())


def test_the_run_in_full_colour_is_the_middle_one() -> None:
    given = [replace(run("gpr/protein", seed=seed), correlation=value) for seed, value in enumerate((0.1, 0.9, 0.5))]
    (axis,) = drawn(*given)["published-scatter"].figure.axes
    assert axis.get_title(loc="left").endswith("r = 0.500")
    full = max(axis.lines, key=lambda line: line.get_alpha())
    assert full.get_xdata()[0] == given[2].error[given[2].counted_from]


def test_a_name_with_a_dollar_starts_no_formula() -> None:
    for sketch in drawn(replace(run("gpr/protein"), data="a$b$^")).values():
        sketch.figure.draw_without_rendering()


def test_without_matplotlib_the_remedy_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"-m pip install .*'matplotlib>="):
        draw_paper([run("gpr/protein")], tmp_path)


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(SufficeError, match="taken"):
        draw_paper([run("gpr/protein")], tmp_path / "taken")
