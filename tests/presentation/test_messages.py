"""Sentences of reports and commands that no other test reads word by word."""

import pytest

from suffice.presentation.messages import (
    corrections_and_skips,
    given_and_imported,
    labels_saved_sentence,
    run_error_sentence,
    run_not_enough_sentence,
    run_wrong_share_sentence,
)

MORNING, NOON = "2024-03-05T09:02:59Z", "2024-03-05T12:00:00Z"


@pytest.mark.parametrize(
    ("given", "last", "imported", "said"),
    [
        (1, MORNING, 0, "1 label was given on 5 March 2024, 09:02 UTC."),
        (38, NOON, 0, "38 labels were given from 5 March 2024, 09:02 UTC to 5 March 2024, 12:00 UTC."),
        (0, MORNING, 2, "2 labels came with the data (pets.csv)."),
        (2, MORNING, 1, "2 labels were given on 5 March 2024, 09:02 UTC. 1 label came with the data (pets.csv)."),
    ],
)
def test_who_gave_the_labels(given: int, last: str, imported: int, said: str) -> None:
    assert given_and_imported(given, MORNING, last, imported=imported, source="pets.csv") == said


def test_nothing_is_said_of_what_did_not_happen() -> None:
    assert corrections_and_skips(0, 0) == ""
    assert corrections_and_skips(0, 1) == "1 item was skipped."


def test_the_end_of_a_run() -> None:
    assert run_not_enough_sentence(500, 500, "it is so", None) == "Not enough within all 500 labels: it is so."
    assert run_not_enough_sentence(30, 500, "it is so", "about 40 more labels (25 to 90)") == (
        "Not enough within 30 labels: it is so. About 40 more labels (25 to 90)."
    )
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
