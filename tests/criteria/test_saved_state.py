"""A state that was changed outside of the program is refused, or harmless."""

import copy
import json
import math
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from suffice import ErrorStability, Step, criterion_from_dict
from suffice.criteria import Criterion, Verdict
from suffice.criteria.base import require_type
from suffice.errors import InvalidValueError
from tests.every_rule import RULES, made_up_steps

STEPS = made_up_steps(30)
CUT = 12
BAD: tuple[Any, ...] = (
    math.nan,
    math.inf,
    -math.inf,
    -1,
    -0.5,
    "x",
    None,
    True,
    [],
    [math.nan],
    [-1],
    ["x"],
    [None],
    {},
)
# Any bounds of at least 0, and any finite errors, may have been seen by these rules: no such state is wrong.
ANY_HISTORY = {"DeterministicBoundRuns", "ExpectedCost", "HeldOutPlateau"}


def saved_after(name: str, cut: int) -> dict[str, Any]:
    rule = RULES[name].copy()
    for step in STEPS[:cut]:
        rule.observe(step)
    return dict(json.loads(json.dumps(rule.state_dict(), allow_nan=False)))


def states_in(saved: dict[str, Any]) -> list[dict[str, Any]]:
    """The state of a rule, and those of the rules inside it."""
    found = [saved["state"]] if saved["state"] else []
    for value in (*saved["params"].values(), *saved["state"].values()):
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, dict) and "state" in part:
                found += states_in(part)
    return found


def mutations(saved: dict[str, Any]) -> list[dict[str, Any]]:
    """The saved rule with one field of one state changed."""
    changed = []
    for number, state in enumerate(states_in(saved)):
        for key, value in state.items():
            several = [*BAD]
            if isinstance(value, list):
                several += [value[:-1], value[1:], [*value, *value[-1:]], value * 2, value[::-1]]
            for other in several:
                if other is value or repr(other) == repr(value):
                    continue
                again = copy.deepcopy(saved)
                states_in(again)[number][key] = other
                changed.append(again)
    return changed


def stops(rule: Criterion, steps: tuple[Step, ...]) -> list[bool]:
    return [rule.observe(step).stop for step in steps]


@pytest.mark.no_cover
@pytest.mark.parametrize("cut", [3, CUT])
@pytest.mark.parametrize("name", sorted(RULES))
def test_a_changed_state_is_refused_or_stops_no_sooner(name: str, cut: int) -> None:
    """A state that passes is one that a rule can have: it stops only where the rule itself, or a new one, stops."""
    saved = saved_after(name, cut)
    own, new = stops(criterion_from_dict(saved), STEPS[cut:]), stops(RULES[name].copy(), STEPS[cut:])
    for changed in mutations(saved):
        try:
            found = stops(criterion_from_dict(changed), STEPS[cut:])
        except InvalidValueError:
            continue
        sooner = [t for t, stop in enumerate(found) if stop and not (own[t] or new[t])]
        assert not sooner or name in ANY_HISTORY, (states_in(changed), states_in(saved))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1.0, 0.0, "x", [0.5], True])
def test_a_bad_scale_is_named(bad: Any) -> None:
    saved = saved_after("ErrorStability", CUT)
    saved["state"]["gamma"] = bad
    with pytest.raises(InvalidValueError, match="gamma in the saved state of ErrorStability must be"):
        criterion_from_dict(saved)


@pytest.mark.parametrize(
    ("rule", "key", "bad", "words"),
    [
        ("ErrorStability", "steps", -1, "steps .* must be a whole number of at least 0, not -1"),
        ("ErrorStability", "steps", 1, "steps .* must be at least 9, the number of values, not 1"),
        ("ErrorStability", "n_labelled", [14, 13], "n_labelled .* must be rising counts"),
        ("ErrorStability", "values", [0.1], "values .* must be as long as n_labelled"),
        ("ErrorStability", "gamma", None, "gamma .* must be a number, because steps were judged"),
        ("ErrorStability", "recent", [0.5], "recent .* must be a list of at most 0 numbers"),
        ("MaxVariance", "first", 0.0, "first .* must be None or above 0"),
        ("SelectedAccuracy", "right", [5, 1, 1, 1], "right .* must be at most sizes"),
        ("StabilizingPredictions", "previous", None, "previous .* must be a list, because there are kappas"),
        ("Patience", "in_a_row", 1.5, "in_a_row .* must be a whole number of at least 0"),
        ("PerformanceConvergence", "best", 0.0, "best .* must be at least each of values"),
        ("DeterministicBoundRuns", "values", [0.1] * 9, "values .* must be a list of at most 4 numbers"),
    ],
)
def test_what_does_not_fit_is_named(rule: str, key: str, bad: Any, words: str) -> None:
    saved = saved_after(rule, CUT)
    saved["state"][key] = bad
    with pytest.raises(InvalidValueError, match=words):
        criterion_from_dict(saved)


def test_a_missing_or_unknown_field_is_refused() -> None:
    saved = saved_after("ErrorStability", CUT)
    for changed in ({**saved["state"], "mood": 1}, {k: v for k, v in saved["state"].items() if k != "gamma"}):
        with pytest.raises(InvalidValueError, match="the saved state of ErrorStability is"):
            criterion_from_dict({**saved, "state": changed})


def test_states_of_earlier_versions_are_read() -> None:
    """As written by 0.6 and 0.8, which had no options of the scale and the mean."""
    params = {"threshold": 0.05, "calibration": 2, "bound": "paper", "relative": True, "delta": None}
    state = {"steps": 3, "gamma": 0.5, "n_labelled": [13], "values": [0.25]}
    rule = criterion_from_dict({"rule": "ErrorStability", "params": params, "state": state})
    assert isinstance(rule, ErrorStability)
    assert (rule.average, rule.calibration_labels, rule.scale) == (1, None, "minimum")
    assert rule.observe(Step(n_labelled=14, kl_new_old=1e-9, kl_old_new=1e-9)).stop


@dataclass
class Balance(Criterion):
    """A rule of a user, whose state may be negative, infinite at the start, and of any type."""

    least: float = field(default=math.inf, init=False)
    balance: int = field(default=0, init=False)
    mood: Literal["good", "bad"] = field(default="good", init=False)
    notes: "dict[str, float]" = field(default_factory=dict, init=False)

    def judge(self, step: Step) -> Verdict:
        self.balance -= 1
        return self.verdict(step, stop=False, reason="never")


def test_rules_of_users_may_hold_negative_numbers_and_their_defaults() -> None:
    rule = Balance()
    rule.observe(STEPS[0])
    saved = rule.state_dict()
    assert criterion_from_dict(saved) == rule
    saved["state"]["balance"] = math.nan
    with pytest.raises(InvalidValueError, match=r"balance .* must be a whole number, not nan"):
        criterion_from_dict(saved)


@pytest.mark.parametrize(
    ("value", "annotation", "words"),
    [
        (10**400, float, "a finite number"),
        (True, int, "a whole number of at least 0"),
        ([[1.0], ["x"]], list[list[float]], "a list of lists of finite numbers"),
        ("worse", Literal["good", "bad"], "'good' or 'bad'"),
        (3, str | None, "text or None"),
        (1, ErrorStability | None, "an object of the type ErrorStability or None"),
    ],
)
def test_types_are_named_in_words(value: Any, annotation: Any, words: str) -> None:
    with pytest.raises(InvalidValueError, match=f"^it must be {words}, not"):
        require_type(value, annotation, "it", counts=True)


@pytest.mark.parametrize(
    ("value", "annotation"),
    [
        (1, float),
        (0, int),
        ([], list[float]),
        ([1, 2.5], list[float]),
        ([1, 2], tuple[int, ...]),
        ({}, Any),
        (object(), "?"),
    ],
)
def test_what_fits_passes(value: Any, annotation: Any) -> None:
    require_type(value, annotation, "it", counts=True)
