"""Rows that are added to a project, and rows that are predicted: features, atomicity, other processes, guarantees."""

import csv
import gzip
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from suffice.errors import InvalidValueError, SufficeError
from suffice.project import journal as journal_module
from suffice.project.background_learner import BackgroundLearner
from suffice.project.create import create_project, open_project
from suffice.project.events import EventKind
from suffice.project.incoming_rows import write_predictions
from suffice.project.labelling_project import ConflictError, Project
from suffice.project.learned_project import learned_project
from suffice.project.project_contents import ProjectContents
from tests.project.making_projects import make

FUELS = ("gas", "diesel", "electric", "")


def cars(n: int, seed: int = 0) -> dict[str, list[Any]]:
    rng = np.random.default_rng(seed)
    power = rng.normal(100.0, 20.0, n).round(2)
    return {
        "name": [f"car {seed}-{k}" for k in range(n)],
        "power": [None if k % 17 == 3 else float(x) for k, x in enumerate(power)],
        "fuel": [FUELS[k % 4] for k in rng.integers(0, 4, n)],
        "text": [f"a {FUELS[k % 3]} car of {int(x)} horses \x85 number {k % 5}" for k, x in enumerate(power)],
    }


def right(power: float | None) -> str:
    return "strong" if power is not None and power > 100.0 else "weak"


def label_some(project: Project, data: dict[str, list[Any]], n: int = 40) -> None:
    for item in range(n):
        project.label(item, right(data["power"][item]), person="ann")


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with labels, which is copied for each test."""
    data, place = cars(120), tmp_path_factory.mktemp("unchanged") / "cars"
    with create_project(place, data, classes=["weak", "strong"], id="name", target="kind") as made:
        label_some(made, data)
    return place


@pytest.fixture
def project(unchanged: Path, tmp_path: Path) -> Iterator[Project]:
    with open_project(shutil.copytree(unchanged, tmp_path / "cars")) as opened:
        yield opened


def test_the_transformer_makes_the_features_of_the_project(project: Project) -> None:
    data = cars(120)
    made = project.transformer().transform(data)
    # Control characters are replaced before features are made.
    clean = data | {"text": [text.replace("\x85", "…") for text in data["text"]]}
    np.testing.assert_allclose(project.transformer().transform(clean), project.X, atol=1e-9)
    assert made.shape == project.X.shape


@pytest.mark.parametrize(
    "options",
    [
        {"classes": ["a", "b"], "text": "text"},
        {"classes": ["a", "b"], "ignore": ["text", "fuel"]},
        {"regression": True},
        {"regression": True, "text": "fuel", "model": "ridge"},
    ],
)
def test_features_are_made_again_however_the_data_was_read(
    tmp_path: Path, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    clean = {name: values for name, values in cars(80).items() if name != "name"}
    clean["text"] = [text.replace("\x85", "") for text in clean["text"]]
    with create_project(tmp_path / "p", clean, **options) as project:
        kept = {name: clean[name] for name in project.settings.columns}
        np.testing.assert_allclose(project.transformer().transform(kept), project.X, atol=1e-9)
        # Projects of older versions do not say how their data was read.
        project.contents._transformer = None
        monkeypatch.setattr(ProjectContents, "made_with", {})
        np.testing.assert_allclose(project.transformer().transform(kept), project.X, atol=1e-9)


def test_decimal_commas_are_read_again(tmp_path: Path) -> None:
    file = tmp_path / "cars.csv"
    file.write_text("power;fuel\n" + "".join(f"{k},5;{FUELS[k % 3]}\n" for k in range(40)))
    with create_project(tmp_path / "p", file, regression=True) as project:
        more = tmp_path / "more.csv"
        more.write_text("power;fuel\n3,5;gas\n100,25;\n")
        assert project.add_items(more, person="ann") == 2
        np.testing.assert_allclose(project.X[40], project.X[3])


def test_images_are_predicted_and_added(tmp_path: Path) -> None:
    pillow = pytest.importorskip("PIL.Image")
    folder = tmp_path / "images"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for k in range(24):
        pixels = np.full((16, 16, 3), 40 if k % 2 else 200, np.uint8) + rng.integers(0, 20, (16, 16, 3), np.uint8)
        pillow.fromarray(pixels).save(folder / f"i{k:02}.png")
    with create_project(tmp_path / "p", folder, classes=["dark", "light"]) as project:
        for item in range(20):
            project.label(item, "dark" if item % 2 else "light", person="ann")
        pillow.fromarray(np.full((16, 16, 3), 45, np.uint8)).save(folder / "new.png")
        out = tmp_path / "out.csv"
        assert write_predictions(project, folder, out) == 25
        rows = list(csv.DictReader(out.read_text(encoding="utf-8").splitlines()))
        assert rows[-1]["image"] == "new.png"
        assert rows[-1]["label"] == "dark"
        more = folder / "more.csv"
        more.write_text("image\nnew.png\n")
        assert project.add_items(more, person="ann") == 1
        assert project.item(24).image == "new.png"
        outside = tmp_path / "elsewhere.csv"
        outside.write_text("image\nimages/new.png\n")
        assert project.add_items(outside, person="ann", check=True) == 1
        outside.write_text("image\nother.png\n")
        with pytest.raises(InvalidValueError, match="there is no image"):
            project.add_items(outside, person="ann")


def test_rows_are_added_with_features_labels_and_names(project: Project, tmp_path: Path) -> None:
    more = cars(30, seed=1)
    more["kind"] = ["strong" if k == 4 else "" for k in range(30)]
    file = tmp_path / "more.csv"
    pd.DataFrame(more).to_csv(file, index=False)
    assert project.add_items(file, person="bob", check=True) == 30
    assert project.size == 120
    assert project.add_items(file, person="bob") == 30
    assert (project.size, len(project.X), project.n_items_made) == (150, 150, 120)
    assert project.item(124).id == "car 1-4"
    state = project.state()
    assert (state.label_of(124), state.left) == ("strong", 109)
    clean = more | {"text": [text.replace("\x85", "…") for text in more["text"]]}
    np.testing.assert_allclose(project.X[120:], project.transformer().transform(clean))
    event = next(event for event in project.events() if event.kind is EventKind.items_added)
    assert (event.person, event.data) == ("bob", {"first": 120, "count": 30, "source": "more.csv"})
    with pytest.raises(InvalidValueError, match="the ids of 30 of 30 rows already, such as 'car 1-0'"):
        project.add_items(file, person="bob")
    # New items are asked for, and a second file comes behind.
    assert project.add_items(cars(5, seed=2), person="bob") == 5
    with open_project(project.place) as again:
        assert (again.size, again.n_items_made, again.state().left) == (155, 120, 114)
        np.testing.assert_array_equal(again.X, project.X)
        order = project.assigner.random_order(project.state())
        np.testing.assert_array_equal(again.assigner.random_order(again.state()), order)
        np.testing.assert_allclose(again.transformer().transform(clean), project.X[120:150], atol=1e-9)
        learned_project(again).predict(again.X)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data.pop("fuel"), "of which 'fuel' is missing"),
        (lambda data: data.update(kind=["odd"] * 30), "is none of the classes"),
        (lambda data: data.update(power=["many"] * 30), "power"),
        (lambda data: data.update(name=["one"] * 30), "is there twice"),
        (lambda data: data.update({name: [] for name in data}), "has no rows"),
    ],
)
def test_rows_that_cannot_be_used_change_nothing(
    project: Project, change: Callable[[dict[str, Any]], Any], message: str
) -> None:
    more, before = cars(30, seed=1), project.events()
    change(more)
    with pytest.raises(InvalidValueError, match=message):
        project.add_items(more, person="bob")
    assert (project.size, project.events()) == (120, before)


def test_whatever_goes_wrong_while_rows_are_written_nothing_is_added(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(journal_module, "write_events", fail)
    with pytest.raises(KeyboardInterrupt):
        project.add_items(cars(30, seed=1), person="bob")
    monkeypatch.undo()
    with open_project(project.place) as again:
        assert (again.size, len(again.X)) == (120, 120)
    assert project.add_items(cars(30, seed=1), person="bob") == 30


def test_others_notice_at_once(project: Project) -> None:
    with open_project(project.place) as other, BackgroundLearner(other, other.learned_files) as background:
        assert background.wait_settled(60.0)
        assert len(background.predictions().labels) == 120
        project.add_items(cars(30, seed=1), person="bob")
        assert background.wait_settled(60.0)
        assert (other.size, len(other.X), len(background.predictions().labels)) == (150, 150, 150)
        answers = other.state().learned()
        assert background.learning_status.n_answers == len(answers)
        other.label(130, "weak", person="eve")
        assert project.state().label_of(130) == "weak"
        fresh = learned_project(project)
        assert fresh.n_items == 150
        position = other.next("eve", 20)[-1].position
        assert 0 <= position < 150


def test_two_who_add_at_once_do_not_mix(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    from suffice.project import incoming_rows as module

    real = module.added_items
    with open_project(project.place) as other:

        def meanwhile(*arguments: Any, **options: Any) -> Any:
            found = real(*arguments, **options)
            monkeypatch.setattr(module, "added_items", real)
            other.add_items(cars(3, seed=5), person="eve")
            return found

        monkeypatch.setattr(module, "added_items", meanwhile)
        with pytest.raises(ConflictError, match="in this moment"):
            project.add_items(cars(30, seed=1), person="bob")
        assert project.add_items(cars(30, seed=1), person="bob") == 30
        assert project.size == 153


def test_a_guarantee_covers_the_items_that_were_there(project: Project) -> None:
    data = cars(120)
    project.start_check(20, person="ann")
    drawn = project.checks()[0].draw.items
    project.add_items(cars(10, seed=1), person="bob")
    assert project.state().checks.pending().tolist() == list(drawn)
    for item in drawn:
        project.label(item, right(data["power"][item]), person="ann")
    found = project.guarantee()
    assert found is not None
    assert (found.added, found.about_present_model) == (10, False)
    assert "It does not cover the 10 items that were added since the check was drawn." in str(found)
    assert found.check.draw.before.size == 120
    with open_project(project.place) as again:
        same = again.guarantee()
        assert same is not None
        assert same.as_dict() == found.as_dict()
        # A new check is drawn from all items.
        again.start_check(30, person="ann")
        assert again.checks()[1].draw.before.size == 130


def test_features_that_were_given_are_given_for_new_rows_too(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(40, 3))
    texts = [f"text {k}" for k in range(40)]
    with create_project(tmp_path / "p", texts, classes=["a", "b"], features=X) as project:
        with pytest.raises(SufficeError, match="were given as a file"):
            project.add_items(["one more"], person="ann")
        with pytest.raises(InvalidValueError, match="features must have the shape"):
            project.add_items(["one more"], person="ann", features=np.zeros((1, 2)))
        assert project.add_items(["one more"], person="ann", features=np.ones((1, 3))) == 1
        assert project.X[40].tolist() == [1.0, 1.0, 1.0]
        for item in range(20):
            project.label(item, "a" if X[item, 0] > 0 else "b", person="ann")
        assert project.pipeline().predict(np.array([[3.0, 0.0, 0.0], [-3.0, 0.0, 0.0]])).tolist() == ["a", "b"]
        np.save(tmp_path / "X.npy", np.array([[3.0, 0.0, 0.0], [-3.0, 0.1, 0.2]]))
        (tmp_path / "new.csv").write_text("text\nx\ny\n")
        out = tmp_path / "out.csv"
        assert write_predictions(project, tmp_path / "new.csv", out, features=tmp_path / "X.npy") == 2
        assert [row["label"] for row in csv.DictReader(out.read_text().splitlines())] == ["a", "b"]


def test_features_that_cannot_be_made_again_are_answered(tmp_path: Path) -> None:
    with make(tmp_path / "pets.suffice", 30) as project, pytest.raises(SufficeError, match="cannot be made again"):
        project.transformer()


def test_the_pipeline_predicts_as_the_project_does(project: Project) -> None:
    data = cars(120)
    frame = pd.DataFrame(data | {"text": [text.replace("\x85", "…") for text in data["text"]]})
    pipeline = project.pipeline()
    expected = learned_project(project).predict(project.X)
    assert pipeline.predict(frame).tolist() == expected.labels.tolist()
    assert expected.probabilities is not None
    columns = [pipeline.classes_.tolist().index(name) for name in project.settings.classes]
    np.testing.assert_allclose(pipeline.predict_proba(frame)[:, columns], expected.probabilities, atol=1e-9)
    before = pipeline.predict_proba(frame)
    project.label(90, "strong", person="ann")
    np.testing.assert_array_equal(pipeline.predict_proba(frame), before)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("ending", ["csv", "csv.gz", "jsonl", "parquet"])
@pytest.mark.parametrize("out", ["csv", "jsonl", "parquet"])
def test_new_rows_are_predicted_some_at_a_time(
    project: Project, tmp_path: Path, ending: str, out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from suffice.project import incoming_rows

    monkeypatch.setattr(incoming_rows, "_CHUNK", 16)
    frame = pd.DataFrame(cars(50, seed=3) | {"note": ["=1+1"] * 50})
    file, to = tmp_path / f"new.{ending}", tmp_path / f"out.{out}"
    if ending == "parquet":
        frame.to_parquet(file)
    elif ending == "jsonl":
        frame.to_json(file, orient="records", lines=True)
    else:
        frame.to_csv(file, index=False)
    format: Any = out
    assert write_predictions(project, file, to, format) == 50
    read = {"csv": pd.read_csv, "jsonl": lambda path: pd.read_json(path, lines=True), "parquet": pd.read_parquet}
    found = read[out](to)
    assert list(found) == [*frame, "kind", "uncertainty", "p(weak)", "p(strong)"]
    clean = frame.assign(text=[text.replace("\x85", "…") for text in frame["text"]])
    assert found["kind"].tolist() == project.pipeline().predict(clean).tolist()
    np.testing.assert_allclose(found["p(weak)"] + found["p(strong)"], 1.0)


@pytest.mark.slow
def test_large_files_are_read_as_small_ones_are(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from suffice.tables import file_content

    frame = pd.DataFrame(cars(50, seed=3))
    file = tmp_path / "new.csv"
    frame.to_csv(file, index=False, sep=";")
    write_predictions(project, file, tmp_path / "small.csv")
    monkeypatch.setattr(file_content, "_WHOLE_FILE", 0)
    packed = tmp_path / "new.csv.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    for source in (file, packed):
        write_predictions(project, source, tmp_path / "large.csv")
        assert (tmp_path / "large.csv").read_bytes() == (tmp_path / "small.csv").read_bytes()
    for text, message in (
        ("", "column names"),
        ("power,fuel,text\n", "one line only"),
        ("power,fuel,text\n1,gas\n", "the number of cells is 2"),
    ):
        file.write_text(text)
        with pytest.raises(InvalidValueError):
            write_predictions(project, file, tmp_path / "large.csv")
        del message
    file.write_bytes(b"power,fuel,text\n1,gas,\xff\n")
    with pytest.raises(InvalidValueError, match="UTF-8"):
        write_predictions(project, file, tmp_path / "large.csv")
    with pytest.raises(InvalidValueError, match="there is no file"):
        write_predictions(project, tmp_path / "none.csv", tmp_path / "large.csv")
    (tmp_path / "few.csv").write_text("power\n1\n2\n")
    with pytest.raises(InvalidValueError, match="must have the columns of the project"):
        write_predictions(project, tmp_path / "few.csv", tmp_path / "large.csv")


def test_changed_classes_do_not_matter_to_the_features(project: Project) -> None:
    project.change_classes(["weak", "strong", "huge"], person="ann")
    assert project.add_items(cars(4, seed=1) | {"kind": ["huge", "", "", "strong"]}, person="ann") == 4
    assert project.state().label_of(120) == "huge"
    assert set(project.pipeline().classes_.tolist()) == {"weak", "strong", "huge"}
