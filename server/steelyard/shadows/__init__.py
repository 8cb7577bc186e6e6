"""Shadows: another model scores a share of what a family answered, for comparison alone."""
