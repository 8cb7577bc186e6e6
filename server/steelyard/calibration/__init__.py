"""Calibrated probabilities, and the measures of how good they are."""
