"""A run on disk, so that it goes on after it was killed: written whole or not at all."""

import os
import re
from pathlib import Path
from typing import Any, Final
from zlib import crc32

import numpy as np

from suffice.errors import InvalidValueError
from suffice.files import write_whole

_FORMAT: Final = "suffice-checkpoint-1"


def fingerprint(**parts: Any) -> dict[str, Any]:
    """What tells one run from another: settings as they are, arrays by shape and checksum."""
    return {name: _print(part) for name, part in parts.items()}


def model_parameters(model: Any) -> dict[str, str]:
    """All parameters of a model or pipeline, in full; of a module among them also the weights that it came with."""
    found = model.get_params(deep=True)
    # The steps of a pipeline are listed one by one besides.
    return {f"model's {name}": _full(value) for name, value in found.items() if name not in ("steps", "transformers")}


def _full(value: Any) -> str:
    if hasattr(value, "get_params"):
        return type(value).__name__
    if not hasattr(value, "state_dict"):
        # Where something lies in memory is no part of what it is.
        return re.sub(r" at 0x[0-9a-f]+", "", repr(value))
    weights = b"".join(tensor.detach().cpu().double().numpy().tobytes() for tensor in value.state_dict().values())
    return f"{' '.join(repr(value).split())} whose first weights have checksum {crc32(weights):08x}"


def _print(part: Any) -> Any:
    if not isinstance(part, np.ndarray):
        return part
    text = part if part.dtype.kind not in "OU" else np.char.encode(part.astype(str), "utf-8")
    return f"{'x'.join(map(str, part.shape))} with checksum {crc32(np.ascontiguousarray(text).tobytes()):08x}"


def save_checkpoint(path: Path, run: dict[str, Any], state: dict[str, Any]) -> None:
    """Write a state in place of the one before.

    Raises:
        SufficeError: It cannot be written there.
    """
    import torch

    def write(part: Path) -> None:
        with part.open("wb") as file:
            try:
                torch.save({"format": _FORMAT, "run": run, "state": state}, file)
            except RuntimeError as error:
                # What torch says of a disk that is full.
                raise OSError(str(error).splitlines()[0]) from None
            file.flush()
            os.fsync(file.fileno())

    write_whole(path, write, part=path.with_name(f"{path.name}.part"))


def load_checkpoint(path: Path, run: dict[str, Any]) -> dict[str, Any] | None:
    """The state that was saved for this run; None if there is none yet.

    Raises:
        InvalidValueError: The file is no checkpoint, or that of another run.
    """
    if not path.exists():
        return None
    import torch

    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
        known, state = found["run"], found["state"]
        if found["format"] != _FORMAT:
            raise KeyError(found["format"])
    except Exception:
        raise InvalidValueError(f"checkpoint {path} is not a run that suffice saved; give another path") from None
    for name, value in run.items():
        if known.get(name) != value:
            raise InvalidValueError(
                f"checkpoint {path} is of another run: its {name} is {known.get(name)}, here it is {value}. Remove the "
                "file to start over, or give another path"
            )
    assert isinstance(state, dict)
    return state
