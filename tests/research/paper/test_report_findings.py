"""What was found, as Markdown; and what each erratum does, as a table."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from suffice.report.html_page import ReportTable, plain
from suffice_research.data.protocols import PUBLISHED, TITLES
from suffice_research.paper.claims import ERRATA, ClaimFinding, ErratumEffect, errata_tables
from suffice_research.paper.outcome import RunOutcome
from suffice_research.paper.paper_report import findings_markdown

HOSTILE = "a_b *c* [d](e) <b>f</b> `g` h|i \\j\n- k\n\n# l"


def finding(protocol: str = "published", **changed: Any) -> ClaimFinding:
    return replace(ClaimFinding("It correlates", "figure 2", protocol, "holds", "In 3 of 3 cases."), **changed)


def test_findings_stand_under_their_protocol_in_the_order_of_the_protocols() -> None:
    text = findings_markdown([finding("corrected"), finding(), finding("corrected", verdict="does not hold")])
    assert text.splitlines() == [
        f"**{TITLES['published']}**",
        "",
        "- *It correlates* (figure 2): **holds**. In 3 of 3 cases.",
        "",
        f"**{TITLES['corrected']}**",
        "",
        "- *It correlates* (figure 2): **holds**. In 3 of 3 cases.",
        "- *It correlates* (figure 2): **does not hold**. In 3 of 3 cases.",
    ]
    assert findings_markdown([finding("corrected")]).startswith("**Corrected**\n\n- ")
    assert findings_markdown([]) == ""


def test_whatever_a_finding_says_it_stays_text() -> None:
    lines = findings_markdown([finding(claim=HOSTILE, words=HOSTILE)]).splitlines()
    escaped = r"a\_b \*c\* \[d\](e) \<b\>f\</b\> \`g\` h\|i \\j - k # l"
    assert plain(HOSTILE) == escaped
    assert lines == ["**As published**", "", f"- *{escaped}* (figure 2): **holds**. {escaped}"]


@pytest.mark.parametrize("text", ["plain words, 0.5 (0.4 to 0.6).", "", "50 %", "C:/a-b+c"])
def test_what_markdown_leaves_alone_stays_as_it_is(text: str) -> None:
    assert plain(text) == text


# ------------------------------------------------------------------------------------------------------------- errata


def run(name: str = "brr/protein", *, seed: int = 1, stop: int | None = 9, **changed: Any) -> RunOutcome:
    """A run whose error falls from 1.2 to 0.2, and is 0.45 where it stops."""
    experiment = PUBLISHED[name]
    thresholds = [f"{each:g}" for each in experiment.thresholds]
    made: dict[str, Any] = {
        "protocol": "published", "model": experiment.model, "data": experiment.data, "seed": seed, "arm": None,
        "features": 9, "pool": 5000, "initial": 10, "steps": 30, "correlation": 0.9,
        "published_correlation": experiment.correlation, "stops": dict.fromkeys(thresholds, stop), "error_first": 1.2,
        "error_best": 0.2, "error_at_stop": dict.fromkeys(thresholds, None if stop is None else 0.45), "seconds": 1.0,
        "ratio": np.ones(30), "error": np.linspace(1.2, 0.2, 30), "counted_from": 10,
    }  # fmt: skip
    return RunOutcome(**{**made, **changed})


ERRATUM = {erratum.name: erratum for erratum in ERRATA}


def effects(*given: ErratumEffect) -> ReportTable:
    return errata_tables(given)[1]


def test_an_erratum_is_told_with_what_it_does() -> None:
    righted = run(stop=19, correlation=0.95, error_best=0.1)
    named, found = errata_tables([ErratumEffect(ERRATUM["ten iterations"], run(), righted)])
    assert (named.name, found.name) == ("published-slips", "published-slip-effects")
    assert named.rows == (("ten iterations", ERRATUM["ten iterations"].done, ERRATUM["ten iterations"].right),)
    # (0.45 - 0.2) / (1.2 - 0.2) and (0.45 - 0.1) / (1.2 - 0.1).
    assert found.rows == (("ten iterations", "brr/protein", "0.900", "0.950", "9", "19", "0.250", "0.318"),)
    assert len(set(found.head)) == len(found.head) == 8
    assert "seeds" not in found.note


def test_errata_come_in_their_order_and_each_run_has_a_line() -> None:
    given = [
        ErratumEffect(ERRATUM[erratum], run(name), run(name))
        for erratum, name in (
            ("softmax twice", "bdnn/mnist"),
            ("narrow basis", "brr/protein"),
            ("narrow basis", "blr/skin"),
            ("column lost", "blr/htru2"),
        )
    ]
    named = errata_tables(given)[0]
    assert [row[0] for row in named.rows] == ["column lost", "narrow basis", "softmax twice"]
    assert [row[:2] for row in effects(*given).rows] == [
        ("column lost", "blr/htru2"),
        ("narrow basis", "brr/protein"),
        ("narrow basis", "blr/skin"),
        ("softmax twice", "bdnn/mnist"),
    ]


def test_of_several_seeds_the_median_is_told() -> None:
    erratum = ERRATUM["one step more"]
    given = [
        ErratumEffect(erratum, run(seed=seed, correlation=value), run(seed=seed, stop=stop))
        for seed, (value, stop) in enumerate([(0.5, 7), (0.8, None), (0.6, 8)])
    ]
    (row,) = effects(*given).rows
    assert row == ("one step more", "brr/protein", "0.600", "0.900", "9", "8", "0.250", "0.250")
    assert effects(*given).note.startswith("Medians over 3 seeds. ")
    never = [ErratumEffect(erratum, each.published, run(seed=each.published.seed, stop=None)) for each in given]
    assert effects(*never).rows[0][4:] == ("9", "never", "0.250", "never")


def test_an_undefined_correlation_is_told_as_undefined() -> None:
    (row,) = effects(ErratumEffect(ERRATUM["column lost"], run(), run(correlation=None))).rows
    assert row[2:4] == ("0.900", "undefined")


def test_no_errata_have_no_rows() -> None:
    assert [table.rows for table in errata_tables([])] == [(), ()]
