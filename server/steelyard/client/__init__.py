"""A typed client of the API, blocking and asynchronous, for notebooks and applications.

``calls`` and ``routes`` say what can be asked, ``exchange`` what an answer means and when to try
again; ``blocking`` and ``asynchronous`` only carry the bytes. Of the rest of the package it knows
the wire's structs and the errors, so it calls any server, near or far, in one way.
"""

from __future__ import annotations

from steelyard.client.answers import DecideAnswer, LintAnswer
from steelyard.client.asynchronous import AsyncClient
from steelyard.client.blocking import Client
from steelyard.client.failures import (
    NoAnswerInTimeError,
    ServerUnreachableError,
    UnexpectedAnswerError,
)
from steelyard.client.options import ClientOptions

__all__ = [
    "AsyncClient",
    "Client",
    "ClientOptions",
    "DecideAnswer",
    "LintAnswer",
    "NoAnswerInTimeError",
    "ServerUnreachableError",
    "UnexpectedAnswerError",
]
