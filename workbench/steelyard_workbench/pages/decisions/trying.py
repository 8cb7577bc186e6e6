"""Rows that two versions of a named decision answer, side by side; nothing is stored."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.client import Client
from steelyard.client.answers import DecideAnswer, expected_of
from steelyard.decisions.rules_wire import RuleResult
from steelyard.decisions.wire import ABSTAIN
from steelyard.errors import InvalidRequestError, NoRowsError
from steelyard.named.content import questions_of, rulebook_of
from steelyard.named.rule_rows import apply_rules, count_rules
from steelyard.named.wire import NamedDecision
from steelyard_workbench.kit.basics import Boxed, action_button, small_text, stack
from steelyard_workbench.kit.components.progress_bar import ProgressBar
from steelyard_workbench.kit.look import Drawn, chip, pill
from steelyard_workbench.kit.tasks import Scope, Task
from steelyard_workbench.kit.views import card, heading, table, verdict
from steelyard_workbench.kit.words import escape_markdown
from steelyard_workbench.parts.datasets.questions import as_text

_ROWS, _STORED = "rows", "stored"
_TEXT_CHARACTERS = 200
#: What a version says, and its name on the page.
Side = tuple[str, Mapping[str, Any]]


class TriedRow(NamedTuple):
    """A text, the outcomes that are right where that is known, both answers, and values of fields."""

    context: Any
    right: Mapping[str, str]
    answers: tuple[DecideAnswer, DecideAnswer]
    fields: Mapping[str, Any] = {}


class TryRows(Boxed):
    """Asks both versions about the same texts, and shows where they differ."""

    def __init__(
        self,
        client: Client,
        decision: NamedDecision,
        before: Side,
        after: Side,
        on_leave: Callable[[object], None],
        scope: Scope,
    ) -> None:
        self._client, self._decision = client, decision
        self._before, self._after = before, after
        sources = {"Rows of its dataset": _ROWS} if decision.dataset_id else {}
        sources["What it was asked lately"] = _STORED
        self.source = pmui.Select(
            label="Texts", options=sources, value=next(iter(sources.values())), width=260
        )
        self.count = pmui.Select(label="How many", options=[10, 20, 50], value=20, width=120)
        self.bar = ProgressBar(label="Rows asked", visible=False, sizing_mode="stretch_width")
        self.result = stack()
        self.rows: list[TriedRow] = []
        super().__init__()
        self.ask = Task(self._ask, "Not tried:", self.result, can_retry=False, scope=scope)
        start = action_button("Ask both", self.ask.on_event, variant="contained")
        leave = action_button("Leave it", lambda _: self.ask.drop(), variant="text")
        leave.on_click(on_leave)
        self._box = card(
            heading(f"Try {after[0]} on rows, beside {before[0]}"),
            pn.FlexBox(self.source, self.count, start, leave, align_items="center"),
            self.bar,
            self.result,
        )

    async def _ask(self) -> None:
        self.rows, refusal = [], None
        self.bar.param.update(visible=True, value=0)
        try:
            texts = await asyncio.to_thread(self._fetch)
            for number, (context, right, fields) in enumerate(texts, start=1):
                try:
                    answers = await asyncio.gather(
                        asyncio.to_thread(self._answer, context, self._before[1]),
                        asyncio.to_thread(self._answer, context, self._after[1]),
                    )
                    self.rows.append(TriedRow(context, right, (answers[0], answers[1]), fields))
                except InvalidRequestError as error:
                    # A text may be longer than one of the models reads.
                    refusal = error
                self.bar.value = round(100 * number / len(texts))
                self.result[:] = [small_text(f"{number} of {len(texts)}")]
        finally:
            self.bar.visible = False
        if refusal is not None and not self.rows:
            raise refusal
        self.result[:] = [
            *show_tried(self.rows, self._before[0], self._after[0]),
            *show_rules(self.rows, (self._before, self._after)),
        ]

    def _fetch(self) -> list[tuple[Any, dict[str, str], Mapping[str, Any]]]:
        """Return texts, the outcomes that are right where known, and values of fields; it blocks."""
        n, decision = int(self.count.value), self._decision
        if self.source.value == _STORED:
            logged = self._client.decision_log(named=decision.name, limit=n).data
            stored = [self._client.stored_decision(each.id) for each in logged]
            requests = [each.request for each in stored]
            if requests and not any("context" in each for each in requests):
                raise NoRowsError("The texts of these answers are not stored; take other rows.")
            return [
                (each["context"], {}, each.get("fields", {}))
                for each in requests
                if "context" in each
            ]
        dataset_id = decision.dataset_id or ""
        # Rows that no family of it was trained on, where there are any.
        page = self._client.datasets.rows(dataset_id, partition="evaluation", limit=n)
        if not page.data:
            page = self._client.datasets.rows(dataset_id, limit=n)
        ids = [each["id"] for each in self._after[1]["decisions"]]
        return [
            (
                row.context,
                {id_: top for id_ in ids if (top := expected_of(row, id_))},
                row.metadata or {},
            )
            for row in page.data
        ]

    def _answer(self, context: Any, content: Mapping[str, Any]) -> DecideAnswer:
        return self._client.decide(context, store=False, **questions_of(content))


def show_tried(rows: Sequence[TriedRow], before: str, after: str) -> list[Viewable]:
    """Show how many answers differ and are right, then each text."""
    lines: list[tuple[str, ...]] = []
    cells: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        for name in dict.fromkeys(id_ for answer in row.answers for id_ in answer.decisions):
            results = [answer.decisions.get(name) for answer in row.answers]
            actions = ["not asked" if each is None else each.action for each in results]
            outcomes = {each: None for result in results if result for each in result.probabilities}
            text = as_text(row.context)[:_TEXT_CHARACTERS]
            lines.append((text, name, row.right.get(name, ""), *actions))
            cells[lines[-1]] = [_drawn(each, [*outcomes]) for each in lines[-1][2:]]
    # Those that differ come first.
    lines.sort(key=lambda line: line[3] == line[4])
    n_other, n_known = sum(a != b for *_, a, b in lines), sum(bool(line[2]) for line in lines)
    text = f"{n_other:,} of {len(lines):,} answers differ."
    if n_known:
        n_before, n_after = (sum(line[2] == line[place] for line in lines) for place in (3, 4))
        text += f" Right of {n_known:,}: {before}: {n_before:,}, {after}: {n_after:,}."
    cost = sum(Decimal(answer.charge.amount_usd) for row in rows for answer in row.answers)
    text += f" They cost {cost} USD." if cost else ""
    columns = ("text", "decision", "right", before, after)
    return [
        verdict("running", "Tried.", escape_markdown(text)),
        table(columns, [(*line[:2], *cells[line]) for line in lines], label="Rows"),
    ]


def _drawn(action: str, outcomes: Sequence[str]) -> str:
    """Return an action as it stands on *Live*: an outcome in its colour, or that a person is to look."""
    if action == ABSTAIN:
        return Drawn(pill("to a person", "unsure"))
    return Drawn(chip(action, outcomes)) if action in outcomes else action


def show_rules(rows: Sequence[TriedRow], sides: Sequence[Side]) -> list[Viewable]:
    """Show how many rows each rule of either version takes; nothing where neither has rules."""
    parts: list[Viewable] = []
    actions: list[dict[int, str]] = []
    for place, (label, content) in enumerate(sides):
        book = rulebook_of(content)
        if book is None or not book.rules:
            continue
        results: dict[int, RuleResult] = {}
        refusals: list[str] = []
        for number, row in enumerate(rows):
            try:
                result = apply_rules(book, row.answers[place].decisions, row.fields, label)
            except InvalidRequestError as error:
                refusals.append(error.message)
                continue
            if result is not None:
                results[number] = result
        actions.append({number: result.action for number, result in results.items()})
        lines = [
            (
                "" if each.number is None else str(each.number),
                each.action,
                each.why,
                f"{each.rows:,}",
            )
            for each in count_rules(book, results.values())
        ]
        title = f"Rules of {label}"
        parts += [
            heading(title),
            table(("rule", "action", "where", "rows"), lines, label=title, numbers=[3]),
        ]
        if refusals:
            text = f"{len(refusals):,} of {len(rows):,} rows do not have the fields: {refusals[0]}"
            parts.append(small_text(escape_markdown(text)))
    if len(actions) == len(sides) and (both := actions[0].keys() & actions[1].keys()):
        n_other = sum(actions[0][number] != actions[1][number] for number in both)
        text = f"The rules of both act otherwise on {n_other:,} of {len(both):,} rows."
        parts.insert(0, small_text(text))
    return parts
