"""Files of any common format as rows of a dataset: read as a table, mapped, and told about."""

from steelyard.client.tables.exported import (
    Exported,
    begins_as_exported,
    is_exported,
    read_exported,
)
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
    "Exported",
    "Label",
    "Mapping",
    "Table",
    "are_rows",
    "begins_as_exported",
    "convert",
    "guess_mapping",
    "is_exported",
    "label_of",
    "read_exported",
    "read_table",
    "refused_csv",
]
