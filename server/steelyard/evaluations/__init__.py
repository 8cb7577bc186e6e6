"""Evaluations: their runs, records and measures."""
