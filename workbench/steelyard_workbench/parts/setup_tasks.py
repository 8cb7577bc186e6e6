"""How far a download, a check, a calibration or a backup is, which the server does for an operator."""

from __future__ import annotations

from panel.viewable import Viewable

from steelyard.models.judge_wire import SetupTask
from steelyard_workbench.kit.basics import small_text
from steelyard_workbench.kit.components.progress_bar import ProgressBar
from steelyard_workbench.kit.views import verdict
from steelyard_workbench.kit.words import escape_markdown

DOING = {
    "download": "Downloading",
    "check": "Checking",
    "calibrate": "Calibrating",
    "fit": "Fitting",
    "qualify": "Qualifying",
    "backup": "Backing up",
}


def show_task(task: SetupTask) -> list[Viewable]:
    """Show how far something is, or why it failed; nothing once it succeeded."""
    if task.status == "failed":
        text = escape_markdown(task.error or "")
        return [verdict("bad", f"{DOING[task.kind]} failed.", text)]
    if task.status == "succeeded":
        return []
    text = so_far(task)
    share = round(100 * task.done / task.total) if task.total else -1
    return [small_text(text), ProgressBar(label=text, sizing_mode="stretch_width", value=share)]


def so_far(task: SetupTask) -> str:
    """Return a running task and its progress."""
    if not task.total:
        return f"{DOING[task.kind]} …"
    unit = "files" if task.kind == "backup" else "rows"
    amount = (
        f"{size_text(task.done)} of {size_text(task.total)}"
        if task.kind == "download"
        else f"{task.done:,} of {task.total:,} {unit}"
    )
    return f"{DOING[task.kind]}: {amount}"


def size_text(n_bytes: int) -> str:
    """Return a size in words.

    >>> size_text(12_300_000), size_text(2_100_000_000)
    ('12 MB', '2.1 GB')
    """
    return f"{n_bytes / 1e9:.1f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:.0f} MB"
