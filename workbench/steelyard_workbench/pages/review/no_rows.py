"""Why a review shows no row, and the next step."""

from __future__ import annotations

from collections.abc import Callable

from panel.viewable import Viewable

from steelyard_workbench.kit.basics import action_button
from steelyard_workbench.kit.escaping import escape_markdown
from steelyard_workbench.kit.states import empty, failed, loading, verdict
from steelyard_workbench.pages.review.counts import MEANINGS, TITLES
from steelyard_workbench.pages.review.queue_reader import QueueReader


def show_no_row(
    reader: QueueReader,
    *,
    is_named: bool,
    on_again: Callable[[], None],
    on_clear: Callable[[], None],
) -> Viewable:
    """Show why no row is shown."""
    rows = reader.rows
    if reader.failure is not None:
        return failed(reader.failure, lambda _: on_again())
    if reader.filling.is_running or (not rows.is_complete and not rows.rows):
        return loading(6, "The rows")
    again = action_button("Start over", lambda _: on_again())
    if rows.rows:
        text = f"**You went through {TITLES[reader.queue]}:** {len(rows.rows):,} rows. *Finish this version…* makes the next version of the dataset."
        return empty(text, again, is_good=True)
    return _show_empty(reader, again, is_named=is_named, on_clear=on_clear)


def _show_empty(
    reader: QueueReader, again: Viewable, *, is_named: bool, on_clear: Callable[[], None]
) -> Viewable:
    queue, suspects = reader.queue, reader.suspects
    if queue == "suspect" and suspects is not None and suspects.status == "computing":
        return verdict(
            "running",
            "Comparing rows.",
            f"{suspects.done:,} of {suspects.rows:,} so far. {suspects.method}",
        )
    if queue == "suspect" and suspects is not None and suspects.status == "unavailable":
        return empty(f"**Suspect rows are unavailable.** {suspects.message}", again)
    if queue in ("mine", "assigned") and not is_named:
        return empty("This queue goes by your name: write it into **Your name** above.")
    parts = reader.filter.parts
    if parts:
        clear = action_button("Clear the filter", lambda _: on_clear(), variant="contained")
        names = "*, *".join(escape_markdown(text) for text, _ in parts)
        return empty(f"No rows of {TITLES[queue]} match *{names}*.", clear)
    return empty(f"**{TITLES[queue]} is empty:** no {MEANINGS[queue]}.", again, is_good=True)
