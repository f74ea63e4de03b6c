"""A project that suffice 1.0.0rc1 created, with a completed check: it opens with the same labels and guarantee."""

import json
import shutil
from pathlib import Path
from typing import Final

from suffice.project.create import open_project
from suffice.project.project_learner import ProjectLearner
from suffice.project.status_summary import status

FOLDER: Final = Path(__file__).parent / "projects_of_1_0_0rc1"


def test_a_project_with_a_check_opens_and_decides_the_same(tmp_path: Path) -> None:
    expected = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))
    place = tmp_path / "p.suffice"
    place.mkdir()
    shutil.copy(FOLDER / "checked.sqlite", place / "project.sqlite")
    with open_project(place) as project:
        state = project.state()
        assert [state.label_of(item) for item in range(project.size)] == expected["labels"]
        guarantee = project.guarantee()
        assert guarantee is not None
        told = guarantee.as_dict()
        # Models have names for people since then.
        for key in ("model", "evidence"):
            told[key] = told[key].replace("Bayesian logistic regression at", "logistic at")
        assert told == expected["guarantee"]
        learner = ProjectLearner(project.current_settings, project.X, compare=False)
        learner.follow(state.learned())
        learning_status = learner.learning_status(queue=1)
        _, stop, n_labelled = expected["verdict"]
        assert learning_status.verdict is not None
        # The formula of the default rule has changed since then, but it stops by these labels too.
        assert learner._judge is not None
        assert learner._judge._session.history.stop is not None
        assert (learning_status.verdict.stop, learning_status.verdict.n_labelled) == (stop, n_labelled)
        summary = status(project, learning_status)
        assert (summary["n_labelled"], summary["n_skipped"]) == (expected["n_labelled"], expected["n_skipped"])
        assert summary["decision"]["answer"] == expected["answer"]
        assert summary["decision"]["headline"] == expected["headline"]
        # Labelling goes on.
        [asked] = project.next("ann", queue=learning_status.queue)
        project.label(asked.position, "left", person="ann")
        assert project.state().label_of(asked.position) == "left"
