"""Shadows: another model scores a share of a family's requests, for comparison alone."""
