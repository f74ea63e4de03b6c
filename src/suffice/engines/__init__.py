"""Where a pool lives: its scores kept up to date while labels come, the best candidates handed out."""

from suffice.engines.planning import plan
from suffice.engines.pool import Candidates, MemoryPool, VariancePool, largest
from suffice.engines.rows import FeatureRows, KernelRows

__all__ = ["Candidates", "FeatureRows", "KernelRows", "MemoryPool", "VariancePool", "largest", "plan"]
