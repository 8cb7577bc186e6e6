"""Packages that a client does without until a call needs one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def required_for(what: str) -> Iterator[None]:
    """Raise ``ModuleNotFoundError`` with the package to install, where one is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        message = f"{what} needs {package}: pip install {package}, and try again."
        raise ModuleNotFoundError(message, name=error.name) from error
