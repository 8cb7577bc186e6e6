"""Composition: build a running service from settings, and describe it."""
