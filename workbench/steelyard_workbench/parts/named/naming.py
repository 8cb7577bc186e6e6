"""Naming a request or a family: the form of a new decision opens with it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from steelyard.families.wire import Family
from steelyard_workbench.kit.session import Session

#: The view of the Decisions page that begins with the form of a new one.
NEW = "new"
#: The view of a decision that begins with the code that asks it.
CODE = "code"
#: The label of the buttons that open it.
NAME_IT = "Name it"


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
