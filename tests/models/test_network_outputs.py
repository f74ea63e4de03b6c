"""Which output stands for which class, and what a failed fit leaves behind."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from suffice.errors import TrainingDivergedError
from suffice.models import DropoutNetwork


def test_classes_of_a_module_stand_in_the_order_of_its_outputs() -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(2, 8), nn.Dropout(0.1), nn.Linear(8, 3))
    rows = np.random.default_rng(0).normal(size=(30, 2))
    names = ["zero", "one", "two"]
    with torch.no_grad():
        best = module.eval()(torch.tensor(rows, dtype=torch.float32)).argmax(dim=1).numpy()
    tiny: dict[str, Any] = {"epochs": 1, "learning_rate": 1e-8, "samples": 50, "device": "cpu"}
    model = DropoutNetwork(module, classes=names, **tiny).fit(rows, np.array(names)[best])
    assert model.classes_.tolist() == sorted(names)
    assert np.mean(model.predict(rows) == np.array(names)[best]) > 0.8


def test_a_refit_that_fails_leaves_the_fitted_model() -> None:
    rows = np.random.default_rng(0).normal(size=(20, 5))
    model = DropoutNetwork(epochs=2, device="cpu").fit(rows, rows[:, 0] > 0)
    before = model.predict_proba(rows)
    model.set_params(learning_rate=1e25)
    with pytest.raises(TrainingDivergedError):
        model.fit(np.hstack([rows, rows]), rows[:, 0] > 0)
    np.testing.assert_array_equal(model.predict_proba(rows), before)


def test_many_classes_among_few_labels_are_no_warning() -> None:
    rows = np.random.default_rng(0).normal(size=(30, 3))
    assert len(DropoutNetwork(epochs=1, device="cpu").fit(rows, np.arange(30)).classes_) == 30
