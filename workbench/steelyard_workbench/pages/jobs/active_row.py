"""A line of the list for waiting or running work."""

from __future__ import annotations

from collections.abc import Callable

import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.wire.jobs import JobSummary
from steelyard_workbench.kit.basics import Boxed, action_button, small_text
from steelyard_workbench.kit.components.progress_bar import ProgressBar
from steelyard_workbench.kit.states import refused_button
from steelyard_workbench.pages.jobs.progress import Track, percent_done, progress_text, title_of


class ActiveRow(Boxed):
    """Work that waits or runs, and its progress; ``forbidden`` says why nothing may be cancelled."""

    def __init__(
        self,
        work: JobSummary,
        open_: Callable[[JobSummary], None],
        cancel: Callable[[JobSummary], None] | None = None,
        forbidden: str = "",
    ) -> None:
        super().__init__()
        self._text = small_text("")
        self._bar = ProgressBar(
            label=f"Progress of {work.id}", value=0, sizing_mode="stretch_width"
        )
        name = action_button(title_of(work), lambda _: open_(work), variant="text")
        head: list[Viewable] = [name]
        if forbidden:
            head.append(refused_button("Cancel…", [forbidden]))
        elif cancel is not None:
            stop = action_button(
                "Cancel…",
                lambda _: cancel(work),
                color="danger",
                disabled=work.status == "cancelling",
            )
            head.append(stop)
        self._box = pmui.Paper(
            pmui.Row(*head), self._bar, self._text, sizing_mode="stretch_width", margin=(6, 10)
        )

    @property
    def text(self) -> str:
        """How far the work is, in words."""
        return str(self._text.object)

    def update(self, work: JobSummary, track: Track) -> None:
        """Show how far it is now."""
        self._text.object = progress_text(work, track)
        self._bar.value = percent_done(work)
