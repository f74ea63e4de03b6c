"""Features that are computed after a project is made: equal to those computed at once, also after a kill."""

import json
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from suffice import ErrorStability
from suffice.cli.app import app
from suffice.errors import InvalidValueError
from suffice.project import item_features, storage
from suffice.project.background_learner import BackgroundLearner
from suffice.project.create import create_project, open_project
from suffice.project.labelling_project import Project
from suffice.project.learned_project import learned_project
from suffice.project.repair import repair_project
from suffice.project.status_summary import status
from tests.processes import ForkedProcess, run_suffice
from tests.project.test_new_rows import cars, right

LONG = 60.0
ROWS = 60


def words(n: int = ROWS) -> dict[str, list[str]]:
    rng = np.random.default_rng(3)
    return {"body": [" ".join(f"word{k}" for k in rng.integers(0, 40, 12)) for _ in range(n)]}


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows suffice for features that are computed later."""
    monkeypatch.setattr(item_features, "FEWEST_DEFERRED", 10)


def seen(project: Project) -> dict[str, Any]:
    """Everything about a project that must not depend on when its features were computed."""
    asked = [project.next("ann", 3), project.next("bob", 2)]
    for assignment in asked[0]:
        project.label(assignment.position, project.settings.classes[assignment.position % 2], person="ann")
    asked.append(project.next("ann", 20))
    X = np.array(project.X)
    return {
        "items": [[(each.position, each.why, each.random) for each in some] for some in asked],
        "features": X.tobytes(),
        "shape": X.shape,
        "settings": project.settings.as_dict(),
    }


@pytest.mark.usefixtures("later")
@pytest.mark.parametrize(
    ("data", "options"),
    [
        (cars(ROWS), {"id": "name", "classes": ["a", "b"]}),
        (cars(ROWS), {"id": "name", "text": "fuel", "model": "kernel", "classes": ["a", "b"]}),
        (words(), {"at_most": 0.1, "of": "all", "classes": ["a", "b"]}),
        (words(), {"positive": "a", "classes": ["a", "b"]}),
        (
            {f"x{k}": np.random.default_rng(k).normal(size=ROWS) for k in range(40)},
            {"classes": [str(k) for k in range(60)]},
        ),
    ],
    ids=["table", "named model", "goal", "screening", "more columns than a model uses"],
)
def test_features_later_are_those_computed_at_once(
    data: Any, options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "p"
    with create_project(place, data, seed=5, **options) as project:
        missing = [project.features_missing]
        found = seen(project)
        assert [*missing, project.features_missing] == [True, False]
    # Nobody has changed settings.
    assert "(features computed)." in CliRunner().invoke(app, ["status", str(place)]).output.replace("\n", " ")
    with open_project(place) as again:
        assert not again.features_missing
        assert again.settings_editor.history() == []
        assert again.X.tobytes() == found["features"]
        assert again.settings.as_dict() == found["settings"]
    shutil.rmtree(place)
    monkeypatch.setattr(item_features, "FEWEST_DEFERRED", 10**9)
    with create_project(place, data, seed=5, **options) as project:
        assert not project.features_missing
        assert seen(project) == found


@pytest.mark.usefixtures("later")
def test_features_are_computed_at_once_where_they_may_not_be_the_same_later(tmp_path: Path) -> None:
    commas = tmp_path / "commas.csv"
    commas.write_text("x;y\n" + "".join(f"{k},5;{k % 7}\n" for k in range(40)))
    with create_project(tmp_path / "a", commas, classes=["a", "b"]) as project:
        assert project.features_missing
        numbers = np.arange(40) + 0.5
        np.testing.assert_allclose(project.X[:, 0], (numbers - numbers.mean()) / numbers.std())
    # A stored cell has fewer digits than a number in memory of another type may have.
    values = np.float32(0.1) * np.arange(40, dtype=np.float32)
    with create_project(tmp_path / "b", {"x": values}, classes=["a", "b"]) as project:
        once = project.X[:, 0]
        exact = values.astype(np.float64)
        np.testing.assert_allclose(once, (exact - exact.mean()) / exact.std(), rtol=1e-9)
    with pytest.raises(InvalidValueError, match="use no column"):
        create_project(tmp_path / "c", {"t": ["." * k for k in range(1, 41)]}, classes=["a", "b"], text="t")
    assert not (tmp_path / "c").exists()
    # The rule needs a number that the model for many columns does not give.
    wide: dict[str, Any] = {f"x{k}": np.random.default_rng(k).normal(size=40) for k in range(3)}
    with create_project(tmp_path / "d", wide, classes=["a", "b"], rule=ErrorStability(0.1)) as project:
        assert project.settings.criterion().state_dict() == ErrorStability(0.1).state_dict()
        assert project.X.shape == (40, 3)


def test_features_of_images_later_are_those_computed_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pillow: Any = pytest.importorskip("PIL.Image", reason="images: Pillow is not installed")
    folder, rng = tmp_path / "pictures", np.random.default_rng(0)
    folder.mkdir()
    for k in range(20):
        pillow.fromarray(rng.integers(0, 255, (20, 24, 3), dtype=np.uint8)).save(folder / f"{k}.png")
    table = folder / "t.csv"
    table.write_text("photo,n\n" + "".join(f"{k}.png,{k % 3}\n" for k in range(20)))
    cases: list[tuple[Path, dict[str, Any]]] = [(folder, {}), (table, {"image": "photo"})]
    for data, options in cases:
        found = []
        for fewest in (10, 10**9):
            monkeypatch.setattr(item_features, "FEWEST_DEFERRED", fewest)
            with create_project(tmp_path / "p", data, classes=["a", "b"], seed=5, **options) as project:
                assert project.features_missing == (fewest == 10)
                found.append(seen(project))
            shutil.rmtree(tmp_path / "p")
        assert found[0] == found[1]
    monkeypatch.setattr(item_features, "FEWEST_DEFERRED", 10)
    (folder / "7.png").write_text("no image")
    with pytest.raises(InvalidValueError, match=r"7\.png cannot be read"):
        create_project(tmp_path / "p", folder, classes=["a", "b"])
    assert not (tmp_path / "p").exists()


def worker() -> None:
    """Compute the features of a project, and wait at a point of it to be killed."""
    place, point = sys.argv[1:]

    def wait(*_: Any) -> Any:
        print("here", flush=True)
        threading.Event().wait()

    if point == "computing":
        item_features.limited = wait  # type: ignore[assignment]
    elif point == "writing":
        # Between two blocks of the features, within the transaction.
        storage._BLOCK = 8 * 100
        block_checksum, blocks = storage.block_checksum, []

        def second(*values: Any) -> int:
            blocks.append(values)
            return wait() if len(blocks) > 1 else block_checksum(*values)

        storage.block_checksum = second  # type: ignore[assignment]
    else:
        item_features.keep_transformer = wait  # type: ignore[assignment]
    with open_project(place) as project:
        background = BackgroundLearner(project, project.learned_files)
        background.start()
        threading.Event().wait()


@pytest.mark.parametrize("point", ["computing", "writing", "written"])
def test_a_kill_while_features_are_computed_loses_nothing(point: str, tmp_path: Path) -> None:
    place, data = tmp_path / "p", {name: cars(600)[name] for name in ("power", "fuel")}
    with create_project(place, data, classes=["a", "b"], seed=5) as project:
        assert project.features_missing
        expected = seen(project)
    shutil.rmtree(place)
    create_project(place, data, classes=["a", "b"], seed=5).close()
    with ForkedProcess(f"{__name__}:worker", [str(place), point], modules=[__name__], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "here\n"
        child.send_signal(signal.SIGKILL)
        child.wait(LONG)
    assert repair_project(place, check=True).intact
    with open_project(place) as project:
        assert project.features_missing == (point != "written")
        assert seen(project) == expected
    assert repair_project(place, check=True).intact


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Features are computed once this event is set."""
    let_go, compute = threading.Event(), item_features.computed_features

    def wait(project: Any) -> Any:
        assert let_go.wait(LONG)
        return compute(project)

    monkeypatch.setattr(item_features, "FEWEST_DEFERRED", 10)
    monkeypatch.setattr(item_features, "computed_features", wait)
    yield let_go
    let_go.set()


def test_people_label_random_items_while_features_are_computed(tmp_path: Path, held: threading.Event) -> None:
    data = cars(ROWS)
    with create_project(tmp_path / "p", data, classes=["weak", "strong"], id="name", seed=5) as project:
        order = project.assigner.random_order(project.state()).tolist()
        with BackgroundLearner(project, project.learned_files) as background:
            given = []
            for _ in range(14):
                (asked,) = project.next("ann", queue=background.learning_status.queue)
                project.label(asked.position, right(data["power"][asked.position]), person="ann")
                given.append(asked)
            background.wake()
            assert not background.wait(14, LONG)
            assert [each.position for each in given] == order[:14]
            assert all(each.random for each in given)
            told = status(project, background.learning_status)
            assert "the features of the items are being computed" in told["words"][0]
            assert told["problem"] == ""
            with pytest.raises(Exception, match="features of the items are being computed"):
                background.predictions()
            held.set()
            end = time.monotonic() + LONG
            while not background.wait_settled(LONG):
                assert time.monotonic() < end
                time.sleep(0.05)
            learned = background.learning_status
            assert learned.n_labelled == 14
            assert learned.queue
        assert learned_project(project).learning_status().verdict == learned.verdict


@pytest.mark.usefixtures("later")
def test_features_that_cannot_be_computed_do_not_stop_the_labelling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Any) -> Any:
        raise InvalidValueError("the model can use no column")

    monkeypatch.setattr(item_features, "computed_features", fail)
    with create_project(tmp_path / "p", cars(ROWS), classes=["a", "b"], id="name") as project:
        with BackgroundLearner(project) as background:
            assert not background.wait_settled(LONG)
            (asked,) = project.next("ann")
            project.label(asked.position, "a", person="ann")
            assert background.gave_up
            end = time.monotonic() + LONG
            while not background.learning_status.problem:
                assert time.monotonic() < end
                time.sleep(0.05)
        assert "the model can use no column" in background.learning_status.problem
        monkeypatch.undo()
        assert project.X.shape[0] == ROWS


def test_a_command_computes_features_or_says_that_they_are_missing(tmp_path: Path) -> None:
    data = {name: cars(510)[name] for name in ("power", "fuel")}
    with create_project(tmp_path / "p.suffice", data, classes=["a", "b"], seed=5) as project:
        for item in range(12):
            project.label(item, "ab"[item % 2], person="ann")
    told = json.loads(run_suffice("status", str(tmp_path / "p.suffice"), "--json").stdout)
    assert told["n_labelled"] == 12
    assert "features of the items are computed while people label" in told["problem"]
    with open_project(tmp_path / "p.suffice") as project:
        assert project.features_missing
    rows = tmp_path / "new.csv"
    rows.write_text("power,fuel\n90.5,gas\n,diesel\n")
    out = tmp_path / "out.jsonl"
    run_suffice("predict", str(tmp_path / "p.suffice"), str(rows), "-o", str(out))
    assert len(out.read_text().splitlines()) == 2
    with open_project(tmp_path / "p.suffice") as project:
        assert not project.features_missing


@pytest.mark.usefixtures("later")
def test_a_repaired_project_computes_lost_features_again(tmp_path: Path) -> None:
    place = tmp_path / "p"
    with create_project(place, words(), classes=["a", "b"], seed=5) as project:
        X = project.X
        event = project.state().seq
        project.label(0, "a", person="ann")
    with sqlite3.connect(place / "project.sqlite") as connection:
        connection.execute("UPDATE events SET data = '{}' WHERE seq = ?", (event,))
    report = repair_project(place)
    assert report.repaired
    assert report.lost_events == (event,)
    with open_project(place) as project:
        assert project.features_missing
        assert project.X.tobytes() == X.tobytes()
    with open_project(place) as project:
        assert not project.features_missing
        assert project.X.tobytes() == X.tobytes()


def test_labels_of_a_script_are_learned_before_the_command_ends(tmp_path: Path) -> None:
    data, table = cars(510), tmp_path / "cars.csv"
    lines = [f"{power or ''},{fuel}" for power, fuel in zip(data["power"], data["fuel"], strict=True)]
    table.write_text("power,fuel\n" + "\n".join(lines) + "\n")
    place = ("--project", str(tmp_path / "p.suffice"))
    done = run_suffice("label", str(table), "--classes", "a,b", *place, "--json", lines="a\nb\n" * 6)
    told = json.loads(done.stdout)
    assert told["n_labelled"] == told["learned"] == 12
    assert told["verdict"]["rule"] == "LabelWorth"
