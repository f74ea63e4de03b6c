"""suffice: know when you have labelled enough.

>>> import suffice as sf
>>> rule = sf.ErrorStability(threshold=0.05)
>>> verdict = rule.observe(sf.Step(n_labelled=31, kl_new_old=0.021, kl_old_new=0.024))
>>> verdict.stop, verdict.ready
(False, False)
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, NoReturn

from suffice.deprecation import find_moved_modules, is_moved

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice import acquisition as acquisition
    from suffice import bounds as bounds
    from suffice import checks as checks
    from suffice import criteria as criteria
    from suffice import divergence as divergence
    from suffice import errors as errors
    from suffice import forecast as forecast
    from suffice import learner as learner
    from suffice import models as models
    from suffice import posteriors as posteriors
    from suffice import project as project
    from suffice import tables as tables
    from suffice import testing as testing
    from suffice.criteria import Certificate as Certificate
    from suffice.criteria import Criterion as Criterion
    from suffice.criteria import Step as Step
    from suffice.criteria import Verdict as Verdict
    from suffice.criteria import criterion_from_dict as criterion_from_dict
    from suffice.criteria.rule_exports import *  # noqa: F403 - all stopping rules
    from suffice.divergence import kl as kl
    from suffice.divergence import register_kl as register_kl
    from suffice.errors import SufficeError as SufficeError
    from suffice.forecast import Forecast as Forecast
    from suffice.learner import ActiveLearner as ActiveLearner
    from suffice.learner import StopMonitor as StopMonitor
    from suffice.learner import StopSet as StopSet
    from suffice.learner import audit as audit
    from suffice.learner import simulate as simulate
    from suffice.trace import Trace as Trace

    #: In the distribution suffice-research.
    recommend: Callable[..., Any]

    #: With the names of all stopping rules.
    __all__: list[str]

__version__ = "1.0.0"

# Everything is imported when it is first used.
_MODULES: Final = frozenset(
    {
        *("acquisition", "bounds", "checks", "criteria", "divergence", "errors", "forecast", "learner", "models"),
        *("posteriors", "project", "tables", "testing"),
    }
)
_NAMES: Final = {
    "ActiveLearner": "learner",
    "Certificate": "criteria",
    "Criterion": "criteria",
    "Forecast": "forecast",
    "Step": "criteria",
    "StopMonitor": "learner",
    "StopSet": "learner",
    "SufficeError": "errors",
    "Trace": "trace",
    "Verdict": "criteria",
    "audit": "learner",
    "criterion_from_dict": "criteria",
    "kl": "divergence",
    "register_kl": "divergence",
    "simulate": "learner",
}
_RENAMED: Final = {"data": "suffice.tables or suffice_research.data"}

find_moved_modules()


def _research_missing(*_: object, **__: object) -> NoReturn:
    """Recommend no rule: the distribution suffice-research is not installed.

    Raises:
        MissingResearchError: Always.
    """
    raise import_module("suffice.errors").MissingResearchError("suffice.recommend")


def _recommend() -> Any:
    """Return the function of suffice-research; a name for ``from suffice import *`` if that is not installed."""
    if find_spec("suffice_research") is None:
        return _research_missing
    return import_module("suffice_research.recommendation").recommend


def __getattr__(name: str) -> Any:
    if name in _MODULES or is_moved(f"suffice.{name}"):
        return import_module(f"suffice.{name}")
    if name == "recommend":
        return _recommend()
    if name in _NAMES:
        value = getattr(import_module(f"suffice.{_NAMES[name]}"), name)
    elif name == "__all__":
        value = sorted({*_MODULES, *_NAMES, *_rules(), "recommend", "__version__"})
    elif name[:1].isupper() and name in _rules():
        value = _rules()[name]
    else:
        remedy = f"; use {_RENAMED[name]}" if name in _RENAMED else ""
        raise AttributeError(f"module 'suffice' has no attribute {name!r}{remedy}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *__getattr__("__all__")]


def _rules() -> dict[str, Any]:
    """All stopping rules by name."""
    rules: dict[str, Any] = import_module("suffice.criteria").RULES
    return rules
