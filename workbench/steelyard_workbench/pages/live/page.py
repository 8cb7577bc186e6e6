"""Live: recent decisions, how often they abstained, and how often they were right."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.alarms.wire import Alarm
from steelyard.client import Client
from steelyard.datasets.wire import Dataset
from steelyard.decision_log.wire import DecisionSeries, DecisionSummary
from steelyard.errors import NotFoundError, SteelyardError
from steelyard.shadows.wire import ShadowReport
from steelyard_workbench.kit.basics import Boxed, action_button, filter_fields, stack
from steelyard_workbench.kit.components.copy_text import CopyText, as_curl, as_python
from steelyard_workbench.kit.components.side_by_side import side_by_side
from steelyard_workbench.kit.components.unseen import Visibility
from steelyard_workbench.kit.page import Loaded, Page
from steelyard_workbench.kit.scheduling import schedule
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.views import empty, heading, table
from steelyard_workbench.kit.words import escape_markdown, measure_text, percent_text
from steelyard_workbench.pages.live.acting import WouldAct
from steelyard_workbench.pages.live.feed import Feed
from steelyard_workbench.pages.live.figures import show_details, show_strip
from steelyard_workbench.pages.live.opened import OpenedAnswer
from steelyard_workbench.pages.live.over_time import OverTime
from steelyard_workbench.pages.live.sending import SendForm
from steelyard_workbench.parts.live.alarms import fetch_alarms, show_alarms
from steelyard_workbench.parts.live.share_table import TO_CHECK, share_table
from steelyard_workbench.parts.live.view import WINDOWS, AnswerFilter, View, from_text, to_text
from steelyard_workbench.parts.review.sending import draft_of

#: Seconds between two sums over a window: when something changed, and in any case.
_SUM_AFTER_S, _SUM_ANYWAY_S = 10.0, 60.0
#: Pixels of a field above the stream: two stand beside each other on a phone.
_FIELD = 160
_LONGEST = max(WINDOWS.values())
_EXAMPLE = {
    "context": "My card was charged twice for order 118.",
    "decisions": [{"id": "refund", "kind": "binary", "question": "Is money asked back?"}],
    "store": True,
}
#: What of the stream can be chosen to be seen.
_ONLY = {
    "every answer": AnswerFilter(),
    "the wrong ones": AnswerFilter(name="wrong, by the feedback", has_feedback=True, wrong=True),
    "left to a person": AnswerFilter(name="left to a person", abstained=True),
    "checked": AnswerFilter(name="with feedback", has_feedback=True),
    "not checked yet": AnswerFilter(name="without feedback", has_feedback=False),
    "to check, drawn by chance": TO_CHECK,
}
_Fetched = tuple[DecisionSummary, list[ShadowReport], list[Alarm]]
_DAY_S = 86_400
#: Families of a window that are looked at.
_MOST = 8


class LivePage(Page):
    """Recent decisions."""

    slug = "live"
    title = "Live"
    summary = "What was answered lately, and whether it was right."
    look_ms = 2000

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.view = View()
        self.opened: OpenedAnswer | None = None
        self.visibility = Visibility()
        self._summed_at = 0.0
        self._has_changed = False
        self._is_offering = False
        self._tables: set[str] = set()

    def build(self) -> list[Viewable]:
        """Return the filters, the figures and the feed."""
        # What another page left there is none of this one's.
        self.view = from_text(self.session.query, self.view)
        self.opened = None
        fields = self._make_fields()
        self.figures = Loaded("The figures", self._fetch, self._show, n_lines=3)
        self.acting = WouldAct(self.show_rows)
        self.shares = TrueShares(self.client, lambda: self.view, self.show_rows)
        self.over_time = OverTime(self.client, lambda: self.view, self.show_rows)
        self.more = action_button(
            "Charts and more figures", lambda _: self.show_more(), size="small"
        )
        # Drawn when somebody wants to see it: the stream is here sooner.
        self.details = stack()
        self.charts = stack(self.details, self.over_time, visible=False)
        self.feed = Feed(
            self.client, on_open=self.show, on_change=self._note_change, nothing=self._nothing
        )
        self.sending: SendForm = SendForm(
            self.client,
            selected=lambda: self.feed.selected,
            view=lambda: self.view,
            on_sent=self._review,
            scope=self.visit,
        )
        pn.bind(self.sending.describe, self.feed.table.param.selected, watch=True)
        self._said = pn.Row(sizing_mode="stretch_width")
        # With the page: a browser may lose a change of what it was sent a moment ago.
        self._say()
        self._opened = pn.Column(
            width=440, visible=False, styles={"max-width": "calc(100vw - 20px)"}
        )
        shown = [
            filter_fields(*fields, is_open=self.view != View(window_s=self.view.window_s)),
            self.part(self.figures),
            self.acting,
            self._said,
            self.shares,
            side_by_side(self.feed, self._opened),
            self.sending,
            self.more,
            self.charts,
            self.visibility,
        ]
        self.part(self.sending.part)
        self.part(self.shares.part)
        return shown

    def _make_fields(self) -> list[Viewable]:
        """Make the fields that choose answers, and return those that are shown."""
        self.window = pmui.Select(
            label="Time", options=WINDOWS, value=self.view.window_s, width=_FIELD, size="small"
        )
        self.model = pmui.Select(label="Model", width=_FIELD, size="small")
        self.decision = pmui.Select(label="Decision", width=_FIELD, size="small")
        self.named = pmui.Select(
            label="Asked for",
            options={"every request": "", self.view.named: self.view.named},
            value=self.view.named,
            width=_FIELD,
            size="small",
        )
        self._offer({self.view.model}, {self.view.decision})
        pn.bind(self._on_choice, self.window, self.model, self.decision, self.named, watch=True)
        shown_name = self.view.rows.name
        only = next(
            (name for name, rows in _ONLY.items() if rows.name == shown_name), "every answer"
        )
        self.only = pmui.Select(
            label="Show", options=[*_ONLY], value=only, width=_FIELD, size="small"
        )
        pn.bind(lambda name: self.show_rows(_ONLY[name]), self.only, watch=True)
        named = [self.named] if self.view.named else []
        return [self.window, self.model, self.decision, self.only, *named]

    def open(self) -> None:
        """Show the page, and begin to look for new answers."""
        super().open()
        self._summed_at = time.monotonic()
        self.sending.describe()
        self._write()
        if self.session.decision:
            self.show(self.session.decision)
        schedule(lambda: self.feed.show(self.view))

    def close(self) -> None:
        """Leave the page: it looks no more, and takes its view out of the address."""
        super().close()
        if self.session.query == to_text(self.view):
            self.session.query = ""

    def reconnect(self) -> None:
        """Look again now that the server answers."""
        super().reconnect()
        schedule(self.feed.look)

    def on_key(self, action: str, _: int) -> bool:
        """Go through the feed by keys."""
        if action in {"next", "previous"}:
            self.feed.step(1 if action == "next" else -1)
        elif action == "close" and self.opened is not None:
            self.close_answer()
        else:
            return self.feed.table.on_key(action)
        return True

    async def look(self) -> None:
        """Look for new answers, unless the page is hidden or the role may not see them."""
        problem = self.feed.problem
        if self.visibility.is_hidden or not self.session.is_connected:
            return
        if problem is not None and problem.is_forbidden:
            self._poller.stop()
            return
        await self.feed.look()
        if self.opened is not None or self.feed.selected:
            return  # somebody reads: figures that are drawn again would move the page under them
        passed = time.monotonic() - self._summed_at
        if passed >= (_SUM_AFTER_S if self._has_changed else _SUM_ANYWAY_S):
            await self.sum_up()

    async def sum_up(self) -> None:
        """Fetch the figures again; the present ones stay until then."""
        self._summed_at, self._has_changed = time.monotonic(), False
        await self.figures.refresh(quietly=True)
        if self.charts.visible:
            await self.over_time.renew()

    def show(self, decision_id: str) -> None:
        """Open an answer beside the feed."""
        self.session.decision = self.feed.opened = decision_id
        self.feed.table.mark(decision_id)
        self.opened = OpenedAnswer(
            self.client, decision_id, on_feedback=self._on_feedback, on_close=self.close_answer
        )
        self._opened[:] = [self.opened]
        self._opened.visible = True
        self.opened.part.start()

    def show_more(self) -> None:
        """Show or hide the charts and the details of the figures."""
        self.charts.visible = not self.charts.visible
        if self.charts.visible and self.figures.data is not None:
            self._show(self.figures.data)
        if self.charts.visible and self.over_time.part not in self.parts:
            self.part(self.over_time.part)
            self.over_time.part.start()

    def close_answer(self) -> None:
        """Close the answer that is open."""
        self.opened = None
        self.session.decision = self.feed.opened = ""
        self.feed.table.mark(None)
        self._opened.visible = False
        self._opened[:] = []

    def show_rows(self, rows: AnswerFilter) -> None:
        """Show in the feed the rows behind a figure, a bar or a point."""
        self._look_at(replace(self.view, rows=rows))

    def _on_feedback(self) -> None:
        if self.opened is not None and self.view.rows.order == "chance":
            saved = self.session.decision
            self.feed.step(1)  # those that chance drew are checked one after the other
            is_next = self.session.decision != saved
            self.opened.said.text = "Recorded. This is the next." if is_next else "Recorded."
        schedule(self.feed.look)
        self.shares.look()
        schedule(self.sum_up)

    async def _review(self, made: Dataset) -> None:
        """Open a draft of the rows, or a choice of datasets where none can be made."""
        visit, draft_id = self.visit, ""
        with suppress(SteelyardError):
            draft = await asyncio.to_thread(draft_of, self.client, made.id, made.version)
            draft_id = draft.id
        if not visit.say_if_ended(f"Sent to review: {made.name} ({made.id})."):
            self.session.open("review", dataset=made.id, version=made.version, draft=draft_id)

    def _note_change(self) -> None:
        self._has_changed = True

    def _look_at(self, view: View) -> None:
        self.view = view
        self._write()
        self._say()
        self.shares.look()
        self.sending.describe()
        schedule(lambda: self.feed.show(view))

    def _on_choice(self, *_: Any) -> None:
        if self._is_offering:
            return
        self._look_at(
            View(
                window_s=self.window.value,
                model=self.model.value or "",
                decision=self.decision.value or "",
                named=self.named.value or "",
            )
        )
        self._summed_at, self._has_changed = time.monotonic(), False
        self.figures.start()
        if self.charts.visible:
            self.over_time.part.start()

    def _write(self) -> None:
        self.session.query = to_text(self.view)

    def _say(self) -> None:
        rows = self.view.rows
        if rows.is_empty:
            self._said[:] = []
            return
        everything = action_button(
            "Show all", lambda _: self.show_rows(AnswerFilter()), size="small"
        )
        self._said[:] = [
            pmui.Typography(
                f"Only those {escape_markdown(rows.name)}.", variant="body1", margin=(8, 10)
            ),
            everything,
        ]

    def _fetch(self) -> _Fetched:
        view = self.view
        summary = self.client.decision_summary(
            since=view.since(time.time()),
            bucket_s=view.bucket_s,
            model=view.model or None,
            named=view.named or None,
            decision=view.decision or None,
        )
        alarms = fetch_alarms(self.client, view.model)
        return summary, fetch_shadows(self.client, summary), alarms

    def _show(self, fetched: _Fetched) -> Viewable:
        summary, shadows, alarms = fetched
        raised = show_alarms(
            self.client, alarms, open_=self.show_rows, on_known=lambda: schedule(self.sum_up)
        )
        self._offer(
            {group.version or group.model for group in summary.groups},
            {group.decision for group in summary.groups},
        )
        self.acting.take(summary)
        has_some = bool(summary.answers)
        for part in (self.more, self.sending.__panel__(), self.only):
            part.visible = has_some
        if not has_some:
            self.details[:] = []
            return stack(raised, self._nothing_at_all())
        if self.charts.visible:
            details = show_details(summary, self.view, self.show_rows, self._tables, alarms)
            self.details[:] = [details, *map(show_shadow, shadows)]
        return stack(raised, show_strip(summary))

    def _offer(self, models: set[str], decisions: set[str]) -> None:
        """Offer the present choices; earlier ones stay."""
        self._is_offering = True
        try:
            for field, names_here, every, chosen in (
                (self.model, models, "every model", self.view.model),
                (self.decision, decisions, "every decision", self.view.decision),
            ):
                known = set(field.options.values()) if isinstance(field.options, dict) else set()
                names = sorted((known | names_here | {chosen}) - {""})
                options = {every: "", **{name: name for name in names}}
                if options != field.options:
                    field.options = options
                field.value = chosen
        finally:
            self._is_offering = False

    def _nothing(self) -> Viewable:
        if self.view.rows.is_empty:
            return pn.Column(visible=False)  # the figures say so above, once they are there
        everything = action_button(
            "Show all decisions", lambda _: self.show_rows(AnswerFilter()), variant="contained"
        )
        name = escape_markdown(self.view.rows.name)
        return empty(f"No decision of the {self.view.window} is {name}.", everything)

    def _nothing_at_all(self) -> Viewable:
        if self.view.model or self.view.decision or self.view.named:
            text = f"No decision of the {self.view.window} is of this model and decision."
            return empty(text, self._button("Show every model and decision", self._choose_all))
        if self.view.window_s < _LONGEST:
            text = f"**No decision was stored in the {self.view.window}.**"
            longest = partial(self.window.param.update, value=_LONGEST)
            return empty(text, self._button("Look at the last 30 days", longest))
        text = (
            "**No answer is stored yet.** This page shows the answers that applications ask for. "
            "Keep a first one in the Playground, or let a program store one."
        )
        url, with_key = self.client.url, self.session.needs_key
        code = stack(
            CopyText(as_curl(url, _EXAMPLE, with_key=with_key), "a first decision with curl"),
            CopyText(as_python(url, _EXAMPLE, with_key=with_key), "a first decision in Python"),
        )
        ask = self._button("Ask in the Playground", lambda: self.session.open("playground"))
        return stack(
            empty(text, ask), pmui.Accordion(("Details", code), sizing_mode="stretch_width")
        )

    def _button(self, label: str, do: Any) -> Viewable:
        return action_button(label, lambda _: do(), variant="contained")

    def _choose_all(self) -> None:
        self._is_offering = True
        self.model.value = self.decision.value = self.named.value = ""
        self._is_offering = False
        self._on_choice()


class TrueShares(Boxed):
    """The table of true shares, shown while answers are checked in the order of chance."""

    def __init__(
        self, client: Client, view: Callable[[], View], open_: Callable[[AnswerFilter], None]
    ) -> None:
        super().__init__()
        self._client, self._view, self._open = client, view, open_
        self.part = Loaded("The true shares", self._fetch, self._show, n_lines=3, is_late=True)
        self._box = stack(self.part, visible=self._is_by_chance)

    def look(self) -> None:
        """Show the shares of the view, and fetch them again; nothing where it has another order."""
        self._box.visible = self._is_by_chance
        if self._box.visible:
            self.part.start()

    @property
    def _is_by_chance(self) -> bool:
        return self._view().rows.order == "chance"

    def _fetch(self) -> DecisionSeries:
        view = self._view()
        return self._client.decision_series(
            since=view.since(time.time()),
            bucket_s=_DAY_S,
            model=view.model or None,
            named=view.named or None,
            decision=view.decision or None,
        )

    def _show(self, series: DecisionSeries) -> Viewable:
        rows = self._view().rows
        return share_table(series, lambda decision: self._open(replace(rows, decision=decision)))


def fetch_shadows(client: Client, summary: DecisionSummary) -> list[ShadowReport]:
    """Return the comparisons of the window's families that have a shadow."""
    tuned = {group.model for group in summary.groups if group.version and "@" not in group.model}
    reports = []
    for name in sorted(tuned)[:_MOST]:
        try:
            report = client.families.compare_shadow(name, since=summary.since, until=summary.until)
        except NotFoundError:
            continue  # deleted since
        if report.shadow is not None:
            reports.append(report)
    return reports


def show_shadow(report: ShadowReport) -> Viewable:
    """Show how often a family and its shadow agree, and who was right where they do not."""
    shadow = report.shadow
    assert shadow is not None  # noqa: S101  the others are not fetched
    title = heading(f"{shadow.family} and its shadow {shadow.model}")
    if not report.decisions:
        text = (
            f"{escape_markdown(shadow.model)} scores {percent_text(shadow.share)} of what is stored from now on; "
            "nothing of this window was scored by both yet."
        )
        return stack(title, pn.pane.Markdown(text))
    columns = (
        "decision",
        "answers",
        "same top",
        "with feedback",
        "model line right",
        "shadow right",
        "one alone",
    )
    rows = [
        (
            name,
            f"{decision.n:,}",
            measure_text(decision.agreement),
            f"{decision.observed:,}",
            measure_text(decision.family_accuracy or None),
            measure_text(decision.shadow_accuracy or None),
            f"model line {decision.family_right:,}, shadow {decision.shadow_right:,}",
        )
        for name, decision in report.decisions.items()
    ]
    view = table(columns, rows, label="A model line and its shadow", numbers=range(1, 6))
    return stack(title, view)
