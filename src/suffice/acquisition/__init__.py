"""Acquisition: scores of how useful a label would be, and choices that cover the pool."""

from suffice.acquisition.batchbald import BatchBALD, BatchShard, batchbald, batchbald_over
from suffice.acquisition.scores import (
    NAMES,
    RANDOM_SHARES,
    Chooser,
    Indices,
    InOrder,
    KCentre,
    RandomOrder,
    bald,
    class_scores,
    entropy,
    label_free_chooser,
    margin,
    require_known,
)

__all__ = [
    "NAMES",
    "RANDOM_SHARES",
    "BatchBALD",
    "BatchShard",
    "Chooser",
    "InOrder",
    "Indices",
    "KCentre",
    "RandomOrder",
    "bald",
    "batchbald",
    "batchbald_over",
    "class_scores",
    "entropy",
    "label_free_chooser",
    "margin",
    "require_known",
]
