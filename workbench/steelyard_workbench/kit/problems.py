"""Failures for people: each becomes a title, a sentence and a next step."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from typing import Any

from steelyard.errors import SteelyardError
from steelyard_workbench.kit.words import everyday

_log = logging.getLogger(__name__)
#: A call as messages name it, and where one is only looked up by it.
_CALL = re.compile(r"\b(?:GET|POST|PUT|PATCH|DELETE) /v1/[\w/{}-]+")
_SEE_CALL = re.compile(rf"[;,:] see {_CALL.pattern}")
#: Details of a refusal that are shown; the rest is counted.
_SHOWN_DETAILS = 100
_FORBIDDEN = frozenset(
    {"key_scope", "invalid_api_key", "missing_api_key", "role_forbidden", "console_only"}
)


@dataclass(frozen=True, slots=True)
class Problem:
    """A failure as it is shown."""

    title: str
    message: str
    code: str
    request_id: str | None = None
    details: tuple[str, ...] = ()
    is_forbidden: bool = False
    is_lost: bool = False


def not_loaded(what: str) -> str:
    """Return the title of a failure to load something, given as ``The rows``."""
    return f"Could not load {what[0].lower()}{what[1:]}."


def problem_of(error: BaseException, title: str) -> Problem:
    """Return a failure as it is shown; an unexpected one goes to the log with its traceback."""
    from steelyard.client.failures import NoAnswerInTimeError, ServerUnreachableError

    if isinstance(error, SteelyardError):
        # A page names no route.
        message = everyday(_CALL.sub("this", _SEE_CALL.sub("", error.message)))
        details = [_detail(detail) for detail in error.details or ()]
        for detail in error.details or ():
            message = _in_words(message, detail)
        if len(details) == 1 and details[0].endswith(message):
            details = []  # a message is said once
        if len(details) > _SHOWN_DETAILS:
            details = [*details[:_SHOWN_DETAILS], f"… and {len(details) - _SHOWN_DETAILS} more."]
        return Problem(
            title,
            message,
            error.code,
            request_id=error.request_id,
            details=tuple(details),
            is_forbidden=error.code in _FORBIDDEN,
            is_lost=isinstance(error, (ServerUnreachableError, NoAnswerInTimeError)),
        )
    if isinstance(error, LackingError):
        return Problem("", str(error), "")
    _log.error("%s", title, exc_info=error)
    return Problem(
        title,
        "Something went wrong inside the workbench. The log has its traceback; try again.",
        "internal_error",
    )


def _detail(detail: object) -> str:
    if not isinstance(detail, dict):
        return str(detail)
    line = detail.get("line")
    prefix = f"Line {line}: " if line else ""
    facts = ", ".join(f"{name.replace('_', ' ')}: {value}" for name, value in detail.items())
    return prefix + _in_words(str(detail.get("msg") or detail.get("message") or facts), detail)


def _in_words(message: str, detail: object) -> str:
    """Return a message with the path of a field in words: ``decisions[0].id`` as *id of decision 1*."""
    if not isinstance(detail, dict):
        return message
    path, words = "", list[str]()
    for part in detail.get("loc") or detail.get("path") or ():
        if isinstance(part, int) and words:
            path += f"[{part}]"
            words[-1] = f"{words[-1].removesuffix('s')} {part + 1}"
        elif part != "body":
            path += f".{part}"
            words.append(str(part).replace("_", " "))
    numbered = [word for word in words[:-1] if word[-1:].isdigit()]
    name = " of ".join([*words[-1:], *numbered[::-1]])
    return (
        message.replace(path.removeprefix("."), name) if len(words) > 1 or "[" in path else message
    )


class LackingError(Exception):
    """A field that lacks something, as one sentence: the text to write there."""

    def __init__(self, field: Any, sentence: str) -> None:
        super().__init__(sentence)
        self.field = field


def typed(field: Any) -> str:
    """Return the text of a field as it stands in the browser, without surrounding blanks."""
    return str(field.value_input or "").strip()


def needed(field: Any, sentence: str) -> str:
    """Return the text of a field without blanks at its ends; raise ``LackingError`` without any."""
    text = typed(field)
    if not text:
        raise LackingError(field, sentence)
    return text


def refused_fields(error: BaseException) -> tuple[str, ...]:
    """Return the names of the fields of a request that a refusal is about, outer ones too."""
    details = error.details if isinstance(error, SteelyardError) else None
    return tuple(
        str(part)
        for detail in details or ()
        for part in detail.get("loc") or detail.get("path") or ()
    )


def leave_to_banner(error: BaseException) -> None:
    """Show nothing of a failure of the server: the next look may do, and the banner shows a lost one."""
    if not isinstance(error, SteelyardError):
        raise error
