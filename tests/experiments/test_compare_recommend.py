"""From a comparison to a configured rule."""

import json
import math

import numpy as np
import pytest

import suffice as sf
from suffice.errors import InvalidValueError
from suffice.experiments.compare.evidence import evidence, shipped
from suffice.experiments.compare.recommend import recommend
from suffice.experiments.compare.rules import catalogue
from suffice.experiments.compare.scoring import Case, Score

RATIOS = (10.0, 1000.0)


def score(rule: str, data: str, regrets: list[list[float]], settings: tuple[object, ...], *, seed: int = 0) -> Score:
    count = len(settings)
    return Score(
        case=Case(data, "logistic", seed),
        rule=rule,
        ratios=RATIOS,
        settings=settings,
        stops=(0,) * count,
        regrets=np.array(regrets),
        labels=np.full(count, 10.0),
        error=np.full(count, 0.5),
        premature=np.zeros(count),
        fired=np.ones(count),
        good_labels=10.0,
        best_error=0.4,
    )


def entropy_scores(data: str, first: float, second: float) -> Score:
    """A rule whose first setting has one regret at either ratio, and all others another."""
    entry = next(entry for entry in catalogue(RATIOS) if entry.name == "EntropyMax")
    regrets = [[first, second]] + [[second, first]] * (len(entry.settings) - 1)
    return score("EntropyMax", data, regrets, entry.settings)


def worth_scores(data: str, seed: int, low: float, high: float) -> Score:
    # Only what a rule of costs does at its own ratio counts.
    return score("LabelWorth", data, [[low, 9.0], [9.0, high]], RATIOS, seed=seed)


def test_expectations_are_over_the_judged_sets_and_settings_over_all() -> None:
    scores = [
        entropy_scores("a", 0.1, 0.9),
        entropy_scores("b", 0.1, 0.9),
        entropy_scores("c", 0.1, 0.9),
        worth_scores("a", 0, 0.2, 0.4),
        worth_scores("a", 1, 0.4, 0.4),
        worth_scores("b", 0, 0.6, 0.1),
        worth_scores("c", 0, 5.0, 5.0),
    ]
    found = evidence(scores, judged_on={"a", "b"}, command="suffice compare")
    json.dumps(found, allow_nan=False)
    assert found["ratios"] == [10.0, 1000.0]
    assert found["data"]["logistic"] == ["a", "b"]
    assert found["runs"] == {"logistic": 3, "classification": 3}
    rule = found["rules"]["logistic"]["LabelWorth"]
    assert rule["settings"] is None
    # a counts once: (0.2 + 0.4) / 2; then the two sets alike.
    assert rule["mean"] == pytest.approx([(0.3 + 0.6) / 2, (0.4 + 0.1) / 2])
    logs = (0.5 * (math.log(1.2) + math.log(1.4)) + math.log(1.6)) / 2
    assert rule["typical"][0] == pytest.approx(math.exp(logs) - 1, rel=1e-3)
    entropy = found["rules"]["logistic"]["EntropyMax"]
    settings = next(entry for entry in catalogue() if entry.name == "EntropyMax").settings
    assert entropy["settings"][0] == settings[0]
    assert entropy["settings"][1] != settings[0]
    assert entropy["mean"] == pytest.approx([0.1, 0.1])
    assert found["rules"]["classification"] == found["rules"]["logistic"]


def test_what_is_shipped_is_whole() -> None:
    found = shipped()
    assert set(found["rules"]) == {"gp", "ridge", "logistic", "regression", "classification"}
    assert len(found["ratios"]) == 13
    for name, rules in found["rules"].items():
        assert found["runs"][name] >= 80
        assert len(found["data"][name]) >= 4
        for rule in rules.values():
            assert all(len(rule[key]) == 13 for key in ("typical", "mean", "median", "p90"))
            assert all(low >= 0.0 for low in rule["median"])
            assert rule["settings"] is None or len(rule["settings"]) == 13


@pytest.mark.parametrize("task", ["regression", "classification"])
@pytest.mark.parametrize("ratio", [1.0, 30.0, 1000.0, 1e7])
def test_rules_are_ranked_over_all_prices_and_the_first_can_be_used(task: str, ratio: float) -> None:
    advice = recommend(task, error_cost=ratio * 2.0, label_cost=2.0)
    assert advice.regret == advice.expected.typical
    rules = shipped()["rules"][task]
    overall = [np.log1p(rules[each.name]["typical"]).mean() for each in (advice.expected, *advice.others)]
    assert overall == sorted(overall)
    assert len(advice.others) == 3
    assert isinstance(advice.rule, sf.Criterion)
    assert advice.expected.name not in ("Budget", "ErrorStability of costs")
    assert "runs with" in str(advice)


def test_a_rule_of_costs_gets_the_costs_themselves() -> None:
    advice = sf.recommend("regression", "gp", error_cost=3000.0, label_cost=1.5)
    assert isinstance(advice.rule, sf.LabelWorth)
    assert (advice.rule.error_cost, advice.rule.label_cost) == (3000.0, 1.5)


def test_the_variance_of_the_target_moves_the_place_and_not_the_rule() -> None:
    plain = recommend("regression", "gp", error_cost=1000.0, label_cost=1.0)
    scaled = recommend("regression", "gp", error_cost=10.0, label_cost=1.0, target_variance=100.0)
    assert scaled.expected == plain.expected
    assert isinstance(scaled.rule, sf.LabelWorth)
    assert scaled.rule.error_cost == 10.0


def test_only_rules_that_the_loop_can_feed_are_recommended() -> None:
    advice = recommend("classification", error_cost=1000.0, label_cost=1.0, given={"stop_probabilities"})
    assert advice.rule.needs() <= {"stop_probabilities"}
    divergences = recommend("regression", error_cost=1000.0, label_cost=1.0, given=["kl_new_old", "kl_old_new"])
    assert divergences.rule.needs() <= {"kl_new_old", "kl_old_new"}
    assert isinstance(recommend("regression", given=()).rule, sf.Budget)


def test_a_network_is_asked_for_nothing_that_it_cannot_tell() -> None:
    for ratio in shipped()["ratios"]:
        needs = recommend("classification", "dropout", error_cost=ratio, label_cost=1.0).rule.needs()
        assert not needs & {"kl_prior", "train_error", "validation_error"}


def test_what_the_evidence_is_not_about_is_said() -> None:
    assert "networks were not compared" in recommend("classification", "dropout").evidence
    assert "forest was not among the models compared" in recommend("classification", "forest").evidence
    assert "went from 10 to 100000" in recommend("classification", error_cost=1.0, label_cost=1.0).evidence


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"task": "ranking"}, "task must be regression or classification, not 'ranking'"),
        ({"task": "regression", "model": "logistic"}, "model 'logistic' is for classification"),
        ({"task": "regression", "model": "dropout"}, "model 'dropout' is for classification"),
        ({"task": "regression", "error_cost": 0.0}, "error_cost must be a number above 0"),
        ({"task": "regression", "label_cost": float("nan")}, "label_cost must be a number above 0"),
        ({"task": "regression", "target_variance": -1.0}, "target_variance must be"),
        ({"task": "regression", "given": {"kl_new_odl"}}, "Did you mean kl_new_old"),
    ],
)
def test_what_cannot_be_used_is_named(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidValueError, match=words):
        recommend(**arguments)  # type: ignore[arg-type]
