"""The queues as tabs, each with how many rows it has."""

from __future__ import annotations

from collections.abc import Mapping

from steelyard.review.wire import Queue, RowNow

#: Queues in the order of their tabs, with their titles.
TITLES: dict[Queue, str] = {
    "to_review": "To review",
    "assigned": "Assigned to me",
    "disagreement": "Disagreement",
    "suspect": "Suspect",
    "audit": "Audit",
    "changed": "Changed",
    "excluded": "Excluded",
    "noted": "Noted",
    "all": "All",
    "mine": "Mine",
}
#: What each queue is, for its empty state.
MEANINGS: dict[Queue, str] = {
    "to_review": "rows without a decision",
    "suspect": "rows whose label models of the other rows contradict",
    "audit": "a random sample, which estimates the labels without bias",
    "changed": "rows that were relabelled or excluded",
    "excluded": "rows that the finished version will not have",
    "noted": "rows with a note",
    "all": "every row",
    "mine": "rows that you edited last",
    "assigned": "rows that were assigned to you and are still to be labelled",
    "disagreement": "undecided rows of which reviewers said different things",
}
_DECIDED = ("accepted", "relabelled", "excluded")


def tab_items(counts: Mapping[str, int]) -> list[dict[str, str]]:
    """Return the tabs; a queue that is not counted has no number."""
    return [
        {"label": f"{title} ({counts[queue]:,})" if queue in counts else title}
        for queue, title in TITLES.items()
    ]


def after_edit(counts: Mapping[str, int], before: RowNow, after: RowNow) -> dict[str, int]:
    """Return the counts after an edit as far as they are known here, until the server sends them."""

    def queues(now: RowNow) -> dict[str, bool]:
        return {
            "to_review": now.state not in _DECIDED,
            "changed": now.state in ("relabelled", "excluded"),
            "excluded": now.state == "excluded",
            "noted": bool(now.note),
        }

    was, is_ = queues(before), queues(after)
    return {
        queue: max(0, count + int(is_.get(queue, False)) - int(was.get(queue, False)))
        for queue, count in counts.items()
    }
