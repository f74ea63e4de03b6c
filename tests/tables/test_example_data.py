"""Images of digits for the demonstration."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from suffice.errors import SufficeError
from suffice.tables.example_data import write_digits


def test_images_are_those_of_the_digits_and_are_kept(tmp_path: Path) -> None:
    pillow = pytest.importorskip("PIL.Image", reason="images: Pillow is not installed")
    folder = tmp_path / "new" / "digits"
    assert write_digits(folder, 3) == 3
    for k in range(3):
        with pillow.open(folder / f"digit-{k:04d}.png") as image:
            small = np.asarray(image.resize((8, 8)), dtype=float)
        # Ink is dark.
        assert np.corrcoef(small.ravel(), load_digits().images[k].ravel())[0, 1] < -0.9
    before = (folder / "digit-0000.png").stat().st_mtime_ns
    assert write_digits(folder, 4) == 1
    assert (folder / "digit-0000.png").stat().st_mtime_ns == before


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    pytest.importorskip("PIL.Image", reason="images: Pillow is not installed")
    (tmp_path / "file").write_text("")
    with pytest.raises(SufficeError, match=r"the images cannot be written to .*file"):
        write_digits(tmp_path / "file", 1)
