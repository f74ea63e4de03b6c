"""Make the files that ``test_files_of_1_0_0rc1.py`` opens; run once, with suffice 1.0.0rc1.

``checked.sqlite`` and ``expected.json`` are older than this script. It is kept to document what the other files
contain. Do not run it with a later version: they must hold what 1.0.0rc1 writes.
"""
# mypy: ignore-errors

import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import suffice as sf
from suffice.criteria import RULES
from suffice.learner import OptimisationMonitor
from suffice.models import BayesianLogistic, BayesianRidge, GaussianProcess
from suffice.project import create_project
from suffice.project.project_learner import ProjectLearner
from suffice.project.status_summary import status
from suffice.testing import example_steps

FOLDER = Path(__file__).parent
WORDS = {"sport": "match goal team player coach league ball", "food": "recipe oven butter onion sauce flour garlic"}


def news(n):
    """Texts of two classes with a word of the other class, and their classes."""
    rng = np.random.default_rng(5)
    truth = rng.choice(list(WORDS), size=n)
    other = {"sport": "food", "food": "sport"}
    texts = [
        " ".join([*rng.choice(WORDS[name].split(), size=4), *rng.choice(WORDS[other[name]].split(), size=2), f"w{k}"])
        for k, name in enumerate(truth)
    ]
    return texts, truth


def answered(project, truth, people=("ann", "bob"), n=20):
    """Label items in turn as they are asked for."""
    for k in range(n):
        person = people[k % len(people)]
        learner = ProjectLearner(project.current_settings, project.X, compare=False)
        learner.follow(project.state().answers())
        found = learner.learning_status(queue=5)
        for asked in project.next(person, queue=found.queue):
            project.label(asked.position, truth[asked.position], person=person)


def texts_project(path):
    """Two people, second opinions, a skip, an unsure answer, a correction, classes changed, accounts, an open check."""
    texts, truth = news(60)
    data = {"id": [f"n{k}" for k in range(60)], "body": texts}
    project = create_project(path, data, classes=["sport", "food", "x"], text="body", overlap=0.3, seed=1, at_most=0.2)
    answered(project, truth, n=4)
    [asked] = project.next("ann")
    project.skip(asked.position, person="ann", reason="no words")
    [asked] = project.next("bob")
    project.unsure(asked.position, person="bob", reason="both")
    answered(project, truth, n=14)
    first = next(item for item in range(60) if project.state().label_of(item) == "sport")
    project.correct(first, "food", person="bob")
    project.remove_class("x", person="ann")
    project.rename_class("food", "cooking", person="ann")
    project.change_settings({"guidelines": "What is the text about?", "label_cost": 2.0}, person="ann")
    project.add_account("ann", role="manage", person="ann", password="a long password")
    project.add_account("bob", role="label", person="ann", password="another password")
    project.start_check(person="ann", size=12)
    for asked in project.next("ann", n=5):
        named = "cooking" if truth[asked.position] == "food" else "sport"
        project.label(asked.position, named, person="ann")
    return project


def numbers_project(path):
    """Numbers, with a completed check within a tolerance."""
    rng = np.random.default_rng(2)
    x = rng.uniform(-2.0, 2.0, size=(40, 2)).round(3)
    truth = (x[:, 0] + np.sin(2.0 * x[:, 1])).round(2)
    data = {"a": x[:, 0], "b": x[:, 1]}
    project = create_project(path, data, regression=True, target="y", model="ridge", seed=2, tolerance=0.5)
    answered(project, [float(value) for value in truth], people=("ann",), n=16)
    project.start_check(person="ann", size=8, tolerance=0.9)
    for asked in project.next("ann", n=8):
        project.label(asked.position, float(truth[asked.position]), person="ann")
    return project


def screening_project(path):
    """A rare class, in the order of relevance."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(60, 2)).round(3)
    truth = np.where(x[:, 0] > 1.0, "yes", "no")
    data = {"a": x[:, 0], "b": x[:, 1]}
    project = create_project(path, data, classes=["yes", "no"], target="y", positive="yes", recall=0.8, seed=3)
    answered(project, truth, people=("ann",), n=30)
    return project


def said(project):
    """What this version says about a project."""
    learner = ProjectLearner(project.current_settings, project.X, compare=False)
    learner.follow(project.state().answers())
    found = learner.learning_status(queue=1)
    told = status(project, found)
    guarantee = project.guarantee()
    return {
        "labels": [project.state().label_of(item) for item in range(project.size)],
        "n_labelled": told["n_labelled"],
        "n_skipped": told["n_skipped"],
        "verdict": [found.verdict.stop, found.verdict.n_labelled],
        "guarantee": None if guarantee is None else guarantee.as_dict(),
        "checks": [[check.number, check.state] for check in project.checks()],
        "accounts": [[account.name, account.role] for account in project.accounts()],
        "classes": list(project.current_settings.classes or ()),
    }


def rule_states():
    """The state of each rule after 20 steps, and what it says about the next one."""
    from suffice.criteria.rule_info import example_rule  # in suffice.criteria.base since then

    rules = {}
    steps = example_steps(40, seed=1)
    for name, rule in RULES.items():
        made = example_rule(rule)
        verdicts = [made.observe(step) for step in steps[:20]]
        rules[name] = {"state": made.state_dict(), "last": [verdicts[-1].stop, verdicts[-1].n_labelled]}
        after = made.observe(steps[20])
        rules[name]["next"] = [after.stop, after.value, after.n_labelled]
    return rules


def runs(folder):
    """A trace of a run, and a checkpoint of a run that was interrupted."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = X @ [1.0, 2.0]
    labels = np.where(y > 0.0, "up", "down")
    trace = sf.simulate(BayesianLogistic(), X, labels, steps=20, seed=0, record="all")
    trace.save(folder / "trace.npz")

    def stop(done, _):
        if done >= 12:
            raise KeyboardInterrupt

    with contextlib.suppress(KeyboardInterrupt):
        sf.simulate(BayesianRidge(), X, y, steps=20, seed=0, checkpoint=folder / "checkpoint.json", progress=stop)
    whole = sf.simulate(BayesianRidge(), X, y, steps=20, seed=0)
    return {"trace": trace.indices.tolist(), "checkpoint": whole.indices.tolist()}


def optimisation():
    """A monitor of an optimisation."""
    rng = np.random.default_rng(1)
    X = rng.uniform(size=(12, 1))
    y = np.sin(6.0 * X[:, 0])
    monitor = OptimisationMonitor([[0.0, 1.0]], seed=0)
    for k in range(3, 11):
        monitor.update(GaussianProcess(length_scale=0.3, noise=0.01).fit(X[:k], y[:k]))
    state = monitor.state_dict()
    verdict = monitor.update(GaussianProcess(length_scale=0.3, noise=0.01).fit(X[:12], y[:12]))
    return {"X": X.tolist(), "state": state, "next": [verdict.stop, verdict.n_labelled]}


def main() -> None:
    """Write all files."""
    expected = {}
    with tempfile.TemporaryDirectory() as folder:
        for make in (texts_project, numbers_project, screening_project):
            name = make.__name__.partition("_")[0]
            path = Path(folder) / f"{name}.suffice"
            with make(path) as project:
                expected[name] = said(project)
            shutil.copy(path / "project.sqlite", FOLDER / f"{name}.sqlite")
        # What the command stores of a project that it has learned, and what it writes.
        numbers = Path(folder) / "numbers.suffice"
        for command in ("status", "export"):
            subprocess.run([sys.executable, "-m", "suffice", command, str(numbers)], check=True, capture_output=True)
        shutil.make_archive(str(FOLDER / "learned"), "zip", numbers / "learned")
        shutil.copy(numbers / "export" / "labels.csv", FOLDER / "labels.csv")
        shutil.copy(numbers / "export" / "guarantee.json", FOLDER / "guarantee.json")
        expected["runs"] = runs(Path(folder))
        for each in ("trace.npz", "checkpoint.json"):
            shutil.copy(Path(folder) / each, FOLDER / each)
    expected["rules"] = rule_states()
    expected["optimisation"] = optimisation()
    (FOLDER / "files.json").write_text(json.dumps(expected, default=str) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
