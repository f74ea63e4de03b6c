"""Sentences of reports and commands that no other test reads word by word."""

import pytest

from suffice.presentation.audit_words import audit_orders_sentences
from suffice.presentation.check_words import target_check_words
from suffice.presentation.demo_words import run_error_sentence, run_wrong_share_sentence
from suffice.presentation.plan_words import plan_sentence
from suffice.presentation.report_words import corrections_and_skips, given_and_imported
from suffice.presentation.run_words import best_stop_sentence, labels_saved_sentence, run_headline, true_error_sentence

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
