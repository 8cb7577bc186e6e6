"""The view of the live page: a window of time, a model, a decision, and some of the rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Literal

import msgspec

from steelyard.wire.decoding import decode

#: Windows that can be chosen: seconds by name.
WINDOWS = {
    "last 15 minutes": 900,
    "last hour": 3600,
    "last 6 hours": 21_600,
    "last 24 hours": 86_400,
    "last 7 days": 604_800,
    "last 30 days": 2_592_000,
}
#: Seconds of a bar by window: some sixty to a hundred and seventy bars.
_BUCKETS = {900: 15, 3600: 60, 21_600: 300, 86_400: 900, 604_800: 3600, 2_592_000: 21_600}


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerFilter:
    """Which rows a mark or a figure stands for; the fields are those of the log's query."""

    name: str = ""
    since: float | None = None
    until: float | None = None
    decision: str | None = None
    model: str | None = None
    key: str | None = None
    has_feedback: bool | None = None
    abstained: bool | None = None
    wrong: bool | None = None
    p_from: float | None = None
    p_to: float | None = None
    order: Literal["newest", "chance"] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether it leaves every row."""
        return not self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The view of the page; all of it is in the address."""

    #: Seconds up to now.
    window_s: int = 604_800
    #: The one model and the one decision; empty for all.
    model: str = ""
    decision: str = ""
    #: The named decision, or its version, that requests name; empty for all requests.
    named: str = ""
    rows: AnswerFilter = field(default_factory=AnswerFilter)

    @property
    def window(self) -> str:
        """The window's name."""
        return next(name for name, seconds in WINDOWS.items() if seconds == self.window_s)

    @property
    def bucket_s(self) -> int:
        """Seconds of a bar."""
        return _BUCKETS[self.window_s]

    def since(self, now: float) -> float:
        """Return when the window begins: on a bucket's edge, so that its first bar is whole."""
        return math.floor((now - self.window_s) / self.bucket_s) * float(self.bucket_s)

    def log_query(self, now: float) -> dict[str, str | float | bool | None]:
        """Return the query of the log."""
        rows = self.rows
        names = (each.name for each in fields(rows) if each.name != "name")
        return {name: getattr(rows, name) for name in names} | {
            "since": self.since(now) if rows.since is None else rows.since,
            "model": rows.model or self.model or None,
            "named": self.named or None,
            "decision": rows.decision or self.decision or None,
        }


class _InAddress(msgspec.Struct, forbid_unknown_fields=True):
    live: View


def to_text(view: View) -> str:
    """Return a view as it stands in the address; empty for the one that is there at first."""
    if view == View():
        return ""
    return msgspec.json.encode({"live": msgspec.to_builtins(view)}).decode()


def from_text(text: str, otherwise: View | None = None) -> View:
    """Return the view of an address; where it holds none, another, or the first one without that."""
    other = View() if otherwise is None else otherwise
    try:
        view = decode(text, _InAddress).live
    except (msgspec.MsgspecError, RecursionError):
        return other
    return view if view.window_s in _BUCKETS else other
