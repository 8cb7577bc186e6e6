"""A line of the list for waiting or running work."""

from __future__ import annotations

from collections.abc import Callable

import panel_material_ui as pmui
from panel.viewable import Viewable, Viewer

from steelyard.wire.jobs import JobSummary
from steelyard_workbench.kit.components.progress_bar import ProgressBar
from steelyard_workbench.kit.states import refused_button
from steelyard_workbench.pages.jobs.progress import Track, percent_done, progress_text


class ActiveRow(Viewer):
    """A piece of work that waits or runs, with how far it is.

    ``cancel`` is left out where it is cancelled elsewhere; ``forbidden`` says why nothing may be.
    """

    def __init__(
        self,
        work: JobSummary,
        open_: Callable[[JobSummary], None],
        cancel: Callable[[JobSummary], None] | None = None,
        forbidden: str = "",
    ) -> None:
        super().__init__()
        self._text = pmui.Typography("", variant="body2")
        self._bar = ProgressBar(
            label=f"Progress of {work.id}", value=0, sizing_mode="stretch_width"
        )
        name = pmui.Button(label=f"{work.noun} of {work.of}", variant="text")
        name.on_click(lambda _: open_(work))
        head: list[Viewable] = [name]
        if forbidden:
            head.append(refused_button("Cancel…", [forbidden]))
        elif cancel is not None:
            stop = pmui.Button(
                label="Cancel…",
                variant="outlined",
                color="danger",
                disabled=work.status == "cancelling",
            )
            stop.on_click(lambda _: cancel(work))
            head.append(stop)
        self._box = pmui.Paper(
            pmui.Row(*head), self._bar, self._text, sizing_mode="stretch_width", margin=(6, 10)
        )

    def __panel__(self) -> Viewable:
        return self._box

    @property
    def text(self) -> str:
        """How far the work is, in words."""
        return str(self._text.object)

    def update(self, work: JobSummary, track: Track) -> None:
        """Show how far it is now."""
        self._text.object = progress_text(work, track)
        self._bar.value = percent_done(work)
