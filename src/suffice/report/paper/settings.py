"""The records of the paper's experiments as a table."""

from collections.abc import Iterable

from suffice.data.catalogue import SETS
from suffice.data.protocols import Experiment
from suffice.report.table import NOTHING, ReportTable


def settings_table(experiments: Iterable[Experiment]) -> ReportTable:
    """Columns, splits and settings of some experiments of one protocol, a row for each.

    Args:
        experiments: At least one.
    """
    given = list(experiments)
    return ReportTable(
        f"{given[0].protocol}-settings",
        "What was run",
        ("run", "target", "inputs", "rows", "test", "pool", "initial", "steps", "thresholds", "settings"),
        tuple(_row(each) for each in given),
        "Inputs are standardised, and so is a numeric target unless it says otherwise. Thresholds are the paper's, "
        "then those of the script. Gamma, the scale of the ratio, is the minimum over so many steps.",
    )


def _row(each: Experiment) -> tuple[str, ...]:
    sizes = (each.rows, each.test, each.pool_size, each.initial, each.step_count)
    rows, test, pool, initial, steps = map(str, sizes)
    thresholds = " ".join(f"{value:g}" for value in each.thresholds)
    return each.name, _target(each), _inputs(each), rows, test, pool, initial, steps, thresholds, _settings(each)


def _target(each: Experiment) -> str:
    view = each.view
    if view.positive is not None:
        return f"{view.target} = {view.positive:g}"
    return view.target if view.standardised else f"{view.target}, as it is"


def _inputs(each: Experiment) -> str:
    """How many inputs, and which columns are neither inputs nor target."""
    columns, view = SETS[each.data].columns, each.view
    if not columns:
        return "28 x 28 pixels"
    left = [name for name in columns if name not in (*view.inputs, view.target)]
    leak = f"; {view.target} is one of them" if view.target in view.inputs else ""
    return f"{len(view.inputs)}, all{f' but {_joined(left)}' if left else ' others'}{leak}"


def _joined(names: list[str]) -> str:
    return " and ".join(names)


def _settings(each: Experiment) -> str:
    words = {"pool": "the pool, before the run", "bought": "labels bought, or outside", "outside": "labels outside"}
    parts = [] if each.model == "bdnn" else [f"hyper-parameters from {words[each.hyperparameters]}"]
    if each.inverse_precision is not None:
        parts = [f"C = {each.inverse_precision:g}"]
    if each.centres:
        parts.append(f"{each.centres} centres, {each.bandwidth:g} of a step wide")
    if each.noise_floor is not None:
        parts.append(f"noise at least {each.noise_floor:g}")
    if each.model == "bdnn":
        parts.append(f"{each.batch} labels an acquisition")
    parts.append(f"gamma over {each.calibration}")
    return "; ".join(parts) or NOTHING
