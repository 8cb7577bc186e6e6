"""Alarms that have not cleared: why, on a band, with the way to the decisions behind each."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from html import escape
from itertools import islice

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.alarms.budget import Watch
from steelyard.alarms.wire import Alarm, AlarmEvidence
from steelyard.client import Client
from steelyard.wire.measures import Measure
from steelyard_workbench.kit.basics import Boxed, action_button, html_pane, stack
from steelyard_workbench.kit.tasks import Write
from steelyard_workbench.kit.theme import BLUE, ORANGE
from steelyard_workbench.kit.views import facts, heading, verdict
from steelyard_workbench.kit.words import ago, escape_markdown, measure_text
from steelyard_workbench.parts.live.view import AnswerFilter, View

#: What is watched, in words.
WATCH_WORDS: dict[Watch, str] = {
    "shares": "shares of the answers",
    "top_probability": "how sure it is",
    "accuracy": "share right",
    "log_loss": "loss",
    "calibration": "gap between sure and right",
    "contexts": "texts unlike before",
    "latency": "slow answers",
    "errors": "failed requests",
    "escalations": "answers asked further",
}
#: The same of alarms of golden rows, which no rule's watches have.
_ALARM_WORDS: dict[str, str] = {
    **{str(watch): words for watch, words in WATCH_WORDS.items()},
    "golden": "golden rows",
    "golden_stale": "unchecked golden rows",
}
#: Alarms that are shown, the newest first.
MOST_ALARMS = 10
_SHARES = frozenset({"abstained", "right", "slow", "failed", "escalated", "new_words", "moved"})
#: The greatest log of odds that is shown.
_MOST_LOG = math.log(1e9)
_WIDTH, _HEIGHT, _EDGE = 420, 34, 8


def fetch_alarms(client: Client, model: str = "") -> list[Alarm]:
    """Return the newest alarms that have not cleared, of one model or of all."""
    alarms = client.alarms.list(
        state=("raised", "acknowledged"), model=model or None, page_size=MOST_ALARMS
    )
    return list(islice(alarms, MOST_ALARMS))


def rows_behind(alarm: Alarm) -> AnswerFilter:
    """Return the filter of the feed that shows the decisions behind an alarm."""
    behind = alarm.evidence.decisions
    return AnswerFilter(
        name=f"behind the alarm about {_ALARM_WORDS[alarm.watch]}",
        since=behind.since,
        until=behind.until,
        decision=behind.decision,
        model=behind.model,
        has_feedback=behind.has_feedback,
    )


def view_behind(alarm: Alarm) -> View:
    """Return the view of the live page that shows the decisions behind an alarm."""
    return View(rows=rows_behind(alarm))


class AlarmBand(Boxed):
    """One alarm; ``open_`` gets the filter of its decisions, ``on_known`` follows acknowledging it."""

    def __init__(
        self,
        client: Client,
        alarm: Alarm,
        *,
        open_: Callable[[AnswerFilter], None],
        on_known: Callable[[], None],
    ) -> None:
        super().__init__()
        self._client, self._alarm, self._on_known = client, alarm, on_known
        self._problem = stack()
        show = action_button(
            "Show the decisions",
            lambda _: open_(rows_behind(alarm)),
            size="small",
            description=f"Show the decisions behind the alarm about {_ALARM_WORDS[alarm.watch]}",
            visible=alarm.watch in WATCH_WORDS,
        )
        is_new = alarm.state == "raised"
        self.acknowledge = Write(self._acknowledge, "Not acknowledged:", self._problem)
        self.known = action_button(
            "Acknowledge", self.acknowledge.on_event, variant="text", size="small", visible=is_new
        )
        since = f"{ago(alarm.raised_at)}, {'not' if is_new else 'and'} acknowledged"
        self._box = stack(
            verdict("bad" if is_new else "unsure", "Alarm", escape_markdown(alarm.message)),
            band(alarm.evidence),
            facts(_details(alarm, since)),
            pmui.Row(show, self.known),
            self._problem,
        )

    async def _acknowledge(self) -> None:
        await asyncio.to_thread(self._client.alarms.acknowledge, self._alarm.id)
        self.known.visible = False
        self._on_known()


def show_alarms(
    client: Client,
    alarms: Sequence[Alarm],
    *,
    open_: Callable[[AnswerFilter], None],
    on_known: Callable[[], None],
) -> Viewable:
    """Show alarms, and nothing where there is none."""
    if not alarms:
        return pn.Column(visible=False)
    bands = [AlarmBand(client, alarm, open_=open_, on_known=on_known) for alarm in alarms]
    return stack(heading("Alarms"), *bands)


def band(evidence: AlarmEvidence) -> Viewable:
    """Draw a figure with its interval beside its reference."""
    now, reference = evidence.estimate, evidence.reference_value
    low = now.value if now.low is None else now.low
    high = now.value if now.high is None else now.high
    least, most = min(low, now.value, reference), max(high, now.value, reference)
    span = (most - least) or 1.0

    def x(value: float) -> float:
        return _EDGE + (value - least) / span * (_WIDTH - 2 * _EDGE)

    text = (
        f"Now {_number(evidence, now.value)}, {_number(evidence, low)} to "
        f"{_number(evidence, high)}; the reference {_number(evidence, reference)}"
    )
    middle = _HEIGHT / 2
    drawn = (
        f'<svg role="img" aria-label="{escape(text)}" width="{_WIDTH}" height="{_HEIGHT}" '
        f'viewBox="0 0 {_WIDTH} {_HEIGHT}" style="max-width:100%">'
        f'<line x1="{_EDGE}" x2="{_WIDTH - _EDGE}" y1="{middle}" y2="{middle}" '
        'stroke="currentColor" stroke-opacity="0.35"/>'
        f'<rect x="{x(low):.1f}" width="{max(x(high) - x(low), 2):.1f}" y="{middle - 6}" height="12" '
        f'fill="{ORANGE}" fill-opacity="0.45"/>'
        f'<circle cx="{x(now.value):.1f}" cy="{middle}" r="5" fill="{ORANGE}"/>'
        f'<line x1="{x(reference):.1f}" x2="{x(reference):.1f}" y1="4" y2="{_HEIGHT - 4}" '
        f'stroke="{BLUE}" stroke-width="3"/></svg>'
    )
    return html_pane(drawn, margin=(0, 10))


def _details(alarm: Alarm, since: str) -> dict[str, str]:
    evidence = alarm.evidence
    of = evidence.reference
    source = f"the evaluation {of.evaluation_id}" if of.evaluation_id else "stored answers"
    details = {
        "Raised": since,
        "Of": f"{alarm.decision or 'every decision'}, by {alarm.version or alarm.model}",
        "Figure": f"{_with_interval(evidence, evidence.estimate)}: the dot and the band",
        "Reference": f"{_with_interval(evidence, evidence.reference_estimate)} in {source}: the line",
    }
    if evidence.total_variation is not None:
        details["Answers apart by"] = measure_text(evidence.total_variation)
    if evidence.p_value is not None:
        details["Chance without a drift"] = f"{evidence.p_value:.1g}"
    elif evidence.log_evidence is not None and evidence.log_threshold is not None:
        details["Odds against no drift"] = (
            f"{_odds(evidence.log_evidence)} to 1; an alarm from {_odds(evidence.log_threshold)} to 1"
        )
    return details


def _with_interval(evidence: AlarmEvidence, measure: Measure) -> str:
    text = _number(evidence, measure.value)
    if measure.low is not None and measure.high is not None:
        low, high = _number(evidence, measure.low), _number(evidence, measure.high)
        text = f"{text}, {low} to {high}"
    return f"{text} (n = {measure.n:,})"


def _odds(log: float) -> str:
    return f"{math.exp(log):,.0f}" if log < _MOST_LOG else f"over {math.exp(_MOST_LOG):,.0f}"


def _number(evidence: AlarmEvidence, value: float) -> str:
    if evidence.figure == "stale":
        return f"{value:,.0f} h"
    if evidence.figure == "length":
        return f"{value:,.0f} characters"
    is_share = evidence.figure in _SHARES or evidence.figure.startswith("outcome:")
    return f"{value:.1%}" if is_share else f"{value:.3f}"
