"""The client of the API; its blocking form is made of the asynchronous one."""

from __future__ import annotations

from steelyard.client.asynchronous.client import AsyncClient

__all__ = ["AsyncClient"]
