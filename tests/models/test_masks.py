"""Masks: one set for each posterior draw, whatever the rows, blocks and kinds of dropout; and those of the training."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax
from torch import nn

from suffice.errors import InvalidValueError
from suffice.models import DropoutNetwork
from suffice.models.deep.dropout_layers import Masks, must_multiply_early
from suffice.models.deep.trained_module import Recipe, averaged_loss, features, log_draws
from suffice.numerics import Floats
from tests.thoroughness import examples

ROWS = torch.tensor(np.random.default_rng(0).normal(size=(23, 6)), dtype=torch.float32)


class Functional(nn.Module):
    """Drops by a call of its own, always on."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(6, 12), nn.Linear(12, 3)

    def forward(self, x: torch.Tensor) -> Any:
        return self.last(F.dropout(torch.relu(self.first(x)), p=0.4))


class Twice(nn.Module):
    """Uses one dropout layer in two places."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.last = nn.Linear(6, 10), nn.Linear(10, 10), nn.Linear(10, 3)
        self.drop = nn.Dropout(0.3)

    def forward(self, x: torch.Tensor) -> Any:
        return self.last(self.drop(torch.relu(self.second(self.drop(torch.relu(self.first(x)))))))


class Residual(nn.Module):
    """A branch passes the dropout by."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.last, self.drop = nn.Linear(6, 6), nn.Linear(6, 3), nn.Dropout(0.5)

    def forward(self, x: torch.Tensor) -> Any:
        return self.last(x + self.drop(torch.relu(self.inner(x))))


class Transformer(nn.Module):
    """Six numbers as a sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.last = nn.Linear(1, 8), nn.Linear(8, 3)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.3, batch_first=True)

    def forward(self, x: torch.Tensor) -> Any:
        return self.last(self.layer(self.embed(x.unsqueeze(-1))).mean(dim=1))


def convolutions() -> nn.Module:
    return nn.Sequential(
        nn.Unflatten(1, (1, 2, 3)), nn.Conv2d(1, 8, 2), nn.Dropout2d(0.4), nn.ReLU(), nn.Flatten(), nn.Linear(16, 3)
    )


def sequences() -> nn.Module:
    return nn.Sequential(nn.Unflatten(1, (1, 6)), nn.Conv1d(1, 8, 3), nn.Dropout1d(0.4), nn.Flatten(), nn.Linear(32, 3))


def volumes() -> nn.Module:
    cube = nn.Conv3d(1, 8, (1, 1, 2))
    return nn.Sequential(nn.Unflatten(1, (1, 1, 2, 3)), cube, nn.Dropout3d(0.4), nn.Flatten(), nn.Linear(32, 3))


def normalised() -> nn.Module:
    module = nn.Sequential(nn.Linear(6, 10), nn.BatchNorm1d(10), nn.ReLU(), nn.Dropout(0.5), nn.Linear(10, 3))
    module.train()(ROWS * 3.0 + 1.0)
    return module


MODULES: list[Callable[[], nn.Module]] = [
    Functional, Twice, Residual, Transformer, convolutions, sequences, volumes, normalised
]  # fmt: skip


def built(make: Callable[[], nn.Module], seed: int = 0) -> Any:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return make().eval()


def drawn(module: nn.Module, rows: torch.Tensor, k: int = 7, seed: int = 3) -> Floats:
    masks = Masks(k, seed, early=must_multiply_early(module, rows))
    return np.asarray(log_draws(module, rows, masks).numpy(), dtype=np.float64)


each_module = pytest.mark.parametrize("make", MODULES, ids=lambda make: make.__name__)


@each_module
def test_one_draw_is_one_network_for_all_rows_and_blocks(make: Any) -> None:
    module = built(make)
    expected = drawn(module, ROWS)
    assert expected.shape == (23, 7, 3)
    np.testing.assert_allclose(np.exp(expected).sum(axis=2), 1.0, rtol=1e-5)
    order = np.random.default_rng(1).permutation(23)
    np.testing.assert_allclose(drawn(module, ROWS[order]), expected[order], rtol=1e-4, atol=1e-5)
    for row in (0, 22):
        np.testing.assert_allclose(drawn(module, ROWS[[row]])[0], expected[row], rtol=1e-4, atol=1e-5)
    masks = Masks(7, 3, early=must_multiply_early(module, ROWS))
    for sizes in ([1] * 23, [8, 8, 7], [20, 3]):
        with torch.no_grad():
            logits = torch.cat([masks.forward(module, rows) for rows in ROWS.split(sizes)])
        np.testing.assert_allclose(torch.log_softmax(logits, dim=2).numpy(), expected, rtol=1e-4, atol=1e-5)


def test_many_rows_are_predicted_like_few() -> None:
    module = built(Twice)
    expected = drawn(module, ROWS, 20)
    found = drawn(module, ROWS.repeat(400, 1), 20)
    np.testing.assert_allclose(found, np.tile(expected, (400, 1, 1)), rtol=1e-4, atol=1e-5)


@each_module
def test_draws_seeds_and_equal_rows(make: Any) -> None:
    module = built(make)
    alike = drawn(module, ROWS[:1].repeat(4, 1))
    # Equal rows are predicted alike in every draw; the draws themselves differ, and so do those of other seeds.
    np.testing.assert_allclose(alike, np.broadcast_to(alike[:1], alike.shape), rtol=1e-4, atol=1e-5)
    # Two of seven draws may have the same masks where few units are left.
    assert len(np.unique(alike[0, :, 0].round(5))) >= 3
    np.testing.assert_array_equal(drawn(module, ROWS), drawn(module, ROWS))
    assert np.abs(drawn(module, ROWS, seed=4) - drawn(module, ROWS)).max() > 1e-2


@pytest.mark.parametrize("make", [Functional, Residual, sequences, volumes, normalised], ids=lambda make: make.__name__)
def test_the_masked_logits_average_to_the_unmasked_where_all_after_the_mask_is_linear(make: Any) -> None:
    module = built(make)
    with torch.no_grad():
        plain = module(ROWS) if make is not Functional else module.last(torch.relu(module.first(ROWS)))
        found = Masks(4000, 0, early=must_multiply_early(module, ROWS)).forward(module, ROWS)
    error = found.std(dim=1) / np.sqrt(4000.0)
    assert float(((found.mean(dim=1) - plain).abs() / (error + 1e-6)).max()) < 5.0


class Probe(nn.Module):
    """Drops ones of given widths, one call after the other, and returns the last."""

    def __init__(self, rate: float, *widths: int) -> None:
        super().__init__()
        self.rate, self.widths = rate, widths

    def forward(self, x: torch.Tensor) -> Any:
        for width in self.widths:
            found = F.dropout(torch.ones(len(x), width), p=self.rate)
        return found


def mask(k: int, seed: int, rate: float, *widths: int) -> Floats:
    """The mask of the last of several dropout calls, ``k x width``."""
    # Each call multiplies ones of its own, so the rows are multiplied before the module and not by it.
    found = Masks(k, seed, early=True).forward(Probe(rate, *widths), torch.zeros(1, 1))
    return np.asarray(found[0].numpy(), dtype=np.float64)


@examples(30)
@given(st.integers(0, 2**31), st.sampled_from([0.1, 0.5, 0.8]), st.integers(1, 9))
def test_a_mask_is_0_or_the_inverse_of_the_probability_to_keep(seed: int, rate: float, k: int) -> None:
    found = mask(k, seed, rate, 40)
    assert found.shape == (k, 40)
    assert np.isin(found.round(5), np.round([0.0, 1.0 / (1.0 - rate)], 5)).all()
    second = mask(k, seed, rate, 40, 40)
    assert (found != second).any()
    assert (found[:1] != mask(k, seed + 1, rate, 40)[:1]).any()


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_the_share_that_is_dropped(rate: float) -> None:
    found = mask(200, 5, rate, 200) == 0.0
    assert abs(found.mean() - rate) < 5.0 * np.sqrt(rate * (1.0 - rate) / found.size)
    # Units are dropped independently: counts in a draw scatter as the binomial says.
    assert found.sum(axis=1).var() == pytest.approx(200 * rate * (1.0 - rate), rel=0.4)


def test_sampled_probabilities_are_those_of_the_weights_times_the_masks() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 5))
    model = DropoutNetwork(hidden=(12, 9), dropout=0.3, epochs=30, device="cpu").fit(X, X[:, :3].argmax(axis=1))
    found = model.sample_proba(X, 6, seed=11)
    first, second = mask(6, 11, 0.3, 12), mask(6, 11, 0.3, 12, 9)
    names = [f"{layer}.{part}" for layer in model.layers_ for part in ("weight", "bias")]
    weights = [model.module_.state_dict()[name].numpy().astype(np.float64) for name in names]
    assert [len(part) for part in weights] == [12, 12, 9, 9, 3, 3]
    for draw in range(6):
        hidden = np.maximum(X @ weights[0].T + weights[1], 0.0)
        hidden = np.maximum(hidden @ (weights[2] * first[draw]).T + weights[3], 0.0)
        logits = hidden @ (weights[4] * second[draw]).T + weights[5]
        np.testing.assert_allclose(found[:, draw], softmax(logits, axis=1), rtol=2e-4, atol=2e-6)


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_channels_are_dropped_as_a_whole(axes: int) -> None:
    layer = (nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)[axes - 1](0.5)
    with torch.no_grad():
        found = Masks(20, 0).forward(layer.eval(), torch.ones(2, 10, *[3] * axes)).flatten(3)
    assert found.shape == (2, 20, 10, 3**axes)
    assert torch.equal(found, found[..., :1].expand_as(found))
    assert 50 < int((found[0, ..., 0] == 0.0).sum()) < 150
    assert torch.equal(found[0], found[1])


def test_elements_of_a_channel_are_dropped_one_by_one() -> None:
    found = Masks(20, 0).forward(nn.Dropout(0.5), torch.ones(1, 4, 3, 3)).flatten(3)
    assert not torch.equal(found, found[..., :1].expand_as(found))


def test_a_rate_of_0_drops_nothing_and_multiplies_no_rows() -> None:
    module = built(lambda: nn.Sequential(nn.Dropout(0.0), nn.Linear(6, 3)))
    counted = rows_through(module[1])
    found = Masks(5, 0).forward(module, ROWS)
    assert found.shape == (23, 5, 3)
    assert counted == [23]
    assert torch.equal(found[:, 0], module(ROWS))


def rows_through(layer: nn.Module) -> list[int]:
    counts: list[int] = []
    layer.register_forward_hook(lambda _, inputs, __: counts.append(len(inputs[0])))
    return counts


def test_what_comes_before_the_first_mask_is_computed_once() -> None:
    module = built(Twice)
    before, after = rows_through(module.first), rows_through(module.second)
    Masks(7, 0).forward(module, ROWS)
    assert (before, after) == ([23], [23 * 7])
    before.clear()
    after.clear()
    log_draws(module, ROWS, Masks(7, 0))
    assert (sum(before), sum(after)) == (23, 23 * 7)


@pytest.mark.parametrize(
    ("make", "early"), [(Residual, True), (Transformer, True), (Twice, False), (normalised, False)]
)
def test_a_branch_past_the_first_mask_multiplies_the_rows_early(make: Any, early: bool) -> None:
    module = built(make)
    assert must_multiply_early(module, ROWS) is early
    assert must_multiply_early(module, ROWS[:1]) is early
    counted = rows_through(next(part for part in module.modules() if isinstance(part, nn.Linear)))
    Masks(4, 0, early=early).forward(module, ROWS)
    assert counted[0] == 23 * (4 if early else 1)


def test_the_residual_network_by_hand() -> None:
    module = built(Residual)
    kept = mask(5, 9, 0.5, 6)
    weights = {name: value.numpy().astype(np.float64) for name, value in module.state_dict().items()}
    rows = ROWS.numpy().astype(np.float64)
    inner = np.maximum(rows @ weights["inner.weight"].T + weights["inner.bias"], 0.0)
    logits = (rows[:, None] + inner[:, None] * kept) @ weights["last.weight"].T + weights["last.bias"]
    np.testing.assert_allclose(np.exp(drawn(module, ROWS, 5, 9)), softmax(logits, axis=2), rtol=2e-4, atol=1e-6)


class ConstantBranch(nn.Module):
    """Multiplies by a gate that has one row for all: rows may be multiplied late."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.last, self.drop = nn.Parameter(torch.linspace(0.5, 1.5, 6)), nn.Linear(6, 3), nn.Dropout(0.5)

    def forward(self, x: torch.Tensor) -> Any:
        return self.last(self.drop(x) * self.gate[None, :])


class AcrossRows(nn.Module):
    """Pairs rows by their number, without a sum that fails: only the comparison can see it."""

    def __init__(self) -> None:
        super().__init__()
        self.last, self.drop = nn.Linear(6, 3), nn.Dropout(0.5)

    def forward(self, x: torch.Tensor) -> Any:
        dropped = self.drop(x)
        return self.last(dropped + x.repeat(len(dropped) // len(x), 1))


class Guarded(Residual):
    """Checks shapes by itself."""

    def forward(self, x: torch.Tensor) -> Any:
        dropped = self.drop(x)
        assert dropped.shape == x.shape, "rows got lost"
        return self.last(x + dropped)


def test_branches_are_told_apart_by_what_they_give() -> None:
    assert must_multiply_early(built(ConstantBranch), ROWS) is False
    assert must_multiply_early(built(AcrossRows), ROWS) is True


def test_a_module_that_checks_its_shapes_is_multiplied_early() -> None:
    assert drawn(built(Guarded), ROWS).shape == (23, 7, 3)


@pytest.mark.parametrize(
    "drop", [nn.AlphaDropout(0.5), nn.FeatureAlphaDropout(0.5)], ids=lambda drop: type(drop).__name__
)
def test_alpha_dropout_is_refused(drop: nn.Module) -> None:
    module = nn.Sequential(nn.Linear(6, 8), drop, nn.Linear(8, 3))
    with pytest.raises(InvalidValueError, match=r"alpha dropout .* use Dropout"):
        DropoutNetwork(module, epochs=1, device="cpu").fit(ROWS.numpy(), np.arange(23) % 3)


@pytest.mark.parametrize("drop", [nn.Dropout(1.0), nn.Dropout2d(1.0)], ids=lambda drop: type(drop).__name__)
def test_dropping_everything_is_refused(drop: nn.Module) -> None:
    layers = [nn.Unflatten(1, (6, 1, 1)), drop, nn.Flatten(), nn.Linear(6, 3)]
    with pytest.raises(InvalidValueError, match="drops with probability 1; it must be from 0 to below 1"):
        DropoutNetwork(nn.Sequential(*layers), epochs=1, device="cpu").fit(ROWS.numpy(), np.arange(23) % 3)


@pytest.mark.parametrize("approximation", ["dropout", "last-layer"])
def test_the_callers_randomness_mode_and_threads_are_left_alone(approximation: str) -> None:
    X, y = ROWS.numpy(), np.arange(23) % 3
    torch.manual_seed(5)
    before, threads = torch.random.get_rng_state(), torch.get_num_threads()
    numbers: Any = np.random.get_state()  # noqa: NPY002
    model = DropoutNetwork(hidden=(8,), epochs=2, approximation=approximation, device="cpu").fit(X, y)
    model.observe(X[:3], y[:3]).observe(X[:1], [7])
    model.sample_proba(X, 3)
    model.predict(X)
    _ = model.posterior
    assert torch.equal(torch.random.get_rng_state(), before)
    now: Any = np.random.get_state()  # noqa: NPY002
    assert repr(now) == repr(numbers)
    assert torch.get_num_threads() == threads
    assert not model.module_.training
    assert torch.is_grad_enabled()


def test_a_module_is_used_in_evaluation_mode_whatever_mode_it_came_in() -> None:
    module: Any = normalised().train()
    model = DropoutNetwork(module, epochs=1, device="cpu").fit(ROWS.numpy(), np.arange(23) % 3)
    assert module.training
    assert not model.module_.training
    statistics = model.module_[1].running_mean.clone()
    model.predict_proba(ROWS.numpy())
    assert torch.equal(model.module_[1].running_mean, statistics)


def test_features_drop_nothing() -> None:
    module = built(Twice)
    with torch.no_grad():
        expected = torch.relu(module.second(torch.relu(module.first(ROWS))))
    np.testing.assert_allclose(features(module, ROWS).numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)


def test_the_gradient_of_training_is_that_of_its_loss() -> None:
    module, rows = built(Functional).double().train(), ROWS[:7].double()

    def loss() -> torch.Tensor:
        with torch.random.fork_rng():
            torch.manual_seed(4)
            return averaged_loss(module, rows, torch.arange(7) % 3, Recipe(1, None, draws=3))

    loss().backward()
    for part in module.parameters():
        flat, gradient = part.data.view(-1), part.grad.view(-1)
        for k in range(0, len(flat), 3):
            kept, ends = float(flat[k]), []
            for step in (2e-3, -2e-3):
                flat[k] = kept + step
                ends.append(float(loss().detach()))
            flat[k] = kept
            assert float(gradient[k]) == pytest.approx((ends[0] - ends[1]) / 4e-3, abs=2e-4)


def test_the_logits_of_several_draws_are_averaged_before_the_loss() -> None:
    module, rows, codes = built(Twice).train(), ROWS[:9], torch.arange(9) % 3
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(2)
        found = float(averaged_loss(module, rows, codes, Recipe(1, None, draws=4)))
        torch.manual_seed(2)
        logits = module(rows.repeat(4, 1)).reshape(4, 9, 3)
    # Every row of every draw has masks of its own.
    assert float(logits.std(dim=0).min()) > 0.0
    assert found == pytest.approx(float(F.cross_entropy(logits.mean(dim=0), codes)), rel=1e-6)
    assert found != pytest.approx(float(np.mean([float(F.cross_entropy(draw, codes)) for draw in logits])), rel=1e-3)
