"""suffice: know when you have labelled enough.

>>> import suffice as sf
>>> rule = sf.ErrorStability(threshold=0.05)
>>> verdict = rule.observe(sf.Step(n_labelled=31, kl_new_old=0.021, kl_old_new=0.024))
>>> verdict.stop, verdict.ready
(False, False)
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from suffice import bounds, criteria, divergence, errors, forecast, posteriors
from suffice.criteria import (
    Budget,
    Certificate,
    Criterion,
    ErrorStability,
    Step,
    Verdict,
    criterion_from_dict,
)
from suffice.divergence import kl, register_kl
from suffice.errors import SufficeError
from suffice.forecast import Forecast

if TYPE_CHECKING:
    from suffice import testing

__version__ = "0.1.0"

__all__ = [
    "Budget",
    "Certificate",
    "Criterion",
    "ErrorStability",
    "Forecast",
    "Step",
    "SufficeError",
    "Verdict",
    "__version__",
    "bounds",
    "criteria",
    "criterion_from_dict",
    "divergence",
    "errors",
    "forecast",
    "kl",
    "posteriors",
    "register_kl",
    "testing",
]

# Imported when first used: they are for authors of rules, not for every loop.
_LAZY = frozenset({"testing"})


def __getattr__(name: str) -> ModuleType:
    if name in _LAZY:
        return import_module(f"suffice.{name}")
    raise AttributeError(f"module 'suffice' has no attribute {name!r}")
