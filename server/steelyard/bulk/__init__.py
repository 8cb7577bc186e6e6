"""Rows of a file in partitions, which any number of workers of a state answer."""
