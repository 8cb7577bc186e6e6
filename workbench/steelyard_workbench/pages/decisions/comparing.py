"""Forms that start a comparison: with another model, and with the recorded answers of another provider."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.client import Client
from steelyard.client.switches import settle, version_with_model
from steelyard.errors import InvalidRequestError
from steelyard.imports.recorded import read_recorded
from steelyard.named.comparison_wire import ComparisonEstimate, NamedComparison
from steelyard.wire.jobs import UNFINISHED
from steelyard_workbench.kit.basics import Boxed, action_button, small_text, stack
from steelyard_workbench.kit.components.files import FileChooser
from steelyard_workbench.kit.components.model_fields import offer_models
from steelyard_workbench.kit.components.side_by_side import number_fields
from steelyard_workbench.kit.page import OnePartPage
from steelyard_workbench.kit.problems import not_loaded
from steelyard_workbench.kit.tasks import Scope, Task, Write
from steelyard_workbench.kit.theme import Status
from steelyard_workbench.kit.views import card, heading, verdict
from steelyard_workbench.kit.words import escape_markdown, is_free, measure_text
from steelyard_workbench.pages.decisions.judging import closed_part, comparison_figures
from steelyard_workbench.parts.named.looking import DAY_S
from steelyard_workbench.parts.review.sending import open_draft

#: Recorded texts, or answers, that are taken at most.
_MOST = 1_000
SETTLE = "Review what would settle it"
_ABOUT_SWITCH = (
    "Both models are asked about what was asked lately. Where they agree, nothing changes "
    "with the switch, whichever is right: no labels are needed."
)
_ABOUT = (
    "The answers of a provider that is to be left, as CSV, JSON, JSON Lines or spans of OpenTelemetry, with "
    "text, answer and perhaps probability and decision. Production is asked about those texts alone."
)


class ComparisonForm(Boxed):
    """Shows what a comparison costs, and starts it at that price with the next press.

    ``on_started`` is awaited with the number of the compared version; with ``None`` for production.
    """

    verb: ClassVar[str]

    def __init__(
        self,
        client: Client,
        name: str,
        *,
        on_started: Callable[[int | None], Awaitable[None]],
        on_leave: Callable[[], Any],
        scope: Scope,
    ) -> None:
        self._client, self._name, self._on_started = client, name, on_started
        self.budget = pmui.FloatInput(
            label="Percent of answers that may differ", value=2.0, start=0.1, end=50, width=260
        )
        #: The price that was shown; ``None`` before, and once another comparison is chosen.
        self._agreed: str | None = None
        self._place, self._scope = stack(), scope
        super().__init__()
        ask = Write(self._ask, "Not asked:", self._place, scope=scope)
        self.button = action_button("", ask.on_event, variant="contained")
        leave = action_button("Leave it", lambda _: on_leave(), variant="text")
        self._foot = [self._place, pn.FlexBox(self.button, leave)]
        self._forget()

    def _forget(self, *_: Any) -> None:
        self._agreed = None
        self.button.label = "Say what it costs"

    async def _ask(self) -> None:
        raise NotImplementedError

    async def _ask_or_start(self, version: int | str, **of: Any) -> None:
        named = self._client.named_decisions
        if self._agreed is None:
            estimate = await asyncio.to_thread(named.estimate_comparison, self._name, version, **of)
            self._place[:] = [pmui.Typography(escape_markdown(cost_text(estimate)))]
            if not estimate.contexts:
                raise InvalidRequestError("No texts of that time are stored; take more days.")
            self._agreed, self.button.label = estimate.price_usd, self.verb
            return
        await asyncio.to_thread(
            named.compare,
            self._name,
            version,
            **of,
            disagreement=self.budget.value / 100,
            max_price_usd=self._agreed,
        )
        await self._on_started(version if isinstance(version, int) else None)


class SwitchForm(ComparisonForm):
    """Asks for another model, and asks it and production's about recorded texts."""

    verb = "Ask both"

    def __init__(self, *about: Any, **options: Any) -> None:
        super().__init__(*about, **options)
        self.model = pmui.Select(label="Model", options=[], width=300)
        self.days = pmui.IntInput(label="Texts of the last days", value=7, start=1, width=190)
        self.fill = Task(self._fill, not_loaded("The models"), self._place, scope=self._scope)
        for field in (self.model, self.days):
            pn.bind(self._forget, field, watch=True)
        self.fill.start()
        self._box = card(
            heading("Another model on recorded texts"),
            small_text(_ABOUT_SWITCH),
            number_fields(self.model, self.days, self.budget),
            *self._foot,
        )

    async def _fill(self) -> None:
        offer_models(self.model, await asyncio.to_thread(self._client.models.choices))

    async def _ask(self) -> None:
        version = await asyncio.to_thread(
            version_with_model, self._client, self._name, "production", str(self.model.value)
        )
        await self._ask_or_start(
            version.version, stored=_MOST, traffic_s=int(self.days.value) * DAY_S
        )


class RecordedForm(ComparisonForm):
    """Takes a file of recorded answers, and asks production about their texts."""

    verb = "Ask production"

    def __init__(self, *about: Any, **options: Any) -> None:
        super().__init__(*about, **options)
        self._answers: list[dict[str, Any]] = []
        self._file_text = small_text("")
        self.file = FileChooser(
            lambda: self._say_of_file("The file is empty."),
            label="Choose a file",
            accept=".csv,.json,.jsonl",
            variant="outlined",
        )
        self.take = Write(self._take, "Not read:", self._place, scope=self._scope)
        self.file.param.watch(self.take.on_event, "value")
        self._box = card(
            heading("Production and recorded answers"),
            small_text(_ABOUT),
            pn.FlexBox(self.file, self._file_text, align_items="center"),
            number_fields(self.budget),
            *self._foot,
        )

    def _say_of_file(self, text: str) -> None:
        self._file_text.object = escape_markdown(text)

    async def _take(self) -> None:
        self._answers = []
        self._forget()
        content, name = self.file.value, str(self.file.filename)
        if not content:
            return
        answers = await asyncio.to_thread(read_recorded, bytes(content), name)
        self._answers = answers[:_MOST]
        text = f"{name}, {len(answers):,} answers"
        more = f"; the first {_MOST:,} are taken" if len(answers) > _MOST else ""
        self._say_of_file(f"{text}{more}.")

    async def _ask(self) -> None:
        if not self._answers:
            raise InvalidRequestError("Choose a file with recorded answers first.")
        await self._ask_or_start("production", recorded=self._answers)


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


def recorded_card(comparison: NamedComparison | None) -> list[Viewable]:
    """Return how far a version agrees with recorded answers; nothing where none were compared."""
    if comparison is None:
        return []
    result, title = comparison.result, heading("Production and recorded answers")
    if comparison.status in UNFINISHED:
        done, n = comparison.completed_contexts, comparison.contexts
        return [card(title, verdict("running", f"{done:,} of {n:,} texts are asked.", ""))]
    if result is None:
        end = "was stopped" if comparison.status == "cancelled" else "failed"
        return [card(title, verdict("bad", f"It {end}.", escape_markdown(comparison.error or "")))]
    decisions = [] if result.stored is None else result.stored.decisions
    shares = [
        f"{each.decision}: another action in {measure_text(each.changed)}" for each in decisions
    ]
    advice = [switch.advice for switch in result.switches]
    text = "\n\n".join(map(escape_markdown, [*shares, *advice]))
    figures = comparison_figures(result, stored="recorded answers")
    details = closed_part("Why, and what changes", figures)
    status: Status = "good" if result.verdict == "passed" else "unsure"
    version = (
        f"Version {comparison.version} was asked about {comparison.contexts:,} recorded texts."
    )
    return [card(title, verdict(status, version, text), details)]
