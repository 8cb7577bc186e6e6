"""Rows of a dataset as a table, and the one that is opened beside it."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.client.answers import labels_of
from steelyard.datasets.wire import Example
from steelyard_workbench.kit.basics import Boxed, html_pane, small_text, stack
from steelyard_workbench.kit.components.choices import Choice, Choices
from steelyard_workbench.kit.components.frame_table import FrameTable, PageRequest, TablePage
from steelyard_workbench.kit.components.side_by_side import side_by_side
from steelyard_workbench.kit.scheduling import schedule
from steelyard_workbench.kit.theme import token
from steelyard_workbench.kit.views import heading, loading, table
from steelyard_workbench.kit.words import counted, escape_markdown
from steelyard_workbench.parts.datasets.questions import as_text, questions_of
from steelyard_workbench.parts.datasets.row_pages import COLUMNS, SORTABLE, read_row

_TEXT = (
    "white-space:pre-wrap;overflow-wrap:anywhere;max-height:22em;overflow:auto;unicode-bidi:plaintext;"
    f"padding:12px;border:1px solid {token('line')};border-radius:8px;background:{token('surface')}"
)
#: Pixels of the parts beside the table.
_DETAIL_WIDTH = 400


def show_row(index: int, side: str, row: Example) -> Viewable:
    """Show a row; ``index`` is its place in the dataset, from 0."""
    labels = labels_of(row)
    word = "target" if isinstance(row.targets, dict) else "reward"
    views: list[Viewable] = [
        heading(f"Row {index:,}", 2),
        small_text(f"For {side}, {counted(len(row.decisions), 'decision')}"),
        html_pane(
            f'<div tabindex="0" role="region" aria-label="Text" style="{_TEXT}">'
            f"{escape(as_text(row.context))}</div>"
        ),
    ]
    for question in questions_of(row.decisions):
        expected = labels.get(question.id, {})
        rows = [
            (outcome, _value(expected, outcome), meaning)
            for outcome, meaning in zip(question.outcomes, question.descriptions, strict=True)
        ]
        views += [
            pmui.Typography(
                f"**{escape_markdown(question.id)}**: {escape_markdown(question.text)}",
                variant="body1",
            ),
            table(("answer", word, "means"), rows, label=f"Labels of {question.id}", numbers=(1,)),
        ]
    if isinstance(row.metadata, dict) and row.metadata:
        rows_of = [(name, as_text(value)) for name, value in row.metadata.items()]
        views.append(table(("metadata", "value"), rows_of, label="Metadata"))
    return stack(*views)


def _value(label: dict[str, float], outcome: str) -> str:
    """Return a label's value for an outcome; a target that is not there is 0."""
    if not label:
        return "no label"
    value = label.get(outcome)
    return "" if value is None or value == 0 else f"{value:g}"


class RowTable(Boxed):
    """A table of rows; a click, Enter, or the buttons under it, open one.

    ``fetch`` takes a ``PageRequest`` and returns a ``TablePage`` as ``row_pages`` does; blocks.
    ``on_opened`` is called with the place in the dataset of the row that is open; ``None`` once
    none is. ``on_ask`` is called with the place of the row that is open, to ask models about it.
    ``opened``: place in the dataset of the row that is open.
    """

    def __init__(
        self,
        fetch: Callable[[PageRequest], TablePage],
        *,
        what: str,
        page_size: int = 25,
        nothing: Callable[[], Viewable] | None = None,
        on_opened: Callable[[int | None], None] | None = None,
        on_ask: Callable[[int], None] | None = None,
    ) -> None:
        super().__init__()
        self._nothing = nothing
        self._on_opened = on_opened
        self.opened: int | None = None
        self.table = FrameTable(
            fetch,
            what=what,
            id_column="row",
            columns=COLUMNS,
            sortable=SORTABLE,
            page_size=page_size,
            on_open=self.show,
            on_close=self.close,
            wrapped=("context",),
            chips=("labels",),
        )
        self._on_ask = on_ask
        self.buttons = Choices(self._steps(), layout="row", is_small=True)
        self._detail = pn.Column(width=_DETAIL_WIDTH, visible=False)
        self._rows = side_by_side(stack(self.table, self.buttons), self._detail)
        # The table comes in with its first rows: one that is changed before the browser has built
        # it raises there.
        self._box = stack(loading(6, what))

    @property
    def detail(self) -> list[Any]:
        """The content of the open row."""
        return list(self._detail)

    async def load(self) -> None:
        """Fetch the first page again."""
        self.close()
        await self.table.restart()
        is_empty = self.table.total == 0 and self.table.rows.height == 0
        page = None
        if is_empty and self._nothing is not None and not self.table.has_failed:
            page = self._nothing()
        content = self._rows if page is None else page
        if list(self._box) != [content]:
            self._box[:] = [content]

    def reload(self) -> None:
        """Fetch the first page again, without waiting for it."""
        schedule(self.load)

    def show(self, record: dict[str, Any]) -> None:
        """Open a row of the page."""
        self.opened = int(record["row"])
        self.table.mark(self.opened)
        self._detail[:] = [show_row(self.opened, record["side"], read_row(record["json"]))]
        self._detail.visible = True
        self.buttons.offer(self._steps())
        self._tell()

    def close(self) -> None:
        """Close the row that is open."""
        self.opened = None
        self.table.mark(None)
        self._detail[:] = []
        self._detail.visible = False
        self.buttons.offer(self._steps())
        self._tell()

    def _steps(self) -> list[Choice]:
        """Return the way to the next row, and the actions on the open one."""
        steps: dict[str, Callable[[], object]] = {"Next row (j)": lambda: self.table.step(1)}
        opened, ask = self.opened, self._on_ask
        if opened is not None:
            steps |= {"Previous row (k)": lambda: self.table.step(-1), "Close the row": self.close}
            if ask is not None:
                steps["Ask several models"] = lambda: ask(opened)
        return [Choice(label, do, look="text") for label, do in steps.items()]

    def _tell(self) -> None:
        if self._on_opened is not None:
            self._on_opened(self.opened)

    def on_key(self, action: str) -> bool:
        """Run the action of a key; return whether there was one."""
        return self.table.on_key(action)
