"""Cards of a named decision: the share of its requests that another version gets, and its growth."""

from __future__ import annotations

from functools import partial
from typing import Any

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.decision_log.wire import DecisionSummary
from steelyard.decisions.named import PRODUCTION
from steelyard.named.splitting import MIN_SEEN
from steelyard.named.wire import NamedShare
from steelyard_workbench.kit.basics import small_text, stack
from steelyard_workbench.kit.components.side_by_side import number_fields
from steelyard_workbench.kit.page import OnePartPage
from steelyard_workbench.kit.problems import typed
from steelyard_workbench.kit.views import card, empty, heading, table, verdict
from steelyard_workbench.kit.words import (
    ago,
    ahead,
    escape_markdown,
    everyday,
    percent_text,
    share_text,
)
from steelyard_workbench.parts.named.looking import Looked

#: Percent of a first share, of those after it, and the most.
STEPS, MOST = (5, 25, 50), 90
#: After how many hours a share grows to its next step; 0: it does not.
_THEN: dict[str, float] = {
    "stays as it is": 0,
    "grows by a step each hour": 1,
    "grows by a step each 6 hours": 6,
    "grows by a step each day": 24,
    "grows by a step each 3 days": 72,
}
_ENDED = {
    "worse": "{} was right less often on feedback, so the server ended it",
    "alarm": "an alarm was raised on the model of {}, so the server ended it",
    "comparison": "a comparison refused {}, so the server ended it",
    "changed": "another share took its place",
    "moved": "another version took its place",
}
_POLICIES = {
    "Gather rows of feedback": "rows",
    "Train, and propose what passes": "propose",
    "Train, and move production to what passes": "move",
}
_STAGES = {
    "gathering": "gathering rows",
    "shadowing": "answering along, unseen",
    "comparing": "being compared",
    "demoted": "taken back",
}
#: What has no field, and stays as it is.
_UNCHANGED = ("family", "margin", "shadow", "judge_rows", "novel")


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
        return card(heading("Share of traffic"), empty(text), *_stopped(page, looked, pn.Column()))
    percent, to, then = _fields(running, [each.alias for each in others])
    reason = pmui.TextInput(
        label="Why, for the history (may be empty)", sizing_mode="stretch_width", max_width=330
    )
    place = stack()

    def send() -> None:
        why = typed(reason) or None
        steps = steps_after(percent.value) if then.value else []
        page.client.named_decisions.share(
            decision.name,
            to.value,
            percent.value / 100,
            steps=steps,
            step_hours=then.value or 24,
            reason=why,
        )

    button = page.button("Send it", send, place, variant="contained")
    meaning = small_text("")

    def stop() -> None:
        page.client.named_decisions.share(decision.name, to.value, 0)

    buttons = [button, *([page.button("Stop the share", stop, place)] if running else [])]
    now = (percent.value, to.value, then.value)

    def show_meaning(*values: Any) -> None:
        percent, _, hours = values
        meaning.object = meaning_of(percent, looked.summary, hours)
        label = f"Send it {percent} %" if percent else "End the share"
        button.param.update(label=label, disabled=values == now or not (percent or now[0]))

    pn.bind(show_meaning, percent, to, then, watch=True)
    show_meaning(percent.value, to.value, then.value)
    return card(
        heading("Share of traffic"),
        *_stopped(page, looked, place),
        _state(running),
        percent,
        meaning,
        pn.FlexBox(to, then, reason, *buttons, align_items="center"),
        place,
    )


def _fields(
    running: NamedShare | None, aliases: list[str]
) -> tuple[pmui.IntSlider, pmui.Select, pmui.Select]:
    """Return the fields of a share: percent, alias, and how it grows; as the running one stands."""
    percent = pmui.IntSlider(
        label="Percent of the requests for production",
        start=0,
        end=MOST,
        value=0 if running is None else round(running.share * 100),
        marks=[{"value": step, "label": str(step)} for step in (0, *STEPS, MOST)],
        sizing_mode="stretch_width",
    )
    alias = aliases[0] if running is None else running.to
    to = pmui.Select(label="Answered by", options=aliases, value=alias, width=180)
    ramp = None if running is None else running.ramp
    hours = ramp.step_hours if ramp is not None and ramp.steps else 0
    options = _THEN if hours in _THEN.values() else {**_THEN, f"grows each {hours:g} hours": hours}
    return percent, to, pmui.Select(label="And then", options=options, value=hours, width=230)


def steps_after(percent: int) -> list[float]:
    """Return the shares that follow one by themselves.

    >>> steps_after(5), steps_after(90)
    ([0.25, 0.5, 0.9], [])
    """
    return [step / 100 for step in (*STEPS, MOST) if step > percent]


def meaning_of(percent: int, week: DecisionSummary, hours: float = 0) -> str:
    """Return the effect of a share, by the traffic of the last week, that grows after some hours."""
    if not percent:
        return "Production answers every request itself."
    if hours and (steps := steps_after(percent)):
        days = hours * len(steps) / 24
        path = " → ".join(f"{share * 100:.0f}" for share in (percent / 100, *steps))
        return (
            f"{path} %, at the last one in {days:,.1f} days. It ends by itself where feedback, an "
            f"alarm or a comparison speaks against it. {meaning_of(percent, week)}"
        )
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
        return small_text(f"Begin small, and let it grow: {steps} %.")
    figures, ramp = running.figures, running.ramp
    text = (
        f"{percent_text(running.share)} goes to {running.to}, version {running.to_version}, since "
        f"{ago(running.created_at)}. Right on feedback: production {share_text(figures.before)}, "
        f"{running.to} {share_text(figures.after)}."
    )
    if ramp is not None and ramp.next_at is not None:
        text += f" {percent_text(ramp.steps[0])} follows {ahead(ramp.next_at)}."
    return verdict("running", "Goes on.", escape_markdown(text))


def _stopped(page: OnePartPage, looked: Looked, place: pn.Column) -> list[Viewable]:
    """Return why the server ended the newest share, where it did, and a button to continue its steps."""
    newest = next(iter(looked.decision.shares), None)
    if newest is None or newest.ended_at is None:
        return []
    views: list[Viewable] = []
    if newest.ended_by == "steelyard":
        alarm = newest.figures.alarm
        text = f"{share_end(newest)}{f': {alarm}' if alarm else ''}"
        views.append(verdict("bad", "Stopped.", escape_markdown(f"{text.rstrip('.')}.")))
    is_there = any(
        alias.alias == newest.to and alias.version == newest.to_version
        for alias in looked.decision.aliases
    )
    ramp = newest.ramp
    if ramp is None or not is_there or looked.version.version != newest.from_version:
        return views

    def go_on() -> None:
        page.client.named_decisions.share(
            looked.decision.name,
            newest.to,
            newest.share,
            steps=ramp.steps,
            step_hours=ramp.step_hours,
        )

    return [*views, page.button(f"Continue at {percent_text(newest.share)}", go_on, place)]


def growth_card(page: OnePartPage, looked: Looked) -> Viewable:
    """Return the form of a growth, its progress, and the button that stops it."""
    named, name, growth = page.client.named_decisions, looked.decision.name, looked.growth
    policy = None if growth is None else growth.policy
    leave = pmui.Select(
        label="What it may do",
        options=_POLICIES,
        value="propose" if policy is None else policy.policy,
        width=320,
    )
    at_least = pmui.IntInput(
        label="New rows before it trains",
        value=100 if policy is None else policy.at_least,
        start=1,
        width=220,
    )
    price = pmui.TextInput(
        label="Most USD for a training; empty: any",
        value="" if policy is None else policy.max_price_usd or "",
        width=290,
    )
    place = stack()

    def grow() -> None:
        unchanged = (
            {} if policy is None else {field: getattr(policy, field) for field in _UNCHANGED}
        )
        most = typed(price) or None
        named.grow(name, leave.value, at_least=at_least.value, max_price_usd=most, **unchanged)

    is_on = growth is not None and growth.stopped_at is None
    text = "Its feedback may train a model of its own, which is as right for less."
    if growth is not None:
        text = f"It is {_STAGES.get(growth.stage, growth.stage)}. {everyday(growth.waits_for)}"
    word = "It grows by itself." if is_on else "It does not grow."
    buttons = [page.button("Save" if is_on else "Let it grow", grow, place)]
    if is_on:
        buttons.append(page.button("Look now", partial(named.turn_growth, name), place))
        buttons.append(page.button("Stop growing", partial(named.stop_growing, name), place))
    steps = [] if growth is None else growth.steps[:10]
    rows = [
        (_STAGES.get(step.stage, step.stage), everyday(step.message), ago(step.at))
        for step in steps
    ]
    return card(
        heading("Growth"),
        verdict("running" if is_on else "off", word, escape_markdown(text)),
        number_fields(leave, at_least, price),
        pn.FlexBox(*buttons),
        place,
        *([table(("stage", "what", "when"), rows, label="Steps of its growth")] if rows else []),
    )
