"""A typed client of the API, blocking and asynchronous, for notebooks and applications.

``calls`` and ``routes`` have the requests, ``exchange`` reads answers and decides when to try again;
``client`` only carries the bytes. Of the rest of the package it knows the wire's structs and the
errors, so it calls any server, near or far, in one way.
"""

# They register how answers show themselves.
from steelyard.client import (  # noqa: F401
    display,
    display_evaluations,
    display_families,
    display_gates,
    plots,
)
from steelyard.client.answers import DecideAnswer, LintAnswer
from steelyard.client.client import AsyncClient, Client
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
