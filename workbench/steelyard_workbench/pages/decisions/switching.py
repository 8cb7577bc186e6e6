"""Another model in place of production's: asked on recorded texts, without labels, and what would settle it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import panel as pn
import panel_material_ui as pmui

from steelyard.client import Client
from steelyard.client.switches import settle, version_with_model
from steelyard.errors import InvalidRequestError
from steelyard.named.comparison_wire import ComparisonEstimate, NamedComparison
from steelyard_workbench.kit.basics import Boxed, action_button, small_text, stack
from steelyard_workbench.kit.components.model_fields import offer_models
from steelyard_workbench.kit.components.side_by_side import number_fields
from steelyard_workbench.kit.page import OnePartPage
from steelyard_workbench.kit.problems import not_loaded
from steelyard_workbench.kit.tasks import Scope, Task, Write
from steelyard_workbench.kit.views import card, heading, verdict
from steelyard_workbench.kit.words import escape_markdown, is_free
from steelyard_workbench.parts.named.looking import DAY_S
from steelyard_workbench.parts.review.sending import open_draft

#: Recorded texts that are asked about at most.
_MOST = 1_000
SETTLE = "Review what would settle it"


class SwitchForm(Boxed):
    """Asks for another model, says what asking it costs, and asks both about recorded texts."""

    def __init__(
        self,
        client: Client,
        name: str,
        *,
        on_started: Callable[[int], Awaitable[None]],
        on_leave: Callable[[], Any],
        scope: Scope,
    ) -> None:
        self._client, self._name, self._on_started = client, name, on_started
        self.model = pmui.Select(label="Model", options=[], width=300)
        self.days = pmui.IntInput(label="Texts of the last days", value=7, start=1, width=190)
        self.budget = pmui.FloatInput(
            label="Percent of answers that may differ", value=2.0, start=0.1, end=50, width=260
        )
        #: The model and the days of which the price was shown, and the price.
        self._agreed: tuple[str, int, str] | None = None
        self._place = stack()
        super().__init__()
        self.fill = Task(self._fill, not_loaded("The models"), self._place, scope=scope)
        ask = Write(self._ask, "Not asked:", self._place, scope=scope)
        self.button = action_button("Say what it costs", ask.on_event, variant="contained")
        leave = action_button("Leave it", lambda _: on_leave(), variant="text")
        for field in (self.model, self.days):
            pn.bind(self._forget, field, watch=True)
        self.fill.start()
        about = (
            "Both models are asked about what was asked lately. Where they agree, nothing changes "
            "with the switch, whichever is right: no labels are needed."
        )
        self._box = card(
            heading("Another model on recorded texts"),
            small_text(about),
            number_fields(self.model, self.days, self.budget),
            self._place,
            pn.FlexBox(self.button, leave),
        )

    async def _fill(self) -> None:
        offer_models(self.model, await asyncio.to_thread(self._client.models.choices))

    def _forget(self, *_: Any) -> None:
        self._agreed = None
        self.button.label = "Say what it costs"

    async def _ask(self) -> None:
        model, days = str(self.model.value), int(self.days.value)
        window: dict[str, Any] = {"stored": _MOST, "traffic_s": days * DAY_S}
        named = self._client.named_decisions
        version = await asyncio.to_thread(
            version_with_model, self._client, self._name, "production", model
        )
        if self._agreed is None or self._agreed[:2] != (model, days):
            estimate = await asyncio.to_thread(
                lambda: named.estimate_comparison(self._name, version.version, **window)
            )
            self._place[:] = [pmui.Typography(escape_markdown(cost_text(estimate)))]
            if not estimate.contexts:
                raise InvalidRequestError("No texts of that time are stored; take more days.")
            self._agreed = model, days, estimate.price_usd
            self.button.label = "Ask both"
            return
        await asyncio.to_thread(
            lambda: named.compare(
                self._name,
                version.version,
                **window,
                disagreement=self.budget.value / 100,
                max_price_usd=self._agreed and self._agreed[2],
            )
        )
        await self._on_started(version.version)


def settle_button(page: OnePartPage, comparison: NamedComparison, place: pn.Column) -> pmui.Button:
    """Return the button that opens the texts that would settle a comparison, and then takes their labels."""

    async def do() -> None:
        settling = await asyncio.to_thread(settle, page.client, comparison)
        draft = settling.draft
        if draft.sealed is not None:
            place[:] = [verdict("good", settling.summary)]
        elif not page.visit.say_if_ended(settling.summary):
            open_draft(page.session, draft)

    return action_button(SETTLE, Write(do, "Not opened:", place, scope=page.visit).on_event)


def cost_text(estimate: ComparisonEstimate) -> str:
    """Return what a comparison asks and costs, before anything is asked."""
    price = "free here" if is_free(estimate.price_usd) else f"{estimate.price_usd} USD at most"
    # Recorded answers cost none.
    sides = filter(None, (estimate.input_tokens_before, estimate.input_tokens_after))
    tokens = " and ".join(f"{side:,}" for side in sides)
    text = f"{estimate.contexts:,} texts, some {tokens} input tokens, {price}."
    return " ".join([text, *estimate.warnings])
