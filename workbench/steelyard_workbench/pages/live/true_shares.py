"""How often an outcome is true: the model's share of all answers, corrected by those checked."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from panel.viewable import Viewable

from steelyard.client import Client
from steelyard.decision_log.wire import DecisionSeries
from steelyard_workbench.kit.basics import Boxed, stack
from steelyard_workbench.kit.loaded import Loaded
from steelyard_workbench.parts.live.share_table import share_table
from steelyard_workbench.parts.live.view import AnswerFilter, View

_DAY_S = 86_400


class TrueShares(Boxed):
    """The table of true shares, shown while answers are checked in the order of chance."""

    def __init__(
        self, client: Client, view: Callable[[], View], open_: Callable[[AnswerFilter], None]
    ) -> None:
        super().__init__()
        self._client, self._view, self._open = client, view, open_
        self.part = Loaded("The true shares", self._fetch, self._show, n_lines=3, is_late=True)
        self._box = stack(self.part, visible=self._is_by_chance)

    def look(self) -> None:
        """Show the shares of the view, and fetch them again; nothing where it has another order."""
        self._box.visible = self._is_by_chance
        if self._box.visible:
            self.part.start()

    @property
    def _is_by_chance(self) -> bool:
        return self._view().rows.order == "chance"

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
        return share_table(series, lambda decision: self._open(replace(rows, decision=decision)))
