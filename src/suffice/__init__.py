"""suffice: know when you have labelled enough.

>>> import suffice as sf
>>> rule = sf.ErrorStability(threshold=0.05)
>>> verdict = rule.observe(sf.Step(n_labelled=31, kl_new_old=0.021, kl_old_new=0.024))
>>> verdict.stop, verdict.ready
(False, False)
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NoReturn

from suffice import bounds, criteria, divergence, errors, forecast, posteriors
from suffice.criteria import Certificate, Criterion, Step, Verdict, criterion_from_dict
from suffice.criteria.rule_exports import *  # noqa: F403 - all stopping rules
from suffice.divergence import kl, register_kl
from suffice.errors import MissingResearchError, SufficeError
from suffice.forecast import Forecast

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice import acquisition, checks, models, project, tables, testing
    from suffice.learner import ActiveLearner, StopMonitor, StopSet, audit, simulate
    from suffice.trace import Trace

    #: In the distribution suffice-research.
    recommend: Callable[..., Any]

__version__ = "1.0.0rc1"

__all__ = [
    "ActiveLearner",
    "Certificate",
    "Criterion",
    "Forecast",
    "Step",
    "StopMonitor",
    "StopSet",
    "SufficeError",
    "Trace",
    "Verdict",
    "__version__",
    "acquisition",
    "audit",
    "bounds",
    "checks",
    "criteria",
    "criterion_from_dict",
    "divergence",
    "errors",
    "forecast",
    "kl",
    "models",
    "posteriors",
    "project",
    "recommend",
    "register_kl",
    "simulate",
    "tables",
    "testing",
]
__all__ += list(criteria.RULES)

# Imported when first used: `import suffice` loads numpy and scipy only.
_LAZY_MODULES = frozenset({"acquisition", "checks", "models", "project", "tables", "testing"})
_LAZY_NAMES = {
    "ActiveLearner": "learner",
    "StopMonitor": "learner",
    "StopSet": "learner",
    "audit": "learner",
    "simulate": "learner",
    "Trace": "trace",
}
_RENAMED = {
    "data": "suffice.tables or suffice_research.data",
    "recommendation": "suffice_research.recommendation",
    "research": "suffice_research",
}


def _research_missing(*_: object, **__: object) -> NoReturn:
    """Recommend no rule: the distribution suffice-research is not installed.

    Raises:
        MissingResearchError: Always.
    """
    raise MissingResearchError("suffice.recommend")


def _recommend() -> Any:
    """Return the function of suffice-research; a name for ``from suffice import *`` if that is not installed."""
    if find_spec("suffice_research") is None:
        return _research_missing
    return import_module("suffice_research.recommendation").recommend


def __getattr__(name: str) -> Any:
    if name in _LAZY_MODULES:
        return import_module(f"suffice.{name}")
    if name == "recommend":
        return _recommend()
    if name in _LAZY_NAMES:
        return getattr(import_module(f"suffice.{_LAZY_NAMES[name]}"), name)
    remedy = f"; use {_RENAMED[name]}" if name in _RENAMED else ""
    raise AttributeError(f"module 'suffice' has no attribute {name!r}{remedy}")
