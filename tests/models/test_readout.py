"""What a module's posterior is made of, and the divergence between two of them, against the weights themselves."""

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from suffice import kl
from suffice.divergence import dropout_contributions
from suffice.errors import InvalidValueError
from suffice.models import DropoutNetwork
from suffice.models.deep.dropout_layers import Structure, dropout_posterior, structure
from suffice.numerics import Floats

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 6)).astype(np.float32)
Y = X[:, :3].argmax(axis=1)


def read(module: nn.Module, *shape: int) -> Structure:
    return structure(module.eval(), torch.zeros(2, *(shape or (6,))))


def keeps(module: nn.Module, *shape: int) -> dict[str, float]:
    return {layer.name: layer.keep for layer in read(module, *shape).layers}


def count(posterior: Any) -> int:
    return sum(layer.weight.size + layer.bias.size for layer in posterior.layers)


def trained_weights(module: nn.Module) -> int:
    return sum(weights.numel() for weights in module.parameters() if weights.requires_grad)


def test_the_papers_network() -> None:
    images = RNG.random((12, 28, 28))
    model = DropoutNetwork("mnist", epochs=1, classes=tuple(range(10)), device="cpu").fit(images, np.arange(12) % 3)
    layers = model.posterior.layers
    assert model.layers_ == ["0", "4", "9", "12"]
    assert [layer.keep for layer in layers] == [1.0, 0.5, 0.5, 0.5]
    assert [layer.inputs for layer in layers] == [1, 32, 64, 128]
    assert [layer.weight.shape for layer in layers] == [(32, 1, 5, 5), (64, 32, 5, 5), (128, 64, 16), (10, 128)]
    assert [layer.bias.size for layer in layers] == [32, 64, 128, 10]
    assert count(model.posterior) == trained_weights(model.module_)
    # The 16 inputs of a channel are those that flattening put side by side.
    plain = model.module_.state_dict()["9.weight"].numpy().astype(np.float64)
    np.testing.assert_array_equal(layers[2].weight[:, 5], plain[:, 80:96])
    np.testing.assert_array_equal(layers[1].columns[3], model.module_[4].weight.detach().numpy()[:, 3].ravel())


def test_plain_layers() -> None:
    model = DropoutNetwork(hidden=(5, 4), dropout=0.2, sigma=0.3, epochs=1, device="cpu").fit(X, Y)
    layers = model.posterior.layers
    assert [layer.weight.shape for layer in layers] == [(5, 6), (4, 5), (3, 4)]
    assert [layer.keep for layer in layers] == [1.0, 0.8, 0.8]
    assert {layer.sigma for layer in layers} == {0.3}
    state = list(model.module_.state_dict().values())
    for number, layer in enumerate(layers):
        np.testing.assert_array_equal(layer.weight, state[2 * number].numpy())
        np.testing.assert_array_equal(layer.bias, state[2 * number + 1].numpy())


def batch_normed() -> nn.Sequential:
    return nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Dropout(0.25), nn.Linear(5, 3))


def frozen() -> nn.Sequential:
    module = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Dropout(0.25), nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3))
    module[0].requires_grad_(False)
    module[3].weight.requires_grad_(False)
    return module


class Tied(nn.Module):
    """One layer used twice, the second time dropped; and one matrix with two biases."""

    def __init__(self) -> None:
        super().__init__()
        self.shared, self.drop, self.last = nn.Linear(6, 6), nn.Dropout(0.25), nn.Linear(6, 3)
        self.other = nn.Parameter(torch.zeros(6))

    def forward(self, x: torch.Tensor) -> Any:
        once = torch.relu(self.shared(x))
        twice = torch.relu(self.shared(self.drop(once)))
        return self.last(nn.functional.linear(self.drop(twice), self.shared.weight, self.other))


class Unused(nn.Module):
    """Holds weights that it never uses."""

    def __init__(self) -> None:
        super().__init__()
        self.spare, self.drop, self.last = nn.Linear(6, 2), nn.Dropout(0.25), nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> Any:
        return self.last(self.drop(x))


class Attention(nn.Module):
    """A transformer layer over six numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.last = nn.Linear(1, 8), nn.Linear(8, 3)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.25, batch_first=True)

    def forward(self, x: torch.Tensor) -> Any:
        return self.last(self.layer(self.embed(x.unsqueeze(-1))).mean(dim=1))


@pytest.mark.parametrize("make", [batch_normed, frozen, Tied, Unused, Attention], ids=lambda make: make.__name__)
def test_every_trained_weight_counts_once(make: Any) -> None:
    module = make()
    found = read(module)
    posterior = dropout_posterior(module, found.layers, 1.0)
    assert count(posterior) == trained_weights(module)
    assert len({layer.name for layer in found.layers}) == len(found.layers)
    everything = np.sort(np.concatenate([part.ravel() for a in posterior.layers for part in (a.weight, a.bias)]))
    weights = [part.detach().numpy().ravel() for part in module.parameters() if part.requires_grad]
    np.testing.assert_array_equal(everything, np.sort(np.concatenate(weights).astype(np.float64)))


def test_normalisation_comes_last_and_is_never_dropped() -> None:
    assert keeps(batch_normed()) == {"0": 1.0, "4": 0.75, "1": 1.0, "1.bias": 1.0}


def test_frozen_weights_are_no_part_of_the_posterior() -> None:
    assert keeps(frozen()) == {"5": 1.0, "3.bias": 1.0}
    model = DropoutNetwork(frozen(), epochs=5, device="cpu").fit(X, Y)
    before, kept = model.posterior, model.module_[0].weight.detach().clone()
    model.observe(X[:1], Y[:1])
    assert torch.equal(model.module_[0].weight, kept)
    assert kl(model.posterior, before) > 0.0


def test_weights_used_twice_take_the_larger_probability() -> None:
    assert keeps(Tied())["shared"] == 1.0


def test_dropout_twice_in_a_row_multiplies() -> None:
    assert keeps(nn.Sequential(nn.Dropout(0.5), nn.ReLU(), nn.Dropout(0.2), nn.Linear(6, 3))) == {"3": 0.4}


def test_what_a_unit_is() -> None:
    image, drop = (4, 6, 6), nn.Dropout2d(0.5)
    flat = nn.Sequential(drop, nn.Flatten(), nn.Linear(144, 3))
    pooled = nn.Sequential(drop, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3))
    single = nn.Sequential(nn.Dropout(0.5), nn.Flatten(), nn.Linear(144, 3))
    for module, inputs in ((flat, 4), (pooled, 4), (single, 144)):
        posterior = dropout_posterior(module, read(module, *image).layers, 1.0)
        assert [layer.inputs for layer in posterior.layers] == [inputs]
        assert count(posterior) == trained_weights(module)


class Branches(nn.Module):
    """Two layers on the same inputs, of which one sees them dropped: the order of the calls says nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.drop, self.whole, self.dropped = nn.Dropout(0.5), nn.Linear(6, 3), nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> Any:
        some = self.drop(x)
        return self.whole(x) + self.dropped(some)


def test_dropout_counts_where_its_outputs_go() -> None:
    assert keeps(Branches()) == {"whole": 1.0, "dropped": 0.5}


class Residual(nn.Module):
    """What reaches the last layer is never dropped as a whole."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.last, self.drop = nn.Linear(6, 6), nn.Linear(6, 3), nn.Dropout(0.5)

    def forward(self, x: torch.Tensor) -> Any:
        return self.last(x + self.drop(torch.relu(self.inner(x))))


def test_a_sum_with_what_was_not_dropped_is_not_dropped() -> None:
    assert keeps(Residual()) == {"inner": 1.0, "last": 1.0}


class OtherProduct(nn.Module):
    """A matrix product that is no layer of torch's stands between the dropout and the last layer."""

    def __init__(self) -> None:
        super().__init__()
        self.drop, self.matrix, self.last = nn.Dropout(0.5), nn.Parameter(torch.randn(6, 6)), nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> Any:
        return self.last(torch.relu(self.drop(x) @ self.matrix))


def test_dropout_before_another_product_is_not_the_next_layers() -> None:
    assert keeps(OtherProduct())["last"] == 1.0


def by_hand(new: dict[str, Any], old: dict[str, Any], keep: dict[str, float], sigma: float) -> Floats:
    """``(p |dM|^2 + |dnu|^2) / 2 sigma^2`` of each layer, from what torch saves."""
    moved = {name: float(((new[name].double() - old[name].double()) ** 2).sum()) for name in new}
    shares = [p * moved[f"{name}.weight"] + moved[f"{name}.bias"] for name, p in keep.items()]
    return np.array(shares) / (2.0 * sigma**2)


@pytest.mark.parametrize("sigma", [1.0, 0.2])
def test_the_divergence_of_a_training(sigma: float) -> None:
    keep = {"1": 1.0, "4": 0.7, "7": 0.7}
    model = DropoutNetwork(hidden=(9, 7), dropout=0.3, sigma=sigma, epochs=8, device="cpu").fit(X[:30], Y[:30])
    assert model.layers_ == list(keep)
    before = {name: value.clone() for name, value in model.module_.state_dict().items()}
    old = model.posterior
    model.observe(X[30:], Y[30:])
    new = model.posterior
    shares = by_hand(model.module_.state_dict(), before, keep, sigma)
    assert (shares > 0.0).all()
    np.testing.assert_allclose(dropout_contributions(new, old), shares, rtol=1e-10)
    assert float(kl(new, old)) == pytest.approx(shares.sum(), rel=1e-12)
    assert float(kl(old, new)) == float(kl(new, old))
    assert kl(new, old).kind == "bound"


def test_the_divergence_of_convolutions_by_the_same_formula() -> None:
    images = RNG.random((10, 28, 28))
    model = DropoutNetwork("mnist", epochs=1, warm_epochs=1, device="cpu").fit(images, np.arange(10) % 2)
    before, old = {name: value.clone() for name, value in model.module_.state_dict().items()}, model.posterior
    new = model.observe(images[:2], [0, 1]).posterior
    keep = {"0": 1.0, "4": 0.5, "9": 0.5, "12": 0.5}
    shares = by_hand(model.module_.state_dict(), before, keep, 1.0)
    np.testing.assert_allclose(dropout_contributions(new, old), shares, rtol=1e-10)
    assert float(kl(new, old)) == pytest.approx(shares.sum(), rel=1e-12)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("sigma", [1.0, 0.05, 0.02])
def test_the_bound_lies_above_the_divergence_itself(sigma: float) -> None:
    options: dict[str, Any] = {"hidden": (4,), "epochs": 20, "learning_rate": 0.02, "device": "cpu"}
    model = DropoutNetwork(sigma=sigma, **options).fit(X[:30], Y[:30])
    old = model.posterior
    new = model.observe(X[30:], Y[30:]).posterior
    for p, q in ((new, old), (old, new)):
        theta = p.sample(20_000, np.random.default_rng(0))
        ratio = p.log_density(theta) - q.log_density(theta)
        estimate, error = float(ratio.mean()), float(ratio.std() / np.sqrt(len(ratio)))
        assert theta.shape == (20_000, trained_weights(model.module_))
        assert estimate > 0.0
        assert float(kl(p, q)) >= estimate - 5.0 * error


def test_a_module_that_gives_no_class_scores_is_refused() -> None:
    for module, shape in (
        (nn.Sequential(nn.Dropout(), nn.Linear(6, 1)), r"\(2, 1\)"),
        (nn.Sequential(nn.Dropout(), nn.Linear(6, 3), nn.Flatten(0)), r"\(6,\)"),
        (nn.Sequential(nn.Dropout(), nn.Linear(6, 4), nn.Unflatten(1, (2, 2))), r"\(2, 2, 2\)"),
    ):
        with pytest.raises(InvalidValueError, match=rf"one row of class scores.* 2 rows of shape \(6,\) gave {shape}"):
            DropoutNetwork(module, epochs=1, device="cpu").fit(X, Y)


def test_the_head_is_found() -> None:
    plain, squashed = [nn.Dropout(0.5), nn.Linear(6, 3)], nn.LogSoftmax(dim=1)
    assert read(nn.Sequential(*plain)).head == "1.weight"
    assert read(nn.Sequential(*plain, squashed)).head == ""
    assert read(nn.Sequential(*plain, nn.Identity())).head == "1.weight"
    assert read(nn.Sequential(nn.Unflatten(1, (6, 1, 1)), nn.Conv2d(6, 3, 1), nn.Flatten())).head == ""
    assert read(Branches()).head == ""
    assert read(nn.Sequential(*plain)).outputs == 3
    assert not read(nn.Sequential(nn.Linear(6, 3))).dropped


WORDS = np.array(["crow", "dove", "finch"])


def own() -> nn.Sequential:
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 3))


def given(module: nn.Module, **options: Any) -> DropoutNetwork:
    return DropoutNetwork(module, epochs=2, warm_epochs=1, device="cpu", **options)


def flat(model: DropoutNetwork) -> Floats:
    return np.concatenate([part.detach().numpy().ravel() for part in model.module_.parameters()])


def test_the_outputs_of_a_module_given() -> None:
    two = np.flatnonzero(Y < 2)
    model = given(own()).fit(X[two], Y[two])
    np.testing.assert_array_equal(model.classes_, [0, 1, 2])
    assert model.observe(X, Y).predict_proba(X).shape == (40, 3)
    words = given(own(), classes=WORDS).fit(X[two], WORDS[Y[two]])
    np.testing.assert_array_equal(words.classes_, WORDS)
    message = r"network has 3 outputs, but there are {} classes; give classes=\[...\] with one for each"
    for labels, number in ((WORDS[Y[two]], 2), (Y[two] + 5, 2), (np.arange(len(two)) % 4, 4)):
        with pytest.raises(InvalidValueError, match=message.format(number)):
            given(own()).fit(X[two], labels)
    with pytest.raises(InvalidValueError, match=message.format(2)):
        given(own(), classes=["a", "b"]).fit(X[two], np.array(["a", "b"])[Y[two]])


def test_a_class_that_a_module_has_no_output_for_is_refused() -> None:
    two = np.flatnonzero(Y < 2)
    model = given(own()).fit(X[two], Y[two])
    before = flat(model)
    for stranger in (3, -1, 100):
        with pytest.raises(InvalidValueError, match="network has 3 outputs"):
            model.observe(X[:1], [stranger])
        assert model.n_labels_ == len(two)
        np.testing.assert_array_equal(flat(model), before)


class InPlace(nn.Module):
    """Writes to what was dropped, in one of several ways."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way = way
        self.a, self.b, self.c = nn.Linear(4, 8), nn.Linear(8, 3), nn.Linear(4, 8)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        hidden = F.dropout(self.a(rows), 0.5)
        if self.way == "add":
            hidden += self.c(rows)
        elif self.way == "constant":
            hidden.add_(1.0)
        elif self.way == "part":
            hidden[:, 4:] = self.c(rows)[:, 4:]
        elif self.way == "relu":
            hidden = F.relu(hidden, inplace=True)
        elif self.way == "tied":
            hidden = hidden + (hidden @ self.b.weight.T).sum()
        out: torch.Tensor = self.b(hidden)
        return out


@pytest.mark.parametrize(
    ("way", "keep"), [("add", 1.0), ("constant", 1.0), ("part", 1.0), ("relu", 0.5), ("tied", 1.0), ("nothing", 0.5)]
)
def test_what_is_written_to_after_it_was_dropped_counts_as_kept(way: str, keep: float) -> None:
    found = {layer.name: layer.keep for layer in structure(InPlace(way).eval(), torch.randn(2, 4)).layers}
    assert found["b"] == keep


def test_a_layer_over_the_positions_of_a_text_counts_as_kept() -> None:
    class Tokens(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.each, self.head = nn.Linear(4, 5), nn.Linear(15, 2)

        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            hidden = self.each(F.dropout(rows.reshape(len(rows), 3, 4), 0.5))
            out: torch.Tensor = self.head(F.dropout(hidden.flatten(1), 0.25))
            return out

    found = {layer.name: layer.keep for layer in structure(Tokens().eval(), torch.randn(2, 12)).layers}
    assert found == {"each": 1.0, "head": 0.75}


def test_a_layer_over_parts_that_were_made_rows_counts_as_kept() -> None:
    class Parts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.each, self.head = nn.Linear(4, 5), nn.Linear(15, 2)

        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            hidden = self.each(F.dropout(rows, 0.5).reshape(len(rows) * 3, 4))
            out: torch.Tensor = self.head(F.dropout(hidden.reshape(len(rows), -1), 0.25))
            return out

    found = {layer.name: layer.keep for layer in structure(Parts().eval(), torch.randn(2, 12)).layers}
    assert found == {"each": 1.0, "head": 0.75}


def test_a_network_that_ends_in_a_softmax_is_refused() -> None:
    module = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 3), nn.Softmax(dim=1))
    with pytest.raises(InvalidValueError, match="gives probabilities, and class scores are needed"):
        structure(module.eval(), torch.randn(2, 4))
    assert structure(nn.Sequential(*list(module)[:-1], nn.LogSoftmax(dim=1)).eval(), torch.randn(2, 4)).outputs == 3
