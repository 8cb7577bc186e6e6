"""Sending decisions with feedback to review: as a new dataset, or to one that is there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from itertools import islice
from typing import Any

import panel as pn
import panel_material_ui as pmui
import param
from panel.viewable import Viewable

from steelyard.client import Client
from steelyard.datasets.from_feedback_wire import MAX_NAMED
from steelyard.datasets.wire import Dataset
from steelyard_workbench.kit.basics import Boxed, action_button, small_text, stack
from steelyard_workbench.kit.page import Loaded
from steelyard_workbench.kit.tasks import Scope, Write
from steelyard_workbench.kit.words import escape_markdown
from steelyard_workbench.parts.datasets.names import dataset_options
from steelyard_workbench.parts.live.view import View
from steelyard_workbench.parts.review.sending import SEND

_MOST_DATASETS = 200
_NEW = ""


class SendForm(Boxed):
    """Asks where to send decisions, and sends them."""

    def __init__(
        self,
        client: Client,
        *,
        selected: Callable[[], list[str]],
        view: Callable[[], View],
        on_sent: Callable[[Dataset], Awaitable[None]],
        scope: Scope | None = None,
    ) -> None:
        self.client = client
        self._selected, self._view = selected, view
        self._on_sent, self._scope = on_sent, scope or Scope()
        self.what = small_text("")
        self.place = pmui.Select(
            label="Send to", options={"a new dataset": _NEW}, value=_NEW, width=300, size="small"
        )
        self.new_name = pmui.TextInput(
            label="Name of the new dataset", value="", width=260, size="small"
        )

        self._problem = stack()
        self.do = Write(self._do, "Not sent to review:", self._problem, refused=SEND, scope=scope)
        self.send = action_button(SEND, self.do.on_event, variant="contained", size="small")
        super().__init__()
        self.part: Loaded[list[Dataset]] = Loaded(
            "The datasets",
            lambda: list(islice(client.datasets.iterate(), _MOST_DATASETS)),
            self._offer,
            n_lines=1,
        )
        self._box = stack(
            self.what,
            pn.FlexBox(self.part, self.new_name, self.send, align_items="center", gap="8px"),
            self._problem,
        )

    def describe(self, *_: Any) -> None:
        """Show which decisions would be sent."""
        ids, view = self._selected(), self._view()
        if ids:
            self.what.object = f"Those of the {len(ids):,} selected that have feedback: the feedback becomes their label."
        else:
            parts = [f"of the {view.window}"]
            parts += [f"by {escape_markdown(view.model)}"] if view.model else []
            parts += [f"of requests for {escape_markdown(view.named)}"] if view.named else []
            parts += [f"of {escape_markdown(view.decision)}"] if view.decision else []
            self.what.object = f"Every decision with feedback {', '.join(parts)}: the feedback becomes its label. Select rows to send only these."
        self._settle()

    async def _do(self) -> None:
        dataset = await asyncio.to_thread(self._send)
        self._problem[:] = []
        # What they look at now, perhaps the review of a draft, stays.
        if not self._scope.say_if_ended(f"Sent to review: {dataset.name} ({dataset.id})."):
            await self._on_sent(dataset)

    def _send(self) -> Dataset:
        ids, view = self._selected(), self._view()
        filters: dict[str, Any] = {"decisions": [view.decision] if view.decision else None}
        if ids:
            filters["decision_ids"] = ids[:MAX_NAMED]
        else:
            filters |= {"since": view.since(time.time()), "model": view.model or None}
            filters["named"] = view.named or None
        if self.place.value == _NEW:
            filters["name"] = self.new_name.value_input.strip() or self._named()
        else:
            filters["dataset_id"] = self.place.value
        return self.client.datasets.from_feedback(**filters)

    def _named(self) -> str:
        return f"Live decisions {time.strftime('%Y-%m-%d %H:%M', time.gmtime())}"

    def _offer(self, datasets: list[Dataset]) -> Viewable:
        options = dataset_options(datasets, with_rows=True)
        self.place.options = {"a new dataset": _NEW, **options}
        return self.place

    @param.depends("place.value", "do.is_running", watch=True)
    def _settle(self) -> None:
        n = len(self._selected())
        self.new_name.visible = self.place.value == _NEW
        self.new_name.placeholder = self._named()
        self.send.disabled = self.do.is_running or n > MAX_NAMED
        if n > MAX_NAMED:
            self.what.object = f"{n:,} are selected, and {MAX_NAMED:,} at most are sent at a time."
