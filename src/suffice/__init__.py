"""suffice: know when you have labelled enough.

>>> import suffice as sf
>>> rule = sf.ErrorStability(threshold=0.05)
>>> verdict = rule.observe(sf.Step(n_labelled=31, kl_new_old=0.021, kl_old_new=0.024))
>>> verdict.stop, verdict.ready
(False, False)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from suffice import bounds, criteria, divergence, errors, forecast, posteriors
from suffice.criteria import Certificate, Criterion, Step, Verdict, criterion_from_dict
from suffice.criteria.rule_exports import *  # noqa: F403 - all stopping rules
from suffice.divergence import kl, register_kl
from suffice.errors import SufficeError
from suffice.forecast import Forecast

if TYPE_CHECKING:
    from suffice import acquisition, data, models, session, testing
    from suffice.experiments.compare.recommend import recommend
    from suffice.learner import ActiveLearner, StopSet, audit, simulate
    from suffice.trace import Trace

__version__ = "0.6.0"

__all__ = [
    "ActiveLearner",
    "Certificate",
    "Criterion",
    "Forecast",
    "Step",
    "StopSet",
    "SufficeError",
    "Trace",
    "Verdict",
    "__version__",
    "acquisition",
    "audit",
    "bounds",
    "criteria",
    "criterion_from_dict",
    "data",
    "divergence",
    "errors",
    "forecast",
    "kl",
    "models",
    "posteriors",
    "recommend",
    "register_kl",
    "session",
    "simulate",
    "testing",
]
__all__ += list(criteria.RULES)

# Imported when first used: `import suffice` loads numpy and scipy only.
_LAZY_MODULES = frozenset({"acquisition", "data", "models", "session", "testing"})
_LAZY_NAMES = {
    "ActiveLearner": "learner",
    "StopSet": "learner",
    "audit": "learner",
    "recommend": "experiments.compare.recommend",
    "simulate": "learner",
    "Trace": "trace",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY_MODULES:
        return import_module(f"suffice.{name}")
    if name in _LAZY_NAMES:
        return getattr(import_module(f"suffice.{_LAZY_NAMES[name]}"), name)
    raise AttributeError(f"module 'suffice' has no attribute {name!r}")
