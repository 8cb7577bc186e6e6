"""Rows to take along: one table a subject, written as CSV, Parquet or a folder of ``datasets``.

Rooms with rows (datasets, evaluations, the log of decisions) describe them as an ``ExportTable``;
``export_pieces`` writes any of them in any format, a batch in memory at a time.
"""

from steelyard.exports.table import Column, ExportTable, codes_of
from steelyard.exports.writing import MEDIA_TYPES, export_pieces

__all__ = ["MEDIA_TYPES", "Column", "ExportTable", "codes_of", "export_pieces"]
