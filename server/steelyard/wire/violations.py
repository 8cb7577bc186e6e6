"""Collects every problem of a request, with its place and a sentence."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import msgspec

from steelyard.errors import MAX_DETAILS, InvalidRequestError, PathStep, Violation

#: Where a path into a request's body starts.
BODY: tuple[PathStep, ...] = ("body",)

#: The most bytes of what is listed as it goes out: a path of long names is in each violation twice.
MAX_DETAILS_BYTES = 256 * 1024

_SHOWN_CHARACTERS = 60
_SHOWN_PATH_CHARACTERS = 256

Path = tuple[PathStep, ...]


@dataclass(eq=False, slots=True)
class Violations:
    """The problems of one request, in the order of finding.

    The first violation at a path is kept and later ones at the same path are not: they follow from
    it. After ``MAX_DETAILS``, or ``MAX_DETAILS_BYTES``, they are counted and no longer described.

    >>> found = Violations()
    >>> found.add(("body", "decisions", 0, "id"), "is blank; give it a name.", "blank")
    >>> found.listed[0].message, ("body", "decisions", 0) in found.touched
    ('decisions[0].id is blank; give it a name.', True)
    """

    listed: list[Violation] = field(default_factory=list)
    n_unlisted: int = 0
    #: Where something was found, and the paths at which or below which it was.
    paths: set[Path] = field(default_factory=set)
    touched: set[Path] = field(default_factory=set)
    #: Whether all are only counted, as when other rows have filled the list.
    is_only_counted: bool = False
    _n_bytes: int = 0

    def __bool__(self) -> bool:
        """Return whether anything was found."""
        return bool(self.paths)

    @property
    def is_full(self) -> bool:
        """Whether further violations are only counted, so that describing them is wasted work."""
        is_long = len(self.listed) >= MAX_DETAILS or self._n_bytes >= MAX_DETAILS_BYTES
        return is_long or self.is_only_counted

    def add(self, path: Path, predicate: str, type_: str) -> None:
        """Note a violation; the message is the path in words, then the predicate."""
        if path in self.paths:
            return
        self.paths.add(path)
        for length in range(len(path), 0, -1):
            part = path[:length]
            if part in self.touched:
                break  # and so are all shorter ones
            self.touched.add(part)
        if self.is_full:
            self.n_unlisted += 1
            return
        shown = tuple(_printable(step) if isinstance(step, str) else step for step in path)
        violation = Violation(shown, f"{label(shown)} {predicate}", type_)
        self._n_bytes += len(msgspec.json.encode(violation.body()))
        self.listed.append(violation)

    def raise_if_any(self) -> None:
        """Refuse the request when anything was found."""
        if self.listed:
            raise InvalidRequestError(violations=self.listed, n_unlisted=self.n_unlisted)


def refusal(path: Path, predicate: str, type_: str) -> InvalidRequestError:
    """Return the error of one violation, whose message is the path in words, then the predicate.

    >>> refusal(("query", "limit"), "is 0; give 1 or more.", "out_of_range").message
    'limit is 0; give 1 or more.'
    """
    violations = Violations()
    violations.add(path, predicate, type_)
    return InvalidRequestError(violations=violations.listed)


def label(path: Path) -> str:
    """Return a path in words.

    >>> label(("body", "decisions", 2, "policy", "abstain_below")), label(("body",))
    ('decisions[2].policy.abstain_below', 'The request body')
    """
    text = ""
    for step in path[1:]:
        if isinstance(step, int):
            text += f"[{step}]"
        elif step.isidentifier():
            text += f".{step}" if text else step
        else:
            text += f"[{show(step)}]"
    return text or "The request body"


def show(value: object) -> str:
    """Return a value as short JSON text that is safe to print and to encode.

    >>> show("é"), show([1, None])
    ('"é"', '[1, null]')
    """
    try:
        # Cutting first keeps a megabyte from being escaped for sixty characters of it.
        cut = value[: _SHOWN_CHARACTERS + 1] if isinstance(value, str | list | tuple) else value
        text = json.dumps(cut, ensure_ascii=not _is_text(cut), default=_type_name)
    except (ValueError, TypeError, RecursionError):
        text = _type_name(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


def _is_text(value: object) -> bool:
    return isinstance(value, str) and not has_lone_surrogate(value)


def has_lone_surrogate(text: str) -> bool:
    """Return whether a text has a UTF-16 surrogate, which no UTF-8 can hold."""
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _type_name(value: object) -> str:
    return f"<{type(value).__name__}>"


def _printable(step: str) -> str:
    cut = step if len(step) <= _SHOWN_PATH_CHARACTERS else f"{step[:_SHOWN_PATH_CHARACTERS]}…"
    return cut.encode(errors="backslashreplace").decode()
