"""Runs of the paper carried out: kept, and taken up again; with files damaged, and with data missing."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from suffice.errors import SufficeError
from suffice.trace import Relearned, Trace
from suffice_research.data import catalogue
from suffice_research.data.catalogue import SETS, DataFile
from suffice_research.data.protocols import CORRECTED, PUBLISHED, Experiment
from suffice_research.paper import experiments as planning
from suffice_research.paper.claims import erratum_runs
from suffice_research.paper.experiments import PaperRun, PaperRunWatcher, measured_run, measured_runs, plan
from suffice_research.paper.outcome import RunOutcome
from suffice_research.runner import SkippedRun, kept

TRACES = Path("traces")


# ------------------------------------------------------------------------------- runs that are kept, without data


class Fake:
    """Stands in for the runs themselves, and counts them."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, int]] = []
        self.problem: dict[str, SufficeError] = {}
        self.checkpoints: list[Path | None] = []

    def __call__(
        self, experiment: Experiment, seed: int, *, checkpoint: Path | None = None, progress: Any = None
    ) -> Trace:
        self.ran.append((experiment.name, seed))
        self.checkpoints.append(checkpoint)
        if checkpoint is not None:
            checkpoint.write_text("a round")
        if experiment.name in self.problem:
            raise self.problem[experiment.name]
        rng = np.random.default_rng(seed + 100 * len(experiment.name))
        progress(10, 30)
        progress(30, 30)
        made = Trace.of_divergences(*np.exp(-rng.random((2, 30)).cumsum(axis=1)), first=10)
        # A network keeps the authors' error besides; hyper-parameters that were learned again see the past otherwise.
        measures = {"published_error": 1.46 + rng.random(30)} if experiment.model == "bdnn" else {}
        past = (Relearned(19, *np.exp(-rng.random((2, 20)).cumsum(axis=1))),)
        relearned = past if experiment.hyperparameters == "bought" else ()
        return replace(made, error=np.exp(-rng.random(30).cumsum()), measures=measures, relearned=relearned)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Fake:
    made = Fake()
    monkeypatch.setattr(planning, "run_experiment", made)
    monkeypatch.setattr(planning, "require_set", lambda name: None)
    return made


class Told:
    """What a watcher was told."""

    def __init__(self) -> None:
        self.moved: list[tuple[int, int]] = []
        self.ended: list[tuple[int, RunOutcome | SkippedRun[PaperRun]]] = []

    @property
    def watcher(self) -> PaperRunWatcher:
        return PaperRunWatcher(lambda *news: self.moved.append(news), lambda *news: self.ended.append(news))


def rows(found: Sequence[RunOutcome | SkippedRun[PaperRun]]) -> list[dict[str, Any]]:
    """What is reported of each run, but for its time; all must have come to an end."""
    assert all(isinstance(each, RunOutcome) for each in found), found
    return [{**each.row(), "seconds": None} for each in found if isinstance(each, RunOutcome)]


def all_of(
    jobs: Sequence[PaperRun], workers: int = 1, watcher: PaperRunWatcher | None = None
) -> list[RunOutcome | SkippedRun[PaperRun]]:
    return measured_runs(jobs, TRACES, workers, watcher or Told().watcher)


JOBS = plan([PUBLISHED["gpr/protein"], CORRECTED["blr/skin"]], 2)


def test_a_second_call_runs_nothing(fake: Fake) -> None:
    first, told = all_of(JOBS), Told()
    assert fake.ran == [("gpr/protein", 1), ("gpr/protein", 2)] + [("blr/skin", seed) for seed in (0, 0, 1, 1)]
    second = all_of(JOBS, watcher=told.watcher)
    assert len(fake.ran) == 6
    # To the digit, and with the time that the run took when it was run.
    assert [each.row() for each in second if isinstance(each, RunOutcome)] == [
        each.row() for each in first if isinstance(each, RunOutcome)
    ]
    assert told.ended == list(enumerate(second))
    assert told.moved == []
    assert sorted(path.name for path in TRACES.iterdir()) == sorted(f"{job.stem}.npz" for job in JOBS)


def test_results_come_in_the_order_of_the_jobs(fake: Fake) -> None:
    all_of(JOBS[3:4])
    found, told = all_of(JOBS[::-1], watcher=(seen := Told()).watcher), [(each.seed, each.arm) for each in JOBS[::-1]]
    assert [(each.seed, each.arm) for each in found if isinstance(each, RunOutcome)] == told
    assert [number for number, _ in seen.ended] == list(range(6))
    assert set(seen.moved) == {(number, steps) for number in (0, 1, 3, 4, 5) for steps in (10, 30)}
    assert len(fake.ran) == 6


def test_thresholds_are_read_from_the_run_that_is_kept(fake: Fake) -> None:
    (first,) = all_of(JOBS[:1])
    other = replace(JOBS[0], experiment=replace(JOBS[0].experiment, thresholds=(0.5, 0.01), calibration=3))
    (second,) = all_of([other])
    assert len(fake.ran) == 1
    assert isinstance(first, RunOutcome)
    assert isinstance(second, RunOutcome)
    assert list(second.stops) == ["0.5", "0.01"]
    assert second.error.tolist() == first.error.tolist()
    # A setting that matters: run again, over the file that was there.
    all_of([replace(JOBS[0], experiment=replace(JOBS[0].experiment, noise_floor=0.2))])
    assert len(fake.ran) == 2
    assert kept(JOBS[0], TRACES) is None


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "words": lambda content: b"this is no run",
    "half": lambda content: content[: len(content) // 2],
    "last byte lost": lambda content: content[:-1],
}


@pytest.mark.parametrize("damage", list(DAMAGES))
def test_a_damaged_file_is_run_again(fake: Fake, damage: str) -> None:
    first, path = all_of(JOBS[:2]), TRACES / f"{JOBS[0].stem}.npz"
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    assert rows(all_of(JOBS[:2])) == rows(first)
    assert fake.ran == [("gpr/protein", 1), ("gpr/protein", 2), ("gpr/protein", 1)]
    assert kept(JOBS[0], TRACES) is not None


def run_again_with_wrong_bytes(job: PaperRun, places: Callable[[bytes], range]) -> None:
    """One byte wrong at a time: whatever it does to the file, what comes of the job is the same."""
    first, path = all_of([job]), TRACES / f"{job.stem}.npz"
    whole = path.read_bytes()
    for place in places(whole):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        assert rows(all_of([job])) == rows(first)


def test_a_file_with_one_wrong_byte_is_run_again(fake: Fake) -> None:
    run_again_with_wrong_bytes(JOBS[0], lambda whole: range(0, len(whole), 13))
    assert len(fake.ran) > 100


@pytest.mark.parametrize(
    ("job", "name"), [(JOBS[2], b"relearned_0"), (*plan([PUBLISHED["bdnn/mnist"]]), b"measure_published_error")]
)
def test_a_file_with_a_wrong_byte_in_a_name_is_run_again(fake: Fake, job: PaperRun, name: bytes) -> None:
    # The list of contents, with the names, is at the end of the file.
    run_again_with_wrong_bytes(job, lambda whole: range(at := whole.rindex(name), at + len(name)))
    assert len(fake.ran) == 1 + len(name)


def test_a_file_of_somebody_else_is_run_again(fake: Fake) -> None:
    first = all_of(JOBS[:2])
    (TRACES / f"{JOBS[1].stem}.npz").replace(TRACES / f"{JOBS[0].stem}.npz")
    assert rows(all_of(JOBS[:2])) == rows(first)
    assert len(fake.ran) == 4
    Trace.of_divergences([0.1], [0.1], first=1).save(TRACES / f"{JOBS[0].stem}.npz")
    assert rows(all_of(JOBS[:1])) == rows(first[:1])
    np.savez(TRACES / f"{JOBS[0].stem}.npz", numbers=np.arange(3))
    assert rows(all_of(JOBS[:1])) == rows(first[:1])
    assert len(fake.ran) == 6


def test_a_run_that_cannot_be_done_does_not_stop_the_others(fake: Fake) -> None:
    fake.problem = {"gpr/protein": SufficeError("no more room")}
    found = all_of(JOBS, watcher=(told := Told()).watcher)
    assert [type(each) for each in found] == [SkippedRun] * 2 + [RunOutcome] * 4
    assert found[0] == SkippedRun(JOBS[0], "no more room")
    assert told.ended == list(enumerate(found))
    # It is tried again the next time, and the others are not.
    fake.problem = {}
    assert len(rows(all_of(JOBS))) == 6
    assert len(fake.ran) == 8


def test_a_network_has_a_checkpoint_until_it_is_done(fake: Fake) -> None:
    (job,) = plan([PUBLISHED["bdnn/mnist"]])
    fake.problem = {"bdnn/mnist": SufficeError("diverged")}
    assert isinstance(all_of([job])[0], SkippedRun)
    assert fake.checkpoints == [TRACES / f"{job.stem}.checkpoint"]
    assert (TRACES / f"{job.stem}.checkpoint").exists()
    fake.problem = {}
    all_of([job, JOBS[0]])
    assert fake.checkpoints[-1] is None
    assert not (TRACES / f"{job.stem}.checkpoint").exists()


def test_a_run_of_before_that_did_not_keep_its_time(fake: Fake) -> None:
    (first,) = all_of(JOBS[:1])
    path = TRACES / f"{JOBS[0].stem}.npz"
    trace = Trace.load(path)
    replace(trace, about={"identity": trace.about["identity"]}).save(path)
    again = measured_run(JOBS[0], TRACES)
    assert isinstance(first, RunOutcome)
    assert again.row() == {**first.row(), "seconds": 0.0}
    assert len(fake.ran) == 1


def test_a_run_that_is_only_measured_otherwise_is_not_run_again(fake: Fake) -> None:
    for base in (JOBS[0], *plan([PUBLISHED["bdnn/mnist"]])):
        shared = [job for _, job in erratum_runs(base) if job.shared]
        assert shared
        before = len(fake.ran)
        as_published, *others = all_of([base, *shared])
        assert len(fake.ran) == before + 1
        assert isinstance(as_published, RunOutcome)
        for job, each in zip(shared, others, strict=True):
            assert isinstance(each, RunOutcome)
            found = (each.ratio.tolist(), each.error.tolist())
            assert found != (as_published.ratio.tolist(), as_published.error.tolist()), job.name
    assert len(list(TRACES.iterdir())) == 2


@pytest.mark.usefixtures("fake")
def test_a_folder_that_cannot_be_made() -> None:
    TRACES.write_text("a file")
    with pytest.raises(SufficeError, match="the runs cannot be kept in traces: File exists"):
        all_of(JOBS)


def test_how_long_a_run_took_is_kept(fake: Fake) -> None:
    TRACES.mkdir()
    first, again = measured_run(JOBS[0], TRACES, lambda *_: None), measured_run(JOBS[0], TRACES)
    assert first.row() == again.row()
    assert len(fake.ran) == 1


# ------------------------------------------------------------------------------------------------ data sets that fail


@pytest.fixture
def small_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A data folder in which protein, made small, is all there is; and runs that need no data."""
    content = b"1 2 3 4 5 6 7 8 9 10\n"
    file = DataFile("uci/protein.txt", hashlib.sha256(content).hexdigest(), len(content), ())
    monkeypatch.setattr(catalogue, "SETS", {**SETS, "protein": replace(SETS["protein"], files=(file,))})
    monkeypatch.setattr(planning, "run_experiment", Fake())
    monkeypatch.setenv("SUFFICE_DATA", str(tmp_path / "data"))
    path = tmp_path / "data" / "uci" / "protein.txt"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.usefixtures("small_set")
def test_a_data_set_that_is_missing_is_named_and_the_others_go_on(workers: int) -> None:
    jobs = [JOBS[2], JOBS[0], JOBS[4]]
    found = all_of(jobs, workers, (told := Told()).watcher)
    assert [type(each) for each in found] == [SkippedRun, RunOutcome, SkippedRun]
    for each in (found[0], found[2]):
        assert isinstance(each, SkippedRun)
        assert "data set skin" in each.reason
        assert "is missing" in each.reason
        assert "suffice data fetch skin" in each.reason
    assert sorted(number for number, _ in told.ended) == [0, 1, 2]


def test_a_data_set_that_is_damaged_is_told_with_both_checksums(small_set: Path) -> None:
    right = hashlib.sha256(small_set.read_bytes()).hexdigest()
    small_set.write_bytes(b"1 2 3 4 5 6 7 8 9 11\n")
    (found,) = all_of(JOBS[:1])
    assert isinstance(found, SkippedRun)
    assert right in found.reason
    assert hashlib.sha256(small_set.read_bytes()).hexdigest() in found.reason
    assert "protein" in found.reason


def test_a_run_that_is_kept_needs_no_data(small_set: Path) -> None:
    first = all_of(JOBS[:2])
    small_set.unlink()
    assert rows(all_of(JOBS[:2])) == rows(first)
