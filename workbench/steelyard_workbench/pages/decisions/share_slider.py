"""The share of production's requests that another alias answers, as a slider."""

from __future__ import annotations

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.decision_log.wire import DecisionSummary
from steelyard.decisions.named import PRODUCTION
from steelyard.named.splitting import MIN_SEEN
from steelyard.named.wire import NamedShare
from steelyard_workbench.kit.components.cards import card
from steelyard_workbench.kit.components.facts import heading
from steelyard_workbench.kit.components.numbers import ago, share_text
from steelyard_workbench.kit.escaping import escape_markdown
from steelyard_workbench.kit.one_part_page import OnePartPage
from steelyard_workbench.kit.states import empty, verdict
from steelyard_workbench.parts.named.looking import Looked

#: Percent of a first share, of those after it, and the most.
STEPS, MOST = (5, 20, 50), 90
_ENDED = {
    "worse": "{} was right less often on feedback, so the server ended it",
    "changed": "another share took its place",
    "moved": "an alias moved",
}


def share_card(page: OnePartPage, looked: Looked) -> Viewable:
    """Return the slider with the effect of its share, and the state of the running share."""
    decision, production = looked.decision, looked.version.version
    running = running_share(looked)
    beside = 0 if looked.beside is None else looked.beside.version
    others = [each for each in decision.aliases if each.version != production]
    # That of the version that stands beside production is offered first.
    others.sort(key=lambda alias: alias.version != beside)
    if not others:
        text = "Point staging to another version, and it may answer a share of the requests."
        return card(heading("Share of traffic"), empty(text), *_stopped(looked))
    percent = pmui.IntSlider(
        label="Percent of the requests for production",
        start=0,
        end=MOST,
        value=0 if running is None else round(running.share * 100),
        marks=[{"value": step, "label": str(step)} for step in (0, *STEPS, MOST)],
        sizing_mode="stretch_width",
    )
    to = pmui.Select(
        label="Answered by",
        options=[each.alias for each in others],
        value=others[0].alias if running is None else running.to,
        width=180,
    )
    reason = pmui.TextInput(
        label="Why, for the history (may be empty)", sizing_mode="stretch_width", max_width=330
    )
    place = pn.Column(sizing_mode="stretch_width")

    def send() -> None:
        why = (reason.value_input or reason.value or "").strip() or None
        page.client.named_decisions.share(decision.name, to.value, percent.value / 100, reason=why)

    button = page.button("Send it", send, place, variant="contained")
    meaning = pmui.Typography("", variant="body2")

    def show_meaning(percent: int, to: str) -> None:
        now = (0, to) if running is None else (round(running.share * 100), running.to)
        meaning.object = meaning_of(percent, looked.summary)
        label = f"Send it {percent} %" if percent else "End the share"
        button.param.update(label=label, disabled=(percent, to) == now)

    pn.bind(show_meaning, percent, to, watch=True)
    show_meaning(percent.value, to.value)
    return card(
        heading("Share of traffic"),
        *_stopped(looked),
        _state(running),
        percent,
        meaning,
        pn.FlexBox(to, reason, button, align_items="center"),
        place,
    )


def meaning_of(percent: int, week: DecisionSummary) -> str:
    """Return the effect of a share, by the traffic of the last week."""
    if not percent:
        return "Production answers every request itself."
    if not week.answers:
        return "No requests in the last week, so nothing says how many that is."
    n = week.answers * percent / 100
    text = f"{percent} % is about {n:,.0f} of {week.answers:,} answers a week. "
    seen = 0.0 if week.feedback_share is None else week.feedback_share.value
    # Both sides need answers with feedback: the smaller one takes longer.
    a_day = seen * min(n, week.answers - n) / 7
    if a_day:
        days = MIN_SEEN / a_day
        text += f"Feedback can judge it {'within a day' if days <= 1 else f'in {days:,.0f} days'}. "
    else:
        text += "Without feedback it cannot be judged. "
    return text + "It ends by itself once feedback shows that it is right less often."


def running_share(looked: Looked) -> NamedShare | None:
    """Return the share of production that goes on; ``None`` where none does."""
    shares = looked.decision.shares
    return next((each for each in shares if each.alias == PRODUCTION and not each.ended_at), None)


def share_end(share: NamedShare) -> str:
    """Return why a share ended."""
    return _ENDED.get(share.ended_reason or "", "a person ended it").format(share.to)


def _state(running: NamedShare | None) -> Viewable:
    steps = ", ".join(map(str, STEPS))
    if running is None:
        return pmui.Typography(f"Begin small, and go on after a day: {steps} %.", variant="body2")
    figures = running.figures
    further = next((step for step in STEPS if step > round(running.share * 100)), None)
    text = (
        f"{running.share:.0%} goes to {running.to}, version {running.to_version}, since "
        f"{ago(running.created_at)}. Right on feedback: production {share_text(figures.before)}, "
        f"{running.to} {share_text(figures.after)}."
    )
    text += "" if further is None else f" The next step is {further} %."
    return verdict("running", "Goes on.", escape_markdown(text))


def _stopped(looked: Looked) -> list[Viewable]:
    """Return why the newest share ended, where the server ended it."""
    newest = next(iter(looked.decision.shares), None)
    if newest is None or newest.ended_reason != "worse":
        return []
    return [verdict("bad", "Stopped.", escape_markdown(f"{share_end(newest)}."))]
