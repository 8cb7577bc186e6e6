"""The data of a named decision's page, and the next step of the loop."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice

from steelyard.alarms.golden_wire import GoldenState
from steelyard.alarms.wire import Alarm
from steelyard.caller import LOCAL_ACCOUNT
from steelyard.client import Client
from steelyard.decision_log.wire import DecisionSeries, DecisionSummary
from steelyard.decisions.named import MODEL_PREFIX, PRODUCTION
from steelyard.errors import NotFoundError
from steelyard.growth.wire import Growth
from steelyard.named.comparison_wire import NamedComparison
from steelyard.named.wire import AliasMove, NamedDecision, NamedVersion
from steelyard.review.wire import DraftSummary
from steelyard_workbench.parts.datasets.names import dataset_name
from steelyard_workbench.parts.live.alarms import fetch_alarms

DAY_S, WEEK_S = 86_400.0, 7 * 86_400.0
#: The alias of what is tried before it is moved to production, and that of what grew.
STAGING, PROPOSED = "staging", "proposed"
#: The label of the button that lets a decision grow.
GROW = "Let it grow"
#: Decisions with feedback without which accuracy says little.
_ENOUGH_FEEDBACK = 50
_MOST_MOVES, _MOST_COMPARISONS, _MOST_DRAFTS, _MOST_VERSIONS = 20, 20, 20, 50
#: Decisions of a list whose last day is summed up.
_MOST_SUMMED = 20


def author(by: str) -> str:
    """Return who made or moved something, in words where it is no address of mail.

    >>> author("ada@example.org"), author("local"), author("key_01k6"), author("acct_01k6")
    ('ada@example.org', 'this machine', 'a program', 'the server')
    """
    kinds = {LOCAL_ACCOUNT: "this machine", "key": "a program", "acct": "the server"}
    return kinds.get(by.partition("_")[0], by)


@dataclass(frozen=True, slots=True)
class Looked:
    """A named decision, the version in production and one beside it, its last week, and its past."""

    decision: NamedDecision
    version: NamedVersion
    #: The last week of all of it, of production's version and of the one beside.
    summary: DecisionSummary
    of_version: DecisionSummary
    #: That week by days: what it cost, and how often its outcomes are true.
    series: DecisionSeries
    alarms: Sequence[Alarm]
    #: The golden rows of it, and of its model.
    golden: Sequence[GoldenState]
    drafts: Sequence[DraftSummary]
    comparisons: Sequence[NamedComparison]
    moves: Sequence[AliasMove]
    #: The newest first.
    versions: Sequence[NamedVersion]
    beside: NamedVersion | None = None
    of_beside: DecisionSummary | None = None
    growth: Growth | None = None
    dataset: str = ""

    @property
    def cost_usd(self) -> Decimal:
        """The cost of the last week's answers, of every version."""
        return sum((Decimal(point.cost_usd or 0) for point in self.series.data), Decimal())

    @property
    def comparison(self) -> NamedComparison | None:
        """The newest comparison of the version beside with production."""
        if self.beside is None:
            return None
        pair = (self.beside.version, self.version.version)
        return next(
            (each for each in self.comparisons if (each.version, each.against) == pair), None
        )

    @property
    def recorded(self) -> NamedComparison | None:
        """The newest comparison with answers that were recorded elsewhere."""
        return next((each for each in self.comparisons if each.recorded), None)


@dataclass(frozen=True, slots=True)
class Step:
    """The next step of the loop: why, its button, and the page it leads to; none where it lets it grow."""

    text: str
    label: str
    page: str = ""


def look_at(client: Client, name: str, beside: int = 0) -> Looked:
    """Fetch a decision's data, with the version ``beside`` production, for 0 the next one; it blocks."""
    named = client.named_decisions
    decision, version = named.get(name), named.version(name, PRODUCTION)
    versions = list(islice(named.versions(name), _MOST_VERSIONS))
    number = beside or _candidate(decision, version.version)
    other = named.version(name, number) if number and number != version.version else None
    since = time.time() - WEEK_S

    def week(of: str) -> DecisionSummary:
        return client.decision_summary(named=of, since=since, bucket_s=86_400)

    summary, subjects = week(name), {f"{MODEL_PREFIX}{name}", version.model}
    drafts = client.drafts.list(status="open", limit=_MOST_DRAFTS).data
    return Looked(
        decision=decision,
        version=version,
        summary=summary,
        of_version=week(f"{name}@{version.version}"),
        series=client.decision_series(named=name, since=since, bucket_s=86_400),
        alarms=_about(client, summary, name),
        golden=[each for each in client.alarms.rules().golden if each.model in subjects],
        drafts=[draft for draft in drafts if draft.dataset_id == decision.dataset_id],
        comparisons=list(islice(named.comparisons(name), _MOST_COMPARISONS)),
        moves=list(islice(named.history(name), _MOST_MOVES)),
        versions=versions,
        beside=other,
        of_beside=None if other is None else week(f"{name}@{other.version}"),
        growth=_growth(client, name),
        dataset="" if decision.dataset_id is None else dataset_name(client, decision.dataset_id),
    )


def _candidate(decision: NamedDecision, production: int) -> int:
    """Return the version that is to replace production; 0 where none is."""
    places = {each.alias: each.version for each in decision.aliases}
    waiting = (places.get(STAGING), places.get(PROPOSED))
    staged = next((number for number in waiting if number not in {None, production}), None)
    return staged or (decision.latest if decision.latest > production else 0)


def alarms_about(client: Client, name: str) -> list[Alarm]:
    """Return the last day's alarms about a named decision's models; it blocks."""
    summary = client.decision_summary(named=name, since=time.time() - DAY_S, bucket_s=3_600)
    return _about(client, summary, name)


def last_days(client: Client, names: Sequence[str]) -> dict[str, DecisionSummary]:
    """Return the last day of the first of some named decisions; it blocks."""
    since = time.time() - DAY_S
    return {
        name: client.decision_summary(named=name, since=since, bucket_s=3_600)
        for name in names[:_MOST_SUMMED]
    }


def next_step(looked: Looked) -> Step:
    """Return the step that brings a decision forward now."""
    if looked.drafts:
        return Step("Rows of its dataset wait for a person.", "Review the rows", "review")
    return _traffic_step(looked)


def _traffic_step(looked: Looked) -> Step:
    seen = looked.summary.accuracy
    if not looked.summary.answers:
        return Step("No requests in the last week.", "Ask it in the playground", "playground")
    if looked.decision.dataset_id is None:
        return Step(
            "It has no dataset: send answers to a review, and name the dataset of their rows.",
            "Look at its answers",
            "live",
        )
    if seen is None or seen.n < _ENOUGH_FEEDBACK:
        return Step(
            f"Say of {_ENOUGH_FEEDBACK} answers whether they were right, and it is known how good it is.",
            "Look at its answers",
            "live",
        )
    if looked.growth is None or looked.growth.stopped_at is not None:
        return Step("Its feedback may train a model of its own, as right for less.", GROW)
    return Step(f"It grows by itself, and waits. {looked.growth.waits_for}", "")


def _about(client: Client, summary: DecisionSummary, name: str) -> list[Alarm]:
    answered = {(group.model, group.decision) for group in summary.groups}
    answered.add((f"{MODEL_PREFIX}{name}", ""))
    return [
        alarm
        for alarm in fetch_alarms(client)
        # Of a model that answers, and of one of its questions or of all.
        if any(
            alarm.model == model and alarm.decision in {None, "", question}
            for model, question in answered
        )
    ]


def _growth(client: Client, name: str) -> Growth | None:
    """Return how far a decision grows by itself; ``None`` where it does not."""
    try:
        return client.named_decisions.growth(name)
    except NotFoundError:
        return None
