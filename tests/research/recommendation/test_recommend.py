"""From a comparison to a configured rule."""

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.errors import InvalidValueError
from suffice_research.compare.judging import evidence
from suffice_research.compare.scoring import RuleScore, RunCase
from suffice_research.recommendation.compared_rules import catalogue, recommend, recorded_evidence

RATIOS = (10.0, 1000.0)


def score(
    rule: str, data: str, regrets: list[list[float]], settings: tuple[object, ...], *, seed: int = 0
) -> RuleScore:
    count = len(settings)
    return RuleScore(
        case=RunCase(data, "logistic", seed),
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


def entropy_scores(data: str, first: float, second: float) -> RuleScore:
    """A rule whose first setting has one regret at either ratio, and all others another."""
    entry = next(entry for entry in catalogue(RATIOS) if entry.name == "EntropyMax")
    regrets = [[first, second]] + [[second, first]] * (len(entry.settings) - 1)
    return score("EntropyMax", data, regrets, entry.settings)


def worth_scores(data: str, seed: int, low: float, high: float) -> RuleScore:
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
    assert found["runs"] == {"logistic": {"1": 3}, "classification": {"1": 3}}
    rule = found["rules"]["logistic"]["1"]["LabelWorth"]
    assert rule["settings"] is None
    # a counts once: (0.2 + 0.4) / 2; then the two sets alike.
    assert rule["mean"] == pytest.approx([(0.3 + 0.6) / 2, (0.4 + 0.1) / 2])
    logs = (0.5 * (math.log(1.2) + math.log(1.4)) + math.log(1.6)) / 2
    assert rule["typical"][0] == pytest.approx(math.exp(logs) - 1, rel=1e-3)
    entropy = found["rules"]["logistic"]["1"]["EntropyMax"]
    settings = next(entry for entry in catalogue() if entry.name == "EntropyMax").settings
    assert entropy["settings"][0] == settings[0]
    assert entropy["settings"][1] != settings[0]
    assert entropy["mean"] == pytest.approx([0.1, 0.1])
    assert found["rules"]["classification"] == found["rules"]["logistic"]


def of_case(found: RuleScore, **changed: Any) -> RuleScore:
    return replace(found, case=replace(found.case, **changed))


def variance_scores(model: str, data: str, regrets: tuple[float, ...], *, batch: int = 1) -> RuleScore:
    """A rule whose first settings have these regrets at either ratio, and all others a large one."""
    settings = next(entry for entry in catalogue(RATIOS) if entry.name == "MaxVariance").settings
    each = (*regrets, *[9.0] * (len(settings) - len(regrets)))
    return of_case(score("MaxVariance", data, [[r, r] for r in each], settings), model=model, batch=batch)


def test_settings_for_a_task_are_those_that_its_expectation_was_measured_with() -> None:
    """Either model has a setting that is right for it and wrong for the other; the third is fair for both."""
    settings = next(entry for entry in catalogue(RATIOS) if entry.name == "MaxVariance").settings
    scores = [
        variance_scores(model, data, regrets)
        for model, regrets in (("gp", (0.0, 3.0, 0.4)), ("ridge", (3.0, 0.0, 0.6)))
        for data in ("a", "b")
    ]
    found = evidence(scores, judged_on={"a", "b"}, command="suffice compare")["rules"]
    for name, setting, mean in (("gp", 0, 0.0), ("ridge", 1, 0.0), ("regression", 2, 0.5)):
        rule = found[name]["1"]["MaxVariance"]
        assert rule["settings"] == [settings[setting]] * 2
        assert rule["mean"] == pytest.approx([mean, mean])
    # The geometric mean of 1.4 and 1.6, not of the 1 that either model has at a setting of its own.
    assert found["regression"]["1"]["MaxVariance"]["typical"] == pytest.approx(
        [math.sqrt(1.4 * 1.6) - 1.0] * 2, rel=1e-3
    )


def test_runs_of_either_batch_are_evidence_for_that_batch() -> None:
    settings = next(entry for entry in catalogue(RATIOS) if entry.name == "MaxVariance").settings
    scores = [
        variance_scores("gp", data, regrets, batch=batch)
        for batch, regrets in ((1, (0.1, 0.8)), (10, (0.7, 0.2)))
        for data in ("a", "b")
    ]
    found = evidence(scores, judged_on={"a", "b"}, command="suffice compare")["rules"]
    for name in ("gp", "regression"):
        assert list(found[name]) == ["1", "10"]
        for batch, setting, mean in (("1", 0, 0.1), ("10", 1, 0.2)):
            assert found[name][batch]["MaxVariance"]["settings"] == [settings[setting]] * 2
            assert found[name][batch]["MaxVariance"]["mean"] == pytest.approx([mean, mean])


def test_expectations_are_of_a_rule_and_not_of_stopping_at_once_or_never() -> None:
    scores = [variance_scores("gp", data, (0.5, 0.8)) for data in ("a", "b")]
    ends = [
        of_case(score(name, data, [[0.0, 0.0]], (None,)), model="gp") for name in ("AtOnce", "Never") for data in "ab"
    ]
    found = evidence([*scores, *ends], judged_on={"a", "b"}, command="suffice compare")["rules"]["gp"]["1"]
    assert set(found) == {"MaxVariance"}
    assert found["MaxVariance"]["mean"] == pytest.approx([0.5, 0.5])


def test_what_is_shipped_is_whole() -> None:
    found = recorded_evidence()
    assert set(found["rules"]) == {"gp", "ridge", "logistic", "regression", "classification"}
    assert len(found["ratios"]) == 13
    for name, batches in found["rules"].items():
        assert min(found["runs"][name].values()) >= 14
        assert len(found["data"][name]) >= 4
        assert list(batches) == ["1", "10"]
        for rule in (rule for rules in batches.values() for rule in rules.values()):
            assert all(len(rule[key]) == 13 for key in ("typical", "mean", "median", "p90"))
            assert all(low >= 0.0 for low in rule["median"])
            assert rule["settings"] is None or len(rule["settings"]) == 13
            assert not {"at once", "never"} & set(rule["settings"] or ())


@pytest.mark.parametrize("task", ["regression", "classification"])
@pytest.mark.parametrize(("ratio", "batch"), [(1.0, 1), (30.0, 10), (1000.0, 1), (1e7, 10)])
def test_rules_are_ranked_over_all_prices_and_the_first_can_be_used(task: str, ratio: float, batch: int) -> None:
    advice = recommend(task, error_cost=ratio * 2.0, label_cost=2.0, batch=batch)
    assert advice.regret == advice.expected.typical
    rules = recorded_evidence()["rules"][task][str(batch)]
    overall = [np.log1p(rules[each.name]["typical"]).mean() for each in (advice.expected, *advice.others)]
    assert overall == sorted(overall)
    assert len(advice.others) == 3
    assert isinstance(advice.rule, sf.Criterion)
    assert advice.expected.name != "ErrorStability of costs"
    assert "runs with" in str(advice)


def test_a_rule_of_costs_gets_the_costs_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    shown(monkeypatch, {"1": {"LabelWorth": 0.1, "MaxVariance": 0.2}})
    advice = sf.recommend("regression", "gp", error_cost=3000.0, label_cost=1.5)
    assert isinstance(advice.rule, sf.LabelWorth)
    assert (advice.rule.error_cost, advice.rule.label_cost) == (3000.0, 1.5)


def test_the_variance_of_the_target_moves_the_place_and_not_the_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    shown(monkeypatch, {"1": {"LabelWorth": 0.1, "MaxVariance": 0.2}})
    plain = recommend("regression", "gp", error_cost=1000.0, label_cost=1.0)
    scaled = recommend("regression", "gp", error_cost=10.0, label_cost=1.0, target_variance=100.0)
    assert scaled.expected == plain.expected
    assert isinstance(scaled.rule, sf.LabelWorth)
    assert scaled.rule.error_cost == 10.0


def shown(monkeypatch: pytest.MonkeyPatch, tables: dict[str, dict[str, float]]) -> None:
    """Let the evidence be this: for each batch what rules typically cost, whatever the price."""

    def part(name: str, typical: float) -> dict[str, Any]:
        settings = [50, 200] if name == "Budget" else [0.25, 0.125]
        return {"settings": settings, **{key: [typical] * 2 for key in ("typical", "mean", "median", "p90")}}

    rules = {batch: {name: part(name, typical) for name, typical in table.items()} for batch, table in tables.items()}
    stored = {
        "ratios": list(RATIOS),
        "data": {"regression": ["yacht"]},
        "runs": {"regression": dict.fromkeys(rules, 20)},
        "rules": {"regression": rules},
    }
    monkeypatch.setattr("suffice_research.recommendation.compared_rules.recorded_evidence", lambda: stored)


@pytest.mark.parametrize(
    ("batch", "regret"), [(1, 0.1), (2, 0.1), (3, 0.1), (4, 0.2), (10, 0.2), (31, 0.2), (32, 0.3), (5000, 0.3)]
)
def test_the_batch_picks_the_nearest_evidence(monkeypatch: pytest.MonkeyPatch, batch: int, regret: float) -> None:
    """Nearest in ratio: between 1 and 10 the middle is the root of 10."""
    shown(monkeypatch, {"1": {"MaxVariance": 0.1}, "10": {"MaxVariance": 0.2}, "100": {"MaxVariance": 0.3}})
    assert recommend("regression", batch=batch).regret == regret


def test_without_a_batch_labels_come_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    shown(monkeypatch, {"1": {"MaxVariance": 0.1}, "10": {"MaxVariance": 0.2}})
    assert recommend("regression").regret == 0.1
    assert recommend("regression", batch=10).regret == 0.2


def test_a_budget_is_advised_where_all_that_the_loop_can_feed_does_worse(monkeypatch: pytest.MonkeyPatch) -> None:
    shown(monkeypatch, {"1": {"MaxVariance": 0.1, "Budget": 0.5, "InformationGain": 2.0}})
    words = "did better over all prices than any rule that this loop can feed"
    for fields in ({"pool_gain"}, ()):
        advice = recommend("regression", given=fields)
        assert advice.rule == sf.Budget(200)
        assert words in advice.evidence
        assert advice.regret == 0.5
    assert [each.name for each in recommend("regression", given={"pool_gain"}).others] == ["InformationGain"]
    for better in ({"pool_gain", "pool_variance"}, None):
        advice = recommend("regression", given=better)
        assert advice.rule == sf.MaxVariance(0.125)
        assert words not in advice.evidence
        assert [each.name for each in advice.others] == ["Budget", "InformationGain"]


def test_only_rules_that_the_loop_can_feed_are_recommended() -> None:
    advice = recommend("classification", error_cost=1000.0, label_cost=1.0, given={"stop_probabilities"})
    assert advice.rule.needs() <= {"stop_probabilities"}
    divergences = recommend("regression", error_cost=1000.0, label_cost=1.0, given=["kl_new_old", "kl_old_new"])
    assert divergences.rule.needs() <= {"kl_new_old", "kl_old_new"}
    nothing = recommend("regression", given=())
    assert isinstance(nothing.rule, sf.Budget)
    assert nothing.others == ()


def test_a_network_is_asked_for_nothing_that_it_cannot_tell() -> None:
    for ratio in recorded_evidence()["ratios"]:
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
        ({"task": "classification", "target_variance": 2.0}, "target_variance goes with regression; classes have none"),
        ({"task": "classification", "target_variance": 1.0}, "target_variance goes with regression; classes have none"),
        ({"task": "regression", "batch": 0}, "batch must be a whole number, 1 or more, not 0"),
        ({"task": "regression", "batch": 2.5}, "batch must be a whole number, 1 or more, not 2.5"),
        ({"task": "regression", "given": {"kl_new_odl"}}, "Did you mean kl_new_old"),
    ],
)
def test_what_cannot_be_used_is_named(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidValueError, match=words):
        recommend(**arguments)  # type: ignore[arg-type]
