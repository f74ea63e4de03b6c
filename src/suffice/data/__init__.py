"""People's own tables, and the data sets of the paper and the extra sets: files in, numbers for a model out."""

from suffice.data.beyond import LabelledTexts, read_texts, read_words
from suffice.data.catalogue import PAPER_SETS, SETS, DataSet
from suffice.data.columns import read_columns
from suffice.data.folder import data_folder
from suffice.data.mnist import read_mnist
from suffice.data.protocols import CORRECTED, PUBLISHED, ColumnRoles, Experiment
from suffice.data.samples import Samples, read_set
from suffice.data.table import Table, read_table

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
    "Table",
    "data_folder",
    "read_columns",
    "read_mnist",
    "read_set",
    "read_table",
    "read_texts",
    "read_words",
]
