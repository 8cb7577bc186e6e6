"""Datasets, their rows, and processes that are killed over them."""
