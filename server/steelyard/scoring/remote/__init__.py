"""Passes of the scorer in a Triton server."""
