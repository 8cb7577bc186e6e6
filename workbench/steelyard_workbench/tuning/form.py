"""What starts a job of prompt tuning: a dataset, one of its decisions, and the price that is agreed to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable, Viewer

from steelyard.client import Client
from steelyard.datasets.wire import Dataset
from steelyard.errors import PriceChangedError
from steelyard.prompt_tuning.wire import PromptTuningJob
from steelyard_workbench.components.facts import heading
from steelyard_workbench.states import verdict
from steelyard_workbench.tasks import Scope, Write


class StartForm(Viewer):
    """The form; a price that is not nothing is told first, and held on the next press.

    Parameters
    ----------
    open_job : callable
        Called with the job that was started.
    """

    def __init__(
        self,
        client: Client,
        datasets: Sequence[Dataset],
        chosen: str,
        open_job: Callable[[PromptTuningJob], None],
        scope: Scope | None = None,
    ) -> None:
        self._client, self._open_job = client, open_job
        self._agreed = "0"
        names = {f"{one.name} ({one.rows:,} rows)": one.id for one in datasets}
        first = chosen if chosen in names.values() else next(iter(names.values()))
        self.dataset = pmui.Select(label="Dataset", options=names, value=first, width=330)
        self.decision = pmui.TextInput(
            label="Decision", placeholder="Its id; empty when the dataset asks one", width=300
        )
        self.model = pmui.TextInput(
            label="Model", placeholder="The shipped one when empty", width=230
        )
        self.effort = pmui.RadioButtonGroup(
            label="Effort", options={"Standard": "standard", "Thorough": "thorough"}
        )
        self.start = pmui.Button(label="Tune the wording", variant="contained")
        self.said = pn.Column(sizing_mode="stretch_width")
        super().__init__()
        self.begin = Write(self._begin, "Not started:", self.said, scope=scope)
        self.start.on_click(self.begin.on_event)

    def __panel__(self) -> Viewable:
        return pn.Column(
            heading("Tune a decision's wording"),
            pn.FlexBox(
                *(self.dataset, self.decision, self.model, self.effort, self.start),
                align_items="center",
            ),
            self.said,
            sizing_mode="stretch_width",
        )

    async def _begin(self) -> None:
        try:
            job = await asyncio.to_thread(
                self._client.prompt_tuning.create,
                self.dataset.value,
                decision=self.decision.value.strip() or None,
                model=self.model.value.strip() or None,
                effort=self.effort.value,
                max_price_usd=self._agreed,
            )
        except PriceChangedError as error:
            price = str((error.details or [{}])[0].get("price_usd"))
            self._agreed = price
            self.said[:] = [
                verdict("unsure", f"It costs {price} USD.", "Press again to hold that and start.")
            ]
            return
        self._agreed = "0"
        self._open_job(job)
