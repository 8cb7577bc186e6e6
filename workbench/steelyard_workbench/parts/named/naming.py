"""The account's named decisions: naming one, a table whose lines open them, and cards that make one of a template."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count, islice
from typing import Any

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.client import Client
from steelyard.decision_log.wire import DecisionSummary
from steelyard.families.wire import Family
from steelyard.named.templates import SHIPPED, Template, list_templates
from steelyard.named.wire import NamedDecision
from steelyard_workbench.kit.basics import Boxed, action_button, small_text, stack
from steelyard_workbench.kit.components.choices import Choice, Choices
from steelyard_workbench.kit.components.mark_table import mark_table
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.tasks import Scope, Write
from steelyard_workbench.kit.words import percent_text, share_text
from steelyard_workbench.parts.datasets.questions import questions_of
from steelyard_workbench.parts.named.looking import last_days

#: The view of the Decisions page that begins with the form of a new one.
NEW = "new"
#: The view of a decision that begins with the code that asks it.
CODE = "code"
#: The label of the buttons that open it.
NAME_IT = "Name it"
#: The view of a page that shows only things of the named decision.
OF_NAMED = "of-decision"
#: Archived decisions that are listed.
_MOST_ARCHIVED = 20
START = "Start from a template"
_MOST_CHARACTERS = 90


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


@dataclass(frozen=True, slots=True)
class NamedListing:
    """The account's named decisions, the newest first, with the last day of those at the top."""

    decisions: Sequence[NamedDecision]
    days: Mapping[str, DecisionSummary]
    archived: Sequence[NamedDecision] = ()


def list_decisions(client: Client) -> NamedListing:
    """Fetch the account's named decisions; it blocks."""
    decisions = list(client.named_decisions.list())
    archived = list(islice(client.named_decisions.list(archived=True), _MOST_ARCHIVED))
    return NamedListing(decisions, last_days(client, [each.name for each in decisions]), archived)


def show_decisions(
    listed: NamedListing, session: Session, label: str = "Named decisions"
) -> Viewable:
    """Show named decisions as a table whose lines open them."""
    decisions, days = listed.decisions, listed.days
    rows = [
        [
            each.name,
            each.description or "",
            ", ".join(f"{alias.alias} {alias.version}" for alias in each.aliases),
            f"{days[each.name].answers:,}" if each.name in days else "",
            share_text(days[each.name].accuracy) if each.name in days else "",
            each.owner or "",
        ]
        for each in decisions
    ]
    return mark_table(
        ("decision", "for", "versions in use", "answers today", "right", "owner"),
        rows,
        label=label,
        open_=lambda place: session.open("decisions", named=decisions[place].name),
        opens="Open the decision",
        links=[session.address("decisions", named=each.name) for each in decisions],
    )


class StartCards(Boxed):
    """Shows the templates; one press makes the decision and opens it."""

    def __init__(self, session: Session, scope: Scope) -> None:
        self._session, self._scope = session, scope
        self._template = list_templates()[0]
        self._problem = stack()
        super().__init__()
        self.do = Write(self._do, "Not made:", self._problem, scope=self._scope)
        # Those that the shipped model answers come first.
        templates = sorted(list_templates(), key=lambda template: bool(template.needs_more))
        self.cards = Choices(
            [self._card(template) for template in templates],
            title=START,
            level=2,
            layout="cards",
            is_small=True,
        )
        self._box = stack(self.cards, self._problem)

    def _card(self, template: Template) -> Choice:
        def start() -> None:
            self._template = template
            self.do.start()

        title, text, measured = describe(template)
        return Choice("Start", start, title=title, text=text, pill=measured, look="outlined")

    async def _do(self) -> None:
        template = self._template

        def make() -> str:
            named = self._session.client.named_decisions
            listed = (named.list(archived=old) for old in (False, True))
            taken = {each.name for each in chain.from_iterable(listed)}
            names = chain([template.name], (f"{template.name}_{n}" for n in count(2)))
            name = next(name for name in names if name not in taken)
            named.create(
                name,
                **template.content,
                description=template.description,
                note=f"from the template {template.name}",
            )
            return name

        name = await asyncio.to_thread(make)
        if not self._scope.say_if_ended(f"{name} is made."):
            self._session.open("decisions", named=name)


def describe(template: Template) -> tuple[str, str, str]:
    """Return its title, its purpose with an example, and how the shipped model answers its rows."""
    example = template.examples[0]
    text = str(example.context)
    if len(text) > _MOST_CHARACTERS:
        text = f"{text[:_MOST_CHARACTERS].rsplit(' ', 1)[0]}…"
    answers = ", ".join(_answers(template, example.expected))
    title = template.name.replace("_", " ").capitalize()
    shipped = [each for each in template.measured if each.model.startswith(SHIPPED)]
    measured = "measure it first"
    if template.needs_more:
        measured = "needs your rows, or a language model"
    elif shipped:
        first = shipped[0]
        right = first.right / (1 - first.abstained)
        measured = f"{percent_text(right)} right, {percent_text(first.abstained)} to a person"
    about = (template.description or "").split(". ")[0].split(";")[0].rstrip(".")
    return title, f"{about}.\n“{text}” → {answers}", measured


def _answers(template: Template, expected: Mapping[str, Any]) -> list[str]:
    """Return the right answers of an example, levels by their description in place of their number."""
    questions = questions_of(template.content["decisions"])
    level = {
        (each.id, name): text
        for each in questions
        for name, text in zip(each.outcomes, each.descriptions, strict=True)
        if name.isdecimal()
    }
    return [level.get((id_, str(right))) or str(right) for id_, right in expected.items()]
