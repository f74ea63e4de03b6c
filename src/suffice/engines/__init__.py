"""Where a pool lives: its scores kept up to date while labels come, the best candidates handed out."""

from suffice.engines.tracked_rows import FeatureRows, KernelRows
from suffice.engines.variance_pool import Candidates, MemoryPool, VariancePool, largest, plan

__all__ = ["Candidates", "FeatureRows", "KernelRows", "MemoryPool", "VariancePool", "largest", "plan"]
