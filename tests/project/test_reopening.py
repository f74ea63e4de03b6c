"""What was learned is read from files: to the last bit what the labels give, and never something else."""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from suffice import ErrorStability, LabelWorth, MaxConfidence, PoolFraction
from suffice.checks.standing_finish import spacing
from suffice.cli.project_options import learned_project
from suffice.criteria import Criterion
from suffice.errors import SufficeError
from suffice.learner import ActiveLearner
from suffice.project import background_learner as background_module
from suffice.project import learned_files as files_module
from suffice.project import settings as settings_module
from suffice.project import shared_learner
from suffice.project.background_learner import BackgroundLearner
from suffice.project.create import open_project
from suffice.project.labelling_project import Project
from suffice.project.learned_files import FOLDER, LearnedFiles
from suffice.project.learned_project import predictions_after
from suffice.project.learning_status import LearningStatus, Predictions
from suffice.project.project_learner import ProjectLearner
from suffice.project.settings import Settings
from suffice.project.state import Answer
from suffice.project.storage import block_checksum
from tests.project.following import CASES, Case, labels_of
from tests.project.making_projects import make
from tests.project.test_companion import LONG, until
from tests.thoroughness import crossed, examples, some, thorough

NAMES = ("status.npz", "predictions.npz", "learner.npz", "earlier-learner.npz", "predictor.npz")
RULES: dict[str, Criterion] = {
    # Labels that are worth much: where the rule says stop, models are compared, which takes seconds.
    "worth": LabelWorth(mistake_cost=100.0),
    "stops": LabelWorth(),
    "ratio": ErrorStability(calibration=3),
    "both": LabelWorth(mistake_cost=100.0) & ErrorStability(calibration=3).patience(2),
    "predictions": MaxConfidence() | PoolFraction(0.5),
}


def ruled(case: Case, rule: str) -> Case:
    return case._replace(settings=replace(case.settings, rule=RULES[rule].state_dict()))


def files_in(folder: Path, checksum: str = "features") -> LearnedFiles:
    return LearnedFiles(folder / FOLDER, lambda: checksum)


_LEARNED: dict[tuple[Any, ...], ProjectLearner] = {}


def learner_of(case: Case, answers: Sequence[Answer]) -> ProjectLearner:
    """One that learned from the first answer on; the same answers are learned once, and each caller has a copy."""
    key = (repr(case.settings), case.X.tobytes(), *answers)
    if key not in _LEARNED:
        _LEARNED[key] = ProjectLearner(case.settings, case.X)
        _LEARNED[key].follow(answers)
    return deepcopy(_LEARNED[key])


def drawn(case: Case, n: int, skips: int = 0) -> list[Answer]:
    """Answers of which some are random."""
    return [each._replace(random=k % 4 == 0) for k, each in enumerate(case.answers(n, skips=skips))]


def kept(case: Case, answers: Sequence[Answer], folder: Path) -> LearnedFiles:
    """Files of a learner with its predictions."""
    files, learner = files_in(folder), learner_of(case, answers)
    assert learner.keep_in(files, learner.learning_status(queue=3))
    if learner.begun:
        learner.predictions_kept_in(files, case.X)
    return files


def assert_same_predictions(found: Predictions | None, expected: Predictions) -> None:
    assert found is not None
    assert found.labels.tolist() == expected.labels.tolist()
    assert found.labels.dtype == expected.labels.dtype
    np.testing.assert_array_equal(found.uncertainty, expected.uncertainty)
    np.testing.assert_array_equal(
        np.asarray(found.probabilities, dtype=float), np.asarray(expected.probabilities, dtype=float)
    )


@pytest.fixture
def case() -> Case:
    return CASES["three classes"]


# To the last bit.


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("name", "rule"),
    crossed(["three classes", "process", "two classes", "ridge"], ["worth", "ratio", "both"], every=3),
)
def test_a_learner_continues_as_if_it_had_never_stopped(name: str, rule: str, tmp_path: Path) -> None:
    case = ruled(CASES[name], rule)
    answers = drawn(case, 42, skips=4)
    expected = learner_of(case, answers)
    for n in (0, 4, 11, 20, 33, 42) if thorough() else (4, 21, 42):
        files = kept(case, answers[:n], tmp_path)
        resumed = ProjectLearner(case.settings, case.X)
        assert resumed.resume_from(files, answers) == n
        assert resumed.learning_status(queue=2) == learner_of(case, answers[:n]).learning_status(queue=2)
        # One at a time, and read again on the way.
        for k in range(n, len(answers)):
            resumed.follow(answers[: k + 1])
            if k == n + 3:
                resumed.keep_in(files)
                resumed = ProjectLearner(case.settings, case.X)
                assert resumed.resume_from(files, answers) == k + 1
        assert resumed.learning_status(queue=2) == expected.learning_status(queue=2)
        assert_same_predictions(resumed.predict(case.X), expected.predict(case.X))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["three classes", "process"])
def test_other_models_are_compared_as_before(name: str, tmp_path: Path) -> None:
    case = ruled(CASES[name], "stops")
    answers = drawn(case, 60)
    expected = learner_of(case, answers)
    assert expected._judge is not None
    assert expected._judge._session._compared is not None
    for n in (35, 50):
        resumed = ProjectLearner(case.settings, case.X)
        assert resumed.resume_from(kept(case, answers[:n], tmp_path), answers) == n
        resumed.follow(answers)
        assert resumed.learning_status() == expected.learning_status()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("model", ["logistic", "kernel"])
def test_every_model_of_classes_can_be_continued(model: str, tmp_path: Path) -> None:
    case = ruled(CASES["three classes"], "predictions")
    case = case._replace(settings=case.settings.using(model))
    answers = drawn(case, 40)
    files = kept(case, answers[:25], tmp_path)
    resumed = ProjectLearner(case.settings, case.X)
    assert resumed.resume_from(files, answers) == 25
    resumed.follow(answers)
    assert resumed.learning_status() == learner_of(case, answers).learning_status()


@pytest.mark.slow
def test_components_of_a_text_are_chosen_as_before(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(90, 24)) / np.sqrt(1.0 + np.arange(24))
    labels: list[Any] = [("eel", "cat", "dog")[k] for k in (2.0 * X @ rng.normal(size=(24, 3))).argmax(axis=1)]
    settings = replace(CASES["three classes"].settings, components=((0, 20),), rule=LabelWorth().state_dict())
    case = Case(settings, X, labels)
    answers = drawn(case, 50)
    files = kept(case, answers[:30], tmp_path)
    resumed = ProjectLearner(settings, X)
    assert resumed.resume_from(files, answers) == 30
    resumed.follow(answers)
    assert resumed.learning_status(queue=2) == learner_of(case, answers).learning_status(queue=2)


def test_everything_that_is_kept_is_read_again(case: Case, tmp_path: Path) -> None:
    answers = drawn(case, 31, skips=2)
    files, learner = kept(case, answers, tmp_path), learner_of(case, answers)
    assert files.status(case.settings, answers) == learner.learning_status(queue=3)
    assert_same_predictions(files.predictions(case.settings, answers), learner.predict(case.X))
    assert_same_predictions(predictions_after(case.settings, case.X, answers, files), learner.predict(case.X))
    assert [each.n_answers for each in files.checkpoints(case.settings, answers)][-1] == 31
    assert sorted(path.name for path in (tmp_path / FOLDER).iterdir()) == sorted(NAMES)


def test_the_same_labels_give_the_same_files(case: Case, tmp_path: Path) -> None:
    contents = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        _LEARNED.clear()
        kept(case, drawn(case, 20), tmp_path / name)
        found = [(tmp_path / name / FOLDER / each).read_bytes() for each in NAMES[:3]]
        # Times of files apart, which are in their heads.
        contents.append([np.load(tmp_path / name / FOLDER / each)["numbers"].tobytes() for each in NAMES[:3]])
        assert all(b"pickle" not in each for each in found)
    assert contents[0] == contents[1]


# Whatever people do.


class _Reopened:
    """A learner that follows answers, and is closed and opened again in between."""

    def __init__(self, case: Case, folder: Path) -> None:
        self.case, self.files = case, files_in(folder)
        self.answers: list[Answer] = []
        self.order = np.random.default_rng(4).permutation(len(case.X)).tolist()
        self.learner = ProjectLearner(case.settings, case.X)

    def do(self, act: str, number: int) -> None:
        free = [item for item in self.order if item not in {each.item for each in self.answers}]
        labels = labels_of(self.case)
        if act == "label":
            for item in free[: 1 + number % 12]:
                self.answers.append(Answer(item, self.case.labels[item], number % 3 == 0))
        elif act == "skip" and free:
            self.answers.append(Answer(free[0], None))
        elif act == "undo" and self.answers:
            del self.answers[-1 - number % min(3, len(self.answers))]
        elif act == "correct" and self.answers:
            at = number % len(self.answers)
            self.answers[at] = self.answers[at]._replace(label=labels[number % len(labels)])
        elif act == "follow":
            self.learner.follow(self.answers)
            self.learner.learning_status(queue=number % 3)
        elif act == "keep":
            complete = self.learner.learning_status() if self.learner.answers == self.answers else None
            self.learner.keep_in(self.files, complete)
        elif act == "reopen":
            self.learner = ProjectLearner(self.case.settings, self.case.X)
            self.learner.resume_from(self.files, self.answers)


@pytest.mark.parametrize("name", some(["three classes", "ridge", "process", "two classes"], every=2))
@settings(examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    acts=st.lists(
        st.tuples(
            st.sampled_from(["label", "label", "follow", "keep", "reopen", "skip", "undo", "correct"]),
            st.integers(0, 50),
        ),
        max_size=25,
    )
)
def test_whatever_people_do_the_result_is_that_of_the_labels(
    name: str, tmp_path_factory: pytest.TempPathFactory, acts: list[tuple[str, int]]
) -> None:
    case = ruled(CASES[name], "worth")
    reopened = _Reopened(case, tmp_path_factory.mktemp("p"))
    for act, number in [*acts, ("follow", 0), ("keep", 0)]:
        reopened.do(act, number)
    expected = learner_of(case, reopened.answers)
    assert reopened.learner.learning_status() == expected.learning_status()
    assert reopened.files.status(case.settings, reopened.answers) == expected.learning_status()
    if expected.begun:
        assert_same_predictions(reopened.learner.predict(case.X), expected.predict(case.X))


def test_a_changed_label_is_learned_from_the_last_checkpoint_before_it_on(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("suffice.project.project_learner._WORTH_KEEPING", 0.0)
    answers, told = drawn(case, 40), []
    learner, tell = learner_of(case, answers), ActiveLearner.tell

    def counted(self: ActiveLearner, *given: Any, **others: Any) -> Any:
        told.append(given[0])
        return tell(self, *given, **others)

    monkeypatch.setattr(ActiveLearner, "tell", counted)
    learner.follow(answers[:39])
    assert len(told) < spacing(40)
    assert learner.learning_status() == learner_of(case, answers[:39]).learning_status()
    told.clear()
    corrected = [*answers[:30], answers[30]._replace(label="eel"), *answers[31:]]
    learner.follow(corrected)
    assert len(told) <= 20
    assert learner.learning_status() == learner_of(case, corrected).learning_status()


def test_an_earlier_learner_is_kept_for_the_case_that_a_label_is_changed(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("suffice.project.project_learner._WORTH_KEEPING", 0.0)
    answers = drawn(case, 40)
    files = kept(case, answers, tmp_path)
    resumed = ProjectLearner(case.settings, case.X)
    assert 10 <= resumed.resume_from(files, answers[:39]) < 40
    resumed.follow(answers[:39])
    assert resumed.learning_status() == learner_of(case, answers[:39]).learning_status()


# Only what belongs together.


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"initial": 11},
        {"at_most": 0.1},
        {"classes": ("cat", "dog", "eel")},
        {"model": "kernel"},
        {"rule": LabelWorth(mistake_cost=2.0).state_dict()},
        {"components": ((0, 2),)},
        {"regularize": False},
        {"random_share": 0.5},
    ],
)
def test_other_settings_need_another_learning(case: Case, tmp_path: Path, change: dict[str, Any]) -> None:
    answers = drawn(case, 15)
    files = kept(case, answers, tmp_path)
    assert_nothing(files, replace(case.settings, **change), answers)


def test_a_new_setting_counts_until_it_is_said_that_it_changes_nothing() -> None:
    names = set(Settings.__dataclass_fields__)
    shown = settings_module._ONLY_SHOWN
    assert shown <= names
    assert names - shown >= {
        "task",
        "classes",
        "model",
        "rule",
        "seed",
        "initial",
        "at_most",
    }


def assert_nothing(files: LearnedFiles, about: Settings, answers: Sequence[Answer]) -> None:
    assert files.status(about, answers) is None
    assert files.predictions(about, answers) is None
    assert files.checkpoints(about, answers) == []


def test_what_is_only_shown_changes_nothing(case: Case, tmp_path: Path) -> None:
    answers = drawn(case, 15)
    files = kept(case, answers, tmp_path)
    shown = replace(case.settings, name="another", lease=5.0, notes=("so",), overlap=0.5)
    assert files.status(shown, answers) is not None


def test_other_features_or_another_program_need_another_learning(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = drawn(case, 15)
    kept(case, answers, tmp_path)
    assert_nothing(files_in(tmp_path, "other features"), case.settings, answers)
    known = dict(files_module._program())
    for name, value in known.items():
        monkeypatch.setattr(files_module, "_program", lambda name=name: {**known, name: "another"})
        assert_nothing(files_in(tmp_path), case.settings, answers)
        assert value
    monkeypatch.setattr(files_module, "_program", lambda: known)
    assert files_in(tmp_path).status(case.settings, answers) is not None


def test_other_answers_need_another_learning(case: Case, tmp_path: Path) -> None:
    answers = drawn(case, 15)
    files = kept(case, answers, tmp_path)
    other = next(label for label in labels_of(case) if label != answers[3].label)
    for changed in (
        [*answers[:3], answers[3]._replace(label=other), *answers[4:]],
        [*answers[:3], answers[3]._replace(label=None), *answers[4:]],
        [*answers[:3], answers[3]._replace(random=not answers[3].random), *answers[4:]],
        [answers[1], answers[0], *answers[2:]],
        [*answers[:3], answers[3]._replace(item=79), *answers[4:]],
    ):
        assert_nothing(files, case.settings, changed)
    for others in (answers[:14], [*answers, Answer(79, None)]):
        assert files.status(case.settings, others) is None
        assert files.predictions(case.settings, others) is None


def test_what_could_not_be_learned_is_not_kept(case: Case, tmp_path: Path) -> None:
    files, answers = files_in(tmp_path), drawn(case, 5)
    assert not files.keep_status(case.settings, answers, LearningStatus(n_answers=5, problem="it cannot learn"))
    assert not files.keep_status(case.settings, answers, LearningStatus(n_answers=4))
    learner = ProjectLearner(case.settings, case.X)
    learner.follow([Answer(0, "nonsense")])
    assert not learner.keep_in(files)
    assert not (tmp_path / FOLDER).exists()


def test_what_is_too_large_is_not_kept(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suffice.project.project_learner.MOST_BYTES", 1000)
    files, learner = files_in(tmp_path), learner_of(case, drawn(case, 15))
    assert not learner.keep_in(files, learner.learning_status())
    assert files.status(case.settings, learner.answers) is not None
    assert files.checkpoints(case.settings, learner.answers) == []


# Damage.


def read_back(files: LearnedFiles, case: Case, answers: Sequence[Answer], expected: Any) -> bool:
    """Read all that is kept: each is right, or not there; whether everything is there."""
    status, predictions = files.status(case.settings, answers), files.predictions(case.settings, answers)
    assert status is None or status == expected[0]
    if predictions is not None:
        assert_same_predictions(predictions, expected[1])
    resumed = ProjectLearner(case.settings, case.X)
    n = resumed.resume_from(files, answers)
    if n:
        assert resumed.learning_status(queue=3) == learner_of(case, answers[:n]).learning_status(queue=3)
    return status is not None and predictions is not None and n == len(answers)


@pytest.mark.slow
def test_a_flipped_byte_is_noticed(case: Case, tmp_path: Path) -> None:
    answers = drawn(case, 12)
    files, learner = kept(case, answers, tmp_path), learner_of(case, answers)
    expected = learner.learning_status(queue=3), learner.predict(case.X)
    assert read_back(files, case, answers, expected)
    rng, noticed = np.random.default_rng(0), 0
    for _ in range(60 if thorough() else 30):
        path = tmp_path / FOLDER / NAMES[rng.integers(len(NAMES))]
        if not path.exists():
            continue
        content = path.read_bytes()
        at = int(rng.integers(len(content)))
        path.write_bytes(content[:at] + bytes([content[at] ^ (1 << int(rng.integers(8)))]) + content[at + 1 :])
        noticed += not read_back(files, case, answers, expected)
        path.write_bytes(content)
    assert noticed > 15
    assert read_back(files, case, answers, expected)


@pytest.mark.parametrize("name", NAMES[:3])
def test_a_file_that_is_cut_or_foreign_is_not_used(case: Case, tmp_path: Path, name: str) -> None:
    answers = drawn(case, 14)
    files, learner = kept(case, answers, tmp_path), learner_of(case, answers)
    expected = learner.learning_status(queue=3), learner.predict(case.X)
    path = tmp_path / FOLDER / name
    content = path.read_bytes()
    others = [content[: k * len(content) // 9] for k in range(9)]
    for other in [*others, b"PK\x03\x04", b"\x80\x04.", b"{}"]:
        path.write_bytes(other)
        assert not read_back(files, case, answers, expected)
    path.unlink()
    path.mkdir()
    assert not read_back(files, case, answers, expected)


def test_contents_that_are_compressed_or_pickled_are_not_read(case: Case, tmp_path: Path) -> None:
    answers = drawn(case, 14)
    files = kept(case, answers, tmp_path)
    path = tmp_path / FOLDER / "status.npz"
    contents = dict(np.load(path))
    np.savez_compressed(path, **contents)
    assert files.status(case.settings, answers) is None
    np.savez(path, **{**contents, "numbers": np.array([print], dtype=object)})
    assert files.status(case.settings, answers) is None
    np.savez(path, **contents)
    assert files.status(case.settings, answers) is not None


def test_a_learner_that_is_wrong_inside_is_learned_again(case: Case, tmp_path: Path) -> None:
    answers = drawn(case, 30)
    files = kept(case, answers[:20], tmp_path)
    path = tmp_path / FOLDER / "learner.npz"
    contents = dict(np.load(path))
    text = contents["text"].tobytes().replace(b'"_history"', b'"_nothing"')
    np.savez(path, **{**contents, "text": np.frombuffer(text, dtype=np.uint8)})
    (tmp_path / FOLDER / "earlier-learner.npz").unlink(missing_ok=True)
    resumed = ProjectLearner(case.settings, case.X)
    resumed.resume_from(files, answers)
    resumed.follow(answers)
    assert resumed.learning_status() == learner_of(case, answers).learning_status()


# Places that cannot be written to.


def test_a_folder_that_cannot_be_written_to_keeps_nothing(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers, learner = drawn(case, 12), learner_of(case, drawn(case, 12))
    (tmp_path / FOLDER).write_text("a file of that name")
    assert not learner.keep_in(files_in(tmp_path), learner.learning_status())
    assert_nothing(files_in(tmp_path), case.settings, answers)
    (tmp_path / FOLDER).unlink()
    assert not learner.keep_in(files_in(tmp_path / "no" / "such"), learner.learning_status())

    def refused(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "read-only")

    monkeypatch.setattr("suffice.project.learned_files.os.open", refused)
    assert not learner.keep_in(files_in(tmp_path), learner.learning_status())
    assert list((tmp_path / FOLDER).iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="everything is writable for the superuser")
def test_a_read_only_project_is_read(tmp_path: Path) -> None:
    with labelled_project(tmp_path / "p") as project:
        expected = learned_by_hand(project)
    (tmp_path / "p").chmod(0o500)
    try:
        with open_project(tmp_path / "p") as project:
            assert learned_project(project, "p").learning_status == expected
        assert not (tmp_path / "p" / FOLDER).exists()
    finally:
        (tmp_path / "p").chmod(0o700)


@pytest.mark.parametrize("at", ["before", "write", "fsync", "replace"])
def test_a_full_disk_keeps_what_was_there(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str) -> None:
    answers = drawn(case, 20)
    files = kept(case, answers[:12], tmp_path)

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    if at == "before":
        monkeypatch.setattr(files_module, "_SPARE", 2**62)
    elif at == "write":
        monkeypatch.setattr(np, "savez", full)
    else:
        monkeypatch.setattr(os if at == "fsync" else Path, at, full)
    learner = learner_of(case, answers)
    assert not learner.keep_in(files, learner.learning_status())
    assert files.status(case.settings, answers[:12]) == learner_of(case, answers[:12]).learning_status(queue=3)
    assert sorted(path.name for path in (tmp_path / FOLDER).iterdir() if path.name[0] == ".") == []


def killed_while_writing(case: Case, folder: Path) -> None:
    """Keep what was learned, and be killed in the middle of a file."""
    learner, savez = learner_of(case, drawn(case, 25)), np.savez

    def half(file: Any, **contents: Any) -> None:
        savez(file, **contents)
        file.truncate(file.tell() // 2)
        file.flush()
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(np, "savez", half)
        learner.keep_in(files_in(folder), learner.learning_status())


def test_killed_while_writing_leaves_what_was_there(case: Case, tmp_path: Path) -> None:
    files = kept(case, drawn(case, 12), tmp_path)
    process = multiprocessing.get_context("fork").Process(target=killed_while_writing, args=(case, tmp_path))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    parts = [path for path in (tmp_path / FOLDER).iterdir() if path.name[0] == "."]
    assert len(parts) == 1
    assert files.status(case.settings, drawn(case, 12)) is not None
    learner = learner_of(case, drawn(case, 13))
    assert learner.keep_in(files, learner.learning_status())
    assert parts[0].exists()
    # Another process may be at it; later it is not.
    os.utime(parts[0], (0.0, time.time() - 4000.0))
    assert learner.keep_in(files, learner.learning_status())
    assert not parts[0].exists()


# Projects.


def labelled_project(place: Path, n: int = 30) -> Project:
    project = make(place, 60, initial=5, seed=0)
    label_next(project, n)
    return project


def label_next(project: Project, n: int, person: str = "ann", queue: Sequence[int] = ()) -> None:
    for _ in range(n):
        item = project.next(person, queue=queue)[0].position
        project.label(item, "cat" if project.X[item, 0] > 0.0 else "dog", person=person)


def learned_by_hand(project: Project) -> LearningStatus:
    learner = ProjectLearner(project.current_settings, project.X)
    state = project.state()
    learner.follow(state.learned(), checked=state.checked())
    return learner.learning_status()


def no_learning(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise AssertionError("it learned")

    monkeypatch.setattr(ActiveLearner, "tell", fails)


def test_a_command_learns_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with labelled_project(tmp_path / "p") as project:
        expected = learned_by_hand(project)
        first = learned_project(project, "p")
        predictions = first.predictions()
    assert first.learning_status == expected
    with open_project(tmp_path / "p") as project:
        with monkeypatch.context() as patched:
            no_learning(patched)
            patched.setattr("suffice.project.project_learner.Predictor.parts", None)
            again = learned_project(project, "p")
            assert again.learning_status == expected
            assert_same_predictions(again.predictions(), predictions)
        label_next(project, 1)
        assert learned_project(project, "p").learning_status == learned_by_hand(project)
        project.undo(person="ann")
        assert learned_project(project, "p").learning_status == expected


@pytest.mark.slow
def test_what_was_learned_by_another_model_is_not_used(tmp_path: Path) -> None:
    with labelled_project(tmp_path / "p") as project:
        before = learned_project(project, "p").learning_status
        project.switch_model("kernel", person="ann")
        found = learned_project(project, "p").learning_status
        assert found == learned_by_hand(project) != before
        project.switch_model("logistic", person="ann")
        assert learned_project(project, "p").learning_status == before


def test_features_that_were_changed_are_learned_anew(tmp_path: Path) -> None:
    import sqlite3

    with labelled_project(tmp_path / "p") as project:
        before = learned_project(project, "p").learning_status
    database = sqlite3.connect(tmp_path / "p" / "project.sqlite")
    (numbers,) = database.execute("SELECT numbers FROM features").fetchone()
    X = np.frombuffer(numbers, dtype="<f8").copy()
    X[::2] *= 1.5
    (width,) = database.execute("SELECT width FROM features").fetchone()
    checksum = block_checksum(0, width, X.tobytes())
    database.execute("UPDATE features SET numbers = ?, checksum = ?", (X.tobytes(), checksum))
    database.commit()
    database.close()
    with open_project(tmp_path / "p") as project:
        assert learned_project(project, "p").learning_status == learned_by_hand(project) != before


def test_a_check_holds_answers_back_also_after_reopening(tmp_path: Path) -> None:
    with labelled_project(tmp_path / "p") as project:
        before = learned_project(project, "p").learning_status
        project.start_check(8, person="ann")
        label_next(project, 4)
        assert learned_project(project, "p").learning_status == before
        with open_project(tmp_path / "p") as again:
            assert learned_project(again, "p").learning_status == before
            label_next(again, 4)
            assert again.guarantee() is not None
            complete = learned_project(again, "p").learning_status
            assert (complete.n_labelled, complete.verdict) == (before.n_labelled, before.verdict)
            assert complete == learned_by_hand(again) != before
            label_next(again, 3)
            assert learned_project(again, "p").learning_status == learned_by_hand(again) != before


def test_a_check_predicts_by_what_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draws = []
    for name in ("one", "two"):
        with labelled_project(tmp_path / name) as project, monkeypatch.context() as patched:
            if name == "two":
                learned_project(project, "p")
                no_learning(patched)
            project.start_check(8, person="ann")
            draws.append(project.checks()[0].draw)
    assert draws[0].items == draws[1].items
    assert draws[0].predictions.tolist() == draws[1].predictions.tolist()


def test_a_project_in_a_database_server_keeps_nothing() -> None:
    files = LearnedFiles(None, lambda: "x")
    learner = learner_of(CASES["ridge"], drawn(CASES["ridge"], 12))
    assert not files.kept
    assert not learner.keep_in(files, learner.learning_status())
    assert_nothing(files, CASES["ridge"].settings, learner.answers)


# The learner in the background.


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_module, "_POLL", 0.02)
    for name in ("_KEEP", "_KEEP_SHARE", "_IDLE"):
        monkeypatch.setattr(shared_learner, name, 0.0)


def opened(project: Project) -> BackgroundLearner:
    return BackgroundLearner(project, project.learned_files)


@pytest.mark.usefixtures("quick")
def test_a_server_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with labelled_project(tmp_path / "p") as project:
        with opened(project) as background:
            assert background.wait_settled(LONG)
            kept_status = background.learning_status
            predictions = background.predictions()
        assert project.learned_files.status(project.settings, project.state().learned()) == kept_status
        files = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "p" / FOLDER).iterdir()}
        assert set(files) == set(NAMES)
    with open_project(tmp_path / "p") as project:
        with monkeypatch.context() as patched:
            learned: list[int] = []
            tell = ProjectLearner._tell

            def counted(self: ProjectLearner, *given: Any) -> None:
                learned.append(1)
                tell(self, *given)

            patched.setattr(ProjectLearner, "_tell", counted)
            with opened(project) as background:
                assert background.wait_settled(LONG)
                assert background.learning_status == kept_status
                assert_same_predictions(background.predictions(), predictions)
            assert not learned
        # What is there already is not written again.
        assert {path.name: path.stat().st_mtime_ns for path in (tmp_path / "p" / FOLDER).iterdir()} == files
        with opened(project) as background:
            label_next(project, 2, queue=background.learning_status.queue)
            project.correct(project.state().learned()[3].item, "eel", person="ann")
            assert background.wait_settled(LONG)
            assert replace(background.learning_status, queue=()) == learned_by_hand(project)


@pytest.mark.usefixtures("quick")
def test_what_is_known_is_shown_while_it_is_learned_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with labelled_project(tmp_path / "p") as project:
        expected = learned_project(project, "p").learning_status
        for name in NAMES[2:]:
            (tmp_path / "p" / FOLDER / name).unlink(missing_ok=True)
        monkeypatch.setattr(background_module, "_PUBLISH", 0.0)
        follow, shown = ProjectLearner.follow, []

        def slowly(self: ProjectLearner, answers: list[Answer], **_: Any) -> None:
            given = iter([False, True])
            follow(self, answers, patience=lambda: next(given))
            shown.append(background.learning_status)

        monkeypatch.setattr(ProjectLearner, "follow", slowly)
        background = opened(project)
        with background:
            assert background.wait_settled(LONG)
        assert len(shown) == 30
        assert {(each.n_answers, each.verdict) for each in shown} == {(30, expected.verdict)}
        assert replace(background.learning_status, queue=()) == expected


def test_what_is_being_learned_is_kept_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with labelled_project(tmp_path / "p") as project:
        tell = ProjectLearner._tell

        def slowly(self: ProjectLearner, *given: Any) -> None:
            time.sleep(0.02)
            tell(self, *given)

        monkeypatch.setattr(ProjectLearner, "_tell", slowly)
        with opened(project) as background:
            until(lambda: background.learner.n_answers > 3)
        answers = project.state().learned()
        (newest,) = project.learned_files.checkpoints(project.settings, answers)[-1:]
        assert 3 < newest.n_answers < 30
        assert project.learned_files.status(project.settings, answers) is None
        assert learned_project(project, "p").learning_status == learned_by_hand(project)


@pytest.mark.usefixtures("quick")
def test_what_was_learned_since_the_last_save_is_kept_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with labelled_project(tmp_path / "p", 12) as project:
        tell = ProjectLearner._tell

        def in_part(self: ProjectLearner, *given: Any) -> None:
            if self.n_answers == 17:
                until(lambda: background._closing)
            tell(self, *given)

        with opened(project) as background:
            assert background.wait_settled(LONG)
            assert background.keep()
            monkeypatch.setattr(ProjectLearner, "_tell", in_part)
            label_next(project, 30)
            until(lambda: background.learner.n_answers == 17)
        (newest,) = project.learned_files.checkpoints(project.settings, project.state().learned())[-1:]
        assert newest.n_answers == 18
        monkeypatch.setattr(ProjectLearner, "_tell", tell)
        with opened(project) as background:
            assert background.wait_settled(LONG)
            assert background.learner.n_resumed == 18
            assert replace(background.learning_status, queue=()) == learned_by_hand(project)


@pytest.mark.usefixtures("quick")
def test_what_is_being_learned_is_kept_from_time_to_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with labelled_project(tmp_path / "p") as project:
        follow, kept = ProjectLearner.follow, list[int]()

        def one_more(self: ProjectLearner, answers: list[Answer], **_: Any) -> None:
            given = iter([False, True])
            follow(self, answers, patience=lambda: next(given))
            saved = project.learned_files.checkpoints(project.settings, answers)
            kept.append(max((each.n_answers for each in saved), default=0))

        with monkeypatch.context() as patched:
            patched.setattr(ProjectLearner, "follow", one_more)
            with opened(project) as background:
                assert background.wait_settled(LONG)
        # After each answer the state before it was saved.
        assert kept == [*range(30)]
        assert replace(background.learning_status, queue=()) == learned_by_hand(project)


@pytest.mark.usefixtures("quick")
def test_a_failure_to_write_fails_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(ProjectLearner, "keep_in", fails)
    monkeypatch.setattr(LearnedFiles, "keep_predictions", fails)
    with labelled_project(tmp_path / "p") as project, opened(project) as background:
        assert background.wait_settled(LONG)
        label_next(project, 1)
        assert background.wait_settled(LONG)
        assert not background.keep()
        assert background.learning_status.problem == ""
        assert replace(background.learning_status, queue=()) == learned_by_hand(project)


@pytest.mark.usefixtures("quick")
def test_one_without_files_keeps_nothing(tmp_path: Path) -> None:
    with labelled_project(tmp_path / "p", 8) as project:
        with BackgroundLearner(project) as background:
            assert background.wait_settled(LONG)
            assert not background.keep()
        assert not (tmp_path / "p" / FOLDER).exists()


@pytest.mark.usefixtures("quick")
def test_two_servers_at_one_project(tmp_path: Path) -> None:
    with labelled_project(tmp_path / "p", 6) as one, open_project(tmp_path / "p") as two:
        with opened(one) as first, opened(two) as second:

            def work(project: Project, background: BackgroundLearner, person: str) -> None:
                for _ in range(12):
                    label_next(project, 1, person, background.learning_status.queue)
                    background.wake()

            people = [
                threading.Thread(target=work, args=(one, first, "ann")),
                threading.Thread(target=work, args=(two, second, "bob")),
            ]
            for person in people:
                person.start()
            for person in people:
                person.join()
            assert first.wait_settled(LONG)
            assert second.wait_settled(LONG)
            found = [replace(each.learning_status, queue=()) for each in (first, second)]
        assert one.state().n_labelled == 30
        assert found[0] == found[1] == learned_by_hand(one)
        assert learned_project(one, "p").learning_status.verdict == found[0].verdict
        assert one.learned_files.status(one.settings, one.state().learned()) is not None


@pytest.mark.usefixtures("quick")
def test_predictions_are_kept_when_nobody_labels(tmp_path: Path) -> None:
    with labelled_project(tmp_path / "p") as project, opened(project) as background:
        answers = project.state().learned()
        until(lambda: project.learned_files.predictions(project.settings, answers) is not None)
        expected = background.predictions()
        assert_same_predictions(project.learned_files.predictions(project.settings, answers), expected)


@pytest.mark.usefixtures("quick")
def test_files_can_be_removed_at_any_time(tmp_path: Path) -> None:
    import shutil

    with labelled_project(tmp_path / "p") as project, opened(project) as background:
        for _ in range(3):
            assert background.wait_settled(LONG)
            shutil.rmtree(tmp_path / "p" / FOLDER, ignore_errors=True)
            label_next(project, 1)
            background.wake()
        assert background.wait_settled(LONG)
        assert replace(background.learning_status, queue=()) == learned_by_hand(project)


@pytest.mark.usefixtures("quick")
def test_before_the_model_has_begun_there_is_nothing_to_predict(tmp_path: Path) -> None:
    with labelled_project(tmp_path / "p", 3) as project:
        with opened(project) as background:
            assert background.wait_settled(LONG)
            time.sleep(0.1)
        found = learned_project(project, "p")
        with pytest.raises(SufficeError, match="begins with 5 labels"):
            found.predictions()
        assert replace(found.learning_status, queue=()) == learned_by_hand(project)
