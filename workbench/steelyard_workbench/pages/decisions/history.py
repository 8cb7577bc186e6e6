"""The events of a named decision, with author and reason, in one list."""

from __future__ import annotations

from collections.abc import Iterator

from panel.viewable import Viewable

from steelyard.named.wire import AliasMove
from steelyard_workbench.kit.components.cards import card
from steelyard_workbench.kit.components.facts import heading, table
from steelyard_workbench.kit.components.numbers import ago, percent_text
from steelyard_workbench.pages.decisions.share_slider import share_end
from steelyard_workbench.parts.named.looking import Looked, author

_MOST = 12
#: How a comparison is, or what it found.
_HOW = {
    "passed": "as good, or better",
    "refused": "refused",
    "inconclusive": "better or worse, too few rows to tell",
    "queued": "waiting",
    "running": "under way",
    "cancelling": "being stopped",
    "cancelled": "stopped",
    "failed": "it failed",
}


def show_history(looked: Looked) -> Viewable:
    """Show the newest versions, comparisons, moves and shares."""
    events = sorted(_events(looked), key=lambda event: event[0], reverse=True)
    rows = [
        (what, author(by), ago(at).replace(" ", "\N{NO-BREAK SPACE}"))
        for at, what, by in events[:_MOST]
    ]
    return card(heading("History"), table(("what", "by", "when"), rows, label="History"))


def _events(looked: Looked) -> Iterator[tuple[float, str, str]]:
    """Return the time, the text and the author of each event."""
    for version in looked.versions:
        text = _with(f"Version {version.version} made", version.note)
        yield version.created_at, text, version.made_by
    for each in looked.comparisons:
        how = _HOW[each.status if each.result is None else each.result.verdict]
        text = f"{each.version} compared with {each.other}: {how}"
        yield each.updated_at, text, each.made_by or ""
    for move in looked.moves:
        yield move.created_at, _move_text(move), move.moved_by
    for share in looked.decision.shares:
        what = f"{percent_text(share.share)} of {share.alias} to {share.to}"
        yield share.created_at, _with(what, share.reason), share.started_by
        if share.ended_at is not None:
            yield share.ended_at, f"{what} ended: {share_end(share)}", share.ended_by or ""


def _move_text(move: AliasMove) -> str:
    before = "" if move.from_version is None else f" from {move.from_version}"
    text = f"{move.alias} moved{before} to {move.to_version}"
    if move.overruled:
        return f"{text}, overruled: {move.overruled}"
    return _with(f"{text}, which passed" if move.verdict == "passed" else text, move.reason)


def _with(what: str, why: str | None) -> str:
    return f"{what}: {why}" if why else what
