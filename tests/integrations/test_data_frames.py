"""Data sets of Hugging Face, and tables of pandas and polars, in and out."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import suffice as sf
from suffice.errors import InvalidTypeError
from suffice.project import create_project
from suffice.project.exported_files import write_dataset
from tests.integrations.snippets import run_snippet

datasets = pytest.importorskip("datasets")
pd: Any = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

X = np.random.default_rng(0).normal(size=(120, 2))
Y = (X[:, 0] > 0.0).astype(int)
COLUMNS = {"a": X[:, 0].tolist(), "b": X[:, 1].tolist()}
POOLS: dict[str, Any] = {
    "pandas": pd.DataFrame(COLUMNS),
    "polars": pl.DataFrame(COLUMNS),
    "datasets": datasets.Dataset.from_dict(COLUMNS),
}


def probabilities(model: Any, part: Any) -> Any:
    return model.predict_proba(np.column_stack([np.asarray(part["a"]), np.asarray(part["b"])]))


def test_the_snippet() -> None:
    variables = run_snippet("with_data_frames")
    assert variables["monitor"].verdict.stop
    assert len(variables["steps"]) == len(variables["monitor"].verdicts)


@pytest.mark.parametrize("kind", POOLS)
def test_a_monitor_says_the_same_of_every_table(kind: str) -> None:
    found, expected = sf.StopMonitor(POOLS[kind], predict=probabilities), sf.StopMonitor(X)
    for n in (20, 40, 60):
        model = LogisticRegression().fit(X[:n], Y[:n])
        found.update(model, range(n), Y[:n])
        expected.update(model, range(n), Y[:n])
    assert [said.stop for said in found.verdicts] == [said.stop for said in expected.verdicts]
    assert found.error_estimate().value == pytest.approx(expected.error_estimate().value, rel=1e-9)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_labels_of_a_table(kind: str) -> None:
    make = pd.Series if kind == "pandas" else pl.Series
    monitor = sf.StopMonitor(X)
    monitor.update(LogisticRegression().fit(X[:30], Y[:30]), make(np.arange(30)), make(Y[:30]))
    assert monitor.labels == dict(enumerate(Y[:30].tolist()))


def test_steps_out() -> None:
    monitor = sf.StopMonitor(X)
    for n in (20, 40):
        monitor.update(LogisticRegression().fit(X[:n], Y[:n]), range(n), Y[:n])
    frame = monitor.to_frame()
    assert pl.from_pandas(frame)["n_labelled"].to_list() == frame["n_labelled"].tolist() == [40]
    assert datasets.Dataset.from_pandas(frame).num_rows == 1


def test_a_project_from_a_data_set_and_back(tmp_path: Path) -> None:
    features = datasets.Features(
        {
            "mail": datasets.Value("string"),
            "size": datasets.Value("int64"),
            "kind": datasets.ClassLabel(names=["ham", "spam"]),
        }
    )
    rows = {"mail": ["win now", "see you", "free prize", "lunch?"], "size": [1, None, 3, 4], "kind": [1, 0, -1, None]}
    data = datasets.Dataset.from_dict(rows, features=features)
    with create_project(tmp_path / "p", data, text="mail", target="kind", classes=["ham", "spam"]) as project:
        assert project.size == 4
        assert [project.state().label_of(item) for item in range(4)] == ["spam", "ham", None, None]
        project.label(2, "spam", person="ann")
        write_dataset(project, tmp_path / "out")
    back = datasets.load_from_disk(str(tmp_path / "out"))
    assert back.features["kind"].names == ["ham", "spam"]
    assert back["kind"][2] == 1


def test_several_data_sets_are_refused(tmp_path: Path) -> None:
    several = datasets.DatasetDict({"train": POOLS["datasets"], "test": POOLS["datasets"]})
    with pytest.raises(InvalidTypeError, match=r"holds several data sets; give one of them: \['train', 'test'\]"):
        create_project(tmp_path / "p", several, classes=[0, 1])
    with pytest.raises(InvalidTypeError, match="not IterableDataset"):
        create_project(tmp_path / "p", POOLS["datasets"].to_iterable_dataset(), classes=[0, 1])
    assert not (tmp_path / "p").exists()
