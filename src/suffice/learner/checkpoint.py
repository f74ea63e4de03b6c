"""A run on disk, so that it goes on after it was killed: written whole or not at all."""

import os
from pathlib import Path
from typing import Any, Final
from zlib import crc32

import numpy as np

from suffice.errors import InvalidValueError, SufficeError

_FORMAT: Final = "suffice-checkpoint-1"


def fingerprint(**parts: Any) -> dict[str, Any]:
    """What tells one run from another: settings as they are, arrays by shape and checksum."""
    return {name: _print(part) for name, part in parts.items()}


def settings(model: Any) -> dict[str, str]:
    """All parameters of a model or pipeline, in full; of a module among them also the weights that it came with."""
    return {f"model's {name}": _full(value) for name, value in model.get_params(deep=True).items()}


def _full(value: Any) -> str:
    if not hasattr(value, "state_dict"):
        return f"{type(value).__name__}" if hasattr(value, "get_params") else repr(value)
    weights = b"".join(tensor.detach().cpu().double().numpy().tobytes() for tensor in value.state_dict().values())
    return f"{' '.join(repr(value).split())} with checksum {crc32(weights):08x}"


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

    part = path.with_name(f"{path.name}.part")
    try:
        with part.open("wb") as file:
            torch.save({"format": _FORMAT, "run": run, "state": state}, file)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        raise SufficeError(f"{path} cannot be written: {error.strerror or error}") from None


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
