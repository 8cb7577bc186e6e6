"""The texts of a part of a page of the workbench, without a browser."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from steelyard.errors import RoleForbiddenError


def texts(shown: Any) -> str:
    """Everything that a part of a page says."""
    from steelyard_workbench.kit.components.choices import Choices
    from steelyard_workbench.kit.components.copy_text import CopyText
    from steelyard_workbench.kit.components.mark_table import MarkTable

    parts = shown.select(lambda one: isinstance(getattr(one, "object", None), str))
    copied = [text for one in shown.select(CopyText) for text in one.texts.values()]
    offered = [each.text for part in shown.select(Choices) for each in part.choices if each.text]
    listed = [" · ".join(row) for table in shown.select(MarkTable) for row in table.rows]
    return "\n".join([*(one.object for one in parts), *copied, *offered, *listed])


def texts_of(shown: Any) -> str:
    """The same, with the other texts there: tables and figures as they write themselves."""
    found = [shown] if hasattr(shown, "object") else []
    if hasattr(shown, "select"):
        found = shown.select(lambda one: hasattr(one, "object"))
    return " ".join(str(one.object) for one in found)


def named(shown: Any, label: str) -> list[Any]:
    """The buttons and fields of a label."""
    return shown.select(lambda part: getattr(part, "label", None) == label)


def buttons(shown: Any) -> dict[str, Any]:
    """The buttons by their labels."""
    return {one.label: one for one in shown.select(lambda one: hasattr(one, "clicks"))}


def choices(shown: Any) -> dict[str, Callable[[], Any] | None]:
    """The actions of the choices of a part of a page, by their labels."""
    from steelyard_workbench.kit.components.choices import Choices

    return {each.label: each.do for part in shown.select(Choices) for each in part.choices}


def choose(shown: Any, label: str) -> None:
    """Press the choice of a part of a page with a label."""
    from steelyard_workbench.kit.components.choices import Choices

    [(part, place)] = [
        (part, place)
        for part in shown.select(Choices)
        for place, each in enumerate(part.choices)
        if each.label == label
    ]
    part.press(place)


def opened(page_of: Callable[[Any], Any], session: Any) -> Any:
    """A page of a session, opened: every part of it without a problem."""
    page = page_of(session)
    page.open()
    assert [part.problem for part in page.parts] == [None] * len(page.parts)
    return page


def lines(page: Any, label: str) -> Any:
    """The table of a page with a label."""
    from steelyard_workbench.kit.components.mark_table import MarkTable

    [table] = [one for one in page.__panel__().select(MarkTable) if one.label == label]
    return table


def press(page: Any, label: str) -> None:
    """Press the button of a page with a label."""
    press_in(page.__panel__(), label)


def press_in(shown: Any, label: str) -> None:
    """Press the button of a part of a page with a label."""
    [button] = [one for one in named(shown, label) if hasattr(one, "clicks")]
    button.clicks += 1


def refusals(session: Any) -> list[tuple[str, str, str]]:
    """Return a list of the calls that the server refuses to a person without the role."""
    refused: list[tuple[str, str, str]] = []
    send = session.client.send

    def record(call: Any) -> Any:
        try:
            return send(call)
        except RoleForbiddenError as error:
            refused.append((session.page, call.path, str(error)))
            raise

    session.client.send = record
    return refused
