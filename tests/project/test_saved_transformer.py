"""Predictions of new rows from saved files: nothing is learned or fitted again, and files of others are refused."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from suffice.project.create import create_project, open_project
from suffice.project.incoming_rows import write_predictions
from suffice.project.learned_project import project_predictor
from suffice.project.project_learner import ProjectLearner
from suffice.project.state import Answer
from suffice.tables.transformers import TableTransformer
from tests.project.test_new_rows import cars, right

N, LABELS = 80, 30


def make(place: Path, seed: int = 0, labels: int = LABELS, model: str | None = None) -> None:
    data = cars(N, seed)
    with create_project(place, data, classes=["weak", "strong"], id="name", seed=1, model=model) as project:
        for item in range(labels):
            project.label(item, right(data["power"][item]), person="ann")


def predicted(place: Path, folder: Path) -> str:
    """The file of predictions of five new rows."""
    new, out = folder / "new.csv", folder / "out.csv"
    data = cars(5, seed=9)
    lines = [",".join(str(data[name][k] or "") for name in ("power", "fuel", "text")) for k in range(5)]
    new.write_text("power,fuel,text\n" + "\n".join(lines) + "\n", encoding="utf-8")
    with open_project(place) as project:
        write_predictions(project, new, out)
    return out.read_text(encoding="utf-8")


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Each answer that is learned, and each fit of a transformer of a table."""
    done: list[Any] = []
    tell, fit = ProjectLearner._tell, TableTransformer.fit_features

    def telling(self: ProjectLearner, judge: Any, answer: Answer) -> None:
        done.append(answer.item)
        tell(self, judge, answer)

    def fitting(self: TableTransformer, *given: Any) -> Any:
        done.append("fit")
        return fit(self, *given)

    monkeypatch.setattr(ProjectLearner, "_tell", telling)
    monkeypatch.setattr(TableTransformer, "fit_features", fitting)
    return done


def test_a_second_prediction_learns_and_fits_nothing(tmp_path: Path, work: list[Any]) -> None:
    place = tmp_path / "p"
    make(place)
    work.clear()
    first = predicted(place, tmp_path)
    assert work == [*range(LABELS), "fit"]
    work.clear()
    assert predicted(place, tmp_path) == first
    assert work == []
    # With new labels, only these are learned.
    data = cars(N)
    with open_project(place) as project:
        for item in (LABELS, LABELS + 1):
            project.label(item, right(data["power"][item]), person="ann")
    second = predicted(place, tmp_path)
    assert work == [LABELS, LABELS + 1]
    assert second != first
    shutil.rmtree(place / "learned")
    work.clear()
    assert predicted(place, tmp_path) == second
    assert work == [*range(LABELS + 2), "fit"]


def test_files_of_another_project_are_refused(tmp_path: Path, work: list[Any]) -> None:
    make(tmp_path / "one")
    make(tmp_path / "other", seed=4)
    own, foreign = predicted(tmp_path / "one", tmp_path), predicted(tmp_path / "other", tmp_path)
    assert own != foreign
    for name in ("transformer.npz", "learner.npz", "earlier-learner.npz", "predictor.npz"):
        shutil.copy(tmp_path / "other" / "learned" / name, tmp_path / "one" / "learned" / name)
    work.clear()
    assert predicted(tmp_path / "one", tmp_path) == own
    assert work == [*range(LABELS), "fit"]


def test_a_damaged_transformer_is_fitted_again(tmp_path: Path, work: list[Any]) -> None:
    place = tmp_path / "p"
    make(place)
    first = predicted(place, tmp_path)
    file = place / "learned" / "transformer.npz"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(content)
    work.clear()
    assert predicted(place, tmp_path) == first
    assert work == ["fit"]


@pytest.mark.parametrize("model", ["logistic", "kernel", "forest"])
def test_a_saved_model_predicts_the_same(tmp_path: Path, model: str) -> None:
    place = tmp_path / "p"
    make(place, model=model)
    with open_project(place) as project:
        found = project_predictor(project).predict(project.X)
        saved = project.learned_files.predictor(project.current_settings, project.state().learned())
        # Parts of models of scikit-learn are not saved; these models learn their saved state again.
        assert (saved is not None) == (model == "logistic")
        if saved is not None:
            again = saved.predict(project.X)
            np.testing.assert_array_equal(np.asarray(again.probabilities), np.asarray(found.probabilities))
            assert again.class_ratios == found.class_ratios
        project.label(LABELS, "weak", person="ann")
        assert project.learned_files.predictor(project.current_settings, project.state().learned()) is None


def test_a_damaged_model_is_read_from_the_learner(tmp_path: Path, work: list[Any]) -> None:
    place = tmp_path / "p"
    make(place)
    first = predicted(place, tmp_path)
    file = place / "learned" / "predictor.npz"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(content)
    work.clear()
    assert predicted(place, tmp_path) == first
    assert work == []


def test_predicting_again_loads_nothing_that_learns_or_fits(tmp_path: Path) -> None:
    place = tmp_path / "p"
    make(place)
    expected = predicted(place, tmp_path)
    program = f"""
import sys
from suffice.cli import main
sys.argv[1:] = ["predict", {str(place)!r}, {str(tmp_path / "new.csv")!r}, "-o", {str(tmp_path / "again.csv")!r}]
try:
    main()
finally:
    parts = "scipy.stats._stats_py", "sklearn.decomposition", "sklearn.metrics", "suffice.learner"
    print([name for name in parts if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert (tmp_path / "again.csv").read_text(encoding="utf-8") == expected


def test_added_rows_have_the_features_of_the_saved_transformer(tmp_path: Path, work: list[Any]) -> None:
    place, new = tmp_path / "p", cars(7, seed=3)
    # Control characters are replaced before features are made.
    new["text"] = [text.replace("\x85", "…") for text in new["text"]]
    make(place)
    with open_project(place) as project:
        expected = project.transformer().transform({name: new[name] for name in ("power", "fuel", "text")})
    work.clear()
    with open_project(place) as project:
        project.add_items(new, person="ann")
        added = np.array(project.X[N:])
    assert work == []
    np.testing.assert_allclose(added, expected, rtol=0, atol=1e-12)
    predicted(place, tmp_path)
    assert "fit" not in work
