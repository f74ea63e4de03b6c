"""The report of a project: complete, well formed, self-contained, and safe whatever an item or a name holds."""

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice import Budget, ErrorStability
from suffice.criteria import Certificate
from suffice.presentation.charts import Chart, svg, ticks
from suffice.project.create import write_project
from suffice.project.labelling_pace import pace
from suffice.project.learning_status import LearningStatus
from suffice.project.state import LabelledItem, Opinion
from suffice.report.project_report import checks_table, curve_chart, project_report_contents, report_page
from suffice.session.decision import ErrorNow
from suffice.tables.table_cells import CellColumns
from tests.project.decided import KERNEL, decision, learning_status, verdict
from tests.project.labelled_projects import HOSTILE, busy_project, hostile_project, label_some, learned, of_feature
from tests.project.making_projects import CLASSES, about, make, some_items
from tests.reading import Reader

ENOUGH = learning_status(decision(stop=True))
MORE = learning_status(decision())
LIMIT = learning_status(decision(stop=True, alternative=KERNEL, at_most=0.05))


def page_of(place: Path, found: LearningStatus | None = None, task: str = "classification", **settings: Any) -> Reader:
    with busy_project(place, task=task, **settings) as project:
        return Reader(report_page(project, found or learned(project)[1]))


def is_whole(read: Reader, page: str) -> None:
    """Nothing is fetched, nothing runs, every link leads somewhere."""
    assert len(read.ids) == len(set(read.ids))
    assert {address[1:] for address in read.addresses} <= set(read.ids)
    assert not {"script", "link", "img", "iframe", "object", "form", "input", "base"} & set(read.tags)
    assert read.tags.count("h1") == read.tags.count("main") == read.tags.count("style") == 1
    for word in ("http://", "https://", "url(", "@import", "javascript:"):
        assert word not in page


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_everything_is_there_and_in_its_order(tmp_path: Path, task: str) -> None:
    with busy_project(tmp_path / "p", task=task) as project:
        page = report_page(project, learned(project)[1])
    read = Reader(page)
    is_whole(read, page)
    parts = ["summary", "quality", "outlook", "labels", "guarantee", "stopping", "method", "examples"]
    assert [name for name in read.ids if name in parts] == parts
    for words in (
        *("Labelling report: pets", "38 labels were given ", "2 labels came with the data (pets.csv).", "ann", "bob"),
        *(
            "1 label was corrected. 2 items were skipped.",
            "Two people labelled the same 5 items",
            "Answers of people",
            "What is not guaranteed",
        ),
        *("ErrorStability (threshold 0.05", "pet 2 🐌", "id-2", "pets.csv: 120 items, texts", "Seed of all randomness"),
    ):
        assert words in read.text
    # A wide and a narrow picture of the error and of what the rule compares.
    assert read.tags.count("svg") == 4


def tone(page: str) -> str:
    found = re.search(r'<div class="verdict (\w+)">', page)
    assert found
    return found[1]


def test_a_stop_is_told_with_the_error_first(tmp_path: Path) -> None:
    with busy_project(tmp_path / "p") as project:
        page = report_page(project, ENOUGH)
    text = Reader(page).text.replace("\u00a0", " ")
    assert tone(page) == "good"
    for words in (
        "You can stop now About 12 % of the 78 unlabelled items are predicted wrong (estimate; probably 9 to 16 %).",
        "More labels are not worth their cost: each further label is expected to avoid too few wrong predictions.",
        "The rule first said so at 33 labels.",
        "12 % of the 78 unlabelled items predicted wrong, after 40 labels (probably 9 to 16 %; estimated from",
        "This is an estimate, and no guarantee. The model states how sure it is of its predictions for 78 unlabelled",
        "the rule says stop at 33 labels",
        "After 40 labels, the error ratio is 1, and the threshold is 1.",
        "The last step changed it by at most 0.12.",
        "by at most 12 % of the range",
        "The loss is bounded.",
    ):
        assert words in " ".join(text.split()), words
    for words in ("need not be labelled by hand", "saved", "expected to be enough"):
        assert words not in text
    assert text.index("estimated share wrong") < text.index("error ratio")


def test_the_models_own_estimate_is_said_to_be_one(tmp_path: Path) -> None:
    own = learning_status(decision(stop=True, error=ErrorNow(0.1234, 0.094, 0.161)))
    text = page_of(tmp_path / "p", own).text.replace("\u00a0", " ")
    assert "(probably 9 to 16 %; the model's own estimate, not verified by random labels)" in text
    assert "on 120 items drawn at random" in text


def test_what_is_missing_is_told_with_the_forecast(tmp_path: Path) -> None:
    with busy_project(tmp_path / "p", random_share=0.2) as project:
        page = report_page(project, MORE)
    text = " ".join(Reader(page).text.split())
    assert tone(page) == "on"
    for words in (
        "Keep labelling",
        "About 30 more labels (12 to 60) would avoid about 7 of about 10 wrong predictions; about",
        "10 wrong predictions now, estimated 3 after about 30 more labels (12 to 60), extrapolated",
        "expected to be enough",
        "20\u00a0% of the items asked for after the start were drawn at random",
        "After the first ones the model chose most of the items",
    ):
        assert words.replace("\u00a0", " ") in text.replace("\u00a0", " "), words
    assert "You can stop" not in text


def test_a_model_at_its_limit_is_not_green(tmp_path: Path) -> None:
    with busy_project(tmp_path / "p") as project:
        page = report_page(project, LIMIT)
    assert tone(page) == "limit"
    text = Reader(page).text.replace("\u00a0", " ")
    for words in (
        *("More labels will not help this model much", "You asked for at most 5 %.", "the current model 18."),
        "Another model is better: Bayesian logistic regression on kernel features. Tested on 60 labelled items",
    ):
        assert words in text
    assert "You can stop" not in text


def test_the_model_is_the_one_that_learns_now(tmp_path: Path) -> None:
    with busy_project(tmp_path / "p") as project:
        project.switch_model("kernel", person="ann")
        text = Reader(report_page(project, MORE)).text
    words = "Bayesian logistic regression on kernel features (until it was switched: Bayesian logistic regression)"
    assert words in text


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_a_project_without_labels_has_a_report_too(tmp_path: Path, task: str) -> None:
    with make(tmp_path / "p", task=task) as project:
        page = report_page(project, LearningStatus())
    read = Reader(page)
    is_whole(read, page)
    assert "Nothing is labelled yet." in read.text
    assert tone(page) == "quiet"
    # Where nothing is certified, nothing is said of it.
    assert "certif" not in read.text
    assert "examples" not in read.ids
    assert "svg" not in read.tags


def test_before_the_rule_judges_it_says_what_it_waits_for(tmp_path: Path) -> None:
    with make(tmp_path / "p") as project:
        label_some(project, range(4))
        text = Reader(report_page(project, learned(project)[1])).text
    assert "Too early to say" in text
    assert "6 more labels are needed before the model starts." in text
    assert "The model has not begun to learn" in text
    assert "the model chose the items" not in text


def test_a_pool_that_is_used_up_saved_nothing(tmp_path: Path) -> None:
    with make(tmp_path / "p") as project:
        label_some(project, range(20))
        text = Reader(report_page(project, learned(project)[1])).text
    assert "Nothing is left to label" in text
    assert "No item is left that the model has to predict." in text


def test_why_the_model_cannot_learn_is_told(tmp_path: Path) -> None:
    text = page_of(tmp_path / "p", LearningStatus(problem="The model cannot learn: it is <tired>.")).text
    assert "The model cannot learn: it is <tired>." in text


def test_whatever_a_text_holds_it_stays_text(tmp_path: Path) -> None:
    hostile = HOSTILE[16]
    changes: dict[str, Any] = dict.fromkeys(("name", "target", "source"), hostile)
    classes = (hostile, "<script>alert(1)</script>", "&amp;")
    said = replace(ENOUGH.verdict, certificate=Certificate(hostile, hostile)) if ENOUGH.verdict else None
    hostile_decision = decision(stop=True, common=hostile, baseline=0.1, said=verdict(stop=True, rule=hostile))
    found = replace(ENOUGH, verdict=said, numbers=hostile_decision)
    with hostile_project(tmp_path / "p", classes=classes, notes=(hostile,), **changes) as project:
        for item in range(len(HOSTILE)):
            project.label(item, classes[item % 3], person="<img src=x>")
            project.label(item, classes[0], person="ann")
        page = report_page(project, found)
    read = Reader(page)
    is_whole(read, page)
    assert read.text.count(hostile) >= 8
    assert "<img src=x>" in read.text
    assert "onerror" not in page.replace("onerror=alert(1)&gt;", "")


def test_long_texts_are_cut(tmp_path: Path) -> None:
    long = "x" * 1_000_000
    cells = CellColumns([[long, "word " * 200_000, "c"], [long, "2", "3"]])
    items = replace(some_items(3), ids=(long, "b", "c"), cells=cells)
    with write_project(tmp_path / "p", about(name=long, target=long, notes=(long,)), items) as project:
        label_some(project, [0, 1, 2])
        page = report_page(project, LearningStatus())
    assert len(page) < 40_000
    assert "x…" in Reader(page).text


def test_many_classes_and_many_people_are_not_all_shown(tmp_path: Path) -> None:
    classes = tuple(f"class {k}" for k in range(300))
    items = replace(some_items(60), classes=classes)
    with write_project(tmp_path / "p", about(classes=classes), items) as project:
        for item in range(60):
            project.label(item, classes[item], person=f"person {item}")
        text = Reader(report_page(project, LearningStatus())).text
    assert "The 40 most frequent of 300 classes." in text
    assert "The 40 of 60 people who labelled most." in text
    assert "and 270 more" in text
    assert "No item is labelled class 60" in text


@pytest.mark.parametrize(
    "values", [(1e100, -1e100), (5.0, 5.0), (0.0, 5e-324), (1e15, 1e15 + 2), (-3.0, 7.5), (1e-9, 2e-9), (0.0, -0.0)]
)
def test_numbers_of_any_size_are_shown(tmp_path: Path, values: tuple[float, float]) -> None:
    with make(tmp_path / "p", task="regression") as project:
        for item, value in enumerate(values * 3):
            project.label(item, value, person="ann")
        page = report_page(project, LearningStatus())
    read = Reader(page)
    assert "Half of the labels are" in read.text
    assert "nan" not in read.text
    assert "inf" not in read.text.replace("information", "")


def test_a_model_that_lags_is_said_to(tmp_path: Path) -> None:
    behind = learning_status(decision(n_labelled=38, unlabelled=80), n_answers=40)
    assert "The model is still learning the last 2 labels." in page_of(tmp_path / "p", behind).text
    assert "still learning" not in page_of(tmp_path / "other", ENOUGH).text


def test_a_check_for_a_target_has_no_size_before_it_ends(tmp_path: Path) -> None:
    with make(tmp_path / "p", 120) as project:
        label_some(project, range(15))
        # Four checks of these items were started elsewhere.
        project.start_check(at_most=0.5, person="ann", earlier_checks=4)
        for _ in range(3):
            item = project.next("ann")[0].position
            project.label(item, of_feature(project, item), person="ann")
        contents = project_report_contents(project, learned(project)[1])
        assert checks_table(contents).rows[0][2:4] == ("3 answered of 105", "open")
        text = Reader(report_page(project, learned(project)[1])).text
        assert "3 answers, " in text
        assert "still to answer" not in text
        while project.state().checks.open_check is not None:
            item = project.next("ann")[0].position
            project.label(item, of_feature(project, item), person="ann")
        text = Reader(report_page(project, learned(project)[1])).text
        assert "number 5, started by ann" in text
        assert "At most 50 % of the predictions for the 105 items" in text.replace("\u00a0", " ")


def test_the_same_labels_give_the_same_page(tmp_path: Path) -> None:
    with busy_project(tmp_path / "p") as project:
        assert report_page(project, ENOUGH) == report_page(project, ENOUGH)


def test_a_rule_of_another_kind_is_told_in_its_own_words(tmp_path: Path) -> None:
    with make(tmp_path / "p", rule=(Budget(12) | ErrorStability(0.1)).state_dict()) as project:
        label_some(project, range(15))
        read = Reader(report_page(project, learned(project)[1]))
    assert "AnyOf (rules Budget and ErrorStability)" in read.text
    assert "You can stop now" in read.text


def test_the_pace_is_that_of_a_person_at_work() -> None:
    def labels(moments: list[float], person: str = "ann") -> list[LabelledItem]:
        return [LabelledItem(n, "a", person, at, False, (Opinion(person, "a", at),)) for n, at in enumerate(moments)]

    steady = [7.0 * n for n in range(12)]
    assert pace(labels(steady)) == 7.0
    assert pace(labels([*steady, *(at + 90_000.0 for at in steady)])) == 7.0
    assert pace(labels(steady) + labels([at + 1.0 for at in steady], "bob")) == 7.0
    assert pace(labels([0.01 * n for n in range(50)])) is None
    assert pace(labels([1000.0 * n for n in range(50)])) is None
    assert pace([]) is None


def test_the_curve_is_drawn_as_the_rule_saw_it(tmp_path: Path) -> None:
    with busy_project(tmp_path / "p") as project:
        enough, more = (
            curve_chart(project_report_contents(project, ENOUGH)),
            curve_chart(project_report_contents(project, MORE)),
        )
    assert [n for n, _ in enough.rough] == list(range(11, 41))
    assert [value for _, value in enough.line] == sorted((value for _, value in enough.line), reverse=True)
    assert enough.stop == 33
    assert enough.ahead is None
    assert more.stop is None
    assert more.ahead == (52, 70, 100)
    assert more.limit[-1] == (100.0, 1.0)


numbers = st.floats(-1e9, 1e9) | st.sampled_from([0.0, 1e-300, 1.0])


@given(
    st.lists(st.tuples(st.integers(1, 10**6), numbers, numbers, numbers), min_size=1, max_size=6),
    st.booleans(),
    st.sampled_from([None, 5, 10**6]),
    st.sampled_from([None, (7, 9, 12), (10**7, 10**8, 10**9)]),
)
def test_any_curve_is_drawn_inside_its_frame(
    points: list[tuple[int, float, float, float]], log: bool, stop: int | None, ahead: tuple[int, int, int] | None
) -> None:
    rows = sorted({row[0]: row for row in points}.values())
    chart = Chart(
        title="<t>",
        name="n",
        line=[(float(n), value) for n, value, _, _ in rows],
        band=[(float(n), min(a, b), max(a, b)) for n, _, a, b in rows],
        limit=[(float(n), a) for n, _, a, _ in rows],
        stop=stop,
        ahead=ahead,
        log=log,
    )
    drawn = svg(chart, 340, 260, shown="narrow")
    places = Places(drawn)
    assert places.text
    assert all(math.isfinite(at) and -1.0 <= at <= 341.0 for at in places.across)
    assert all(math.isfinite(at) and -1.0 <= at <= 261.0 for at in places.up)


class Places(Reader):
    """Where things are drawn."""

    def __init__(self, drawn: str) -> None:
        self.across: list[float] = []
        self.up: list[float] = []
        super().__init__(drawn)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in {"path", "rect", "circle"}
        self._note(dict(attrs))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note(dict(attrs))
        super().handle_starttag(tag, attrs)

    def _note(self, given: dict[str, str | None]) -> None:
        self.across += [float(given[name] or "nan") for name in ("x", "cx") if name in given]
        self.up += [float(given[name] or "nan") for name in ("y", "cy") if name in given]
        for point in (given.get("d") or "").replace("M", "L").replace("Z", "").split("L")[1:]:
            numbers = point.replace("H", " ").replace("V", " ").replace("v", " ").split()
            self.across.append(float(numbers[0]))
            self.up.append(float(numbers[1]))


@given(st.floats(-1e12, 1e12), st.floats(1e-9, 1e12), st.integers(3, 12))
def test_ticks_are_few_round_and_reach_over_all(low: float, span: float, most: int) -> None:
    high = low + span
    if high - low < 1e-9 * max(abs(low), abs(high)):
        return
    found = ticks(low, high, most)
    slack = 1e-6 * (high - low)
    assert found[0] <= low + slack
    assert found[-1] >= high - slack
    assert 2 <= len(found) <= most + 2
    assert list(found) == sorted(set(found))


def test_classes_are_counted_in_the_report(tmp_path: Path) -> None:
    with busy_project(tmp_path / "p") as project:
        page = report_page(project, ENOUGH)
        with project.lock:
            counts = project.state().counts()
    for name in CLASSES:
        assert f'<td>{name}</td><td class="number">{counts.get(name, 0)}</td>' in page
