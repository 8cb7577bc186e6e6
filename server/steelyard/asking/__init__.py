"""Asking a model about many rows: so many at a time, each row with its own answer or error."""
