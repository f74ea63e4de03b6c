"""A project from Python in one call: the same as the command makes, and errors that say what to do."""

import subprocess
import sys
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import suffice as sf
from suffice.cli.project_options import ProjectOptions, made
from suffice.cli.settings_options import settings_of
from suffice.errors import InvalidTypeError, InvalidValueError, SufficeError
from suffice.project import ConflictError, CreationOptions, create_project, open_project
from suffice.project.labelling_project import Project
from suffice.project.project_learner import ProjectLearner

pandas = pytest.importorskip("pandas")

TEXTS = [
    "win a free prize now", "see you at lunch today", "free money if you click", "are you home yet",
    "claim your free gift card", "the meeting is at noon",
]  # fmt: skip
CLASSES = ["spam", "ham"]
VALUE, TYPE = InvalidValueError, InvalidTypeError


def frame(n: int = 30) -> Any:
    rng = np.random.default_rng(0)
    size = rng.normal(size=n).round(3)
    return pandas.DataFrame(
        {
            "name": [f"car {k}" for k in range(n)],
            "size": size,
            "fuel": rng.choice(["gas", "diesel"], size=n),
            "doors": rng.integers(2, 6, size=n),
            "ok": [("yes" if size[k] > 0 else "no") if k < 8 else None for k in range(n)],
        }
    )


def contents(project: Project) -> dict[str, Any]:
    with project.lock:
        labels = project.state().answers()
    return {
        "items": [(each.id, each.cells, each.image) for each in project.items(range(project.size))],
        "labels": labels,
        "settings": project.settings.as_dict() | {"name": "", "source": ""},
    }


def test_a_list_of_texts(tmp_path: Path) -> None:
    with create_project(tmp_path / "mails.suffice", TEXTS, classes=CLASSES) as project:
        settings = project.settings
        assert project.size == 6
        assert project.item(1).cells == (("text", TEXTS[1]),)
        assert (settings.shown, settings.main, settings.classes) == ("text", "text", ("spam", "ham"))
        assert (settings.model, settings.name, settings.target, settings.initial) == ("logistic", "mails", "label", 6)
        assert settings.criterion() == sf.LabelWorth()
        project.label(0, "spam", person="ann")
    with open_project(str(tmp_path / "mails.suffice")) as project:
        assert project.state().label_of(0) == "spam"


def test_options_as_one_object(tmp_path: Path) -> None:
    options = CreationOptions(classes=CLASSES, seed=3, mistake_cost=5.0)
    with (
        create_project(tmp_path / "a", TEXTS, options) as first,
        create_project(tmp_path / "b", TEXTS, classes=CLASSES, seed=3, mistake_cost=5.0) as second,
    ):
        assert contents(first) == contents(second)
    with pytest.raises(InvalidTypeError, match="seed is a field of options, which are given too"):
        create_project(tmp_path / "c", TEXTS, options, seed=4)
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        create_project(tmp_path / "c", TEXTS, colour="red")
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("data", [tuple(TEXTS), np.array(TEXTS), pandas.Series(TEXTS), {"text": TEXTS}])
def test_other_kinds_of_texts_are_the_same(tmp_path: Path, data: Any) -> None:
    with (
        create_project(tmp_path / "a", TEXTS, classes=CLASSES) as first,
        create_project(tmp_path / "b", data, classes=CLASSES, text="text") as second,
    ):
        assert contents(first) == contents(second)
        np.testing.assert_array_equal(first.X, second.X)


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ({"target": "ok", "id": "name"}, {"target": "ok", "id": "name"}),
        (
            {"classes": ["no", "yes"], "ignore": ["ok", "doors"], "initial": 5, "overlap": 0.25, "seed": 3},
            {"classes": "no,yes", "ignore": ["ok", "doors"], "initial": 5, "overlap": 0.25, "seed": 3},
        ),
        (
            {"classes": ["no", "yes"], "ignore": "ok", "random_share": 0.0},
            {"classes": "no,yes", "ignore": ["ok"], "random_share": 0.0},
        ),
        (
            {"target": "size", "regression": True, "ignore": "ok"},
            {"target": "size", "regression": True, "ignore": ["ok"]},
        ),
    ],
)
def test_a_frame_a_file_and_the_command_make_the_same_project(
    tmp_path: Path, arguments: dict[str, Any], options: dict[str, Any]
) -> None:
    file = tmp_path / "cars.csv"
    frame().to_csv(file, index=False)
    with (
        create_project(tmp_path / "frame", frame(), **arguments) as of_frame,
        create_project(tmp_path / "file", file, **arguments) as of_file,
        made(
            str(tmp_path / "command"),
            settings_of(ProjectOptions, data=str(file), **options),
            "",
            Console(quiet=True),
        ) as by_command,
    ):
        assert contents(of_frame) == contents(of_file) == contents(by_command)
        np.testing.assert_array_equal(of_frame.X, of_file.X)
        np.testing.assert_array_equal(of_file.X, by_command.X)
        assert (of_frame.settings.name, of_file.settings.name, of_file.settings.source) == ("frame", *["cars.csv"] * 2)


def test_missing_labels_are_items_to_label(tmp_path: Path) -> None:
    data = pandas.DataFrame({"x": np.arange(12.0), "grade": [1, 2, np.nan, 2] * 3})
    with create_project(tmp_path / "p", data, target="grade") as project, project.lock:
        state = project.state()
        assert project.settings.classes == ("1", "2")
        assert [state.label_of(k) for k in range(4)] == ["1", "2", None, "2"]
        # A whole number is shown as one, and a missing value as nothing.
        assert project.item(2).cells == (("x", "2"),)


def test_missing_cells_and_dates(tmp_path: Path) -> None:
    data = pandas.DataFrame(
        {
            "day": pandas.to_datetime(["2024-01-02", None, "2024-01-04"]),
            "count": pandas.array([1, None, 3], dtype="Int64"),
            "word": ["a", None, "b"],
            "true": [True, False, True],
        }
    )
    with create_project(tmp_path / "p", data, classes=[0, 1]) as project:
        assert [value for _, value in project.item(1).cells] == ["", "", "", "False"]
        assert [value for _, value in project.item(0).cells] == ["2024-01-02T00:00:00", "1", "a", "True"]
        assert project.settings.classes == ("0", "1")


def test_polars(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    data = polars.DataFrame({"x": [1.5, None, 3.0], "word": ["a", "b", None]})
    with create_project(tmp_path / "p", data, classes=CLASSES) as project:
        assert [value for _, value in project.item(1).cells] == ["", "b"]


def test_anything_with_the_methods_of_polars(tmp_path: Path) -> None:
    data = SimpleNamespace(columns=["x", "y"], get_columns=lambda: [[1, 2, 3], [0.5, None, 1.5]])
    with create_project(tmp_path / "p", data, classes=CLASSES) as project:
        assert project.item(1).cells == (("x", "2"), ("y", ""))


def test_features_of_ones_own(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(6, 3))
    np.save(tmp_path / "own.npy", X)
    with (
        create_project(tmp_path / "a", TEXTS, classes=CLASSES, features=X) as first,
        create_project(tmp_path / "b", TEXTS, classes=CLASSES, features=tmp_path / "own.npy") as second,
    ):
        np.testing.assert_array_equal(first.X, X)
        np.testing.assert_array_equal(second.X, X)


def test_images(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    folder = tmp_path / "photos"
    folder.mkdir()
    for k in range(4):
        image.new("RGB", (8, 8), (60 * k, 0, 255 - 60 * k)).save(folder / f"{k}.png")
    with create_project(tmp_path / "p", folder, classes=CLASSES) as project:
        assert (project.size, project.settings.shown, project.settings.root) == (4, "image", str(folder.resolve()))


def test_a_rule_and_a_whole_loop(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    data = pandas.DataFrame({"a": rng.normal(size=60), "b": rng.normal(size=60)})
    seen = sf.Budget(14)
    seen.observe(sf.Step(n_labelled=20, kl_new_old=0.1, kl_old_new=0.1))
    rule = sf.ErrorStability(0.001) | seen
    with create_project(
        tmp_path / "p", data, regression=True, target="y", model="ridge", rule=rule, person="ann"
    ) as project:
        assert project.settings.criterion() == sf.ErrorStability(0.001) | sf.Budget(14)
        learner = ProjectLearner(project.settings, project.X)
        while not (found := learner.learning_status(queue=1)).verdict or not found.verdict.stop:
            [asked] = project.next("ann", queue=found.queue)
            project.label(asked.position, float(data["a"][asked.position]), person="ann")
            learner.follow(project.state().answers())
        assert found.n_labelled == 14


@pytest.mark.parametrize(
    ("data", "arguments", "error", "said"),
    [
        ([], {"classes": CLASSES}, VALUE, "the data has no rows; at least 2 items are required"),
        (["one"], {"classes": CLASSES}, VALUE, "the data holds 1 item; at least 2 are required"),
        ([*TEXTS, 7], {"classes": CLASSES}, TYPE, "item 6 is a int"),
        (np.zeros((4, 2)), {"classes": CLASSES}, TYPE, "put tables into a DataFrame"),
        (7, {"classes": CLASSES}, TYPE, "data must be a DataFrame, a list of texts, or the path"),
        ({}, {"classes": CLASSES}, VALUE, "the data has no columns"),
        ({"a": [1, 2], "b": [1]}, {"classes": CLASSES}, VALUE, "same length; the lengths are {'a': 2, 'b': 1}"),
        (TEXTS, {}, VALUE, r'give the classes as classes=\["a", "b"\], or regression=True'),
        (TEXTS, {"classes": ["spam"]}, VALUE, "at least 2 classes, and 'spam' is the only one"),
        (TEXTS, {"classes": []}, VALUE, "at least 2 classes, and the list is empty"),
        (TEXTS, {"classes": "spam,ham"}, TYPE, "must be a list of names"),
        (TEXTS, {"classes": ["a", "a"]}, VALUE, "classes: 'a' is there twice"),
        (TEXTS, {"classes": ["a", ""]}, VALUE, r'is empty; give all of them, as in classes=\["a", "b"\]$'),
        (TEXTS, {"classes": CLASSES, "regression": True}, VALUE, "classes and regression=True exclude each other"),
        (TEXTS, {"classes": CLASSES, "model": "tree"}, VALUE, "one of gp, .*, forest, boosting, not 'tree'"),
        (TEXTS, {"classes": CLASSES, "model": "auto"}, VALUE, "^model 'auto' is for a goal about all labels: give"),
        (frame(), {"target": "age", "regression": True, "model": "auto", "of": "all", "at_most": 0.1, "tolerance": 1.0},
         VALUE, "^model auto chooses between models for classes, and the labels of this project are numbers"),
        (TEXTS, {"classes": CLASSES, "model": "gp"}, VALUE, "gp is for regression"),
        (TEXTS, {"classes": CLASSES, "rule": 0.1}, TYPE, "rule must be a stopping rule"),
        (TEXTS, {"classes": CLASSES, "rule": sf.LabelWorth(), "mistake_cost": 3.0}, VALUE,
         r"^mistake_cost is an argument of the default rule, and rule is given too"),
        (TEXTS, {"classes": CLASSES, "label_cost": 0.0}, VALUE, "^label_cost must be a number above 0, not 0.0"),
        (TEXTS, {"classes": CLASSES, "tolerance": 1.0}, VALUE, "^tolerance is for numbers"),
        (TEXTS, {"classes": CLASSES, "at_most": 5}, VALUE, "^at_most must be a number above 0 and below 1, a share"),
        (TEXTS, {"regression": True, "at_most": -1.0}, VALUE, "^at_most must be a number above 0, in units of the tar"),
        (TEXTS, {"classes": CLASSES, "rule": sf.TimeLimit(9.0)}, VALUE, "TimeLimit counts seconds"),
        (TEXTS, {"classes": CLASSES, "initial": 0}, VALUE, "initial must be a whole number, 1 or more, not 0"),
        (TEXTS, {"classes": CLASSES, "initial": 7}, VALUE, "^initial must be at most the number of items, 6"),
        (TEXTS, {"classes": CLASSES, "overlap": 1.5}, VALUE, "overlap must be a number from 0 to 1"),
        (TEXTS, {"classes": CLASSES, "random_share": 1.5}, VALUE, "^random_share must be a number from 0 to 1, not"),
        (TEXTS, {"classes": CLASSES, "random_share": "a fifth"}, VALUE, "^random_share must be a number from 0 to 1"),
        (TEXTS, {"classes": CLASSES, "seed": -1}, VALUE, "seed must be a whole number"),
        (TEXTS, {"classes": CLASSES, "person": " "}, VALUE, "the name of a person must be 1 to 64"),
        (TEXTS, {"classes": CLASSES, "features": np.ones((5, 2))}, VALUE, "^features has 5 rows, and there are 6"),
        (TEXTS, {"classes": CLASSES, "features": np.full((6, 2), np.nan)}, VALUE, "^features must hold finite"),
        (frame(), {"target": "ok", "text": "nmae"}, VALUE, "^text: the data has no column 'nmae'. Did you mean"),
        (frame(), {"target": "ok", "id": "fuel"}, VALUE, "^id: column 'fuel' must name each item differently"),
        (frame(), {"target": "ok", "ignore": ["x"]}, VALUE, "^ignore: the data has no column 'x'"),
        (frame().assign(ok=np.nan), {"target": "ok"}, VALUE, "there is no label yet"),
        (frame().assign(ok="yes"), {"target": "ok"}, VALUE, "has the label 'yes' only"),
        (frame().assign(ok=[np.inf, 1.0] * 15), {"target": "ok", "regression": True}, VALUE, "not a finite number"),
        (frame().assign(ok=["yes", "maybe"] * 15), {"target": "ok", "classes": ["yes", "no"]}, VALUE,
         "row 2: the label 'maybe' in column 'ok' is none of the classes"),
        (frame().set_axis(["a", "b", "c", "a", "d"], axis=1), {"classes": CLASSES}, VALUE,
         "the data: 2 columns are named 'a', and names must be distinct; rename them"),
        ("nowhere.csv", {"classes": CLASSES}, VALUE, "there is no file nowhere.csv"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused_with_a_remedy(
    tmp_path: Path, data: Any, arguments: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said) as caught:
        create_project(tmp_path / "p", data, **arguments)
    assert "--" not in str(caught.value)
    assert not (tmp_path / "p").exists()


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    place = tmp_path / "mails.suffice"
    create_project(place, TEXTS, classes=CLASSES).close()
    with pytest.raises(ConflictError, match=r"there is a project in .*mails.suffice already; open it"):
        create_project(place, TEXTS, classes=CLASSES)
    full = tmp_path / "full"
    full.mkdir()
    (full / "notes.txt").write_text("mine")
    with pytest.raises(ConflictError, match=r"the folder holds something else; name another folder as path$"):
        create_project(full, TEXTS, classes=CLASSES)
    with pytest.raises(SufficeError, match="is not a project"):
        create_project(full / "notes.txt", TEXTS, classes=CLASSES)
    with pytest.raises(SufficeError, match="does not exist"):
        create_project(tmp_path / "no" / "such" / "folder", TEXTS, classes=CLASSES)
    assert [each.name for each in full.iterdir()] == ["notes.txt"]


def test_there_is_nothing_to_open(tmp_path: Path) -> None:
    with pytest.raises(SufficeError, match=r"there is no project in .*nothing"):
        open_project(tmp_path / "nothing")


WITHOUT_FRAMES = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pandas", "polars"):
            raise ImportError(name)

sys.meta_path.insert(0, Missing())
from suffice.project import create_project

create_project(sys.argv[1], {"x": [1, 2, 3]}, classes=["a", "b"]).close()
"""


def test_neither_package_of_frames_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Absent(MetaPathFinder):
        def find_spec(self, name: str, *_: object) -> None:
            if name in ("pandas", "polars"):
                raise ImportError(name)

    for name in ("pandas", "polars"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "meta_path", [Absent(), *sys.meta_path])
    create_project(tmp_path / "p", {"x": [1, 2, 3]}, classes=["a", "b"]).close()


@pytest.mark.slow
def test_neither_package_of_frames_is_needed_by_a_new_process(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_FRAMES, str(tmp_path / "p")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_costs_and_the_wanted_error(tmp_path: Path) -> None:
    costs = {"label_cost": 0.5, "mistake_cost": 20.0}
    with create_project(tmp_path / "a", TEXTS, classes=CLASSES, **costs, at_most=0.05) as project:
        assert project.settings.criterion() == sf.LabelWorth(**costs)
        assert project.settings.at_most == 0.05
    with create_project(tmp_path / "b", TEXTS, regression=True, tolerance=3.0, at_most=12.0) as project:
        assert project.settings.criterion() == sf.LabelWorth(tolerance=3.0)
        assert project.settings.at_most == 12.0
