"""Items drawn at random: how many, which, who may answer and when, and what is made of their labels."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.acquisition import RANDOM_SHARES
from suffice.learner import ActiveLearner
from suffice.project.assignment import (
    AT_FIRST,
    AT_RANDOM,
    BY_MODEL,
    SECOND_OPINION,
    TO_ESTIMATE,
    Assignment,
    AssignmentRequest,
    choose,
    has_started,
)
from suffice.project.create import create_project, open_project
from suffice.project.events import Event, EventKind
from suffice.project.labelling_project import Project
from suffice.project.project_learner import ProjectLearner
from suffice.project.settings import Settings
from suffice.project.state import Answer, ProjectState
from suffice.project.status_summary import learning_sentences, status
from tests.project.following import CASES
from tests.project.labelled_projects import of_feature
from tests.project.making_projects import about, make, picture, replayed
from tests.thoroughness import examples, some

SIZE = 60
PEOPLE = ("ann", "bob", "carol")


class Journal:
    """A project without a disk: a list of events, and the state that they come to."""

    def __init__(self, share: float, size: int = SIZE, seed: int = 0, initial: int = 2) -> None:
        self.settings = about(random_share=share, initial=initial, lease=600.0)
        self.order = np.random.default_rng(seed).permutation(size)
        self.state, self.events, self.size = ProjectState(size), [], size  # type: tuple[ProjectState, list[Event], int]
        self.now = 1000.0

    def write(self, kind: EventKind, person: str, item: int, **data: Any) -> None:
        event = Event(kind, person, item, data, seq=len(self.events) + 1, at=self.now)
        self.events.append(event)
        self.state.apply(event)

    def ask(self, person: str, n: int = 1, queue: Any = ()) -> list[Assignment]:
        """Ask as a project does."""
        started = has_started(self.state, self.settings)
        asked = choose(self.state, self.settings, AssignmentRequest(person, n, queue, self.order, self.now))
        for each in asked:
            if each.new:
                data = each.event_data(started=started)
                self.write(EventKind.asked, person, each.position, **data)
        return asked

    def label(self, person: str, *items: int) -> None:
        for item in items:
            self.write(EventKind.labelled, person, item, label="cat")


# --- how many ---


@given(
    share=st.floats(0.0, 1.0) | st.sampled_from([0.1, 0.2, 0.3]),
    steps=st.lists(
        st.tuples(
            st.sampled_from(PEOPLE), st.integers(1, 4), st.booleans(), st.sampled_from([0.0, 10.0, 400.0, 700.0])
        ),
        min_size=1,
        max_size=12,
    ),
)
def test_the_share_is_kept_to_within_one_item_whoever_asks(
    share: float, steps: list[tuple[str, int, bool, float]]
) -> None:
    journal = Journal(share)
    journal.label("eve", 0, 1)
    flags: list[bool] = []
    for person, n, answers, seconds in steps:
        journal.now += seconds
        asked = journal.ask(person, n, queue=range(SIZE))
        flags += [each.random for each in asked if each.random is not None]
        assert (journal.state.assigned.n_asked, journal.state.assigned.n_random) == (len(flags), sum(flags))
        assert abs(sum(flags) - share * len(flags)) < 1.0 + 1e-6
        for each in asked:
            assert each.position in journal.state.random_items() or each.why == BY_MODEL
        if answers:
            journal.label(person, *(each.position for each in asked))
    # Reading the journal gives the same result.
    again = replayed(journal.events, SIZE)
    assert picture(again, SIZE, journal.now) == picture(journal.state, SIZE, journal.now)


def test_every_fifth_item_is_random_with_a_share_of_a_fifth() -> None:
    journal = Journal(0.2)
    first = [journal.ask("ann")[0], journal.ask("bob")[0]]
    assert [each.why for each in first] == [AT_FIRST] * 2
    assert [each.position for each in first] == journal.order[:2].tolist()
    journal.label("ann", first[0].position, first[1].position)
    whys = []
    for k in range(15):
        [asked] = journal.ask(PEOPLE[k % 3], queue=range(SIZE))
        whys.append(asked.why)
        journal.label(PEOPLE[k % 3], asked.position)
    assert whys == [TO_ESTIMATE, *[BY_MODEL] * 4] * 3
    assert (journal.state.assigned.n_asked, journal.state.assigned.n_random) == (15, 3)


def test_items_that_the_model_did_not_choose_are_random_and_count() -> None:
    journal = Journal(0.2)
    journal.label("eve", 0, 1)
    asked = journal.ask("ann", 3)
    assert [(each.why, each.random) for each in asked] == [(TO_ESTIMATE, True), (AT_RANDOM, True), (AT_RANDOM, True)]
    # Three of 15 are enough: the model chooses the next twelve.
    whys = [each.why for each in journal.ask("bob", 13, queue=range(SIZE))]
    assert whys == [*[BY_MODEL] * 12, TO_ESTIMATE]


def test_before_the_model_starts_its_choice_is_not_asked_for() -> None:
    journal = Journal(0.0)
    asked = journal.ask("ann", 5, queue=[3, 4, 5])
    assert [each.position for each in asked] == journal.order[:5].tolist()
    assert all(each.random and each.why == AT_FIRST for each in asked)
    assert (journal.state.assigned.n_asked, journal.state.assigned.n_random) == (0, 0)


@pytest.mark.parametrize(("share", "expected"), [(0.0, BY_MODEL), (1.0, TO_ESTIMATE)])
def test_none_or_all_of_them(share: float, expected: str) -> None:
    journal = Journal(share)
    journal.label("eve", 0, 1)
    assert {each.why for each in journal.ask("ann", 20, queue=range(SIZE))} == {expected}


# --- which ---


def test_given_the_unlabelled_items_each_is_as_likely_to_be_the_next_random_one() -> None:
    """Chi-squared test of the second random item, after choices that depend on the first one and its label."""
    draws, size = 900, 12
    ranks: Counter[int] = Counter()
    for seed in range(draws):
        journal = Journal(0.2, size, seed)
        journal.label("eve", 0, 1)
        [first] = journal.ask("ann")
        journal.label("ann", first.position)
        # The model chooses the neighbours of the first one.
        queue = sorted(range(size), key=lambda item, at=first.position: abs(item - at))  # type: ignore[misc]
        for _ in range(4):
            [chosen] = journal.ask("ann", queue=queue)
            assert chosen.why == BY_MODEL
            journal.label("ann", chosen.position)
        [second] = journal.ask("bob", queue=queue)
        assert second.why == TO_ESTIMATE
        rest = [item for item in range(size) if journal.state.labels.is_open(item)]
        assert len(rest) == 5
        ranks[rest.index(second.position)] += 1
    # The 99.9 % point of the chi-squared distribution with 4 degrees of freedom.
    assert sum((ranks[rank] - draws / 5) ** 2 / (draws / 5) for rank in range(5)) < 18.47


def test_the_order_is_that_of_the_seed_and_of_no_label(tmp_path: Path) -> None:
    found = []
    for k, label in enumerate(("cat", "dog")):
        with make(tmp_path / f"{k}.suffice", initial=2, random_share=1.0, seed=3) as project:
            for _ in range(12):
                [asked] = project.next("ann", queue=[k])
                project.label(asked.position, label, person="ann")
            found.append([answer.item for answer in project.state().answers()])
    assert found[0] == found[1] == np.random.default_rng([3, 7]).permutation(20)[:12].tolist()


# --- independent of the person and the time ---


def test_a_second_opinion_keeps_what_the_item_was_and_does_not_count(tmp_path: Path) -> None:
    with make(tmp_path / "p.suffice", initial=1, overlap=1.0, random_share=0.2) as project:
        project.label(7, "cat", person="carol")
        random, chosen = (each.position for each in project.next("ann", 3, queue=range(20))[1:])
        project.label(random, "cat", person="ann")
        project.label(chosen, "cat", person="ann")
        before = project.state().assigned.n_asked, project.state().assigned.n_random
        asked = project.next("bob", 2)
        assert [(each.position, each.why, each.random) for each in asked] == [
            (random, SECOND_OPINION, None),
            (chosen, SECOND_OPINION, None),
        ]
        project.label(random, "dog", person="bob")
        state = project.state()
        assert (state.assigned.n_asked, state.assigned.n_random) == before == (2, 1)
        assert [answer.random for answer in state.answers()] == [False, True, False]


def test_who_asks_again_or_takes_back_changes_nothing() -> None:
    journal = Journal(0.5)
    journal.label("eve", 0, 1)
    random, chosen = (each.position for each in journal.ask("ann", 2, queue=range(SIZE)))
    journal.now += 400.0
    again = journal.ask("ann", 2, queue=range(SIZE))
    assert [(each.position, each.new, each.random) for each in again] == [(random, True, None), (chosen, True, None)]
    journal.label("ann", random)
    journal.write(EventKind.undone, "ann", random, of=journal.state.seq, until=journal.now + 600.0)
    assert journal.ask("ann")[0].position == random
    journal.label("ann", random, chosen)
    assert (journal.state.assigned.n_asked, journal.state.assigned.n_random) == (2, 1)
    assert [(each.item, each.random) for each in journal.state.answers()[2:]] == [(random, True), (chosen, False)]


def test_a_late_answer_keeps_what_was_written_when_the_item_was_last_asked_for_as_a_new_one() -> None:
    journal = Journal(0.2)
    journal.label("eve", 0, 1)
    [drawn] = journal.ask("ann")
    journal.now += 700.0
    assert drawn.position in journal.state.random_items()
    # Nobody has answered, and now the model wants it: bob is asked for it by its choice.
    [chosen] = journal.ask("bob", queue=[drawn.position])
    assert (chosen.position, chosen.why) == (drawn.position, BY_MODEL)
    journal.label("ann", drawn.position)
    assert not journal.state.answers()[-1].random
    # Who comes late to an item that nobody else was asked for gives a random label.
    journal = Journal(0.2)
    journal.label("eve", 0, 1)
    [drawn] = journal.ask("ann")
    journal.now += 7000.0
    journal.label("carol", drawn.position)
    assert journal.state.answers()[-1] == Answer(drawn.position, "cat", True)


def test_a_journal_without_the_flag_has_no_random_items() -> None:
    state = ProjectState(5)
    for seq, item in enumerate(range(3), start=1):
        state.apply(Event(EventKind.asked, "ann", item, {"until": 9.0, "why": "drawn at random"}, seq=2 * seq - 1))
        state.apply(Event(EventKind.labelled, "ann", item, {"label": "cat"}, seq=2 * seq))
    assert [answer.random for answer in state.answers()] == [False] * 3
    assert [each.random for each in state.labelled()] == [False] * 3
    assert (state.assigned.n_asked, state.assigned.n_random) == (0, 0)


def test_settings_without_the_share_are_those_of_an_older_version() -> None:
    assert about().random_share == RANDOM_SHARES["classification"] == 0.35
    saved = about(random_share=0.35).as_dict()
    assert Settings.from_dict(saved).random_share == 0.35
    del saved["random_share"]
    assert Settings.from_dict(saved).random_share == 0.0


# --- several people and processes ---


def test_a_project_that_is_opened_again_goes_on_as_if_it_had_not_been_closed(tmp_path: Path) -> None:
    """Three people, each time from the journal anew, against one process that was never left."""

    def labelled(place: Path, opened: Callable[[Project], Project]) -> tuple[list[Event], Any]:
        project = make(place, SIZE, task="regression", initial=5, random_share=0.3)
        learner = ProjectLearner(project.settings, project.X)
        for k in range(20):
            project = opened(project)
            learner.follow(project.state().answers())
            queue = learner.learning_status(queue=4).queue
            [asked] = project.next(PEOPLE[k % 3], queue=queue)
            project.label(asked.position, of_feature(project, asked.position), person=PEOPLE[k % 3])
        fresh = ProjectLearner(project.settings, project.X)
        fresh.follow(project.state().answers())
        events = project.events()
        project.close()
        return events, fresh.learning_status(queue=3)

    def again(project: Project) -> Project:
        project.close()
        return open_project(tmp_path / "again.suffice")

    events, found = labelled(tmp_path / "once.suffice", lambda project: project)
    others, same = labelled(tmp_path / "again.suffice", again)
    assert [(each.kind, each.item, each.data.get("random")) for each in events] == [
        (each.kind, each.item, each.data.get("random")) for each in others
    ]
    assert (found.verdict, found.errors, found.queue) == (same.verdict, same.errors, same.queue)
    drawn = [event.data["random"] for event in events if event.kind is EventKind.asked and event.data["started"]]
    assert len(drawn) == 15
    assert 3 <= sum(drawn) <= 6


# --- what is made of them ---


@pytest.fixture(params=some(list(CASES), every=2))
def case(request: pytest.FixtureRequest) -> Any:
    return CASES[request.param]


def mixed(case: Any, n: int, every: int = 2) -> list[Answer]:
    return [each._replace(random=k < 10 or k % every == 0) for k, each in enumerate(case.answers(n))]


def learned(case: Any, answers: list[Answer]) -> ProjectLearner:
    learner = ProjectLearner(case.settings, case.X)
    learner.follow(answers)
    return learner


def chosen_first(answers: list[Answer]) -> list[Answer]:
    """Answers whose first ten, which the model starts from, were not drawn at random."""
    return [each._replace(random=False) for each in answers[:10]] + answers[10:]


def test_the_error_is_calibrated_by_random_labels(case: Any) -> None:
    answers = mixed(case, 30)
    judge = ActiveLearner(case.settings.estimator(), case.X, acquisition="order", random_share=0.0, initial=10)
    for item, label, random in answers:
        judge.tell(item, label, random=random)
    expected = judge.error_estimate()
    found = learned(case, answers).learning_status().errors[-1]
    power = 1.0 if case.settings.classes else 0.5
    assert (found.n_labelled, found.random_labels) == (30, 20)
    assert [found.value, found.low, found.high] == pytest.approx([each**power for each in expected[:3]], rel=1e-12)


def test_few_random_labels_calibrate_the_estimate_too(case: Any) -> None:
    answers = chosen_first(mixed(case, 18))
    assert sum(each.random for each in answers) == 4
    errors = learned(case, answers).learning_status().errors
    assert [each.random_labels for each in errors] == [0, 3, 4]
    assert all(each.low < each.value < each.high for each in errors)


def test_with_nothing_left_there_is_still_an_estimate(case: Any) -> None:
    small = case.first(24)
    found = learned(small, [Answer(item, small.labels[item], True) for item in range(24)]).learning_status().errors
    assert [each.random_labels for each in found] == [10, 15, 20, 24]
    assert found[-1].value >= 0.0


def test_the_flags_alone_can_change_what_is_learned_and_it_is_learned_anew(case: Any) -> None:
    answers = mixed(case, 30)
    learner = learned(case, [each._replace(random=False) for each in answers])
    learner.follow(answers)
    found, fresh = learner.learning_status(queue=3), learned(case, answers).learning_status(queue=3)
    assert found == fresh


def test_both_learners_are_told_which_labels_are_random(case: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    told: dict[int, list[tuple[int, bool]]] = {}
    real = ActiveLearner.tell

    def tell(learner: ActiveLearner, indices: Any, labels: Any, *, random: Any = None) -> Any:
        items = np.atleast_1d(indices).tolist()
        told.setdefault(id(learner), []).extend(
            zip(items, np.broadcast_to(np.asarray(random), len(items)).tolist(), strict=True)
        )
        return real(learner, indices, labels, random=random)

    monkeypatch.setattr(ActiveLearner, "tell", tell)
    answers = mixed(case, 24, every=3)
    learner = learned(case, answers)
    learner.learning_status(queue=2)
    expected = [(each.item, each.random) for each in answers]
    assert list(told.values()) == [expected, expected]


def test_the_words_say_what_the_estimate_rests_on(tmp_path: Path) -> None:
    data = {"a": np.linspace(-2.0, 2.0, 80), "b": np.cos(np.arange(80.0))}
    with create_project(tmp_path / "p.suffice", data, classes=["no", "yes"], random_share=0.5) as project:
        assert project.settings.random_share == 0.5
        learner = ProjectLearner(project.settings, project.X)
        for _ in range(30):
            [asked] = project.next("me", queue=learner.learning_status(queue=1).queue)
            project.label(asked.position, "yes" if data["a"][asked.position] > 0.0 else "no", person="me")
            learner.follow(project.state().answers())
        found = learner.learning_status()
        told = status(project, found)
        assert told["error"]["random_labels"] == found.errors[-1].random_labels == 20
        assert told["decision"]["error"]["random_labels"] == 20
        assert told["decision"]["error_note"].endswith("; estimated from 20 labels of items drawn at random)")
        assert "(estimate; probably " in told["words"][0]
        assert learning_sentences(found, project.settings, 30, size=80) == told["words"]


@examples(16)
@given(share=st.sampled_from([0.0, 0.25, 0.6]), seed=st.integers(0, 2**16))
def test_several_people_at_one_project_keep_the_share(
    tmp_path_factory: pytest.TempPathFactory, share: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    place = tmp_path_factory.mktemp("p") / "p.suffice"
    with make(place, 40, initial=2, random_share=share, seed=seed) as one, open_project(place) as other:
        for _ in range(25):
            project, person = (one, other)[rng.integers(2)], PEOPLE[rng.integers(3)]
            for asked in project.next(person, int(rng.integers(1, 3)), queue=range(40)):
                if rng.random() < 0.9:
                    project.label(asked.position, "cat", person=person)
        state = one.state()
        events = [event.data for event in one.events() if event.kind is EventKind.asked]
        drawn = [data["random"] for data in events if data.get("started")]
        assert (state.assigned.n_asked, state.assigned.n_random) == (len(drawn), sum(drawn))
        assert abs(sum(drawn) - share * len(drawn)) < 1.0 + 1e-6
        assert picture(other.state(), 40, 0.0) == picture(state, 40, 0.0)


@pytest.mark.one_in(2)
def test_labels_that_make_the_model_worse_are_reported(case: Any) -> None:
    if len(case.settings.classes) > 2:
        pytest.skip("labels of two classes are flipped")
    answers = [Answer(item, case.labels[item], True) for item in range(36)]
    assert learned(case, answers).learning_status().warning == ""

    def flipped(label: Any) -> Any:
        return -label if isinstance(label, float) else next(each for each in case.settings.classes if each != label)

    size = len(case.X)
    worse = [*answers, *(Answer(item, flipped(case.labels[item]), False) for item in range(36, size - 1))]
    found = learned(case, worse).learning_status()
    assert found.warning.startswith("The newest labels made the model worse: it predicts the last ")
    assert found.warning in learning_sentences(found, case.settings, len(worse), size=size)
