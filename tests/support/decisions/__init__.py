"""Stored answers, and decisions to ask and to lint."""
