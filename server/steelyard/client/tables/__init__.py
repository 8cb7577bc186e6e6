"""Files of any common format as rows of a dataset: read as a table, mapped, and told about."""

from steelyard.client.tables.mapping import (
    Converted,
    Label,
    Mapping,
    convert,
    guess_mapping,
    label_of,
    refused_csv,
)
from steelyard.client.tables.reading import ENDINGS, Table, are_rows, read_table

__all__ = [
    "ENDINGS",
    "Converted",
    "Label",
    "Mapping",
    "Table",
    "are_rows",
    "convert",
    "guess_mapping",
    "label_of",
    "read_table",
    "refused_csv",
]
