"""Named decisions: the list of them, and one with its day, its versions and its next step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.client import Client
from steelyard.decision_log.wire import DecisionSummary
from steelyard.decisions.named import PRODUCTION
from steelyard.named.comparison_wire import ComparisonResult
from steelyard.named.wire import NamedDecision
from steelyard_workbench.kit.components.copy_text import CopyText
from steelyard_workbench.kit.components.facts import facts, heading, table
from steelyard_workbench.kit.components.mark_table import mark_table
from steelyard_workbench.kit.components.numbers import ago, change_text, measure_text
from steelyard_workbench.kit.escaping import escape_markdown
from steelyard_workbench.kit.loaded import Loaded
from steelyard_workbench.kit.one_part_page import OnePartPage
from steelyard_workbench.kit.snippets import as_curl, as_python_named
from steelyard_workbench.kit.states import empty, verdict
from steelyard_workbench.kit.theme import Status
from steelyard_workbench.parts.live.view import View, to_text
from steelyard_workbench.parts.named.filtering import OF_NAMED
from steelyard_workbench.parts.named.looking import GROW, Looked, last_days, look_at, next_step
from steelyard_workbench.parts.named.starting import START, StartForm

_EXAMPLE = "My card was charged twice for order 118."
_NONE = (
    "**No named decisions yet.** A named decision has questions, policies and a model. Applications ask it by "
    "name, so a better wording is a new version here and needs no release there."
)
_VERDICTS: dict[str, Status] = {"passed": "good", "refused": "bad", "inconclusive": "unsure"}
_DAY_S = 86_400


class DecisionsPage(OnePartPage):
    """The named decisions of the account, or one of them."""

    slug = "decisions"
    title = "Decisions"
    summary = "Questions, policies and a model under a name, which applications ask."
    watched = ("named",)

    def content(self) -> list[Viewable]:
        """Return the list, or the decision that is chosen."""
        if self.session.named:
            name = self.session.named
            self.shown = Loaded(
                "The decision", lambda: look_at(self.client, name), self._show_decision, n_lines=8
            )
            back = pmui.Button(label="All decisions", variant="text")
            back.on_click(lambda _: self.session.open("decisions", named=""))
            return [back, heading(name), self.part(self.shown)]
        self.shown = Loaded("The decisions", lambda: list_decisions(self.client), self._show_list)
        return [self.part(self.shown), heading(START), self._start_form()]

    def _start_form(self) -> StartForm:
        return StartForm(
            self.client, lambda name: self.session.open("decisions", named=name), self.visit
        )

    def _show_list(self, listed: Listed) -> Viewable:
        if not listed.decisions:
            return empty_list(self.client)
        return show_decisions(listed, lambda name: self.session.open("decisions", named=name))

    def _show_decision(self, looked: Looked) -> Viewable:
        decision, version, day = looked.decision, looked.version, looked.summary
        place = pn.Column(sizing_mode="stretch_width")
        today = {
            "Answers": f"{day.answers:,} in the last day",
            "Cost": f"{looked.cost_usd} USD",
            "Latency, median": measure_text(day.latency_p50_ms, places=1) + " ms",
            "Abstained": measure_text(day.abstain_rate),
            "Right, on feedback": measure_text(day.accuracy),
            "Drift": f"{len(looked.alarms)} alarms" if looked.alarms else "no alarm",
            "Waits for a person": _waiting(looked),
        }
        about = {
            "For": decision.description or "—",
            "Owner": decision.owner or "—",
            "Model": version.model or "the server's default",
            "Dataset": looked.dataset or "none",
            "Aliases": ", ".join(f"{each.alias} {each.version}" for each in decision.aliases),
        }
        url, with_key = self.client.url, self.session.who is not None
        request = {"decision": decision.name, "context": _EXAMPLE}
        return pn.Column(
            self._step(looked, place),
            place,
            *(verdict("bad", "Alarm.", escape_markdown(alarm.message)) for alarm in looked.alarms),
            facts(about),
            heading("Its last day"),
            facts(today),
            self._links(looked),
            heading("What it asks"),
            _questions(looked),
            heading("How it is called"),
            CopyText(as_curl(url, request, with_key=with_key), f"{decision.name} with curl"),
            CopyText(
                as_python_named(url, decision.name, _EXAMPLE, with_key=with_key),
                f"{decision.name} in Python",
            ),
            *self._growth(looked, place),
            *_shares(looked),
            *_comparisons(looked),
            heading("Moves"),
            _moves(looked),
            sizing_mode="stretch_width",
        )

    def _step(self, looked: Looked, place: pn.Column) -> Viewable:
        step = next_step(looked)
        shown = verdict("running", "Next.", escape_markdown(step.text))
        if not step.label:
            return shown
        named, name = self.client.named_decisions, looked.decision.name
        number, before = looked.candidate, looked.version.version
        if step.page:
            button = pmui.Button(label=step.label, variant="contained")
            button.on_click(lambda _: self._go(step.page, looked))
        elif step.label == GROW:
            button = self.button(step.label, lambda: named.grow(name), place, variant="contained")
        elif number is not None and step.label.startswith("Compare"):
            button = self.button(
                step.label, lambda: named.compare(name, number), place, variant="contained"
            )
        else:
            button = self.button(
                step.label,
                lambda: named.move(name, PRODUCTION, number or before, expected=before),
                place,
                variant="contained",
            )
        return pn.Column(shown, button, sizing_mode="stretch_width")

    def _growth(self, looked: Looked, place: pn.Column) -> list[Viewable]:
        """Return how far the decision grows, why it waits, and what stops it."""
        growth, name = looked.growth, looked.decision.name
        if growth is None:
            return []
        text = f"{growth.stage}, with leave to {growth.policy.policy}. {growth.waits_for}"
        shown: list[Viewable] = [
            heading("Growth"),
            verdict("running", "Growth.", escape_markdown(text)),
        ]
        if growth.stopped_at is None:
            named = self.client.named_decisions
            shown.append(self.button("Stop growing", lambda: named.stop_growing(name), place))
        rows = [(step.stage, step.message, ago(step.at)) for step in growth.steps[:10]]
        if rows:
            shown.append(table(("stage", "what", "when"), rows, label="Steps of its growth"))
        return shown

    def _links(self, looked: Looked) -> Viewable:
        """Return buttons to the other pages, which open on what is this decision's."""
        pages = [("Live answers", "live"), ("Alarms", "alarms"), ("Jobs", "jobs")]
        if looked.decision.dataset_id is not None:
            pages += [("Dataset", "datasets"), ("Evaluations", "evaluations")]
            pages += [("Prompt tuning", "tuning")]
        if looked.growth is not None:
            pages += [("Family", "families")]
        buttons = []
        for label, page in pages:
            button = pmui.Button(label=label, variant="outlined", size="small")
            button.on_click(lambda _, page=page: self._go(page, looked))
            buttons.append(button)
        return pn.FlexBox(*buttons)

    def _go(self, page: str, looked: Looked) -> None:
        dataset_id = looked.decision.dataset_id
        if page == "live":
            view = View(window_s=_DAY_S, named=looked.decision.name)
            self.session.open(page, query=to_text(view), decision="")
        elif page == "review" and looked.drafts:
            draft = looked.drafts[0]
            self.session.open(
                page, draft=draft.id, version=draft.dataset_version, dataset=draft.dataset_id
            )
        elif page == "families":
            family = "" if looked.growth is None else looked.growth.policy.family or ""
            self.session.open(page, family=family)
        elif page in {"alarms", "jobs"}:
            self.session.open(page, view=OF_NAMED, job="")
        elif page == "datasets":
            self.session.open(page, version=0, dataset=dataset_id or "")
        elif dataset_id is not None:
            self.session.open(page, dataset=dataset_id)
        else:
            self.session.open(page)


@dataclass(frozen=True, slots=True)
class Listed:
    """The account's named decisions, the newest first, with the last day of those at the top."""

    decisions: Sequence[NamedDecision]
    days: Mapping[str, DecisionSummary]


def list_decisions(client: Client) -> Listed:
    """Fetch the account's named decisions; it blocks."""
    decisions = list(client.named_decisions.list())
    return Listed(decisions, last_days(client, [each.name for each in decisions]))


def show_decisions(listed: Listed, open_: Callable[[str], None]) -> Viewable:
    """Show named decisions as a table whose lines open them."""
    decisions, days = listed.decisions, listed.days
    rows = [
        [
            each.name,
            each.description or "",
            ", ".join(f"{alias.alias} {alias.version}" for alias in each.aliases),
            f"{days[each.name].answers:,}" if each.name in days else "",
            measure_text(days[each.name].accuracy) if each.name in days else "",
            each.owner or "",
        ]
        for each in decisions
    ]
    return mark_table(
        ("decision", "for", "aliases", "last day", "right on feedback", "owner"),
        rows,
        label="Named decisions",
        open_=lambda place: open_(decisions[place].name),
        opens="Open the decision",
    )


def empty_list(client: Client) -> Viewable:
    """Show how the first named decision is made."""
    command = (
        'steelyard decision new support_triage --question "Which team should own this message?" \\\n'
        '    --outcome "billing=charges, refunds" --outcome "shipping=where a parcel is"\n'
        f"steelyard decision push --url {client.url}"
    )
    return pn.Column(
        empty(_NONE), CopyText(command, "a first named decision"), sizing_mode="stretch_width"
    )


def _waiting(looked: Looked) -> str:
    """Return what waits for a person: drafts of its dataset, and the version that is proposed."""
    growth, waiting = looked.growth, []
    if looked.drafts:
        waiting.append(f"{len(looked.drafts)} drafts")
    if growth is not None and growth.stopped_at is None and growth.stage == "proposed":
        waiting.append("the version that its growth proposed")
    return ", ".join(waiting) or "nothing"


def _questions(looked: Looked) -> Viewable:
    rows = []
    for question in looked.version.decisions:
        outcomes = question.get("outcomes") or question.get("rubric") or ("yes", "no")
        policy = [name for name in ("policy", "abstain", "costs", "weights") if question.get(name)]
        rows.append(
            (
                str(question["id"]),
                str(question["question"]),
                ", ".join(map(str, outcomes)),
                "; ".join(_policy_text(name, question[name]) for name in policy) or "—",
            )
        )
    return table(("decision", "question", "outcomes", "policy"), rows, label="What it asks")


def _policy_text(name: str, value: object) -> str:
    """Return a part of a policy in words, as ``abstain: min probability 0.5``."""
    if not isinstance(value, dict):
        return f"{name}: {value}"
    return f"{name}: " + ", ".join(
        f"{str(part).replace('_', ' ') if name == 'abstain' else part} {amount}"
        for part, amount in value.items()
    )


def _shares(looked: Looked) -> list[Viewable]:
    shares = looked.decision.shares
    if not shares:
        return []
    rows = [
        (
            f"{each.share:.0%} of {each.alias} ({each.from_version})",
            f"{each.to} ({each.to_version})",
            measure_text(each.figures.before),
            measure_text(each.figures.after),
            "goes on" if each.ended_at is None else f"{each.ended_reason}, {ago(each.ended_at)}",
            each.started_by,
            each.reason or "",
            ago(each.created_at),
        )
        for each in shares
    ]
    columns = ("share", "answered by", "right before", "right after", "ended", "by", "why", "since")
    shown: list[Viewable] = [heading("Shares of its traffic")]
    newest = shares[0]
    if newest.ended_reason == "worse":
        text = f"{newest.to} was right less often on feedback; it answers its share no longer."
        shown.append(verdict("bad", "Stopped.", escape_markdown(text)))
    return [*shown, table(columns, rows, label="Shares of its traffic")]


def _comparisons(looked: Looked) -> list[Viewable]:
    if not looked.comparisons:
        return []
    newest = looked.comparisons[0]
    shown: list[Viewable] = [heading("Comparisons")]
    result = newest.result
    if result is not None:
        lines = [f"Changed: {', '.join(result.changes)}.", *result.sentences]
        text = "\n- ".join(map(escape_markdown, lines))
        of = f"{newest.version} against {newest.against}: {result.verdict}."
        shown.append(verdict(_VERDICTS[result.verdict], of, text.replace("\n", "\n\n", 1)))
        shown += _figures(result)
    rows = [
        (
            f"{each.version} against {each.against}",
            each.result.verdict if each.result else each.status,
            f"{each.contexts:,}",
            f"{each.price_usd} USD",
            ago(each.created_at),
        )
        for each in looked.comparisons
    ]
    columns = ("versions", "verdict", "contexts", "price", "asked for")
    return [*shown, table(columns, rows, label="Comparisons", numbers=(2,))]


def _figures(result: ComparisonResult) -> list[Viewable]:
    """Return what a comparison says of each decision, and at what price."""
    rows = [
        (
            name,
            each.decision,
            measure_text(each.changed),
            change_text(each.abstained),
            change_text(each.right),
            change_text(each.wrong),
        )
        for name, side in (("held-out rows", result.rows), ("stored decisions", result.stored))
        if side is not None
        for each in side.decisions
    ]
    columns = ("on", "decision", "other action", "abstained", "right", "wrong")
    price = result.price
    text = (
        ""
        if price is None
        else f"1,000 requests: {price.usd_before} USD before, {price.usd_after} USD after."
    )
    return [
        table(columns, rows, label="What changes"),
        pmui.Typography(text, variant="body2", visible=bool(text)),
    ]


def _moves(looked: Looked) -> Viewable:
    rows = [
        (
            each.alias,
            f"{each.from_version or '—'} to {each.to_version}",
            each.moved_by,
            f"overruled: {each.overruled}" if each.overruled else each.verdict or "",
            each.reason or "",
            ago(each.created_at),
        )
        for each in looked.moves
    ]
    columns = ("alias", "versions", "by", "verdict", "why", "when")
    return table(columns, rows, label="Moves of its aliases")
