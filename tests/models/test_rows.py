"""Masks where a module does not keep the rows as its first axis and nothing else."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from suffice.errors import InvalidValueError
from suffice.models.deep.dropout_layers import Masks, must_multiply_early
from suffice.models.deep.trained_module import log_draws
from suffice.numerics import Floats


def drawn(module: nn.Module, rows: torch.Tensor, k: int) -> Floats:
    masks = Masks(k, 3, early=must_multiply_early(module, rows))
    return np.asarray(log_draws(module, rows, masks).numpy(), dtype=np.float64)


class Folded(nn.Module):
    """Takes the parts of a row as rows of their own, and puts them together again."""

    def __init__(self, inputs: int, parts: int) -> None:
        super().__init__()
        self.parts = parts
        self.first, self.second = nn.Linear(inputs // parts, 6), nn.Linear(6 * parts, 3)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(self.first(rows.reshape(len(rows) * self.parts, -1)))
        out: torch.Tensor = self.second(F.dropout(hidden, 0.5).reshape(len(rows), -1))
        return out


@pytest.mark.parametrize(("parts", "k"), [(2, 6), (4, 4), (4, 7)])
def test_parts_of_a_row_may_be_rows_of_their_own(parts: int, k: int) -> None:
    torch.manual_seed(0)
    module, rows = Folded(8, parts).eval(), torch.randn(11, 8)
    found = drawn(module, rows, k)
    assert len({tuple(found[:, draw].ravel().round(6)) for draw in range(k)}) == k
    np.testing.assert_allclose(drawn(module, rows.flip(0), k)[::-1], found, atol=1e-5)
    np.testing.assert_allclose(drawn(module, rows[:1], k), found[:1], atol=1e-5)


@pytest.mark.parametrize("length", [4, 6])
def test_rows_that_are_not_the_first_axis_are_refused(length: int) -> None:
    class Backwards(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.head = nn.TransformerEncoderLayer(4, 2, 8, 0.5), nn.Linear(4, 3)

        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            out: torch.Tensor = self.head(self.layer(rows.reshape(len(rows), length, 4).transpose(0, 1)).mean(dim=0))
            return out

    with pytest.raises(InvalidValueError, match="batch_first=True"):
        must_multiply_early(Backwards().eval(), torch.randn(5, 4 * length))
