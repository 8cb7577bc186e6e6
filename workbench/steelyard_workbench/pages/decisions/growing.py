"""Leave for a named decision to grow a model of its own, and how far that is."""

from __future__ import annotations

from functools import partial

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard_workbench.kit.basics import stack
from steelyard_workbench.kit.components.side_by_side import number_fields
from steelyard_workbench.kit.page import OnePartPage
from steelyard_workbench.kit.problems import typed
from steelyard_workbench.kit.views import card, heading, table, verdict
from steelyard_workbench.kit.words import ago, escape_markdown, everyday
from steelyard_workbench.parts.named.looking import Looked

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
