"""The base of every error: a code, a status, a sentence, and one body on the wire."""

from __future__ import annotations

import importlib
import re
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from http import HTTPStatus
from types import ModuleType, TracebackType
from typing import Any, ClassVar, Literal

#: One step towards a place in a request: a field's name, or an index from 0.
PathStep = str | int

#: The most violations one answer lists; past it the message says how many more there are, so that
#: a hostile body of a megabyte cannot make an answer of a hundred.
MAX_DETAILS = 1000

#: The place of a problem that no single field of a request has.
WHOLE: tuple[PathStep, ...] = ("body",)


@dataclass(frozen=True, slots=True)
class Violation:
    """One problem of a request: its place, the change to make, and a stable word for programs.

    The first step of ``path`` is ``"body"`` or ``"query"``; ``type`` is such as ``out_of_range``.

    >>> Violation(("body", "context"), "context is missing; add it.", "missing").body()
    {'path': ['body', 'context'], 'message': 'context is missing; add it.', 'type': 'missing'}
    """

    path: tuple[PathStep, ...]
    message: str
    type: str

    def body(self) -> dict[str, Any]:
        """Return the entry of ``details`` that the wire carries."""
        return {"path": list(self.path), "message": self.message, "type": self.type}


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation that was accepted before the error, and still runs or ended without an answer.

    They are the headers ``X-Operation-ID`` and ``Idempotency-Status``.
    """

    id: str
    status: Literal["pending", "terminal"]


class SteelyardError(Exception):
    """Anything Steelyard refuses or fails at, with its code, its status and a sentence.

    Parameters
    ----------
    message
        Full sentences for a person: the fault and the next step.
    details
        Machine-readable parts of the refusal; ``None`` when there are none.
    retry_after_s
        Seconds to wait before trying again; the class's own default when left out.

    Attributes
    ----------
    code
        The error's name on the wire, unique in the tree: that of its class, ``not_found`` of
        ``NotFoundError``, unless the class says another.
    status
        The HTTP status.
    retryable
        Whether the same request may succeed later; no evidence that nothing ran.
    operation
        The accepted operation that this ends or waits for; it goes out as two headers.
    request_id
        The request that a server refused with it; ``None`` in the process that raised it.
    """

    code: ClassVar[str] = "internal_error"
    status: ClassVar[int] = 500
    retryable: ClassVar[bool] = False
    default_retry_after_s: ClassVar[float | None] = None
    #: The frames that a notebook has shown.
    _folded: TracebackType | None = None

    def __init_subclass__(cls) -> None:
        """Name a class below one of ``steelyard.errors.kinds``, which have no codes of their own."""
        if cls.code == SteelyardError.code and SteelyardError not in cls.__bases__:
            cls.code = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__.removesuffix("Error")).lower()

    def __init__(
        self,
        message: str,
        *,
        details: Sequence[Mapping[str, Any]] | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.details = None if details is None else [dict(detail) for detail in details]
        self.retry_after_s = self.default_retry_after_s if retry_after_s is None else retry_after_s
        self.operation: Operation | None = None
        self.request_id: str | None = None

    def __str__(self) -> str:
        """Return the message alone: some builtin bases would print it their own way."""
        return self.message

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython shows: in a notebook one sentence, whose frames are folded above it."""
        shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
        if not hasattr(shell, "kernel"):
            return "".join(traceback.format_exception(self)).splitlines()
        if self._folded is not self.__traceback__:  # IPython asks once to show and once to store
            self._folded = self.__traceback__
            display = importlib.import_module("IPython.display")
            frames = escape("".join(traceback.format_tb(self.__traceback__)))
            folded = f"<details><summary>Where it was raised</summary><pre>{frames}</pre></details>"
            display.display(display.HTML(folded))
        return [f"{type(self).__name__}: {self}"]

    def body(self, request_id: str | None = None) -> dict[str, Any]:
        """Return the body of a failed call, with the id that ``X-Request-ID`` has too.

        A 422 says which part of the request is wrong, and it is the whole where no field is named.

        >>> SteelyardError("Something broke.").body("req_1")["error"]["code"]
        'internal_error'
        """
        details = self.details
        if not details and self.status == HTTPStatus.UNPROCESSABLE_ENTITY:
            details = [Violation(WHOLE, self.message, self.code).body()]
        return {
            "error": {
                "code": self.code,
                "message": self.message,
                "retryable": self.retryable,
                "request_id": request_id,
                "details": details,
            }
        }


def errors_of(module: ModuleType) -> tuple[type[SteelyardError], ...]:
    """Return the errors that a module of ``steelyard.errors`` has."""
    return tuple(
        cls
        for cls in vars(module).values()
        if isinstance(cls, type)
        and issubclass(cls, SteelyardError)
        and cls.__module__ == module.__name__
    )
