"""Spending by day, key, model or family: each bar opens its calls."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, get_args

import panel as pn
import panel_material_ui as pmui
from bokeh.models import BasicTickFormatter, ColumnDataSource, NumeralTickFormatter
from panel.viewable import Viewable

from steelyard.people.wire import Usage, UsageBy, UsageLine
from steelyard_workbench.kit.basics import small_text, stack
from steelyard_workbench.kit.components import figures
from steelyard_workbench.kit.components.mark_table import mark_table, show_data
from steelyard_workbench.kit.page import Loaded
from steelyard_workbench.kit.personal import Section
from steelyard_workbench.kit.theme import BLUE
from steelyard_workbench.kit.views import empty, table
from steelyard_workbench.parts.balance import usd
from steelyard_workbench.parts.live.view import WINDOWS, AnswerFilter, View, to_text

_DAY_S = 86_400
_CENT = Decimal("0.01")
_SPANS = {"last 7 days": 7, "last 30 days": 30, "last 90 days": 90, "last 365 days": 365}
_BY: dict[str, UsageBy] = {
    "By day": "day",
    "By key": "key",
    "By model": "model",
    "By model line": "family",
}
#: Bars of a chart, and lines of a table, of those that cost most.
_MOST_BARS, _MOST_LINES = 20, 200
#: Roles that read the calls themselves.
_READERS = {"owner", "developer"}
_COLUMNS = ("cost", "calls", "input tokens", "decisions")


@dataclass(frozen=True, slots=True)
class SpendView:
    """The view of the spending: its grouping, and days up to today."""

    by: UsageBy = "day"
    days: int = 30


def from_text(text: str) -> SpendView:
    """Return the view of an address; the first one where it has none.

    >>> from_text("model-90"), from_text("bulk")
    (SpendView(by='model', days=90), SpendView(by='day', days=30))
    """
    match = re.fullmatch(r"([a-z]+)-([0-9]{1,3})", text)
    if match is None or match[1] not in get_args(UsageBy) or int(match[2]) not in _SPANS.values():
        return SpendView()
    by: Any = match[1]
    return SpendView(by, int(match[2]))


class SpendingSection(Section):
    """The chart of the spending, its choice, and its figures."""

    def build(self) -> list[Viewable]:
        """Return the choice and the chart."""
        self.view = from_text(self.session.view)
        self._is_told = False
        self.by = pmui.RadioButtonGroup(label="Added up", options=_BY, value=self.view.by)
        self.span = pmui.Select(
            label="Time", options=_SPANS, value=self.view.days, width=180, size="small"
        )
        pn.bind(self._on_choice, self.by, self.span, watch=True)
        self.usage: Loaded[Usage] = Loaded("The spending", self._fetch, self.show, n_lines=8)
        return [
            pn.FlexBox(self.by, self.span, align_items="flex-end", gap="8px"),
            self.part(self.usage),
        ]

    def look_at(self, view: SpendView) -> None:
        """Show another choice."""
        if view == self.view:
            return
        self.view = view
        self._is_told = True
        try:
            self.by.value, self.span.value = view.by, view.days
        finally:
            self._is_told = False
        self.usage.start()

    def _on_choice(self, by: UsageBy, days: int) -> None:
        if not self._is_told:
            self.session.view = f"{by}-{days}"
            self.look_at(SpendView(by, days))

    def _fetch(self) -> Usage:
        view = self.view
        today = math.floor(time.time() / _DAY_S) * float(_DAY_S)
        return self.client.account.usage(since=today - (view.days - 1) * _DAY_S, by=view.by)

    def show(self, usage: Usage) -> Viewable:
        """Show the usage: the sum, the chart, and its figures as a table."""
        if not usage.data:
            return empty(
                f"**Nothing was charged in the {self._span}.** Calls that cost nothing are not listed."
            )
        total = usage.total
        text = (
            f"{usd(total.cost_usd)} in the {self._span}, for {total.calls:,} calls and jobs, "
            f"{total.tokens:,} input tokens and {total.decisions:,} decisions. Days are of UTC."
        )
        view = self._by_day(usage) if usage.by == "day" else self._by_name(usage)
        return stack(pmui.Typography(text, variant="body1"), *view)

    @property
    def _span(self) -> str:
        return next(name for name, days in _SPANS.items() if days == self.view.days)

    def _by_day(self, usage: Usage) -> list[Viewable]:
        lines = list(usage.data)
        starts = [_start_of(line) for line in lines]
        may_open = self.session.role in _READERS

        def open_day(place: int) -> None:
            start = starts[place]
            name = f"made on {lines[place].name} (UTC)"
            rows = AnswerFilter(name=name, since=start, until=start + _DAY_S)
            self._open_calls(View(window_s=_window_of(self.view.days), rows=rows))

        chart = day_chart(
            lines,
            starts,
            since=usage.since,
            until=usage.until,
            open_=open_day if may_open else None,
        )
        return [figures.show(chart), self._table(lines, "day", open_day if may_open else None)]

    def _by_name(self, usage: Usage) -> list[Viewable]:
        named = [line for line in usage.data if line.name is not None]
        lines = sorted(named, key=lambda line: -Decimal(line.cost_usd))[:_MOST_LINES]
        words = {by: label.removeprefix("By ") for label, by in _BY.items()}
        unnamed = [
            small_text(
                f"Of no {words[usage.by]}: {usd(line.cost_usd)}, for {line.calls:,} calls and jobs."
            )
            for line in usage.data
            if line.name is None
        ]
        if not lines:
            return [*unnamed]

        def open_name(place: int) -> None:
            name = lines[place].name or ""
            window_s = _window_of(self.view.days)
            if usage.by == "key":
                rows = AnswerFilter(name=f"of the key {_name_of(lines[place])}", key=name)
                self._open_calls(View(window_s=window_s, rows=rows))
            else:
                self._open_calls(View(window_s=window_s, model=name))

        opens = self.session.role in _READERS
        longest = lines[:_MOST_BARS]
        some = f", the {len(longest)} that cost most" if len(lines) > len(longest) else ""
        chart = figures.bars(
            _unlike([_name_of(line) for line in longest]),
            [float(line.cost_usd) for line in longest],
            title=f"Cost by {usage.by}{some}",
            x="USD",
            full_names=[f"{_name_of(line)}: {usd(line.cost_usd)}" for line in longest],
            open_=open_name if opens else None,
        )
        chart.hover.tooltips = [("", "@full")]
        chart.x_range.start = 0
        chart.xaxis[0].formatter = _ticks(lines)
        listed = self._table(lines, usage.by, open_name if opens else None)
        return [figures.show(chart), listed, *unnamed]

    def _table(
        self, lines: Sequence[UsageLine], first: str, open_: Callable[[int], None] | None
    ) -> Viewable:
        rows = [
            (
                _name_of(line),
                usd(line.cost_usd),
                *(f"{n:,}" for n in (line.calls, line.tokens, line.decisions)),
            )
            for line in lines
        ]
        columns, label, numbers = (first, *_COLUMNS), f"Cost by {first}", (1, 2, 3, 4)
        if open_ is None:
            return show_data(table(columns, rows, label=label, numbers=numbers))
        return show_data(
            mark_table(
                columns, rows, label=label, numbers=numbers, open_=open_, opens="Show its calls"
            )
        )

    def _open_calls(self, view: View) -> None:
        """Go to the stored decisions of a view."""
        self.session.open("live", query=to_text(view), decision="")


def day_chart(
    lines: Sequence[UsageLine],
    starts: Sequence[float],
    *,
    since: float,
    until: float,
    open_: Callable[[int], None] | None = None,
) -> Any:
    """Draw the cost of each day, those without any as gaps; times are Unix seconds."""
    source = ColumnDataSource(
        {
            "at": [(start + _DAY_S / 2) * 1000 for start in starts],
            "day": [line.name for line in lines],
            "cost": [float(line.cost_usd) for line in lines],
            "told": [usd(line.cost_usd) for line in lines],
            "calls": [line.calls for line in lines],
        }
    )
    end = math.ceil(until / _DAY_S) * _DAY_S
    chart = figures.plot(
        "Cost by day",
        "day, UTC",
        "USD",
        height=260,
        x_axis_type="datetime",
        x_range=(since * 1000, end * 1000),
    )
    chart.vbar(x="at", top="cost", width=_DAY_S * 1000 * 0.86, source=source, color=BLUE)
    chart.y_range.start = 0
    chart.yaxis[0].formatter = _ticks(lines)
    chart.hover.tooltips = [("", "@day"), ("cost", "@told"), ("calls", "@calls{0,0}")]
    if open_ is not None:
        figures.on_tap(chart, source, open_)
    return chart


def _ticks(lines: Sequence[UsageLine]) -> Any:
    """Return how the axis of a cost is written: in dollars and cents, or in full where all is less."""
    if any(Decimal(line.cost_usd) >= _CENT for line in lines):
        return NumeralTickFormatter(format="$0,0.00")
    return BasicTickFormatter(use_scientific=False)


def _start_of(line: UsageLine) -> float:
    return datetime.fromisoformat(f"{line.name}T00:00:00").replace(tzinfo=UTC).timestamp()


def _name_of(line: UsageLine) -> str:
    return line.label or line.name or ""


def _unlike(names: Sequence[str]) -> list[str]:
    """Return names with a number behind each repeated one."""
    seen: dict[str, int] = {}
    distinct = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        distinct.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return distinct


def _window_of(days: int) -> int:
    """Return the shortest window of the page of calls that has some days, or its longest."""
    return next((s for s in sorted(WINDOWS.values()) if s >= days * _DAY_S), max(WINDOWS.values()))
