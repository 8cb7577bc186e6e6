"""Home: work that needs a person, and the latest events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from itertools import islice
from typing import Any, TypeVar

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.accounts.wire import WalletBalance
from steelyard.client import Client
from steelyard.datasets.wire import Dataset
from steelyard.errors import SteelyardError
from steelyard.evaluations.wire import Evaluation
from steelyard.families.wire import Family
from steelyard_workbench.kit.basics import action_button, stack
from steelyard_workbench.kit.components.choices import Choice, Choices
from steelyard_workbench.kit.page import Loaded, Page, SharedFetch
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.views import FRAME, empty, facts, heading, verdict
from steelyard_workbench.kit.words import ago
from steelyard_workbench.pages.home.attention import (
    Need,
    alarm_needs,
    draft_needs,
    evaluation_needs,
    family_needs,
    job_needs,
    open_drafts,
    proposed_needs,
    recent_evaluations,
    recent_jobs,
    server_needs,
    waiting_needs,
)
from steelyard_workbench.parts.balance import usd
from steelyard_workbench.parts.beginning import Beginning, Steps, find_beginning
from steelyard_workbench.parts.live.alarms import fetch_alarms
from steelyard_workbench.parts.named.naming import (
    START,
    NamedListing,
    StartCards,
    list_decisions,
    show_decisions,
)

T = TypeVar("T")
_RECENT = {**FRAME, "flex": "1 1 280px", "align-self": "stretch", "padding": "2px 6px 10px"}
_MOST_KEYS = 100
#: Things of each kind that are listed as recent.
MOST_RECENT = 5
_WELCOME = (
    "Nothing here yet. Import rows with what is right about them: they are what models are "
    "evaluated and fine-tuned on. Or ask a model something in the playground."
)
#: Of what needs somebody: a card for each.
_NEED = {**FRAME, "padding": "6px 14px"}
_NOTHING_WAITS = "**Nothing waits for you.** Rows that are assigned to you are listed here."
_NOTHING_NEEDS = (
    "**Nothing needs you now.** No alarm is raised, no review is open, no work runs or failed this "
    "week, and no model line waits."
)
_NO_ACCOUNT = "You are not a member of an account yet. An owner can add you."


class HomePage(Page):
    """Home, with the user's open work."""

    slug = "home"
    title = "Home"

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.needs: dict[str, list[Need] | None] = {}
        self.summary_box = stack()

    def build(self) -> list[Viewable]:
        """Return the parts; each loads by itself, and none waits for another."""
        client, reviewer = self.client, self.session.reviewer
        role = self.session.role
        if self.session.who is not None and role == "reviewer":
            self.needs, self.summary_box[:] = {}, []
            waiting = self._needs("Reviews", lambda: open_drafts(client, reviewer), waiting_needs)
            return [heading("What waits for you"), self.summary_box, waiting]
        has_keys = role != "billing"
        spend = Loaded(
            "The spend", lambda: fetch_spend(client, with_keys=has_keys), show_spend, n_lines=1
        )
        if self.session.who is not None and role not in {"owner", "developer"}:
            go = Choice("Usage and billing", self._opener("usage"), look="filled")
            shown = [self.part(spend), Choices([go], layout="row")]
            return shown if role == "billing" else [empty(_NO_ACCOUNT)]
        datasets = SharedFetch(lambda: client.datasets.list(limit=MOST_RECENT).data)
        families = SharedFetch(lambda: client.families.list().data)
        evaluations = SharedFetch(lambda: recent_evaluations(client, datasets()))
        drafts = SharedFetch(lambda: open_drafts(client, reviewer))
        listed = SharedFetch(lambda: list_decisions(client))
        self.needs = {}
        self.summary_box[:] = []
        needing = [
            self._needs("Decisions", lambda: listed().decisions, proposed_needs),
            self._needs("Alarms", lambda: fetch_alarms(client), alarm_needs),
            self._needs("Reviews", drafts, draft_needs),
            self._needs("Fine-tunes", lambda: recent_jobs(client), job_needs),
            self._needs("Model lines", families, family_needs),
            self._needs("Evaluations", evaluations, evaluation_needs),
            self._needs("Warnings of the server", client.capabilities, server_needs),
        ]

        def fetch_beginning() -> Beginning | None:
            try:
                lists = datasets(), families(), drafts().newest, listed().decisions
                return find_beginning(client, *lists)
            except SteelyardError:
                return None  # what fails says so in its own part

        recent: list[Loaded[Any]] = [
            Loaded("Recent datasets", datasets, self._show_datasets),
            Loaded("Recent evaluations", evaluations, self._show_evaluations),
            Loaded("Recent models", families, self._show_models),
        ]
        begin = Loaded("The first steps", fetch_beginning, self._show_beginning, n_lines=3)
        decisions = Loaded("The decisions", listed, self._show_decisions, n_lines=1)
        return [
            self.part(begin),
            heading("What needs you"),
            self.summary_box,
            *needing,
            self.part(decisions),
            heading("Recent"),
            pn.FlexBox(
                *(pn.Column(self.part(part), styles=_RECENT) for part in recent),
                gap="16px",
                align_items="stretch",
                sizing_mode="stretch_width",
                margin=(0, 10),
            ),
            self.part(spend),
        ]

    def _show_decisions(self, listed: NamedListing) -> Viewable:
        """Show the named decisions; where there is none, how to start with one."""
        if not listed.decisions:
            return StartCards(self.session, self.visit).__panel__()
        go = action_button(START, lambda _: self.session.open("decisions", named=""), size="small")
        return stack(heading("Decisions"), show_decisions(listed, self.session), go)

    def _show_beginning(self, beginning: Beginning | None) -> Viewable:
        if beginning is None:
            return pn.Column(visible=False)
        return Steps(self.session, beginning, self.visit).__panel__()

    def _needs(
        self, name: str, fetch: Callable[[], T], find: Callable[[T], list[Need]]
    ) -> Viewable:
        """Add a part with open work of one kind, and nothing where there is none."""
        self.needs[name] = None

        def show(data: T) -> Viewable:
            needs = self.needs[name] = find(data)
            self._sum_up()
            shown = [self._row(need) for need in needs]
            return stack(*shown, visible=bool(shown))

        return self.part(Loaded(name, fetch, show, n_lines=1))

    def _sum_up(self) -> None:
        """Show that all is well once every part found nothing that needs anybody."""
        by_part = list(self.needs.values())
        if any(part_needs is None for part_needs in by_part):
            self.summary_box[:] = []
        elif not any(by_part):
            is_reviewer = self.session.role == "reviewer"
            text = _NOTHING_WAITS if is_reviewer else _NOTHING_NEEDS
            self.summary_box[:] = [empty(text, is_good=True)]

    def _row(self, need: Need) -> Viewable:
        row: list[Viewable] = [verdict(need.status, need.title, need.text)]
        if need.action:
            go = self._opener(need.page, **need.chosen)
            row.append(action_button(need.action, lambda _: go(), align="center"))
        return pmui.Row(*row, sizing_mode="stretch_width", margin=(0, 10, 8, 10), styles=_NEED)

    def _show_datasets(self, datasets: Sequence[Dataset]) -> Viewable:
        go = Choice("Import a file", self._opener("datasets", dataset=""), look="filled")
        listed = [
            self._link(
                dataset.name,
                f"{dataset.rows:,} rows, version {dataset.version}, made {ago(dataset.created_at)}",
                "datasets",
                dataset=dataset.id,
                version=0,
            )
            for dataset in datasets
        ]
        return Choices(listed or [replace(go, text=_WELCOME)], title="Datasets")

    def _show_evaluations(self, evaluations: Sequence[Evaluation]) -> Viewable:
        go = self._opener("evaluations", evaluation="")
        none = Choice("Go to Evaluations", go, text="No evaluations yet.", look="outlined")
        listed = [
            self._link(
                str(evaluation.named or evaluation.model_label),
                f"{evaluation.status}, {evaluation.evaluation_rows:,} rows, "
                f"{ago(evaluation.created_at)}",
                "evaluations",
                evaluation=evaluation.id,
                dataset=evaluation.dataset_id,
            )
            for evaluation in evaluations[:MOST_RECENT]
        ]
        return Choices(listed or [none], title="Evaluations")

    def _show_models(self, families: Sequence[Family]) -> Viewable:
        made = [family for family in families if family.latest is not None]
        if not made:
            text = "No models of your own yet. A model line grows on a dataset."
            go = self._opener("families", family="")
            none = Choice("Go to Model lines", go, text=text, look="outlined")
            return Choices([none], title="Models")
        made.sort(key=lambda family: -(family.latest.created_at or 0) if family.latest else 0)
        choices = []
        for family in made[:MOST_RECENT]:
            text = f"made {ago(family.latest.created_at if family.latest else None)}; " + (
                f"{family.id} serves {family.served.ref}" if family.served else "not served"
            )
            label = family.latest.ref if family.latest else family.id
            choices.append(self._link(label, text, "families", family=family.id))
        return Choices(choices, title="Models")

    def _opener(self, page: str, **chosen: Any) -> Callable[[], None]:
        """Return a function that opens a page."""
        return partial(self.session.open, page, **chosen)

    def _link(self, label: str, text: str, page: str, **chosen: Any) -> Choice:
        """Return a link to a page, with a text below."""
        link = self.session.address(page, **chosen)
        return Choice(label, self._opener(page, **chosen), text=text, link=link)


@dataclass(frozen=True, slots=True)
class Spend:
    """An account's balance, and its keys' spending this month."""

    wallet: WalletBalance
    month_usd: Decimal | None


def fetch_spend(client: Client, *, with_keys: bool = True) -> Spend | None:
    """Return the spending, of each key for owners and developers; ``None`` where accounts are off."""
    account = client.account.get()
    if not account.accounts_enabled:
        return None
    if not with_keys:
        return Spend(account.wallet, None)
    keys = islice(client.account.keys(), _MOST_KEYS)
    return Spend(
        account.wallet, sum((Decimal(key.month_spent_usd or 0) for key in keys), Decimal())
    )


def show_spend(spend: Spend | None) -> Viewable:
    """Show the spending, and nothing where accounts are off."""
    if spend is None:
        return pn.Column(visible=False)
    wallet, month = spend.wallet, spend.month_usd
    values = {
        **({} if month is None else {"This month": f"{usd(month)}, by the account's keys"}),
        "Available": f"{usd(wallet.available_usd)}, and {usd(wallet.reserved_usd)} held by work in progress",
    }
    return stack(heading("Spend"), facts(values))
