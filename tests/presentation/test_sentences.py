"""Sentences of reports and commands that no other test reads word by word."""

import re
from typing import Any

import pytest

from suffice.presentation.answer_plan_words import answer_plan_sentences
from suffice.presentation.audit_words import audit_orders_sentences
from suffice.presentation.check_words import target_check_words
from suffice.presentation.decision_words import decision_words
from suffice.presentation.demo_words import run_error_sentence, run_wrong_share_sentence
from suffice.presentation.finish_words import reached_words
from suffice.presentation.given_words import fixed_size_sentence, result_sentences
from suffice.presentation.item_words import import_sentences
from suffice.presentation.plan_words import forecast_sentence, plan_sentence
from suffice.presentation.prediction_words import accepted_evidence, accepted_sentence, change_sentence, group_line
from suffice.presentation.project_words import damage_sentences, team_lines
from suffice.presentation.report_words import corrections_and_skips, given_and_imported
from suffice.presentation.run_words import (
    best_stop_sentence,
    labels_saved_sentence,
    run_headline,
    screening_headline,
    screening_sentences,
    true_error_sentence,
    with_labels,
)

MORNING, NOON = "2024-03-05T09:02:59Z", "2024-03-05T12:00:00Z"


@pytest.mark.parametrize(
    ("given", "last", "imported", "sentence"),
    [
        (1, MORNING, 0, "1 label was given on 5 March 2024, 09:02 UTC."),
        (38, NOON, 0, "38 labels were given from 5 March 2024, 09:02 UTC to 5 March 2024, 12:00 UTC."),
        (0, MORNING, 2, "2 labels came with the data (pets.csv)."),
        (2, MORNING, 1, "2 labels were given on 5 March 2024, 09:02 UTC. 1 label came with the data (pets.csv)."),
    ],
)
def test_who_gave_the_labels(given: int, last: str, imported: int, sentence: str) -> None:
    assert given_and_imported(given, MORNING, last, imported=imported, source="pets.csv") == sentence


def test_a_forecast_of_a_check_never_exceeds_the_number_of_items() -> None:
    check = {"size": 230, "low": 65, "high": 1055, "success": 0.7}
    offers = {"target_check": check, "pool": 1055, "seconds": None, "at_most": 0.2}
    assert "about 230 labels (65 to 1,055)" in target_check_words(offers)
    plan = {f"check_{name}": check[name] for name in ("size", "low", "high")}
    words = plan_sentence({**plan, "check_now": True, "success": 0.7, "target": 0.2}, 1055)
    assert "about 230 random labels (65 to 1,055)" in words


def test_nothing_is_said_of_what_did_not_happen() -> None:
    assert corrections_and_skips(0, 0) == ""
    assert corrections_and_skips(0, 1) == "1 item was skipped."


def test_the_end_of_a_run() -> None:
    assert run_headline("keep going", 500, 500, "it is so") == "Not enough within all 500 labels: it is so."
    assert run_headline("limit", 30, 500, "") == "This model has reached its limit at 30 of 500 labels."
    assert labels_saved_sentence(60, 500) == "Labels that would have been saved: 440 of 500 (88\u00a0%)."
    assert run_wrong_share_sentence(None, 0.125, "with 30 labels") == (
        "12.5\u00a0% of the test items predicted wrong with 30 labels."
    )
    assert run_wrong_share_sentence(0.08333, 0.0, "with all 500 labels") == (
        "8.33\u00a0% of the test items predicted wrong at the stop, 0\u00a0% with all 500 labels."
    )
    assert run_error_sentence("test error", None, 0.5, "with 30 labels") == "Test error: 0.5 with 30 labels."
    assert run_error_sentence("test error", 0.55, 0.5, "with all 500 labels") == (
        "Test error: 0.55 at the stop, 0.5 with all 500 labels (+10.0\u00a0%)."
    )


def test_errors_at_the_stop_and_at_the_end() -> None:
    share = true_error_sentence(
        (None, 0.125), "with 30 labels", 40, share=True, baseline="always predicting a: 50\u00a0%"
    )
    assert (
        share == "Measured on 40 test rows: 12\u00a0% predicted wrong with 30 labels; always predicting a: 50\u00a0%."
    )
    none_wrong = true_error_sentence((0.05, 0.0), "with all 60 labels", 1, share=True, baseline="")
    assert none_wrong == "Measured on 1 test row: 5\u00a0% predicted wrong at the stop, 0\u00a0% with all 60 labels."
    numbers = true_error_sentence((12.0, 11.5), "with all 60 labels", 40, share=False, baseline="")
    assert (
        numbers
        == "Measured on 40 test rows, typical error (root mean square): 12 at the stop, 11.5 with all 60 labels."
    )


def test_the_best_stop_in_hindsight() -> None:
    assert best_stop_sentence("counting so", (20, 30.0), (20, 30.0), stopped=True) == (
        "In hindsight, counting so: stopping there costs 30, and no other stop costs less."
    )
    assert best_stop_sentence("counting so", (500, 1234.5), (1, 30.0), stopped=False) == (
        "In hindsight, counting so: the whole run costs 1,234, and the best stop, at 1 label, 30."
    )


def test_several_orders() -> None:
    assert audit_orders_sentences([None, None], [], share=True) == ["In 2 random orders of the same rows: no stop."]
    assert audit_orders_sentences([30, None], [2.5], share=False) == [
        "In 2 random orders of the same rows: stop at 30 labels, with an error of 2.5 on the later rows.",
        "In 1 of them there was no stop.",
    ]


def sentences_with(n: int) -> list[str]:
    """Sentences in which every number of things is the same, if it may be."""
    part: dict[str, Any] = {
        "goal": "share",
        "pool": 9,
        "threshold": 0.71,
        "accepted": n,
        "predicted": n,
        "allowed": n,
        "at_most": 0.5,
    }
    part |= {"left": n, "confidence": 0.95, "number": 1, "tolerance": None, "checked": 9, "accepted_checked": n + 1}
    part |= {"wrong": n, "unlabelable": n, "model": ""}
    screening: dict[str, Any] = {
        "positive": "yes",
        "size": n + 3,
        "screened": n,
        "found": n,
        "relevant": n + 3,
        "rule": "RecallTest",
    }
    screening |= {"stopped": True, "recall": 0.95, "checks": [(n, 0.8)], "check_for_recall": None, "confidence": 0.95}
    decision: dict[str, Any] = {
        "answer": "keep going",
        "n_labelled": n,
        "unlabelled": 5,
        "check_pending": n,
        "rule": "RecallTest",
    }
    decision |= {"screening": {"found": n, "estimated": n + 1.0, "positive": "yes", "recall": 0.9}, "error": None}
    wrong: dict[str, Any] = {
        "forecast": {"labels": n + 1, "low": n + 1, "high": n + 1},
        "unlabelled": 9,
        "corrected": n,
        "wrong": n,
    }
    plan: dict[str, Any] = {
        "at_most": 0.5,
        "size": 9,
        "expected": n / 9,
        "confidence": 0.95,
        "corrected": False,
        "median": n,
        "low": n,
    }
    plan |= {"high": None, "fixed": n, "number": 1, "alpha": 0.05, "planned_for": None, "pool": 9}
    damage: dict[str, Any] = {"events": n, "items": n, "intact": False, "structure": "", "lost_events": [*range(n)]}
    damage |= {"missing_events": n, "damaged_digests": [*range(n)], "other_events": 0, "damaged_items": [*range(n)]}
    damage |= {"features_damaged": False, "kept": "", "repaired": True, "labels_file": ""}
    imported: dict[str, Any] = {
        "matched_by": "id",
        "matched": n,
        "rows": n,
        "unmatched": n,
        "unmatched_examples": ["a"],
        "empty": n,
    }
    imported |= {"unknown": {}, "notes": [], "conflicting": 0}
    outcomes = ("labelled", "opinions", "replaced", "same", "kept", "predicted", "contradictory", "in_check")
    imported |= dict.fromkeys(outcomes, n)
    people = [{"name": f"p{k}", "sentences": [f"{n} of many."]} for k in range(n + 20)]
    change = {"changed": True, "first": (n, n + 3), "second": (n, n + 3), "p_value": 0.01}
    reached: dict[str, Any] = {"rows": n + 3, "by_people": n, "predicted": 3, "wrong_at_most": n, "confidence": 0.95}
    return [
        with_labels(n, 500),
        run_headline("keep going", n, 500, "it is so"),
        screening_headline(n, n + 3, n, stopped=True, reason=""),
        screening_headline(n, n + 3, n, stopped=False, reason="it is so"),
        *screening_sentences(screening),
        *screening_sentences({**screening, "checks": [], "check_for_recall": n, "size": n + 1}),
        *decision_words(decision).sentences,
        *decision_words({**decision, "check_pending": 0}).sentences,
        forecast_sentence({**wrong, "error_then": 0.1, "share": True}),
        *result_sentences({"complete": False, "progress": None, "checked": n, "pending": 2, "wrong": n}),
        fixed_size_sentence(n, n),
        accepted_sentence(part),
        accepted_sentence({**part, "goal": "corrected"}),
        accepted_evidence(part),
        change_sentence(change),
        group_line(
            {
                "value": 0.1,
                "items": n,
                "unlabelled": True,
                **dict.fromkeys(("checked", "wrong", "unlabelable"), n),
                "tolerance": None,
            }
        ),
        *answer_plan_sentences(plan),
        *damage_sentences(damage, "pets.suffice"),
        *import_sentences(imported),
        *team_lines({"people": people, "notes": []}),
        reached_words({**reached, "annotator_error": 0.0}),
    ]


NOUNS = "label|item|row|prediction|answer|record|event|step|one|model"
# After "of", the number is that of a part: "1 of 3 rows is".
ONE = re.compile(
    rf"(?<![\d,.])1 (?:[a-z]+ )?(?:(?:{NOUNS})s\b|people\b)|(?<!of )(?<!and )1 (?:{NOUNS}) (?:are|were|have)\b"
)
MANY = re.compile(
    rf"(?<![\d,.])[02-9] (?:more |wrong |other |relevant |unlabelled )?(?:{NOUNS}|person)\b(?!s)"
    rf"|(?<!of )(?<!of all )(?<![\d,.])[02-9] (?:{NOUNS})s (?:is|was|has|counts)\b"
)
ONE_OF = re.compile(r"(?<![\d,.])1 of [\d,]+ [a-z ]*?(?:are|were|have)\b")


@pytest.mark.parametrize("n", [0, 1, 2])
def test_nouns_and_verbs_agree_with_their_numbers(n: int) -> None:
    for sentence in sentences_with(n):
        words = sentence.replace("\u00a0", " ")
        assert not ONE.search(words), words
        assert not MANY.search(words), words
        assert not ONE_OF.search(words), words
