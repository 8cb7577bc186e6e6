"""Families, their fine-tunes and their gates."""
