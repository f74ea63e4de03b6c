"""The same network on a GPU: what it draws, learns and chooses agrees with the CPU."""

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from suffice.acquisition import batchbald
from suffice.learner import simulate
from suffice.models import DropoutNetwork

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device")

X, Y = load_digits(return_X_y=True)
X = X / 16.0


@pytest.fixture(autouse=True)
def _exact_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """Single precision without the shorter factors that torch allows convolutions."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)


def network(device: str, **options: Any) -> DropoutNetwork:
    return DropoutNetwork(classes=range(10), device=device, **{"precision": "float32", **options})


def pair(**options: Any) -> tuple[DropoutNetwork, DropoutNetwork]:
    """The same weights on both devices."""
    here, there = (network(device, **options).fit(X[:200], Y[:200]) for device in ("cpu", "cuda"))
    there.module_.load_state_dict(here.module_.state_dict())
    return here, there


@pytest.mark.parametrize("approximation", ["dropout", "last-layer"])
def test_draws_agree_with_the_cpu(approximation: str) -> None:
    here, there = pair(approximation=approximation)
    expected = here.sample_proba(X, 8, seed=3)
    np.testing.assert_allclose(there.sample_proba(X, 8, seed=3), expected, rtol=1e-3, atol=1e-5)
    mixed = network("cuda", approximation=approximation, precision="bfloat16").fit(X[:200], Y[:200])
    mixed.module_.load_state_dict(here.module_.state_dict())
    assert np.abs(mixed.sample_proba(X, 8, seed=3) - expected).mean() < 0.02


def test_choices_agree_with_the_cpu() -> None:
    here, there = pair()
    inputs = there.machine_.tensor(X)
    draws = there.log_draws(inputs, 8, 3).exp()
    assert draws.device.type == "cuda"
    on_gpu, on_cpu = batchbald(draws, 5), batchbald(draws.cpu().numpy(), 5)
    assert on_gpu.indices.tolist() == on_cpu.indices.tolist()
    np.testing.assert_allclose(on_gpu.gains, on_cpu.gains, atol=1e-12)
    np.testing.assert_allclose(here.sample_proba(X, 8, seed=3), draws.cpu().numpy(), rtol=1e-3, atol=1e-5)


def test_a_run_on_the_gpu_learns_and_goes_on(tmp_path: Any) -> None:
    settings: dict[str, Any] = {"initial": 50, "batch": 5, "X_test": X[1000:], "y_test": Y[1000:]}
    whole = simulate(network("cuda", samples=5), X[:1000], Y[:1000], steps=6, **settings)
    assert whole.measures["accuracy"][-1] > 0.6
    path = tmp_path / "run"
    simulate(network("cuda", samples=5), X[:1000], Y[:1000], steps=3, checkpoint=path, **settings)
    again = simulate(network("cuda", samples=5), X[:1000], Y[:1000], steps=6, checkpoint=path, **settings)
    # A GPU may add in another order; so the run goes on alike, not to the bit.
    np.testing.assert_allclose(again.kl_new_old[:3], whole.kl_new_old[:3], rtol=0.05)
    assert len(again) == 6
