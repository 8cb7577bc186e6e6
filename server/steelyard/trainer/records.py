"""Held-out scoring: every labelled decision of the evaluation rows, by every model concerned.

The columns of ``records.parquet`` are ``group`` (adapted, base or parent: which model scored it) and
those of ``steelyard.evaluations.prediction_columns`` up to ``labels``, with ``decided_by``. Rows come by group in that
order, and within a group in dataset order and then decision order.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from steelyard.calibration.temperature import TemperatureTable
from steelyard.decisions.rendering import RenderedDecision, RenderedRequest
from steelyard.durable import flush, write_atomically
from steelyard.evaluations.measures.records import Records, Supervision, UnmeasurableError
from steelyard.evaluations.prediction_columns import SCHEMA as PREDICTIONS
from steelyard.evaluations.prediction_columns import records_of
from steelyard.evaluations.wire import RecordGroup
from steelyard.scoring.protocol import ScoredDecision, Scorer
from steelyard.trainer.reading import HeldOutDecision
from steelyard.wire.methods import Method

#: Groups of models in the order of the file.
GROUPS: tuple[RecordGroup, ...] = ("adapted", "base", "parent")
_N_SHARED = PREDICTIONS.get_field_index("labels") + 1
SCHEMA = pa.schema(
    [
        pa.field("group", pa.string(), nullable=False),
        *list(PREDICTIONS)[:_N_SHARED],
        PREDICTIONS.field("decided_by"),
    ]
)

#: Outcomes of the decisions that are scored and made durable together: about a second's work.
_PART_OUTCOMES = 4096
#: Rows of a row group of the file, so that a page is read without the rest.
_ROW_GROUP = 4096
_UNTEMPERED = TemperatureTable()


class RememberingScorer:
    """A scorer that answers repeated requests from memory until it is cleared.

    Several models read the same rows on one base model; each row is then read once.
    """

    def __init__(self, scorer: Scorer) -> None:
        self.scorer = scorer
        self._scored: dict[tuple[str, RenderedDecision], ScoredDecision] = {}
        self._vectors: dict[str, NDArray[np.float32]] = {}

    @property
    def name(self) -> str:
        """Name of the base model."""
        return self.scorer.name

    @property
    def engine(self) -> str:
        """Engine and precision."""
        return self.scorer.engine

    def score(self, requests: Sequence[RenderedRequest]) -> list[list[ScoredDecision]]:
        """Score every decision of every request, in the order given."""
        missing = []
        for request in requests:
            decisions = [
                decision
                for decision in request.decisions
                if (request.context, decision) not in self._scored
            ]
            if decisions:
                missing.append(RenderedRequest(request.context, tuple(decisions)))
        scored = self.scorer.score(missing) if missing else []
        for request, answers in zip(missing, scored, strict=True):
            for decision, answer in zip(request.decisions, answers, strict=True):
                self._scored[request.context, decision] = answer
        return [
            [self._scored[request.context, decision] for decision in request.decisions]
            for request in requests
        ]

    def __getattr__(self, name: str) -> object:
        # ``embed`` and ``sha256`` are there exactly where the scorer below has them.
        if name == "embed" and hasattr(self.scorer, "embed"):
            return self._embed
        if name == "sha256":
            return getattr(self.scorer, name)
        raise AttributeError(name)

    def forget(self) -> None:
        """Forget every answer."""
        self._scored.clear()
        self._vectors.clear()

    def close(self) -> None:
        """Close the scorer below."""
        self.scorer.close()

    def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        missing = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if missing:
            embed: Callable[[Sequence[str]], NDArray[np.float32]]
            embed = self.scorer.embed  # type: ignore[attr-defined]  # asked for where it is there
            self._vectors.update(zip(missing, embed(missing), strict=True))
        return np.stack([self._vectors[text] for text in texts])


def score_held_out(
    decisions: Sequence[HeldOutDecision],
    models: Mapping[RecordGroup, Scorer],
    temperatures: Mapping[RecordGroup, TemperatureTable],
    folder: Path,
    *,
    on_part: Callable[[], None],
    on_progress: Callable[[int, int], None],
) -> pa.Table:
    """Score held-out decisions with every model, going on from the parts that are durable."""
    folder.mkdir(exist_ok=True)
    tables = [SCHEMA.empty_table()]
    n_done = 0
    for number, part in enumerate(_parts(decisions)):
        path = folder / f"{number:06d}.parquet"
        if not path.exists():
            rows = []
            for group, scorer in models.items():
                rows += _score_part(part, group, scorer, temperatures[group])
            write_table(path, pa.Table.from_pylist(rows, schema=SCHEMA))
            on_part()
        tables.append(pq.read_table(path, schema=SCHEMA, use_threads=False))
        n_done += len(part)
        on_progress(n_done, len(decisions))
    return _ordered(pa.concat_tables(tables))


def write_table(path: Path, table: pa.Table) -> None:
    """Write a Parquet file, whole or not at all; it is on the disk on return."""
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd", row_group_size=_ROW_GROUP)
    write_atomically(path, buffer.getvalue())
    flush(path.parent)


def records_of_group(
    table: pa.Table, group: RecordGroup, method: Method, chosen: Sequence[bool] | None = None
) -> Records:
    """Return one group's records, or the chosen ones of them."""
    supervision: Supervision = "targets" if method == "sft" else "rewards"
    rows = _group(table, group)
    return records_of(rows if chosen is None else rows.filter(pa.array(chosen)), supervision)


def _group(table: pa.Table, group: RecordGroup) -> pa.Table:
    return table.filter(pa.compute.equal(table["group"], group))


def _ordered(table: pa.Table) -> pa.Table:
    groups = table["group"].to_pylist()
    tables = [_group(table, group) for group in GROUPS if group in groups]
    return pa.concat_tables(tables) if tables else table


def _parts(decisions: Sequence[HeldOutDecision]) -> Iterator[list[HeldOutDecision]]:
    """Cut decisions into parts of whole rows; the same rows always give the same parts."""
    part: list[HeldOutDecision] = []
    n_outcomes = 0
    for _, row in groupby(decisions, key=lambda judged: judged.row):
        listed = list(row)
        part += listed
        n_outcomes += sum(len(judged.labels) for judged in listed)
        if n_outcomes >= _PART_OUTCOMES:
            yield part
            part, n_outcomes = [], 0
    if part:
        yield part


def _score_part(
    part: Sequence[HeldOutDecision],
    group: RecordGroup,
    scorer: Scorer,
    temperatures: TemperatureTable,
) -> list[dict[str, object]]:
    rows = [list(row) for _, row in groupby(part, key=lambda judged: judged.row)]
    requests = [
        RenderedRequest(row[0].context, tuple(judged.rendered for judged in row)) for row in rows
    ]
    made: list[dict[str, object]] = []
    for row, answers in zip(rows, scorer.score(requests), strict=True):
        for judged, answer in zip(row, answers, strict=True):
            probabilities = _probabilities(judged, answer, temperatures)
            made.append(
                {
                    "group": group,
                    "row": judged.row,
                    "place": judged.place,
                    "context_sha256": judged.context_sha256,
                    "decision_id": judged.decision.id,
                    "kind": judged.decision.kind,
                    "outcomes": judged.decision.outcomes.names,
                    "probabilities": probabilities,
                    "labels": judged.labels,
                }
            )
    return made


def _probabilities(
    judged: HeldOutDecision, answer: ScoredDecision, temperatures: TemperatureTable
) -> list[float]:
    """Return the probabilities that ``decide`` answers with."""
    if answer.logits.shape != (len(judged.labels),):
        raise UnmeasurableError(
            f"A model gave {answer.logits.shape} numbers for {len(judged.labels)} outcomes; report it."
        )
    table = _UNTEMPERED if answer.is_calibrated else temperatures
    try:
        return list(table.probabilities(answer.logits, judged.decision.kind).tolist())
    except ValueError as error:
        raise UnmeasurableError(
            "A model gave an answer that is not finite on the held-out rows; train it again."
        ) from error
