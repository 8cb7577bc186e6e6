"""Accounts, people and money."""
