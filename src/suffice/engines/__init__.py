"""Pools: they update the scores of their items with every label, and return the best candidates."""

from suffice.engines.disk_rows import NpyPool, ParquetPool
from suffice.engines.tracked_rows import FeatureRows, KernelRows
from suffice.engines.variance_pool import MemoryPool, PoolCandidates, VariancePool, largest, plan

__all__ = [
    "FeatureRows",
    "KernelRows",
    "MemoryPool",
    "NpyPool",
    "ParquetPool",
    "PoolCandidates",
    "VariancePool",
    "largest",
    "plan",
]
