"""Stopping rules in experiments of baal."""

from typing import Any

import numpy as np
import pytest
from scipy.special import softmax

import suffice as sf
from suffice.errors import InvalidTypeError, InvalidValueError
from suffice.integrations.baal import BaalCriterion, committee_probabilities
from tests.integrations.snippets import run_snippet

baal = pytest.importorskip("baal")
torch: Any = pytest.importorskip("torch")

X = np.random.default_rng(0).normal(size=(120, 4)).astype(np.float32)
Y = (X[:, 0] + X[:, 1] > 0.0).astype(int)


def made(labelled: int = 20, **settings: Any) -> tuple[Any, Any]:
    """An active data set and a model for two classes."""
    from baal.bayesian.dropout import patch_module
    from baal.modelwrapper import TrainingArgs

    torch.manual_seed(0)
    data = baal.ActiveLearningDataset(
        torch.utils.data.TensorDataset(torch.tensor(X), torch.tensor(Y)), random_state=0, **settings
    )
    data.label_randomly(labelled)
    layers = [torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Dropout(), torch.nn.Linear(16, 2)]
    network = patch_module(torch.nn.Sequential(*layers))
    args = TrainingArgs(
        torch.optim.Adam(network.parameters(), lr=0.02),
        epoch=5,
        criterion=torch.nn.CrossEntropyLoss(),
        workers=0,
        use_cuda=False,
    )
    return data, baal.ModelWrapper(network, args)


def test_the_snippet() -> None:
    variables = run_snippet("with_baal")
    verdict = variables["criterion"].verdict
    assert verdict.stop
    # The experiment has labelled the next items before it asks.
    assert verdict.n_labelled == len(variables["data"]) - 50 < 1000


def test_probabilities_of_logits() -> None:
    logits = np.random.default_rng(2).normal(size=(7, 3, 5), scale=100.0)
    p = committee_probabilities(logits)
    np.testing.assert_allclose(p, softmax(logits, axis=1).transpose(0, 2, 1), atol=1e-12)
    np.testing.assert_allclose(committee_probabilities(p.transpose(0, 2, 1)), p)
    assert committee_probabilities(logits[:, :, 0]).shape == (7, 1, 3)
    assert committee_probabilities(torch.tensor(logits)).shape == (7, 5, 3)


def test_the_probabilities_are_those_of_baal() -> None:
    from baal.utils.array_utils import to_prob

    data, model = made()
    model.train_on_dataset(data)
    predictions = model.predict_on_dataset(data.pool, 6, verbose=False)
    expected = to_prob(predictions).transpose(0, 2, 1)
    np.testing.assert_allclose(committee_probabilities(predictions), expected, atol=1e-6)


@pytest.mark.parametrize(
    "rule", [None, sf.IntrinsicStopping(), sf.InformationGain(0.01), sf.StabilizingPredictions()], ids=str
)
def test_rules_of_a_committee(rule: sf.Criterion | None) -> None:
    data, model = made()
    criterion = BaalCriterion(data, model, rule, iterations=8)
    for _ in range(3):
        model.train_on_dataset(data)
        state = torch.get_rng_state()
        criterion.should_stop({}, [])
        assert torch.equal(torch.get_rng_state(), state)
        assert criterion.verdict.n_labelled == len(data)
        data.label([0, 1, 2])
    assert criterion.verdicts
    assert criterion.verdict.reason


def test_the_labels_are_those_that_the_model_has_learned() -> None:
    data, model = made()
    criterion = BaalCriterion(data, model)
    model.train_on_dataset(data)
    first = np.flatnonzero(data.labelled)
    data.label([3, 4, 5])
    assert not criterion.should_stop()
    assert sorted(criterion.monitor.labels) == first.tolist()
    assert [criterion.monitor.labels[int(item)] for item in first] == Y[first].tolist()
    model.train_on_dataset(data)
    data.label([0])
    criterion.should_stop()
    assert criterion.verdict.n_labelled == 23


def test_a_model_of_the_last_steps_only() -> None:
    data, model = made(last_active_steps=1)
    data.label([0, 1, 2])
    criterion = BaalCriterion(data, model)
    model.train_on_dataset(data)
    assert len(data) == 3
    criterion.should_stop()
    assert criterion.verdict.n_labelled == 23


def test_random_labels_calibrate() -> None:
    data, model = made()
    criterion = BaalCriterion(data, model, random=range(120))
    for _ in range(2):
        model.train_on_dataset(data)
        criterion.should_stop()
        data.label_randomly(10)
    assert criterion.monitor.random_labels == 10


def test_bad_arguments() -> None:
    data, model = made()
    for wrong, named in ((X, "active_dataset must be of the class ActiveLearningDataset"), (None, "active_dataset")):
        with pytest.raises(InvalidTypeError, match=named):
            BaalCriterion(wrong, model)
    with pytest.raises(InvalidTypeError, match="model must be of the class ModelWrapper of baal, not Sequential"):
        BaalCriterion(data, model.model)
    with pytest.raises(InvalidValueError, match="iterations"):
        BaalCriterion(data, model, iterations=0)
    with pytest.raises(InvalidValueError, match="trained on 0 items"):
        BaalCriterion(data, model).should_stop()
    for shape in ((3,), (3, 1, 5), (0, 2, 5), (3, 2, 4, 4, 5)):
        with pytest.raises(InvalidValueError, match="predictions must be N x C x K"):
            committee_probabilities(np.zeros(shape))
    with pytest.raises(InvalidValueError, match="finite"):
        committee_probabilities(np.full((2, 2, 2), np.nan))
    with pytest.raises(InvalidTypeError, match="predictions"):
        committee_probabilities("abc")
