"""Records of a monitor: the trace of its steps, a data frame, a card for notebooks, and saved states."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from suffice.acquisition import Indices
from suffice.criteria import Step, Verdict
from suffice.criteria.step_and_verdict import FIELD_KINDS
from suffice.errors import MissingExtraError
from suffice.learner.update_memory import EarlierRow
from suffice.presentation.html_parts import card, curve
from suffice.saved_state import decoded_array, encoded_array
from suffice.session.random_losses import RandomLabelLosses
from suffice.session.recorded_steps import DIVERGENCES, stacked
from suffice.trace import Trace

#: Formats of saved monitors.
FORMAT: Final = "suffice-monitor-2"
OLDER_FORMAT: Final = "suffice-monitor-1"


def trace_of_steps(
    steps: Sequence[Step], items: Indices, first: int, random: Sequence[int], about: Mapping[str, Any]
) -> Trace:
    """The inputs of the rule at each step. Divergences are NaN if the rule does not use them.

    Args:
        steps: The steps.
        items: The labelled items in the order of their first updates.
        first: Number of labels before the first step.
        random: Items that were drawn at random.
        about: Description of the run.
    """
    rows = [_given(step) for step in steps]
    shared = frozenset(rows[0]).intersection(*rows) if rows else frozenset()
    return Trace(
        initial=items[:first],
        indices=items[first:],
        n_labelled=np.array([step.n_labelled for step in steps], dtype=np.intp),
        kl_new_old=np.array([_or_nan(step.kl_new_old) for step in steps], dtype=np.float64),
        kl_old_new=np.array([_or_nan(step.kl_old_new) for step in steps], dtype=np.float64),
        error=np.zeros(0),
        estimated=next((step.estimated for step in steps if step.estimated), ""),
        about=dict(about),
        measures=stacked([{name: row[name] for name in sorted(shared - DIVERGENCES)} for row in rows]),
        random_items=np.array(random, dtype=np.intp),
    )


def frame_of_steps(steps: Sequence[Step], verdicts: Sequence[Verdict]) -> Any:
    """The steps as a pandas DataFrame: the verdicts of the rule, and its inputs.

    Raises:
        MissingExtraError: pandas is not installed.
    """
    try:
        import pandas as pd
    except ImportError:
        raise MissingExtraError("pandas", "", "a data frame") from None
    rows = []
    for step, verdict in zip(steps, verdicts, strict=True):
        numbers = {name: value for name, value in _given(step).items() if not isinstance(value, np.ndarray)}
        judged = {name: getattr(verdict, name) for name in ("stop", "ready", "value", "threshold")}
        rows.append({"n_labelled": step.n_labelled, **judged, **numbers, "reason": verdict.reason})
    columns = ["n_labelled", "stop", "ready", "value", "threshold", "reason"]
    return pd.DataFrame(rows) if rows else pd.DataFrame(columns=columns)


def verdict_card(verdict: Verdict, rows: Sequence[tuple[str, str]], verdicts: Sequence[Verdict]) -> str:
    """A verdict with some rows and a chart of the values of the rule, as HTML."""
    tone = "stop" if verdict.stop else "go on" if verdict.ready else "undecided"
    line = [(float(each.n_labelled), each.value) for each in verdicts if each.value is not None]
    limit = [(float(each.n_labelled), each.threshold) for each in verdicts if each.threshold is not None]
    stop = next((each.n_labelled for each in verdicts if each.stop), None)
    return card(str(verdict), list(rows), tone=tone, chart=curve("Value of the rule", line, limit, stop))


def saved_steps(steps: Sequence[Step]) -> list[dict[str, Any]]:
    """Steps as JSON values."""
    return [{"n_labelled": step.n_labelled, **_encoded_fields(step)} for step in steps]


def restored_steps(saved: Sequence[Mapping[str, Any]]) -> list[Step]:
    """Restore :func:`saved_steps`."""
    return [Step(**{name: decoded_array(value) for name, value in step.items()}) for step in saved]


def from_older_state(state: Mapping[str, Any]) -> dict[str, Any]:
    """The state of a monitor of version 1.0.0rc1 in the current form."""
    labels, earlier = state["labels"], {item: row for item, *row in state["earlier"]}
    task, classes = state["task"], state["classes"]
    learned = {item: label for item, label, _ in labels}
    losses = RandomLabelLosses(task or "classification")
    for item in state["random"]:
        if item in earlier and item in learned:
            p, votes, mean, variance = earlier[item]
            row = EarlierRow(None if p is None else tuple(p), None if votes is None else tuple(votes), mean, variance)
            losses.record({item: row.prediction(classes)})
            losses.label(item, learned[item])
    unlabelable = [item for check in state["checks"]["checks"] for item in check["record"]["unlabelable"]]
    session = {
        "task": task,
        "labels": {
            "learned": [[item, label] for item, label, _ in labels],
            "checked": state["checked"],
            "random": state["random"],
            "skipped": [item for item in unlabelable if item not in learned],
            "sampled": [],
        },
        "losses": losses.state_dict(),
        "rule": state["rule"],
        "checks": state["checks"],
        "running": None,
        "version": state["serial"],
        # Plans are made again, and the advice of that version starts again with them.
        "advice": [],
        "compared": None,
    }
    steps = state["steps"]
    last = steps[-1] if steps else {}
    return {
        **state,
        "positive": state.get("positive"),
        "control": state.get("control", ()),
        "session": session,
        "arrival": [[item, serial] for item, _, serial in labels],
        "order": list(learned),
        "calibration": last.get("calibration", 1.0),
        "reducible": last.get("reducible_error", 0.0) if task == "classification" else 0.0,
    }


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _given(step: Step) -> dict[str, Any]:
    """The fields of a step that are given, besides the number of labels."""
    return {name: getattr(step, name) for name in FIELD_KINDS if getattr(step, name) is not None}


def _encoded_fields(step: Step) -> dict[str, Any]:
    fields = {name: encoded_array(value) for name, value in _given(step).items()}
    return {**fields, "estimated": step.estimated} if step.estimated else fields
