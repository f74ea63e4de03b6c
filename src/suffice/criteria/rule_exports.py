"""The names of all stopping rules, for the exports of :mod:`suffice` and :mod:`suffice.criteria`.

Type checkers follow these imports: each module lists its rules in a literal ``__all__``.
"""
# ruff: noqa: F403

from suffice.criteria.agreement import *
from suffice.criteria.bayesian import *
from suffice.criteria.budget import *
from suffice.criteria.confidence_and_accuracy import *
from suffice.criteria.label_worth import *
from suffice.criteria.optimisation import *
from suffice.criteria.screening import *
from suffice.criteria.trend import *
