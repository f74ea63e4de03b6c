"""Create the projects of this folder, and write down what suffice 0.6.0 says about them.

This script was run once, with suffice 0.6.0: ``python tests/session/projects_of_0_6_0/create_projects.py``. It is
kept to document what the files contain. Do not run it with a later version: ``expected.json`` must hold what 0.6.0
says. It uses the modules of 0.6.0, so it does not work with later versions either.
"""
# mypy: ignore-errors

import json
import math
import shutil
import sqlite3
import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from suffice.cli.project_opening import made
from suffice.session.items import Items
from suffice.session.learning import Follower
from suffice.session.making import create_project, open_project
from suffice.session.project import Project
from suffice.session.settings import Settings
from suffice.session.summary import status

import suffice
from suffice import Budget, ErrorStability
from suffice.cli.project_options import ProjectModel, ProjectOptions

FOLDER = Path(__file__).parent
WORDS = {
    "sport": "match goal team player season coach league ball stadium referee",
    "food": "recipe oven butter onion sauce flour dinner garlic spoon kitchen",
    "money": "bank loan price market share invoice budget tax profit account",
}


def texts(folder: Path) -> Project:
    """Texts of three classes, labelled by three people, with second opinions, a correction, a skip and an undo."""
    rng = np.random.default_rng(1)
    names = list(WORDS)
    truth = [names[k] for k in rng.integers(0, 3, size=45)]
    rows = []
    for name in truth:
        others = [word for other in names for word in WORDS[other].split()]
        own = rng.choice(WORDS[name].split(), size=5).tolist()
        rows.append(" ".join(rng.permutation([*own, *rng.choice(others, size=3).tolist()]).tolist()))
    data = folder / "news.csv"
    data.write_text("id,body\n" + "".join(f"n{k},{row}\n" for k, row in enumerate(rows)))
    options = ProjectOptions(str(data), text="body", classes="sport,food,money", overlap=0.4, initial=6, seed=3)
    project = new_project(folder, options)
    people = ("ann", "bob", "Zoë")
    for k in range(34):
        person = people[k % 3]
        item = next_item(project, person)
        if k == 9:
            project.skip(item, person=person)
            continue
        wrong = k in (7, 20)
        label = names[(names.index(truth[item]) + 1) % 3] if wrong else truth[item]
        project.label(item, label, person=person, request=f"request-{k}")
        if k == 20:
            project.correct(item, truth[item], person="ann")
        if k == 15:
            project.undo(person=person)
    with project.lock:
        first = project.state().labelled()[0].item
    project.correct(first, names[(names.index(truth[first]) + 1) % 3], person="bob")
    project.undo(person="bob")
    return project


def process(folder: Path) -> Project:
    """Numbers with a Gaussian process; some labels came with the data; a stop is advised."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(70, 2)).round(3)
    y = (20.0 + 4.0 * np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=70)).round(3)
    known = set(range(3))
    data = folder / "yield.csv"
    data.write_text(
        "heat,time,yield\n" + "".join(f"{a},{b},{y[k] if k in known else ''}\n" for k, (a, b) in enumerate(X.tolist()))
    )
    project = new_project(folder, ProjectOptions(str(data), target="yield", regression=True, threshold=0.2))
    for k in range(52):
        item = next_item(project, "ann")
        if k == 5:
            project.skip(item, person="ann")
        else:
            project.label(item, float(y[item]), person="ann")
        advise(project)
    return project


def ridge(folder: Path) -> Project:
    """Numbers with ridge regression, and a rule that weighs costs; two people label the same items."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 2)).round(3)
    y = (5.0 * X[:, 0] - 2.0 * X[:, 1] + 0.5 * rng.normal(size=60)).round(3)
    data = folder / "flow.csv"
    data.write_text("a,b\n" + "".join(f"{a},{b}\n" for a, b in X.tolist()))
    options = ProjectOptions(
        str(data), target="flow", regression=True, model=ProjectModel.ridge, error_cost=50.0, label_cost=1.0,
        overlap=0.5,
    )  # fmt: skip
    project = new_project(folder, options)
    for k in range(44):
        person = ("ann", "bob")[k % 2]
        item = next_item(project, person)
        project.label(item, float(y[item]) + (0.25 if person == "bob" else 0.0), person=person)
        if k == 30:
            project.correct(item, float(y[item]), person="ann")
        advise(project)
    return project


def columns(folder: Path) -> Project:
    """Two classes from columns of numbers and words, with a rule made of two others."""
    rng = np.random.default_rng(4)
    numbers, colours = rng.normal(size=(64, 2)).round(2), rng.choice(["red", "green", "blue"], size=64).tolist()
    truth = [
        "yes" if a + 0.5 * b + (c == "red") + 0.4 * rng.normal() > 0.3 else "no"
        for (a, b), c in zip(numbers.tolist(), colours, strict=True)
    ]
    data = folder / "parts.csv"
    rows = zip(numbers.tolist(), colours, strict=True)
    data.write_text("size,weight,colour\n" + "".join(f"{a},{b},{c}\n" for (a, b), c in rows))
    project = new_project(
        folder, ProjectOptions(str(data), target="ok", classes="yes,no"), rule=ErrorStability(0.001) | Budget(30)
    )
    for _ in range(36):
        item = next_item(project, "ann")
        project.label(item, truth[item], person="ann")
        advise(project)
    return project


def begun(folder: Path) -> Project:
    """A project with fewer labels than the model starts from, and an item that was asked for and not answered."""
    data = folder / "few.csv"
    data.write_text("x,y\n" + "".join(f"{k},{k * k % 7}\n" for k in range(12)))
    project = new_project(folder, ProjectOptions(str(data), classes="low,high", initial=8))
    for label in ("low", "high", "low"):
        project.label(next_item(project, "ann"), label, person="ann")
    next_item(project, "bob")
    return project


def images(folder: Path) -> Project:
    """Images, by their paths; the files themselves are not there."""
    rng = np.random.default_rng(6)
    names = tuple(f"leaf-{k:02}.png" for k in range(24))
    X = rng.normal(size=(24, 5))
    items = Items(
        "image", names, ("image",), tuple((name,) for name in names), "image", X, "classification", ("oak", "elm"),
        {}, ("image: 5 components",),
    )  # fmt: skip
    settings = Settings(
        "leaves", "classification", ("oak", "elm"), "label", "image", ("image",), "image", "logistic",
        ErrorStability(0.1, calibration=10).state_dict(), source="leaves", root="/photos/leaves", notes=items.notes,
    )  # fmt: skip
    project = create_project(folder / "leaves.suffice", settings, items, person="ann")
    for _ in range(18):
        item = next_item(project, "ann")
        project.label(item, "oak" if X[item, 0] > 0 else "elm", person="ann")
    project.undo(person="ann")
    return project


def new_project(folder: Path, options: ProjectOptions, rule: Any = None) -> Project:
    """Create a project as the command does; a rule that the command does not offer takes the place of its own."""
    place = folder / "made.suffice"
    project = made(str(place), options, "ann", Console(quiet=True))
    if rule is None:
        return project
    settings, size = replace(project.settings, rule=rule.state_dict()), project.size
    cells = project.items(range(size))
    items = Items(
        settings.shown, tuple(each.id for each in cells), settings.columns,
        tuple(tuple(value for _, value in each.cells) for each in cells), settings.main, project.X, settings.task,
        settings.classes, {}, settings.notes,
    )  # fmt: skip
    project.close()
    shutil.rmtree(place)
    return create_project(place, settings, items, person="ann")


def follower_of(project: Project) -> Follower:
    """A model that has learned all labels."""
    follower = Follower(project.settings, project.X)
    with project.lock:
        follower.follow(project.state().calls())
    return follower


def next_item(project: Project, person: str) -> int:
    """The item that a person is asked for."""
    queue = follower_of(project).insight(queue=4).queue
    return project.next(person, queue=queue)[0].position


def advise(project: Project) -> None:
    """Write down what the rule says, as the background thread does."""
    verdict = follower_of(project).insight().verdict
    with project.lock:
        advised = project.state().advice is not None
    if verdict is not None and verdict.stop != advised:
        project.advise(verdict)


def said(project: Project) -> dict[str, Any]:
    """All that 0.6.0 says about a project."""
    follower = follower_of(project)
    insight = follower.insight(queue=5)
    with project.lock:
        state = project.state()
        found: dict[str, Any] = {
            "settings": project.settings.as_dict(),
            "size": project.size,
            "ids": [project.item(k).id for k in range(project.size)],
            "first item": [list(cell) for cell in project.item(0).cells],
            "features": [project.X.shape[1], float(np.abs(project.X).sum())],
            "seq": state.seq,
            "calls": [list(call) for call in state.calls()],
            "labels": [state.label_of(k) for k in range(project.size)],
            "opinions": [[[each.person, each.label] for each in state.opinions(k)] for k in range(project.size)],
            "corrected": [k for k in range(project.size) if state.has_correction(k)],
            "unanswered": {name: [item for item, _ in state.mine(name)] for name in sorted(state.people)},
            "events": [each.kind.value for each in project.events()],
        }
    told = status(project, insight)
    found["sentences"] = told.pop("words")
    if told["verdict"] is not None:
        told["verdict"].pop("sentence")
        told["verdict"].pop("certificate")
    found["status"] = told
    found["verdict"] = None if insight.verdict is None else {
        "stop": insight.verdict.stop, "value": finite(insight.verdict.value), "reason": insight.verdict.reason,
        "n_labelled": insight.verdict.n_labelled,
    }  # fmt: skip
    found["stopped at"] = insight.stopped_at
    found["errors"] = [list(asdict(each).values()) for each in insight.errors]
    found["queue"] = list(insight.queue)
    if insight.errors:
        predictions = follower.predict(project.X)
        found["predictions"] = predictions.labels.tolist()
        found["uncertainty"] = predictions.uncertainty.tolist()
    return found


def finite(value: float | None) -> float | None:
    """A number as JSON has it."""
    return value if value is not None and math.isfinite(value) else None


def store(project: Project, name: str, folder: Path) -> dict[str, Any]:
    """Copy the file of a project here, in as few bytes as possible, and return what 0.6.0 says about it."""
    assert project._database.file is not None
    source, place = project._database.file, FOLDER / f"{name}.sqlite"
    project.close()
    connection = sqlite3.connect(source, isolation_level=None)
    # SQLite does not change the size of a page while it keeps a write-ahead log.
    for command in ("journal_mode=DELETE", "page_size=1024"):
        connection.execute(f"PRAGMA {command}")
    connection.execute("VACUUM")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.close()
    shutil.copy(source, place)
    copy = folder / "copy.sqlite"
    shutil.copy(place, copy)
    with open_project(copy) as opened:
        return said(opened)


def create_all() -> None:
    """Create every project."""
    assert suffice.__version__ == "0.6.0", suffice.__version__
    expected = {}
    for create in (texts, process, ridge, columns, begun, images):
        with tempfile.TemporaryDirectory() as folder:
            name = create.__name__
            expected[name] = store(create(Path(folder)), name, Path(folder))
        print(name, (FOLDER / f"{name}.sqlite").stat().st_size, expected[name]["verdict"])
    (FOLDER / "expected.json").write_text(json.dumps(expected, indent=0, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    create_all()
