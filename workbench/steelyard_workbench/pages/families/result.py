"""The result of a fine-tune: how often it is right beside the model before, and the changed answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import chain, zip_longest
from typing import cast

from msgspec import UNSET
from panel.viewable import Viewable

from steelyard.calibration.intervals import mean_interval
from steelyard.client import Client
from steelyard.errors import SteelyardError
from steelyard.evaluations.gate_wire import Gate, reader_of, unchanged_of, words_of
from steelyard.evaluations.wire import Evaluation, EvaluationRecord, JobRecord
from steelyard.families.fine_tune_wire import Job
from steelyard.families.wire import Family, ModelVersion
from steelyard.wire.jobs import UNFINISHED
from steelyard_workbench.kit.basics import html_pane
from steelyard_workbench.kit.look import CARD_CSS, TABLE_CSS, beam, chip, pill, verdict_card
from steelyard_workbench.kit.theme import Status
from steelyard_workbench.kit.words import cut, moment, percent_text
from steelyard_workbench.pages.families.held_out import is_right, right_outcome
from steelyard_workbench.parts.datasets.questions import as_line, top_of
from steelyard_workbench.parts.families.labels import right_of_gate, right_of_group
from steelyard_workbench.parts.families.verdicts import verdict_of

#: Answers that changed and are shown, and the most that are fetched and counted one by one.
_SHOWN, _MOST = 5, 20_000
#: Characters of a text in the table.
_SHOWN_TEXT = 180
_CHECK = {
    "passed": "Passed the check",
    "failed": "Did not pass the check",
    "inconclusive": "Nothing is proven yet",
}


@dataclass(frozen=True, slots=True)
class Changed:
    """An answer that is right now and was not, or the other way round."""

    decision: str
    text: str
    right: str
    before: str
    after: str
    outcomes: tuple[str, ...]
    is_broken: bool


@dataclass(frozen=True, slots=True)
class HeldOutResult:
    """The result of a fine-tune on the rows that it never saw.

    ``low`` and ``high`` are the ends of the 95 % interval of the change; rows of one text stand or
    fall together. ``changed`` has some of the answers that changed.
    """

    n_answers: int
    before: float
    after: float
    low: float | None
    high: float | None
    fixed: int
    broken: int
    changed: tuple[Changed, ...] = ()


def fetch_result(client: Client, job: Job) -> HeldOutResult | None:
    """Return a fine-tune's result; of its gate alone where its answers are gone or too many."""
    gate = job.gate
    if gate is None or not gate.groups:
        return None
    n_answers = sum(group.decisions for group in gate.groups.values())
    if job.rows_deleted or n_answers > _MOST:
        return result_of_gate(gate)
    try:
        after = client.jobs.records(job.id)
        before = client.jobs.records(job.id, group=gate.against)
    except SteelyardError:
        return result_of_gate(gate)
    if not after or len(before) != len(after):
        return result_of_gate(gate)
    pairs = list(zip(before, after, strict=True))
    was, now = [is_right(old) for old, _ in pairs], [is_right(new) for _, new in pairs]
    interval = mean_interval(
        [float(is_now) - float(is_old) for is_old, is_now in zip(was, now, strict=True)],
        clusters=[new.context_sha256 for new in after],
        least=-1.0,
        most=1.0,
    )
    fixed = [pair for pair, *ends in zip(pairs, was, now, strict=True) if ends == [False, True]]
    broken = [pair for pair, *ends in zip(pairs, was, now, strict=True) if ends == [True, False]]
    return HeldOutResult(
        len(pairs),
        sum(was) / len(pairs),
        sum(now) / len(pairs),
        None if interval is None else interval.low,
        None if interval is None else interval.high,
        len(fixed),
        len(broken),
        _some(client, job, fixed, broken),
    )


def result_of_gate(gate: Gate) -> HeldOutResult | None:
    """Return a fine-tune's result by its gate alone; ``None`` where that judged no answers."""
    right = right_of_gate(gate)
    if right is None:
        return None
    fixed, broken = (
        sum(getattr(group.flips, kind) for group in gate.groups.values())
        for kind in ("fixed", "broken")
    )
    return HeldOutResult(right.n_answers, right.before, right.after, None, None, fixed, broken)


def _some(
    client: Client,
    job: Job,
    fixed: Sequence[tuple[JobRecord, JobRecord]],
    broken: Sequence[tuple[JobRecord, JobRecord]],
) -> tuple[Changed, ...]:
    """Return some answers that changed, those that were fixed and that were broken in turn."""
    evaluation = job.dataset_evaluation
    turns = chain.from_iterable(zip_longest(fixed, broken))
    by_text: dict[str, tuple[JobRecord, JobRecord]] = {}
    for pair in turns:
        if pair is not None and len(by_text) < _SHOWN:
            by_text.setdefault(pair[1].context_sha256, pair)
    pairs = list(by_text.values())
    if not pairs or not isinstance(evaluation, Evaluation):
        return ()
    try:
        records = client.evaluations.records(evaluation.id, contexts=list(by_text), context=True)
    except SteelyardError:
        return ()
    text_by_name = {
        record.context_sha256: as_line(record.context)
        for record in cast("Sequence[EvaluationRecord]", records)
        if record.context is not UNSET
    }
    return tuple(
        Changed(
            new.decision_id,
            text_by_name[new.context_sha256],
            right_outcome(new),
            top_of(old.probabilities),
            top_of(new.probabilities),
            tuple(new.probabilities),
            not is_right(new),
        )
        for old, new in pairs
        if new.context_sha256 in text_by_name
    )


def show_result(family: Family, job: Job, model: object, result: HeldOutResult | None) -> Viewable:
    """Show the verdict on one card: how often it is right now and before, and the beam of the change."""
    gate = job.gate
    body = [f'<div class="verdict">{_without_verdict(job)}</div>']
    if result is not None:
        kind = "right" if job.method == "sft" else "the best action"
        shares = f"{percent_text(result.before)} → {percent_text(result.after)}"
        body = [
            f'<div class="note">On {job.split.validation_rows:,} rows that neither has seen</div>',
            f'<div class="verdict">{shares} <small>{kind}</small></div>',
            f'<div class="lead">{escape(change_sentence(job, result))}</div>',
        ]
    elif gate is not None:
        body = ['<div class="verdict">Too few rows to tell</div>']
    drawn, pills = "", []
    if result is not None and result.low is not None and result.high is not None:
        status: Status = "good" if result.low > 0 else "bad" if result.high < 0 else "running"
        drawn = beam(result.after - result.before, result.low, result.high, status)
    if gate is not None:
        verdict = verdict_of(gate)
        pills.append(pill(_CHECK[verdict.word], verdict.status))
        baseline = None if gate.baseline is UNSET else right_of_group(gate.baseline)
        if gate.words is not UNSET:
            title = escape(words_of(gate) or "", quote=True)
            right = percent_text(gate.words.right.after)
            text = (
                f"answers by words alone: {right}" if gate.words.serves else f"words alone: {right}"
            )
            ladder = gate.words.ladder
            if ladder is not UNSET and ladder.thresholds:
                text = f"words alone answer {percent_text(ladder.share)}"
                if ladder.cpu_ms is not UNSET:
                    cost = ladder.cpu_ms
                    text = f"{text} in {cost.words:.2g} ms, the rest takes {cost.reading:.2g} more"
            elif gate.words.cpu_ms is not UNSET and gate.words.cpu_ms.after is not None:
                text = f"{text}, {gate.words.cpu_ms.after:.2g} ms"
            pills.append(f'<span class="note" title="{title}">{text}</span>')
        elif baseline is not None:
            pills.append(
                '<span class="note" title="A text baseline: a linear model of words and runs of '
                f'characters, trained on the same rows">words alone: {percent_text(baseline[0])}</span>'
            )
        if (reading := reader_of(gate)) is not None:
            title = escape(reading, quote=True)
            pills.append(
                f'<span class="note" title="{title}">reads {escape(str(gate.reader))}</span>'
            )
    is_served = isinstance(model, ModelVersion) and _is_served(family, model)
    if is_served and isinstance(model, ModelVersion):
        since = family.moved.at if family.moved is not None else model.created_at
        pills.insert(0, pill(f"Answers since {moment(since)} UTC", "good"))
    return html_pane(verdict_card(body, drawn, pills), CARD_CSS, margin=(8, 10))


def _is_served(family: Family, model: ModelVersion) -> bool:
    served = family.served
    return family.switched_on and served is not None and served.adapter == model.adapter


def _without_verdict(job: Job) -> str:
    if job.status in UNFINISHED:
        return "It is being trained" if job.status == "running" else "It waits to be trained"
    return "It made no model"


def change_sentence(job: Job, result: HeldOutResult) -> str:
    """Return the changes of a fine-tune in words; that it changed nothing too."""
    if not result.fixed and not result.broken:
        n = job.split.train_rows if job.lineage is None else job.lineage.new_training
        rows = f"Your {n:,} new or corrected rows" if job.lineage and job.parent else f"{n:,} rows"
        sentence = f"{rows} changed no answer of {result.n_answers:,}."
        return (
            sentence if job.gate is None or not unchanged_of(job.gate) else f"{sentence} Add rows."
        )
    change = (result.after - result.before) * 100
    between = (
        ""
        if result.low is None or result.high is None
        else f", between {result.low * 100:+.0f} and {result.high * 100:+.0f}"
    )
    return f"{change:+.0f} points{between} · {result.fixed:,} fixed · {result.broken:,} broken"


def show_changed(result: HeldOutResult) -> Viewable:
    """Show some of the answers that changed: the text, the right outcome, and both answers in colour."""
    head = "".join(f'<th scope="col">{name}</th>' for name in ("Text", "Right", "Before", "Now"))
    rows = "".join(
        f'<tr><td data-label="Text" class="long" dir="auto">{escape(cut(each.text, _SHOWN_TEXT))}'
        f'<div class="note">{escape(each.decision)}</div></td>'
        + "".join(
            f'<td data-label="{name}">{chip(outcome, each.outcomes)}{note}</td>'
            for name, outcome, note in (
                ("Right", each.right, ""),
                ("Before", each.before, ""),
                ("Now", each.after, ' <span class="note">broken</span>' if each.is_broken else ""),
            )
        )
        + "</tr>"
        for each in result.changed
    )
    return html_pane(
        '<section class="card"><h2>What changed</h2><table class="cards" aria-label="What changed">'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></section>",
        CARD_CSS,
        TABLE_CSS,
        margin=(6, 10),
    )
