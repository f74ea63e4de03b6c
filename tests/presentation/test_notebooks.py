"""What notebooks show of decisions, checks and plans: the same words, escaped."""

import re
from dataclasses import replace
from html import unescape

import numpy as np
import pytest

from suffice import checks
from tests.project.decided import complete, decision


def shown(value: object) -> str:
    """The text of the card of a value."""
    html: str = value._repr_html_()  # type: ignore[attr-defined]
    assert html.count("<div") == html.count("</div>") == 1
    text = re.sub(r"<style>.*?</style>|<[^>]*>", " ", html, flags=re.DOTALL)
    return " ".join(unescape(text).split())


@pytest.mark.parametrize("stop", [False, True])
def test_a_decision(*, stop: bool) -> None:
    decided = decision(stop=stop)
    text = shown(decided)
    words = " ".join(str(decided).split())
    for sentence in re.split(r"(?<=\.) (?=[A-Z])", words)[1:]:
        assert sentence in text
    assert "12 % of the 78 unlabelled items predicted wrong" in text
    assert ("about 30 more labels (12 to 60)" in text) != stop
    assert f'"suffice-card {"stop" if stop else "go-on"}"' in decided._repr_html_()


def test_a_decision_names_its_rule_and_no_other() -> None:
    decided = decision()
    assert shown(replace(decided, rule="LabelWorth")).endswith("rule LabelWorth")
    assert "ActiveLearner" not in shown(replace(decided, rule="ActiveLearner"))


def test_a_decision_with_nothing_left() -> None:
    assert "Nothing is left to label" in shown(complete())


def test_class_names_are_escaped() -> None:
    decided = decision(stop=True, common="<script>", baseline=0.13, error=None)
    assert "<script>" not in decided._repr_html_()


def test_a_check_shows_its_progress() -> None:
    check = checks.Check.draw(np.arange(4600), size=8, rng=np.random.default_rng(0))
    first = check.items[0]
    assert f"0 of 8 items of the check have an answer. drawn from 4,600 unlabelled items next {first}," in shown(check)
    some = check.tell({first: "spam"}).cannot_label([check.items[1]])
    assert "2 of 8 items of the check have an answer" in shown(some)
    assert "cannot be labelled 1" in shown(some)
    assert "The check was aborted after 2 answers: it proves nothing." in shown(some.abort())
    whole = some.tell(dict.fromkeys(some.pending, "ham"))
    assert "The check of 8 items is complete." in shown(whole)
    assert "suffice-card stop" in whole._repr_html_()
    assert "95 % confidence" not in shown(whole)
    assert "confidence 95 %, check 1 of its sequence" in shown(whole)


def test_a_sequential_check_shows_its_progress_and_its_proof() -> None:
    check = checks.sequential(at_most=0.05, pool=3000, seed=0)
    check.tell([False, True])
    assert "The target is proven if the next 154 predictions are all right. target at most 5 % of 3,000" in shown(check)
    check.tell([False] * 154)
    assert "At most 5 % of the predictions for the 3,000 items" in shown(check)
    assert "suffice-card stop" in check._repr_html_()


def test_a_check_of_given_predictions() -> None:
    truth = ["a", "b"] * 300
    check = checks.of_predictions(truth).check(at_most=0.1, seed=0)
    assert "suffice-card go-on" in check._repr_html_()
    while rows := check.next(20).tolist():
        check.tell({row: truth[row] for row in rows})
    assert str(check.result).split(". ", maxsplit=1)[0].replace("\u00a0", " ") in shown(check)
    assert "suffice-card stop" in check._repr_html_()


def test_plans() -> None:
    assert "takes about 240 answers, if 2 % are wrong." in shown(checks.plan_answers(0.05, 0.02, 20_000))
    assert "At most 4.4 % of the 20,000 predictions are wrong" in shown(checks.sample_bounds(20_000, 300, 7))
