"""Servers for tests, and who asks them."""
