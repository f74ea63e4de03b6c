"""People's own tables: a CSV or Parquet file in, numbers for a model out."""

from suffice.data.table import Table, read_table

__all__ = ["Table", "read_table"]
