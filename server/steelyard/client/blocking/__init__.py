"""The client of the API; its blocking form is made of the asynchronous one."""

# Made of asynchronous/__init__.py by scripts/blocking_client.py: edit that one.

from __future__ import annotations

from steelyard.client.blocking.client import Client

__all__ = ["Client"]
