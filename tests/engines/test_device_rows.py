"""Pools that stay on a device of torch: rows by index, checks, and the picks of a pool in memory."""

from typing import Any

import numpy as np
import pytest
import torch

import suffice as sf
from suffice.engines.device_rows import DeviceRows
from suffice.errors import InvalidValueError
from suffice.models import GaussianProcess

X = np.random.default_rng(0).normal(size=(300, 3)).astype(np.float32)
Y = np.sin(X[:, 0]).astype(np.float64)


def test_rows_by_index_are_those_of_the_array() -> None:
    rows = DeviceRows(X, "cpu")
    assert len(rows) == 300
    assert rows.shape == (300, 3)
    for key in ([3, 1], [], np.array([5]), np.arange(300) < 2, slice(7, 9), slice(None)):
        found = rows[key]
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, X[key])
    np.testing.assert_array_equal(rows.array(), X)


def test_arrays_that_may_not_be_written_to() -> None:
    frozen, key = X.copy(), np.arange(4)
    frozen.setflags(write=False)
    key.setflags(write=False)
    np.testing.assert_array_equal(DeviceRows(frozen, "cpu")[key], X[:4])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.bool_])
def test_numbers_of_any_type(dtype: Any) -> None:
    given = np.array([[0, 1], [1, 1]], dtype=dtype)
    rows = DeviceRows(torch.as_tensor(given), "cpu")
    assert rows.tensor.dtype == (torch.float32 if dtype is np.float32 else torch.float64)
    np.testing.assert_array_equal(rows.array(), given)


def test_the_original_may_change() -> None:
    array, tensor = X.copy(), torch.as_tensor(X).clone()
    copies = [DeviceRows(given, "cpu") for given in (array, tensor)]
    array[:] = 0.0
    tensor[:] = 0.0
    for rows in copies:
        np.testing.assert_array_equal(rows.array(), X)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 2e100])
def test_a_number_that_is_not_finite_is_named(value: float) -> None:
    bad = X.astype(np.float64)
    bad[41, 2] = value
    for given in (bad, torch.as_tensor(bad)):
        with pytest.raises(InvalidValueError, match=r"X_pool contains .* at row 41, column 2"):
            sf.simulate(GaussianProcess(1.0, 0.1), given, Y, acquisition="variance", device="cpu", steps=3)


@pytest.mark.parametrize("acquisition", ["variance", "variance-reduction"])
@pytest.mark.parametrize("model", [GaussianProcess(1.0, 0.1), GaussianProcess()], ids=["fixed", "learned"])
def test_picks_and_records_are_those_of_a_pool_in_memory(acquisition: str, model: Any) -> None:
    options: dict[str, Any] = {"acquisition": acquisition, "steps": 25, "record": "all"}
    memory = sf.simulate(model, X, Y, **options)
    for given in (X, torch.as_tensor(X)):
        device = sf.simulate(model, given, Y, device="cpu", **options)
        assert device.indices.tolist() == memory.indices.tolist()
        for name in set(memory.measures) - {"seconds"}:
            np.testing.assert_allclose(device.measures[name], memory.measures[name], rtol=1e-6, err_msg=name)


def test_evidence_that_is_read_later_is_that_of_a_pool_in_memory() -> None:
    memory, device = (
        sf.simulate(GaussianProcess(1.0, 0.1), X, Y, acquisition="variance", steps=20, device=place)
        for place in (None, "cpu")
    )
    for name in ("unlabelled_error", "recent_gain"):
        np.testing.assert_allclose(device.measures[name], memory.measures[name], rtol=1e-9)


def test_a_learner_on_a_device_decides_and_checks() -> None:
    learner = sf.ActiveLearner(GaussianProcess(1.0, 0.1), torch.as_tensor(X), acquisition="variance", device="cpu")
    for _ in range(15):
        items = learner.ask()
        learner.tell(items, Y[items])
    twin = sf.ActiveLearner(GaussianProcess(1.0, 0.1), X, acquisition="variance")
    for item in learner.labelled:
        twin.tell([item], Y[[item]])
    assert learner.verdict.stop == twin.verdict.stop
    assert learner.error_estimate().value == pytest.approx(twin.error_estimate().value)
    check = learner.check(20, tolerance=0.5)
    check.tell(Y[check.indices])
    assert check.guarantee is not None


def test_a_checkpoint_of_a_pool_on_a_device_continues_in_memory(tmp_path: Any) -> None:
    options: dict[str, Any] = {"acquisition": "variance", "checkpoint": tmp_path / "run.json"}
    started = sf.simulate(GaussianProcess(1.0, 0.1), X, Y, steps=8, device="cpu", **options)
    continued = sf.simulate(GaussianProcess(1.0, 0.1), X, Y, steps=12, **options)
    assert continued.indices[:8].tolist() == started.indices.tolist()


@pytest.mark.parametrize("given", [X[:, 0], X[:0], X[:, :0], X.astype(complex), X.astype(str)])
def test_other_tables_are_refused_as_in_memory(given: Any) -> None:
    for pool in (given, torch.as_tensor(given) if given.dtype.kind != "U" else given):
        with pytest.raises(InvalidValueError, match="X_pool"):
            sf.simulate(GaussianProcess(1.0, 0.1), pool, Y, acquisition="variance", device="cpu", steps=3)
