"""Page, report, terminal and JSON say the same of any decision, with the same numbers."""

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console
from textual.geometry import Size

from suffice.cli import project_commands
from suffice.cli.label_app import Standing, header_line, progress_lines
from suffice.cli.labeller import Counts
from suffice.cli.project_options import Reading
from suffice.presentation.decision_words import STOPS, decision_words
from suffice.project.labelling_project import Project
from suffice.project.people import people_summary
from suffice.project.status_summary import learning_sentences, status
from suffice.report.project_report import report_page
from suffice.session.decision import Decision
from tests.project.decided import complete, decision, decisions, learning_status
from tests.project.labelled_projects import busy_project
from tests.reading import Reader
from tests.thoroughness import examples


@pytest.fixture(scope="module", params=["classification", "regression"])
def project(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    with busy_project(tmp_path_factory.mktemp("p") / "p", task=request.param) as made:
        yield made


def words(text: str) -> str:
    """A text without line breaks and spaces that do not break."""
    return " ".join(text.replace("\u00a0", " ").split())


def terminal(project: Project, told: dict[str, Any], found: Any) -> str:
    out = io.StringIO()
    reading = Reading(project, "p", project.settings, [], found)
    console = Console(file=out, width=10_000, force_terminal=False)
    project_commands._print_status(console, reading, told, people_summary(project.state(), project.settings))
    return words(out.getvalue())


def screen(project: Project, found: Any, width: int = 200) -> str:
    standing = Standing(project.settings, "ann", Counts(40, 2, 120, ()), found)
    lines = [header_line(standing, width), *progress_lines(standing, Size(max(35, width * 2 // 5), 30))]
    return words(" ".join(line.plain for line in lines))


@pytest.mark.one_in(2)
@settings(examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_the_same_words_and_numbers_everywhere(project: Project, data: st.DataObject) -> None:
    share = project.settings.task == "classification"
    decided = data.draw(st.one_of(decisions(share=share), st.just(complete(40))))
    found = learning_status(decided)
    told = status(project, found)
    said = told["decision"]
    assert json.loads(json.dumps(said, allow_nan=False)) == said

    assert said["sentences"][0].startswith(f"{said['headline']}: ")
    assert told["words"] == learning_sentences(found, project.settings, 40, size=118) == said["sentences"]
    # Never green without the error next to it.
    if said["tone"] == "good":
        assert said["error_figure"]
        assert said["error_figure"].replace("\u00a0", " ") in said["sentences"][0]
    assert (said["headline"] == "You can stop now") == (said["answer"] == "enough" and not said["large_error"])
    assert decided.stop == (said["answer"] in STOPS)

    page = report_page(project, found)
    report, printed = words(Reader(page).text), terminal(project, told, found)
    assert re.search(r'<div class="verdict (\w+)">', page)[1] == said["tone"]  # type: ignore[index]
    assert f"{said['headline']} {words(said['summary'])}" in report
    for sentence in said["sentences"][1:]:
        assert words(sentence) in report
    for sentence in said["sentences"]:
        assert words(sentence) in printed
    assert said["headline"] in screen(project, found)
    if said["error_figure"] and said["answer"] != "complete":
        assert words(f"{said['error_figure']} {said['error_note']}") in report
        assert f"after {said['n_labelled']} labels" in said["error_note"]
    for figure, note in said["outlook"]:
        assert words(f"{figure} {note}") in report
    # No number of labels but that of the decision, of its start, and of the forecast.
    for text in (report, printed):
        for n in re.findall(r"(?:first said so|says stop) at ([\d,]+) labels?", text):
            assert int(n.replace(",", "")) == decided.since


@examples(200)
@given(st.one_of(decisions(), decisions(share=False)))
def test_no_sentence_contradicts_another(decided: Decision) -> None:
    said = decision_words(decided.as_dict())
    text = " ".join([*said.sentences, said.error_note, said.outlook_note, said.summary, said.remedy])
    assert "nan" not in text
    assert "None" not in text
    assert ("You can stop" in text) == (decided.answer == "enough" and not decided.large_error)
    # Green only where the error is not large.
    assert said.tone != "good" or not decided.large_error
    assert ("Keep labelling" in text) == (decided.answer == "keep going")
    # The target is named as the reason, if there is one and no better model.
    asked = decided.above_target or decided.target_out_of_reach
    reached = decided.alternative is not None or not asked
    assert ("not help this model much" in text) == (decided.answer == "limit" and reached)
    assert ("target is out of reach" in text) == (decided.answer == "limit" and not reached)
    if decided.answer != "keep going":
        assert "more label" not in text.replace("More labels", "").replace("leads to more labels", "")
        assert not said.outlook
    if said.outlook:
        assert "extrapolated" in said.outlook[1][1]
        assert "estimated" in said.outlook[0][1]
    for term in ("ratio", "threshold", "variance", "posterior", "squared"):
        assert term not in text


def test_a_stop_of_a_project_at_each_width_of_a_terminal(tmp_path: Path) -> None:
    with busy_project(tmp_path / "p") as project:
        found = learning_status(decision(stop=True))
        for width in (50, 80, 120):
            assert "You can stop now" in screen(project, found, width)
            assert "12" in screen(project, found, width)
