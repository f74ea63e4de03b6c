"""Tables: files to columns, columns to the features of a model, and rows to files."""

from suffice.tables.table import Table, read_table

__all__ = ["Table", "read_table"]
