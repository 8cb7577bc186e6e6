"""Comparing two versions of a named decision: both are asked about the same contexts.

Answers are durable after each window of contexts: a run that is taken up again repeats at
most one. The charge is made in the transaction that ends the job.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import msgspec
from sqlalchemy import Row, Table

from steelyard import errors
from steelyard.asking.rows import ask_each
from steelyard.asking.window import RowResult
from steelyard.caller import Caller
from steelyard.datasets.service import DatasetService
from steelyard.decisions.answer import answer_decision
from steelyard.decisions.kinds import Decision
from steelyard.decisions.validation import ValidRequest
from steelyard.decisions.wire import DecideResponse, DecisionResult
from steelyard.evaluations.measures.records import UnmeasurableError
from steelyard.evaluations.models import EvaluatedModels
from steelyard.jobs.store import PendingJob
from steelyard.jobs.work import Run, TableWork
from steelyard.ledger.money import to_usd
from steelyard.named import store as rows
from steelyard.named.cases import Case, cases_of_rows, cases_of_stored, without_trained_labels
from steelyard.named.comparing import (
    Compared,
    ComparedActions,
    RuledAnswer,
    VersionAnswer,
    compare_answers,
    compare_rules,
    compare_sides,
)
from steelyard.named.comparison_wire import ComparedPrice, ComparisonResult
from steelyard.named.content import read_stored
from steelyard.named.switching import switches_of
from steelyard.named.tables import named_comparisons
from steelyard.scoring.protocol import ScoredDecision
from steelyard.serving.decide import Prepared
from steelyard.serving.fallback import is_unsure
from steelyard.serving.registry import HostedModel
from steelyard.storage import State
from steelyard.wire.decoding import decoder_of

#: Contexts between two commits, and requests that are under way at once: two for a context.
_WINDOW, _AT_ONCE = 32, 8
#: By how much an answer that was recorded elsewhere is above the others at least.
_ABOVE = 1e-3


class ComparisonProgress(msgspec.Struct, frozen=True, kw_only=True):
    """A comparison's progress and answers: on rows, then on stored decisions."""

    done: int = 0
    left_out: int = 0
    requests: int = 0
    tokens: tuple[int, int] = (0, 0)
    cost_nano: tuple[int, int] = (0, 0)
    rows: list[Compared] = []
    stored: list[Compared] = []
    #: The actions of both versions' rules about them.
    rules: list[ComparedActions] = []
    #: What speaks against the models whose labels settle it.
    warnings: list[str] = []
    #: When the first stored decision that counts came, and how often answers may differ.
    since: float = 0.0
    disagreement: float = 0.02
    #: Answers recorded elsewhere, in place of the earlier version's.
    recorded: list[Case] = []


decode_progress = decoder_of(ComparisonProgress).decode


@dataclass(eq=False, slots=True)
class ComparisonRuns(TableWork):
    """Comparisons as a kind of job."""

    name: ClassVar[str] = "named_comparison"
    table: ClassVar[Table] = named_comparisons
    move = staticmethod(rows.COMPARISONS.move)

    state: State
    datasets: DatasetService
    models: EvaluatedModels
    _: KW_ONLY
    now: Callable[[], float] = time.time

    def open(self, job: PendingJob) -> ComparisonRun:
        """Return the run of a comparison."""
        return ComparisonRun(job, self)

    def sweep(self) -> None:
        """Do nothing: a comparison has no files."""


@dataclass(frozen=True, slots=True)
class _Version:
    """A version in a comparison, and the model that answers it."""

    content: dict[str, Any]
    questions: ValidRequest
    model: HostedModel

    def prepare(self, context: Any) -> Prepared:
        """Return the request about a context."""
        return self.model.decide.prepare_request(replace(self.questions, context=context))


@dataclass(frozen=True, slots=True)
class _Comparison:
    """The work of a comparison; the first ``n_rows`` cases are rows."""

    before: _Version
    after: _Version
    cases: list[Case]
    n_rows: int
    closing: ExitStack

    @property
    def is_sent_back(self) -> bool:
        """Whether the earlier version's model decides where the other one's is unsure."""
        before, after = self.before.questions, self.after.questions
        return (
            after.escalates
            and after.fallback[0] == self.before.model.name
            and after.decisions == before.decisions
        )


class ComparisonRun(Run):
    """A comparison that runs here."""

    def __init__(self, job: PendingJob, work: ComparisonRuns) -> None:
        super().__init__(job)
        self._work = work
        self._comparison: _Comparison | None = None

    def advance(self) -> bool:
        """Ask about a window of contexts, or judge and end the job."""
        row = self._work.find(self.job)
        progress = _progress_of(row)
        try:
            comparison = self._comparison = self._comparison or self._open(row)
            if progress.done < len(comparison.cases):
                self._save(self._ask(comparison, progress))
                return True
            self._finish(_result(comparison, progress))
        except BaseException:
            self.close()
            raise
        self.close()
        return False

    def close(self) -> None:
        """Release the models."""
        comparison, self._comparison = self._comparison, None
        if comparison is not None:
            comparison.closing.close()

    def _open(self, row: Row[Any]) -> _Comparison:
        work = self._work
        contents = work.state.read_now(
            lambda connection: [
                bytes(version.content)
                for number in (row.from_number, row.to_number)
                if (version := rows.find_version(connection, row.named_id, number)) is not None
            ]
        )
        with ExitStack() as closing:
            before, after = (
                _Version(
                    msgspec.json.decode(content),
                    read_stored(content),
                    closing.enter_context(work.models.open(row.account_id, model_id)),
                )
                for content, model_id in zip(
                    contents, (row.from_model_id, row.to_model_id), strict=True
                )
            )
            name = work.state.read_now(lambda connection: rows.name_of(connection, row.named_id))
            decisions = {decision.id for decision in after.questions.decisions}
            labelled: list[Case] = []
            recorded = _progress_of(row).recorded
            if recorded:
                return _Comparison(before, after, recorded, 0, closing.pop_all())
            stored = cases_of_stored(
                work.state,
                row.account_id,
                name,
                until=row.created_at,
                most=row.stored,
                since=_progress_of(row).since,
            )
            if row.dataset_id is not None:
                caller = Caller(row.account_id, None, "full", "worker")
                at = asyncio.run(
                    work.datasets.dataset_at(
                        caller, row.dataset_id, row.dataset_version, is_new_work=False
                    )
                )
                labelled = cases_of_rows(work.datasets, at, decisions, row.rows)
                stored = without_trained_labels(work.datasets, at, stored)
            cases = [*labelled, *stored]
            return _Comparison(before, after, cases, len(labelled), closing.pop_all())

    def _ask(self, comparison: _Comparison, progress: ComparisonProgress) -> ComparisonProgress:
        """Return the progress after one window more."""
        window = comparison.cases[progress.done : progress.done + _WINDOW]
        before, after = comparison.before, comparison.after
        requests: list[tuple[_Version, Prepared]] = []
        pairs: list[tuple[Case, tuple[Prepared, Prepared], tuple[int, int]]] = []
        for case in window:
            try:
                prepared = before.prepare(case.context), after.prepare(case.context)
            except errors.ContextTooLongError:
                continue
            first = len(requests)
            requests.append((before, prepared[0]))
            if before.model is not after.model or prepared[0].rendered != prepared[1].rendered:
                requests.append((after, prepared[1]))
            pairs.append((case, prepared, (first, len(requests) - 1)))
        scores = ask_each(
            requests,
            lambda request: request[0].model.queue.submit(request[1].rendered),
            RowResult.result,
            _AT_ONCE,
            check=self.check,
        )
        answered = [
            (case, _answers(comparison, prepared, (scores[first], scores[second])))
            for case, prepared, (first, second) in pairs
        ]
        return _progress(comparison, progress, answered, len(window))

    def _save(self, progress: ComparisonProgress) -> None:
        values = {"progress": msgspec.json.encode(progress), "completed_contexts": progress.done}
        self._work.write(
            lambda connection: rows.COMPARISONS.save(
                connection, self.job, at=self._work.now(), **values
            )
        )

    def _finish(self, result: ComparisonResult) -> None:
        self._work.write(
            lambda connection: rows.COMPARISONS.finish(
                connection,
                self.job,
                at=self._work.now(),
                verdict=result.verdict,
                result=msgspec.json.encode(result),
                progress=None,
            )
        )


def _progress_of(row: Row[Any]) -> ComparisonProgress:
    return ComparisonProgress() if row.progress is None else decode_progress(row.progress)


@dataclass(frozen=True, slots=True)
class _Answer:
    """A version's answer, with its tokens and cost."""

    answer: DecideResponse
    tokens: int
    cost_nano: int


def _answer(version: _Version, prepared: Prepared, scores: Sequence[ScoredDecision]) -> _Answer:
    decide, tokens = version.model.decide, prepared.input_tokens
    paid = decide.paid_tokens(tokens, prepared.request.decisions, scores)
    return _Answer(decide.finish(prepared, scores), tokens, paid * version.model.price_nano)


def _answers(
    comparison: _Comparison,
    prepared: tuple[Prepared, Prepared],
    scores: tuple[list[ScoredDecision], list[ScoredDecision]],
) -> tuple[_Answer, _Answer]:
    first = _answer(comparison.before, prepared[0], scores[0])
    second = _answer(comparison.after, prepared[1], scores[1])
    if comparison.is_sent_back and is_unsure(second.answer):
        second = _Answer(
            first.answer, second.tokens + first.tokens, second.cost_nano + first.cost_nano
        )
    return first, second


def _progress(
    comparison: _Comparison,
    progress: ComparisonProgress,
    answered: Sequence[tuple[Case, tuple[_Answer, _Answer]]],
    n_cases: int,
) -> ComparisonProgress:
    is_of_rows = {id(case) for case in comparison.cases[: comparison.n_rows]}
    sides: tuple[list[Compared], list[Compared]] = ([], [])
    ruled: list[ComparedActions] = []
    for case, answers in answered:
        sides[id(case) not in is_of_rows].extend(_compared(comparison, case, answers))
        if case.recorded is None and (acted := _ruled(comparison, case, answers)) is not None:
            ruled.append(acted)
    tokens = [sum(pair[place].tokens for _, pair in answered) for place in (0, 1)]
    cost = [sum(pair[place].cost_nano for _, pair in answered) for place in (0, 1)]
    return msgspec.structs.replace(
        progress,
        done=progress.done + n_cases,
        left_out=progress.left_out + n_cases - len(answered),
        requests=progress.requests + len(answered),
        tokens=(progress.tokens[0] + tokens[0], progress.tokens[1] + tokens[1]),
        cost_nano=(progress.cost_nano[0] + cost[0], progress.cost_nano[1] + cost[1]),
        rows=[*progress.rows, *sides[0]],
        stored=[*progress.stored, *sides[1]],
        rules=[*progress.rules, *ruled],
    )


def _compared(
    comparison: _Comparison, case: Case, answers: tuple[_Answer, _Answer]
) -> list[Compared]:
    old = {decision.id: decision for decision in comparison.before.questions.decisions}
    results = [answer.answer.decisions for answer in answers]
    return [
        compare_answers(
            case.key,
            VersionAnswer(
                old[decision.id], _recorded_result(case, decision) or results[0][decision.id]
            ),
            VersionAnswer(decision, results[1][decision.id]),
            case.labels.get(decision.id),
            case.source,
        )
        for decision in comparison.after.questions.decisions
        if decision.id in old and (case.recorded is None or decision.id in case.recorded)
    ]


def _ruled(
    comparison: _Comparison, case: Case, answers: tuple[_Answer, _Answer]
) -> ComparedActions | None:
    before, after = (
        RuledAnswer(version.questions, answer.answer.decisions)
        for version, answer in zip((comparison.before, comparison.after), answers, strict=True)
    )
    return compare_rules(
        case.key, before, after, case.fields, case.labels, is_stored=bool(case.source)
    )


def _recorded_result(case: Case, decision: Decision) -> DecisionResult | None:
    """Return a recorded answer; what its probability leaves is shared by the other outcomes."""
    if case.recorded is None:
        return None
    answer, probability = case.recorded[decision.id]
    names = decision.outcomes.names
    # What a provider answered is its top outcome, whatever it says of its probability.
    probability = max(probability, 1 / len(names) + _ABOVE)
    rest = (1 - probability) / max(1, len(names) - 1)
    return answer_decision(decision, [probability if name == answer else rest for name in names])


def _result(comparison: _Comparison, progress: ComparisonProgress) -> ComparisonResult:
    n, price = progress.requests, None
    if n and not progress.recorded:
        usd = [to_usd(round(cost * 1_000 / n)) for cost in progress.cost_nano]
        price = ComparedPrice(
            input_tokens_before=progress.tokens[0] / n,
            input_tokens_after=progress.tokens[1] / n,
            usd_before=usd[0],
            usd_after=usd[1],
        )
    try:
        result = compare_sides(
            comparison.before.questions,
            comparison.after.questions,
            progress.rows,
            progress.stored,
            rules=progress.rules,
            price=price,
            left_out=progress.left_out,
            warnings=progress.warnings,
            contents=(comparison.before.content, comparison.after.content),
        )
        compared = progress.stored or progress.rows
        return msgspec.structs.replace(
            result, switches=switches_of(compared, progress.disagreement)
        )
    except UnmeasurableError as error:
        raise errors.NotMeasurableError(str(error)) from error
