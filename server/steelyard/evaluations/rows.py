"""Evaluation rows prepared for the scorer, and the properties of each row beside its scores.

The decisions of a dataset are few and its rows many, so a list of decisions is read, rendered and
counted once.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from steelyard.datasets.version_service import LabelledRow
from steelyard.decisions import rendering
from steelyard.decisions.kinds import Decision
from steelyard.decisions.validation import read_request
from steelyard.errors import ContextTooLongError, ImagesNotSupportedError
from steelyard.evaluations.measures.summary import length_buckets
from steelyard.evaluations.prediction_columns import Prediction
from steelyard.scoring.protocol import ScoredDecision
from steelyard.serving.decide import DecideService
from steelyard.wire.decoding import decoder_of

if TYPE_CHECKING:
    import pyarrow as pa

#: Lists of decisions that are kept ready.
_CACHED_TASKS = 1024
#: Values of a row that decisions may be cut by: how many, and how long.
_MAX_FACETS, _MAX_FACET_CHARACTERS = 16, 64
#: A property is worth a table of slices when it has so many different values.
_LEAST_VALUES, _MOST_VALUES = 2, 20
#: The property that says where a row's labels came from.
ORIGIN = "metadata.by"
#: The most tables of slices that a row's own values make.
_MAX_TABLES = 8


#: Rows of a window that a model of this server is asked one at a time, to time them.
_TIMED_ROWS = 8


def timed_rows(n_rows: int) -> slice:
    """Return a few of so many rows in order of length, which are asked one at a time to time them."""
    every = -(-n_rows // _TIMED_ROWS)
    return slice(every // 2, None, every)


@dataclass(frozen=True, slots=True)
class ReadyRow:
    """A row that may be scored."""

    place: int
    request: rendering.RenderedRequest
    decisions: tuple[Decision, ...]
    labels: Mapping[str, Mapping[str, float]]
    context_sha256: str
    context_tokens: int
    input_tokens: int
    facets: str
    characters: int


@dataclass(frozen=True, slots=True)
class _Task:
    decisions: tuple[Decision, ...]
    rendered: tuple[rendering.RenderedDecision, ...]
    tokens: int
    characters: int


class RowRenderer:
    """Makes rows ready for one model; not safe to use from several threads."""

    def __init__(self, decide: DecideService, what: str = "Evaluation row") -> None:
        self._decide = decide
        self._what = what
        self._task = lru_cache(_CACHED_TASKS)(self._read_task)

    def render(self, row: LabelledRow, place: int) -> ReadyRow:
        """Make a row ready."""
        if row.images:
            raise ImagesNotSupportedError(
                f"{self._what} {place} has images, and the model {self._decide.model_name} reads "
                "text alone; take a model that reads images."
            )
        task = self._task(msgspec.json.encode(row.decisions))
        context = rendering.render_context(row.context)
        context_tokens = self._decide.count_tokens(rendering.render_value(row.context))
        bound = self._decide.limits.max_input_tokens
        if context_tokens + task.tokens > bound:
            raise ContextTooLongError(
                f"{self._what} {place} has {context_tokens + task.tokens} input tokens, and the "
                f"model reads {bound}; shorten its context, or leave it out of the dataset."
            )
        labels = row.targets if row.targets is not None else row.rewards
        return ReadyRow(
            place=place,
            request=rendering.RenderedRequest(context=context, decisions=task.rendered),
            decisions=task.decisions,
            labels=labels or {},
            context_sha256=row.context_sha256,
            context_tokens=context_tokens,
            input_tokens=context_tokens + task.tokens,
            facets=msgspec.json.encode(_facets(row)).decode(),
            characters=len(context) + task.characters,
        )

    def predictions(
        self, row: ReadyRow, scored: Sequence[ScoredDecision], latency_ms: float | None = None
    ) -> list[Prediction]:
        """Return the predictions of a row's labelled decisions, as ``decide`` would answer them."""
        made = []
        paid_tokens = self._decide.paid_tokens(row.input_tokens, row.decisions, scored)
        for place, (decision, score) in enumerate(zip(row.decisions, scored, strict=True)):
            labels = row.labels.get(decision.id)
            if labels is None:
                continue
            names = decision.outcomes.names
            made.append(
                Prediction(
                    row=row.place,
                    place=place,
                    context_sha256=row.context_sha256,
                    decision_id=decision.id,
                    kind=decision.kind,
                    outcomes=names,
                    probabilities=tuple(self._decide.probabilities(decision, score)),
                    labels=tuple(float(labels.get(name, 0.0)) for name in names),
                    context_tokens=row.context_tokens,
                    facets=row.facets,
                    input_tokens=paid_tokens,
                    latency_ms=latency_ms,
                    unstated=score.unstated,
                    decided_by=score.route[-1][0] if score.route else None,
                )
            )
        return made

    def _read_task(self, sent: bytes) -> _Task:
        request = read_request({"context": "", "decisions": msgspec.json.decode(sent)})
        plain = tuple(dataclasses.replace(decision, policy=None) for decision in request.decisions)
        prepared = self._decide.prepare_request(dataclasses.replace(request, decisions=plain))
        rendered = prepared.rendered.decisions
        characters = sum(
            len(decision.question) + sum(map(len, decision.outcomes)) for decision in rendered
        )
        return _Task(plain, rendered, prepared.input_tokens, characters)


def slices_of(table: pa.Table) -> dict[str, list[str | None]]:
    """Return the slices of predictions beside their kind, a value for each prediction."""
    slices: dict[str, list[str | None]] = {
        "context length": list(length_buckets(table["context_tokens"].to_pylist()))
    }
    decode = decoder_of(dict[str, str]).decode
    facets = [decode(text) for text in table["facets"].to_pylist()]
    values: dict[str, set[str]] = {}
    counts: Counter[str] = Counter()
    for facet in facets:
        for name, value in facet.items():
            counts[name] += 1
            values.setdefault(name, set()).add(value)
    cut_by = sorted(
        (
            name
            for name in values
            if (name == ORIGIN or len(values[name]) >= _LEAST_VALUES)
            and len(values[name]) <= _MOST_VALUES
        ),
        # Where labels came from is never among those left out.
        key=lambda name: (name != ORIGIN, -counts[name], name),
    )
    for name in cut_by[:_MAX_TABLES]:
        slices[name] = [facet.get(name) for facet in facets]
    return slices


def _facets(row: LabelledRow) -> dict[str, str]:
    """Return the short values of a row's metadata and of the fields of its context."""
    facets: dict[str, str] = {}
    for prefix, fields in (("metadata", row.metadata), ("context", row.context)):
        if not isinstance(fields, Mapping):
            continue
        for name, value in fields.items():
            if len(facets) == _MAX_FACETS:
                return facets
            text = _facet(value)
            if text is not None and len(name) <= _MAX_FACET_CHARACTERS:
                facets[f"{prefix}.{name}"] = text
    return facets


def _facet(value: Any) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str) and 0 < len(value) <= _MAX_FACET_CHARACTERS:
        return value
    return None
