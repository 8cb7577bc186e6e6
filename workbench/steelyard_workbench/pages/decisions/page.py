"""Named decisions: the list of them, and one with production and its candidate."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.errors import InvalidRequestError, SteelyardError
from steelyard.named.comparison_wire import NamedComparison
from steelyard.named.files import write_file
from steelyard.named.wire import AliasMove, NamedVersion
from steelyard.wire.jobs import UNFINISHED
from steelyard_workbench.kit.basics import action_button, small_text, stack
from steelyard_workbench.kit.components.choices import Choice, Choices
from steelyard_workbench.kit.components.copy_text import CopyText, as_curl, as_python_named
from steelyard_workbench.kit.components.files import Download
from steelyard_workbench.kit.components.progress_bar import ProgressBar
from steelyard_workbench.kit.components.side_by_side import side_by_side
from steelyard_workbench.kit.page import Loaded, OnePartPage
from steelyard_workbench.kit.problems import leave_to_banner
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.views import card, empty, facts, heading, table, verdict
from steelyard_workbench.kit.words import (
    ago,
    counted,
    escape_markdown,
    everyday,
    measure_text,
    percent_text,
)
from steelyard_workbench.pages.decisions.beside import show_beside
from steelyard_workbench.pages.decisions.cards import growth_card, share_card, share_end
from steelyard_workbench.pages.decisions.comparing import (
    RecordedForm,
    SwitchForm,
    recorded_card,
    settle_button,
)
from steelyard_workbench.pages.decisions.edit_form import EXAMPLE, EditForm
from steelyard_workbench.pages.decisions.judging import closed_part, comparison_figures, judge
from steelyard_workbench.pages.decisions.moving import Moves, last_move
from steelyard_workbench.pages.decisions.rules_form import EXAMPLE_VALUES
from steelyard_workbench.pages.decisions.trying import TryRows
from steelyard_workbench.parts.balance import AgreedPrice, usd
from steelyard_workbench.parts.guidelines import Guidelines
from steelyard_workbench.parts.live.share_table import TO_CHECK, share_table
from steelyard_workbench.parts.live.view import View, to_text
from steelyard_workbench.parts.named.looking import WEEK_S, Looked, author, look_at, next_step
from steelyard_workbench.parts.named.naming import (
    CODE,
    NEW,
    OF_NAMED,
    NamedListing,
    StartCards,
    list_decisions,
    show_decisions,
)
from steelyard_workbench.parts.storing import store_field

_NONE = (
    "**No named decisions yet.** A named decision has questions, rules and a model. Programs ask it by "
    "name, so a better wording is a new version here and needs no release there. Press *New decision*, or "
    "start from a template."
)
Form = TypeVar("Form", SwitchForm, RecordedForm)
_MOST = 12
#: How a comparison is, or what it found.
_HOW = {
    "passed": "as good, or better",
    "refused": "refused",
    "inconclusive": "better or worse, too few rows to tell",
    "queued": "waiting",
    "running": "under way",
    "cancelling": "being stopped",
    "cancelled": "stopped",
    "failed": "it failed",
}


class DecisionsPage(OnePartPage):
    """The named decisions of the account, or one of them."""

    slug = "decisions"
    title = "Decisions"
    summary = "Questions, rules and a model under a name, which programs ask."
    watched = ("named",)
    look_ms = 2000

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        #: How far a comparison is.
        self.bar = ProgressBar(
            label="Progress of the comparison", value=0, sizing_mode="stretch_width", margin=(5, 10)
        )
        self.progress = small_text("")

    def content(self) -> list[Viewable]:
        """Return the list, or the decision that is chosen."""
        #: What is under way above what is shown: a form, or rows that are tried.
        self.work = stack()
        self.dialog = pn.Column()
        self.moves = Moves(self.client, self.dialog, self.refresh)
        #: The version beside production, 0: the one that is to replace it; and the price agreed to.
        self._beside, self._price = 0, AgreedPrice()
        name = self.session.named
        if not name:
            fetch = partial(list_decisions, self.client)
            self.shown = Loaded("The decisions", fetch, self._show_list)
            new = Choices([Choice("New decision", self._new, look="filled")], layout="row")
            cards = StartCards(self.session, self.visit)
            if self.session.view == NEW:
                self._new(self.session.wording)
            return [new, self.work, self.part(self.shown), cards]
        self.shown = Loaded(
            "The decision", lambda: look_at(self.client, name, self._beside), self._show, n_lines=8
        )
        verbs = [
            Choice("Edit", self._edit, look="filled"),
            Choice("Try on rows", self._try, look="outlined"),
            Choice("Try another model", self._switch, look="outlined"),
            Choice("Compare with recorded answers", self._compare_recorded, look="outlined"),
            Choice("Ask it in the playground", lambda: self._go("playground"), look="outlined"),
            Choice("Use it in your program", self._show_code, look="outlined"),
        ]
        return [Choices(verbs, layout="row"), self.dialog, self.work, self.part(self.shown)]

    async def look(self) -> None:
        """Show the progress of comparisons, and their results once they end."""
        looked = self.looked
        for comparison in () if looked is None else (looked.comparison, looked.recorded):
            if comparison is None or comparison.status not in UNFINISHED:
                continue
            try:
                now = await asyncio.to_thread(self.client.named_decisions.comparison, comparison.id)
            except SteelyardError as error:
                leave_to_banner(error)
                return
            if not now.recorded:
                self._show_progress(now)
            if now.status not in UNFINISHED:
                await self.refresh()

    @property
    def looked(self) -> Looked | None:
        """The decision that is shown, once it is here."""
        data = None if self.shown is None else self.shown.data
        return data if isinstance(data, Looked) else None

    async def refresh(self) -> None:
        """Show changes."""
        if self.shown is not None:
            await self.shown.refresh(quietly=True)

    def _show_list(self, listed: NamedListing) -> Viewable:
        shown = [show_decisions(listed, self.session)] if listed.decisions else [empty(_NONE)]
        if listed.archived:
            listing = NamedListing(listed.archived, {})
            archived = show_decisions(listing, self.session, label="Archived")
            shown += [heading("Archived"), archived]
        return stack(*shown)

    def _new(self, wording: Mapping[str, Any] | None = None) -> None:
        """Show the form of a new decision, filled in by another page."""
        content, dataset = (wording or {}).get("content"), (wording or {}).get("dataset")

        async def open_(name: str, _: int) -> None:
            if dataset:
                change = self.client.named_decisions.change
                await asyncio.to_thread(change, name, dataset_id=dataset)
            self.session.open("decisions", named=name)

        self._write("", None, open_, None, content)
        self.form.new_name.value = (wording or {}).get("name", "")

    def _edit(self) -> None:
        if self.looked is not None:
            base = self.looked.beside or self.looked.version
            self._write(base.name, base, self._show_saved, self._try_content)

    def _write(
        self,
        name: str,
        base: NamedVersion | None,
        on_saved: Any,
        on_try: Any,
        content: Mapping[str, Any] | None = None,
    ) -> None:
        self.form = EditForm(
            self.client,
            name,
            base,
            on_saved=on_saved,
            on_leave=self.work.clear,
            on_try=on_try,
            scope=self.visit,
            content=content,
        )
        self.work[:] = [self.form]

    async def _show_saved(self, _: str, number: int) -> None:
        self.work[:] = [verdict("good", f"Version {number} is saved.")]
        self._beside = number
        await self.refresh()

    def _switch(self) -> None:
        self.switch = self._ask_for(SwitchForm)

    def _compare_recorded(self) -> None:
        self.recorded = self._ask_for(RecordedForm)

    def _ask_for(self, form_of: Callable[..., Form]) -> Form:
        """Show a form that starts a comparison, of a version that stands beside production then."""

        async def show(number: int | None) -> None:
            self.work.clear()
            self._beside = self._beside if number is None else number
            await self.refresh()

        leave = self.work.clear
        form = form_of(
            self.client, self.session.named, on_started=show, on_leave=leave, scope=self.visit
        )
        self.work[:] = [form]
        return form

    def _try(self) -> None:
        if self.looked is not None:
            other = self.looked.beside or self.looked.version
            self._try_beside(self.looked, 0, f"version {other.version}", other.content)

    def _try_content(self, content: Mapping[str, Any]) -> None:
        """Try the form's content, under it, before it is saved."""
        if self.looked is not None:
            self._try_beside(self.looked, 1, "the new version", content)

    def _try_beside(
        self, looked: Looked, place: int, label: str, content: Mapping[str, Any]
    ) -> None:
        def leave(_: object) -> None:
            self.work[place:] = []

        before, after = ("production", looked.version.content), (label, content)
        self.tried = TryRows(self.client, looked.decision, before, after, leave, self.visit)
        self.work[place:] = [self.tried]

    def _show(self, looked: Looked) -> Viewable:
        if self.session.view == CODE:
            self.session.view = ""
            self.work[:] = [self._code(looked)]
        named, decision = self.client.named_decisions, looked.decision
        place = stack()
        shown: list[Viewable] = [self._week(looked)]
        if decision.archived_at is not None:
            back = partial(named.archive, decision.name, archived=False)
            shown.append(verdict("off", "Archived.", "It answers no requests."))
            shown += [self.button("Bring it back", back, place), place]
        for alarm in looked.alarms:
            shown.append(verdict("bad", "Drift.", escape_markdown(everyday(alarm.message))))
        return stack(
            *shown,
            show_beside(looked),
            Guidelines().show(looked.version.decisions),
            self._verdict(looked),
            *recorded_card(looked.recorded),
            side_by_side(share_card(self, looked), show_history(looked)),
            *self._true_shares(looked),
            growth_card(self, looked),
            closed_part("Details", self._details(looked)),
        )

    def _week(self, looked: Looked) -> Viewable:
        """Return the last week in a sentence, and the page that brings the decision forward."""
        week, step = looked.summary, next_step(looked)
        seen = (
            f"{counted(week.answers, 'answer')} in the last week · {usd(looked.cost_usd)} · "
            f"{'drift' if looked.alarms else 'no drift'}. "
        )
        rows = "".join(f"Golden rows checked {ago(each.checked_at)}. " for each in looked.golden)
        text = f"{seen if week.answers else ''}{rows}{step.text}"
        is_elsewhere = step.page not in {"", "playground"}
        go = [self._opens(step.label, lambda: self._go(step.page), "text")] if is_elsewhere else []
        return pn.FlexBox(small_text(escape_markdown(text)), *go, align_items="center")

    def _true_shares(self, looked: Looked) -> list[Viewable]:
        """Return how often its outcomes are true, once there are answers."""
        if not looked.series.outcomes:
            return []
        table = share_table(looked.series, self._check)
        return [card(heading("How often it is really so, last 7 days"), table)]

    def _check(self, decision: str) -> None:
        """Open the answers of a decision that chance draws to be checked."""
        rows = replace(TO_CHECK, decision=decision)
        view = View(window_s=int(WEEK_S), named=self.session.named, rows=rows)
        self.session.open("live", query=to_text(view), decision="")

    def _verdict(self, looked: Looked) -> Viewable:
        """Return how the version beside stands, and the buttons that this allows."""
        moves, other, comparison = self.moves, looked.beside, looked.comparison
        place = stack()
        number = looked.decision.latest if other is None else other.version
        status, sentence, basis = judge(number, comparison)
        result = None if comparison is None else comparison.result
        buttons: list[Viewable] = []
        details: list[Viewable] = []
        if other is None:
            status, sentence = "off", "No other version stands beside production."
            basis = ["Edit makes one; nothing changes in production until it is moved."]
        elif comparison is not None and comparison.status in UNFINISHED:
            self._show_progress(comparison)
            details = [self.bar, self.progress]
            stop = partial(self.client.named_decisions.cancel_comparison, comparison.id)
            buttons = [self.button("Stop", stop, place)]
        else:
            is_passed = result is not None and result.verdict == "passed"
            switches = [] if result is None else result.switches
            compare = partial(self._compare, looked.decision.name, number)
            if is_passed:
                move = partial(moves.ask_production, looked, number)
                buttons = [self._opens(f"Move {number} to production", move, "contained")]
            label = "Compare with production" if comparison is None else "Compare again"
            variant = "contained" if comparison is None else "outlined"
            buttons.append(self.button(label, compare, place, variant=variant))
            if comparison is not None and any(each.to_label for each in switches):
                buttons.append(settle_button(self, comparison, place))
            if not is_passed:
                overrule = partial(moves.ask_production, looked, number, overrules=True)
                buttons.append(self._opens("Overrule…", overrule))
        last = last_move(looked)
        if last is not None:
            back = partial(moves.ask_roll_back, looked, last)
            buttons.append(self._opens(f"Roll back to {last.from_version}", back))
        alias = partial(moves.ask_alias, looked, number)
        buttons.append(self._opens("Put a version in use…", alias, "text"))
        if result is not None:
            details.append(closed_part("Why, and what changes", comparison_figures(result)))
        return card(
            verdict(status, sentence, "\n\n".join(map(escape_markdown, basis))),
            *details,
            pn.FlexBox(*buttons, *self._choose_beside(looked), align_items="center"),
            place,
        )

    def _choose_beside(self, looked: Looked) -> list[Viewable]:
        """Return the field that chooses the version beside production, where there are others."""
        beside = 0 if looked.beside is None else looked.beside.version
        numbers = {each.version for each in looked.versions} | {beside}
        numbers -= {0, looked.version.version}
        if not numbers:
            return []
        others = {f"version {number}": number for number in sorted(numbers, reverse=True)}
        options = {"the next": 0, **others}
        field = pmui.Select(
            label="Beside production", options=options, value=beside, width=180, size="small"
        )

        def choose(number: int) -> None:
            self._beside = number
            if self.shown is not None:
                self.shown.refresh.start(quietly=True)

        pn.bind(choose, field, watch=True)
        return [field]

    def _compare(self, name: str, number: int) -> None:
        """Compare a version with production; a price is shown first, and agreed to by another press."""
        compare = self.client.named_decisions.compare
        if self._price.start(lambda most: compare(name, number, max_price_usd=most)) is None:
            raise InvalidRequestError(
                f"It costs {self._price.usd} USD. Press again to reserve that amount and compare."
            )

    def _show_progress(self, comparison: NamedComparison) -> None:
        n, done = comparison.contexts, comparison.completed_contexts
        self.bar.value = round(100 * min(1, done / max(1, n)))
        self.progress.object = f"{done:,} of {n:,} texts"

    def _opens(
        self, label: str, do: Callable[[], object], variant: str = "outlined"
    ) -> pmui.Button:
        return action_button(label, lambda _: do(), variant=variant)

    def _show_code(self) -> None:
        if self.looked is not None:
            self.work[:] = [self._code(self.looked)]

    def _code(self, looked: Looked) -> Viewable:
        name, url, with_key = looked.decision.name, self.client.url, self.session.needs_key
        request: dict[str, Any] = {"decision": name, "context": EXAMPLE}
        if looked.version.fields:
            fields = looked.version.fields.items()
            request["fields"] = {name: EXAMPLE_VALUES[field["type"]] for name, field in fields}
        texts = {
            "curl": as_curl(url, request, with_key=with_key),
            "Python": as_python_named(url, request, with_key=with_key),
        }
        file = Download(
            "Download it as a file",
            lambda: write_file(looked.decision, looked.version).encode(),
            lambda: f"{name}.toml",
        )
        leave = self._opens("Leave it", self.work.clear, "text")
        return card(heading("Use it in your program"), CopyText(texts=texts), pn.Row(file, leave))

    def _details(self, looked: Looked) -> Viewable:
        """Return further facts, links to its own pages, and archiving."""
        decision, week = looked.decision, looked.summary
        place = stack()
        head = {
            "description": ("What it is for", decision.description),
            "owner": ("Owner", decision.owner),
            "dataset_id": ("Dataset of its rows, by its name", looked.dataset),
        }
        fields = {
            name: pmui.TextInput(label=label, value=text or "", sizing_mode="stretch_width")
            for name, (label, text) in head.items()
        }

        store = store_field(decision.store)

        def save() -> None:
            changed = {name: field.value or "" for name, field in fields.items()}
            self.client.named_decisions.change(decision.name, **changed, store=store.value)

        about = {
            "Versions in use": ", ".join(
                f"{each.alias} {each.version}" for each in decision.aliases
            ),
            "Time, median": measure_text(week.latency_p50_ms, places=1) + " ms",
        }
        pages = [("Live answers", "live"), ("Alarms", "alarms"), ("Jobs", "jobs")]
        if decision.dataset_id is not None:
            pages += [("Dataset", "datasets"), ("Evaluations", "evaluations")]
            pages += [("Prompt tuning", "tuning")]
        if looked.growth is not None:
            pages += [("Model line", "families")]
        links = [Choice(label, partial(self._go, page), look="outlined") for label, page in pages]
        if decision.archived_at is None:
            archive = partial(self.moves.ask_archive, decision.name)
            links.append(Choice("Archive…", archive, look="danger"))
        row = Choices(links, layout="row", is_small=True)
        button = self.button("Save these", save, place)
        return stack(*fields.values(), store, button, place, facts(about), row)

    def _go(self, page: str) -> None:
        """Open another page on this decision's rows."""
        looked, session = self.looked, self.session
        chosen: dict[str, Any] = {}
        if looked is not None and looked.decision.dataset_id is not None:
            chosen["dataset"] = looked.decision.dataset_id
        if page == "live":
            view = View(window_s=int(WEEK_S), named=session.named)
            chosen = {"query": to_text(view), "decision": ""}
        elif page == "review" and looked is not None and looked.drafts:
            draft = looked.drafts[0]
            chosen |= {"draft": draft.id, "version": draft.dataset_version}
        elif page == "families" and looked is not None and looked.growth is not None:
            chosen = {"family": looked.growth.policy.family or ""}
        elif page in {"alarms", "jobs"}:
            chosen = {"view": OF_NAMED, "job": ""}
        elif page == "datasets":
            chosen["version"] = 0
        elif page == "playground":
            chosen = {}
        session.open(page, **chosen)


def show_history(looked: Looked) -> Viewable:
    """Show the newest versions, comparisons, moves and shares."""
    events = sorted(_events(looked), key=lambda event: event[0], reverse=True)
    rows = [
        (what, author(by), ago(at).replace(" ", "\N{NO-BREAK SPACE}"))
        for at, what, by in events[:_MOST]
    ]
    return card(heading("History"), table(("what", "by", "when"), rows, label="History"))


def _events(looked: Looked) -> Iterator[tuple[float, str, str]]:
    """Return the time, the text and the author of each event."""
    for version in looked.versions:
        text = _with(f"Version {version.version} made", version.note)
        yield version.created_at, text, version.made_by
    for each in looked.comparisons:
        how = _HOW[each.status if each.result is None else each.result.verdict]
        text = f"{each.version} compared with {each.other}: {how}"
        yield each.updated_at, text, each.made_by or ""
    for move in looked.moves:
        yield move.created_at, _move_text(move), move.moved_by
    for share in looked.decision.shares:
        what = f"{percent_text(share.share)} of {share.alias} to {share.to}"
        yield share.created_at, _with(what, share.reason), share.started_by
        if share.ended_at is not None:
            yield share.ended_at, f"{what} ended: {share_end(share)}", share.ended_by or ""


def _move_text(move: AliasMove) -> str:
    before = "" if move.from_version is None else f" from {move.from_version}"
    text = f"{move.alias} moved{before} to {move.to_version}"
    if move.overruled:
        return f"{text}, overruled: {move.overruled}"
    return _with(f"{text}, which passed" if move.verdict == "passed" else text, move.reason)


def _with(what: str, why: str | None) -> str:
    return f"{what}: {why}" if why else what
