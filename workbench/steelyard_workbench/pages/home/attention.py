"""Work that needs a person: gathered from the server, each with a link."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

from steelyard.alarms.wire import Alarm
from steelyard.client import Client
from steelyard.client.job_calls import page as page_of_jobs
from steelyard.datasets.wire import Dataset
from steelyard.decisions.named import PRODUCTION, PROPOSED
from steelyard.discovery.wire import Discovery
from steelyard.evaluations.wire import ENDED, Evaluation
from steelyard.families.fine_tune_wire import Job
from steelyard.families.wire import Family
from steelyard.named.wire import NamedDecision
from steelyard.review.wire import Draft
from steelyard.wire.jobs import UNFINISHED
from steelyard_workbench.kit.theme import Status
from steelyard_workbench.kit.words import ago, counted, escape_markdown, everyday
from steelyard_workbench.parts.families.labels import move_text
from steelyard_workbench.parts.families.verdicts import verdict_of, why_of
from steelyard_workbench.parts.live.alarms import view_behind
from steelyard_workbench.parts.live.view import to_text
from steelyard_workbench.parts.review.row_filter import RowFilter, write_query
from steelyard_workbench.parts.review.sending import SEAL

#: Open drafts whose rows are counted, fine-tunes that are looked at, and datasets whose evaluations
#: are.
MOST_DRAFTS, MOST_JOBS, MOST_DATASETS = 5, 50, 5
#: Evaluations of one dataset that are looked at.
MOST_EVALUATIONS = 5
#: Seconds for which a fine-tune whose gate did not pass needs somebody.
WEEK_S = 7 * 86_400
#: What the session has of these is of whatever was looked at before.
_AFRESH = {"query": "", "view": ""}


@dataclass(frozen=True, slots=True)
class Need:
    """Something that needs a person, or is under way: a reason in Markdown, a button with ``action``."""

    status: Status
    title: str
    text: str
    action: str = ""
    page: str = ""
    chosen: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OpenDrafts:
    """The newest open drafts, whether there are older ones, and the user's rows ``to_do`` by draft."""

    newest: list[Draft]
    has_more: bool = False
    to_do: Mapping[str, int] = field(default_factory=dict)


def open_drafts(client: Client, reviewer: str = "") -> OpenDrafts:
    """Return the newest open drafts with their rows counted, a call or two each."""
    drafts = client.drafts.list(status="open", limit=MOST_DRAFTS)
    newest = in_parallel(lambda draft: client.drafts.get(draft.id), drafts.data)

    def to_do(draft: Draft) -> int:
        shares = client.drafts.assignments(draft.id).data
        return sum(share.rows - share.done for share in shares if share.reviewer == reviewer)

    counts = in_parallel(to_do, newest) if reviewer else []
    ids = [draft.id for draft in newest]
    return OpenDrafts(newest, drafts.has_more, dict(zip(ids, counts, strict=False)))


def recent_jobs(client: Client) -> list[Job]:
    """Return the newest fine-tunes."""
    return list(client.send(page_of_jobs(page_size=MOST_JOBS)).data)


def recent_evaluations(client: Client, datasets: Sequence[Dataset]) -> list[Evaluation]:
    """Return the newest evaluations of some datasets, newest first, a call a dataset."""

    def of(dataset: Dataset) -> list[Evaluation]:
        evaluations = client.evaluations.list(dataset.id, page_size=MOST_EVALUATIONS)
        return list(islice(evaluations, MOST_EVALUATIONS))

    listed = in_parallel(of, list(datasets)[:MOST_DATASETS])
    return sorted(chain.from_iterable(listed), key=lambda evaluation: -evaluation.created_at)


def in_parallel(work: Any, items: Sequence[Any]) -> list[Any]:
    """Do the same for each of some things, all at a time; in their order."""
    if not items:
        return []
    with ThreadPoolExecutor(len(items), thread_name_prefix="home") as pool:
        return list(pool.map(work, items))


def alarm_needs(alarms: Iterable[Alarm]) -> list[Need]:
    """Return the alarms that have not cleared; those that are acknowledged are only unsure."""
    return [
        Need(
            "bad" if alarm.state == "raised" else "unsure",
            "Alarm:" if alarm.state == "raised" else "Alarm, acknowledged:",
            f"{escape_markdown(everyday(alarm.message))} Raised {ago(alarm.raised_at)}.",
            "Look",
            "live",
            {"query": to_text(view_behind(alarm))},
        )
        for alarm in alarms
    ]


def proposed_needs(decisions: Iterable[NamedDecision]) -> list[Need]:
    """Return the named decisions whose growth proposed a version, and production did not move since."""
    needs: list[Need] = []
    for decision in decisions:
        aliases = {each.alias: each for each in decision.aliases}
        proposed, production = aliases.get(PROPOSED), aliases[PRODUCTION]
        if proposed is not None and proposed.moved_at > production.moved_at:
            text = (
                f"Version {proposed.version} asks a model of its own rows, and passed; move to it."
            )
            chosen = {"named": decision.name, **_AFRESH}
            needs.append(Need("unsure", f"{decision.name}:", text, "Look", "decisions", chosen))
    return needs


def _opens(draft: Draft) -> dict[str, Any]:
    place = {"dataset": draft.dataset_id, "version": draft.dataset_version, "draft": draft.id}
    return {**place, **_AFRESH}


def _rows_left(draft: Draft) -> int:
    return draft.states.get("untouched", 0) + draft.states.get("skipped", 0)


def draft_needs(drafts: OpenDrafts) -> list[Need]:
    """Return the drafts that have rows left, the user's first, or are ready to be sealed."""
    needs: list[Need] = []
    for draft in drafts.newest:
        left, chosen = _rows_left(draft), _opens(draft)
        if mine := drafts.to_do.get(draft.id, 0):
            text = f"{mine:,} rows are assigned to you."
            queue = {"query": write_query(RowFilter(), "assigned")}
            title = f"Review {draft.name}:"
            needs.insert(0, Need("running", title, text, "Label", "review", {**chosen, **queue}))
        text = f"{left:,} of {draft.rows:,} rows to review, last edited {ago(draft.updated_at)}."
        action = "Review"
        if not left:
            text, action = f"All {draft.rows:,} rows are reviewed; it can be finished.", "Finish"
            chosen["view"] = SEAL
        needs.append(Need("running", f"Review {draft.name}:", text, action, "review", chosen))
    if drafts.has_more:
        every = {"dataset": "", "version": 0, "draft": "", **_AFRESH}
        text = f"The {len(drafts.newest)} newest are listed here."
        needs.append(Need("off", "More reviews are open.", text, "See all", "review", every))
    return needs


def waiting_needs(drafts: OpenDrafts) -> list[Need]:
    """Return the drafts with rows for a reviewer: those assigned to them, then the others."""
    needs: list[Need] = []
    for draft in drafts.newest:
        left, chosen = _rows_left(draft), _opens(draft)
        if mine := drafts.to_do.get(draft.id, 0):
            queue = {"query": write_query(RowFilter(), "assigned")}
            title, text = f"{counted(mine, 'row')} in {draft.name}", "assigned to you."
            needs.insert(
                0, Need("running", f"{title},", text, "Start", "review", {**chosen, **queue})
            )
        elif left:
            text = f"{counted(left, 'row')} to review, by anybody."
            needs.append(Need("off", draft.name, text, "Open", "review", chosen))
    return needs


def job_needs(jobs: Iterable[Job], now: float | None = None) -> list[Need]:
    """Return the fine-tunes that run, and of each family the last if it ended badly in the last week."""
    now = time.time() if now is None else now
    needs: list[Need] = []
    ended: set[str] = set()
    for job in jobs:
        if job.status not in UNFINISHED and job.family:
            if job.family in ended:
                continue
            ended.add(job.family)
        chosen = {"job": job.id, **({"family": job.family} if job.family else {})}
        name = f"Fine-tune of {job.family or job.model}"
        if job.status in UNFINISHED:
            done = ""
            if job.progress is not None:
                done = f", step {job.progress.step:,} of {job.progress.steps:,}"
            needs.append(
                Need("running", f"{name}:", f"{job.status}{done}.", "Look", "jobs", chosen)
            )
        elif now - job.updated_at > WEEK_S:
            continue
        elif job.outcome == "gate_failed" and job.gate is not None and not job.is_behind_words:
            gate_verdict = verdict_of(job.gate)
            why = escape_markdown(gate_verdict.settles or why_of(job))
            text = f"{ago(job.updated_at, now)}. {why}".strip()
            title = f"{name}: check {gate_verdict.word}"
            needs.append(Need(gate_verdict.status, title, text, "Look", "jobs", chosen))
        elif job.status == "failed":
            why = escape_markdown(why_of(job))
            text = f"{ago(job.updated_at, now)}. {why}"
            needs.append(Need("bad", f"{name}: failed", text, "Look", "jobs", chosen))
    return needs


def family_needs(families: Iterable[Family]) -> list[Need]:
    """Return the families that wait to move to their latest model."""
    return [
        Need(
            "unsure",
            f"Model line {family.id}:",
            move_text(family.move),
            "Look",
            "families",
            {"family": family.id},
        )
        for family in families
        if family.move is not None
    ]


def evaluation_needs(evaluations: Iterable[Evaluation], now: float | None = None) -> list[Need]:
    """Return the evaluations that run, and those that failed in the last week."""
    now = time.time() if now is None else now
    needs: list[Need] = []
    for evaluation in evaluations:
        chosen = {"evaluation": evaluation.id, "dataset": evaluation.dataset_id, **_AFRESH}
        name = f"Evaluation of {evaluation.named or evaluation.model_label}:"
        if evaluation.status not in ENDED:
            text = (
                f"{evaluation.status}, {evaluation.completed_rows:,} of "
                f"{evaluation.evaluation_rows:,} rows."
            )
            needs.append(Need("running", name, text, "Look", "evaluations", chosen))
        elif evaluation.status == "failed" and now - evaluation.updated_at <= WEEK_S:
            why = escape_markdown(everyday(evaluation.error.message if evaluation.error else ""))
            text = f"failed {ago(evaluation.updated_at, now)}. {why}"
            needs.append(Need("bad", name, text, "Look", "evaluations", chosen))
    return needs


def server_needs(discovery: Discovery) -> list[Need]:
    """Return the warnings of the server."""
    return [
        Need(
            "unsure",
            f"{warning.code}:",
            escape_markdown(everyday(warning.message)),
            "Settings",
            "settings",
        )
        for warning in discovery.warnings
    ]
