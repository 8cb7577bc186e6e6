"""Files of any common format as rows of a dataset: read as a table, mapped, and reported."""

from steelyard.client.tables.converted import Converted, Mapping, read_lines
from steelyard.client.tables.exported import is_exported, read_exported
from steelyard.client.tables.guessing import guess_mapping, guess_split
from steelyard.client.tables.labels import Label, known_decisions, label_of, question_of, with_kind
from steelyard.client.tables.mapping import convert
from steelyard.client.tables.names import name_values, read_names
from steelyard.client.tables.outcomes import (
    OutcomeEdit,
    count_values,
    edit_outcomes,
    propose_same,
)
from steelyard.client.tables.raters import with_raters
from steelyard.client.tables.recording import Recorded, record_answers
from steelyard.client.tables.sending import create_whole
from steelyard.client.tables.truths import with_single_truths, with_truths_of
from steelyard.imports.programs import SHAPES
from steelyard.imports.reading import ENDINGS, are_rows, read_table
from steelyard.imports.table import Refused, Table, describe_refused, refused_csv

__all__ = [
    "ENDINGS",
    "SHAPES",
    "Converted",
    "Label",
    "Mapping",
    "OutcomeEdit",
    "Recorded",
    "Refused",
    "Table",
    "are_rows",
    "convert",
    "count_values",
    "create_whole",
    "describe_refused",
    "edit_outcomes",
    "guess_mapping",
    "guess_split",
    "is_exported",
    "known_decisions",
    "label_of",
    "name_values",
    "propose_same",
    "question_of",
    "read_exported",
    "read_lines",
    "read_names",
    "read_table",
    "record_answers",
    "refused_csv",
    "with_kind",
    "with_raters",
    "with_single_truths",
    "with_truths_of",
]
