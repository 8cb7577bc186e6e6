"""Checks of every answer and error of the API."""
