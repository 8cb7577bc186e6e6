"""Accounts, their keys and limits, and who calls."""
