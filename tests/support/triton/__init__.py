"""Triton, its own server and one that plays it."""
