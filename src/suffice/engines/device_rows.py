"""Rows of a pool in the memory of a device of torch, read by index."""

from typing import Any, Final

import numpy as np
import torch

from suffice.models.inputs import LARGEST, require_finite
from suffice.numerics import Floats

_KEPT_TYPES: Final = (torch.float32, torch.float64)


class DeviceRows:
    """Rows of a pool on a device. ``rows[indices]`` is an array in memory, as float64.

    A model that is followed on the device needs only a few rows in memory, so the pool is never copied back.

    Args:
        points: A table of numbers, ``m x D``: an array or a tensor. It is copied, because the caller may change it.
        device: Name of the device.

    Attributes:
        shape: Number of rows and of columns.
        tensor: The rows on the device, in single or double precision.

    Examples:
        >>> rows = DeviceRows(np.array([[0.0, 1.0], [2.0, 3.0]]), "cpu")
        >>> rows.shape, rows[[1]]
        ((2, 2), array([[2., 3.]]))
    """

    def __init__(self, points: Any, device: str) -> None:
        if isinstance(points, np.ndarray) and not points.flags.writeable:
            points = np.array(points)
        given = torch.as_tensor(points).detach()
        dtype = given.dtype if given.dtype in _KEPT_TYPES else torch.float64
        self.tensor = given.to(device=device, dtype=dtype, copy=True)
        self.shape = (int(given.shape[0]), int(given.shape[1]))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Floats:
        if not isinstance(key, slice):
            # A copy, because torch warns of arrays that may not be written to; an empty list has no type of its own.
            places = np.array(key)
            key = torch.as_tensor(places if places.size else places.astype(np.intp), device=self.tensor.device)
        rows: Floats = self.tensor[key].double().cpu().numpy()
        return rows

    def array(self) -> Floats:
        """All rows in memory."""
        return self[:]

    def require_finite(self, name: str) -> None:
        """Raise an error for an entry that is NaN, infinite or beyond 1e100. The device reads all rows once.

        Raises:
            InvalidValueError: There is such an entry; the message names its row and column.
        """
        low, high = self.tensor.aminmax()
        # Comparisons with NaN are False.
        if not (float(low) >= -LARGEST and float(high) <= LARGEST):
            require_finite(self.array(), None, name)
