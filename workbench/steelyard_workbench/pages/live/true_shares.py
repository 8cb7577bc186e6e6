"""How often an outcome is true: what the model says of all answers, corrected by those checked."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable, Viewer

from steelyard.client import Client
from steelyard.decision_log.wire import DecisionSeries, SeriesOutcome
from steelyard_workbench.kit.components.mark_table import mark_table
from steelyard_workbench.kit.components.numbers import percent_text
from steelyard_workbench.kit.loaded import Loaded
from steelyard_workbench.parts.live.view import RowFilter, View

_DAY_S = 86_400
_HOW = (
    "Open the answers below from the first on and say what is right: they were drawn by chance, so "
    "that few are enough to correct the model's own count. Answers that were checked out of this "
    "order do not count here."
)


class TrueShares(Viewer):
    """The table of true shares; it is there while answers are checked in the order of chance.

    Parameters
    ----------
    view : callable
        Returns the view of the page.
    open_ : callable
        Called with the filter of one decision's answers.
    """

    def __init__(
        self, client: Client, view: Callable[[], View], open_: Callable[[RowFilter], None]
    ) -> None:
        super().__init__()
        self._client, self._view, self._open = client, view, open_
        self.part: Loaded[DecisionSeries] = Loaded(
            "The true shares", self._fetch, self._show, n_lines=3, is_late=True
        )
        self._box = pn.Column(self.part, visible=False, sizing_mode="stretch_width")

    def __panel__(self) -> Viewable:
        return self._box

    def look(self) -> None:
        """Show the shares of the view, and fetch them again; nothing where it has another order."""
        self._box.visible = self._view().rows.order == "chance"
        if self._box.visible:
            self.part.start()

    def _fetch(self) -> DecisionSeries:
        view = self._view()
        return self._client.decision_series(
            since=view.since(time.time()),
            bucket_s=_DAY_S,
            model=view.model or None,
            named=view.named or None,
            decision=view.decision or None,
        )

    def _show(self, series: DecisionSeries) -> Viewable:
        rows = self._view().rows
        outcomes = sorted(series.outcomes, key=lambda outcome: outcome.decision)
        table = mark_table(
            ("decision", "answer", "the model says", "true", "checked", "to halve the interval"),
            [_row(outcome) for outcome in outcomes],
            label="True shares of answers",
            open_=lambda place: self._open(replace(rows, decision=outcomes[place].decision)),
            numbers=(2, 3, 4, 5),
            opens="Check answers of this decision",
        )
        how = pmui.Typography(_HOW, variant="body2")
        return pn.Column(how, table, sizing_mode="stretch_width")


def _row(outcome: SeriesOutcome) -> tuple[str, ...]:
    share, true = outcome.share, outcome.true_share
    says = "—" if share is None else f"{percent_text(share.value)} of {share.n:,}"
    if true is None or true.low is None or true.high is None:
        return outcome.decision, outcome.outcome, says, "—", "0", "—"
    interval = f"{percent_text(true.value)} ({percent_text(true.low)} to {percent_text(true.high)})"
    more = f"{outcome.checks_to_halve:,} more"
    return outcome.decision, outcome.outcome, says, interval, f"{true.n:,}", more
