"""Naming a request or a family: the form of a new decision opens with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.families.wire import Family
from steelyard_workbench.kit.basics import action_button, small_text
from steelyard_workbench.kit.session import Session

#: The view of the Decisions page that begins with the form of a new one.
NEW = "new"
#: The view of a decision that begins with the code that asks it.
CODE = "code"
#: The label of the buttons that open it.
NAME_IT = "Name it"
#: The view of a page that shows only things of the named decision.
OF_NAMED = "of-decision"


def open_new(
    session: Session, content: Mapping[str, Any], dataset: str = "", name: str = ""
) -> None:
    """Open the form of a new decision with content, and the id of its rows' dataset, if any."""
    session.wording = {"content": dict(content), "dataset": dataset, "name": name}
    session.open("decisions", view=NEW, named="")


async def name_family(session: Session, family: Family) -> None:
    """Open the form with a family's decisions, in the wording that it was trained on."""
    dataset = family.dataset_id or ""
    page = await asyncio.to_thread(session.client.datasets.search, dataset, limit=1)
    decisions = page.data[0].decisions
    open_new(session, {"decisions": decisions, "model": family.id}, dataset, family.id)


def name_of(session: Session) -> str:
    """Return the named decision that a page is about alone; empty where it shows everything."""
    return str(session.named) if session.view == OF_NAMED else ""


def filter_row(session: Session, refresh: Callable[[], object]) -> Viewable:
    """Show which decision a page is about alone, with a button for everything."""
    name = name_of(session)
    row = pmui.Row(sizing_mode="stretch_width", visible=bool(name))

    def show_all(_: object) -> None:
        session.view = ""
        row.visible = False
        refresh()

    everything = action_button("Show all", show_all, size="small", align="center")
    text = small_text(f"Of the decision {name} alone.", align="center")
    row[:] = [text, everything, pn.Spacer(sizing_mode="stretch_width")]
    return row
