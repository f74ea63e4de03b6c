"""The data sets of the paper and four others: where they come from, and their contents as arrays."""

from suffice_research.data.catalogue import PAPER_SETS, SETS, DataSet, data_folder
from suffice_research.data.protocols import CORRECTED, PUBLISHED, ColumnRoles, Experiment
from suffice_research.data.set_readers import (
    LabelledTexts,
    Samples,
    read_columns,
    read_mnist,
    read_set,
    read_texts,
    read_words,
)

__all__ = [
    "CORRECTED",
    "PAPER_SETS",
    "PUBLISHED",
    "SETS",
    "ColumnRoles",
    "DataSet",
    "Experiment",
    "LabelledTexts",
    "Samples",
    "data_folder",
    "read_columns",
    "read_mnist",
    "read_set",
    "read_texts",
    "read_words",
]
