"""Handwritten digits as image files, for somebody who wants to try the labelling before there are data of their own."""

from pathlib import Path

import numpy as np

from suffice.errors import MissingExtraError, SufficeError

#: The classes that they have.
DIGITS = tuple("0123456789")
_SIDE = 160


def write_digits(folder: Path, n: int = 500) -> int:
    """Write scikit-learn's handwritten digits as PNG files, without their labels; those that are there are kept.

    Args:
        folder: Where to; made if it is not there.
        n: How many, at most 1797.

    Returns:
        How many were written.

    Raises:
        MissingExtraError: Pillow is not installed.
        SufficeError: The folder cannot be written to.
    """
    try:
        from PIL import Image
    except ImportError:
        raise MissingExtraError("Pillow", "label", "Writing images") from None
    from sklearn.datasets import load_digits

    # Their ink is 0 to 16; on a page it is dark on white.
    pictures = (255.0 - load_digits().images[:n] * (255.0 / 16.0)).astype(np.uint8)
    written = 0
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for k, pixels in enumerate(pictures):
            path = folder / f"digit-{k:04d}.png"
            if not path.exists():
                Image.fromarray(pixels).resize((_SIDE, _SIDE), Image.Resampling.BICUBIC).save(path)
                written += 1
    except OSError as error:
        raise SufficeError(f"the images cannot be written to {folder}: {error.strerror or error}") from None
    return written
