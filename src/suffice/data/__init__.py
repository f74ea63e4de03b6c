"""People's own tables, and the data sets of the paper: files in, numbers for a model out."""

from suffice.data.catalogue import SETS, DataSet
from suffice.data.columns import read_columns
from suffice.data.folder import data_folder
from suffice.data.mnist import read_mnist
from suffice.data.protocols import CORRECTED, PUBLISHED, Experiment, View
from suffice.data.samples import Samples, read_set
from suffice.data.table import Table, read_table

__all__ = [
    "CORRECTED",
    "PUBLISHED",
    "SETS",
    "DataSet",
    "Experiment",
    "Samples",
    "Table",
    "View",
    "data_folder",
    "read_columns",
    "read_mnist",
    "read_set",
    "read_table",
]
