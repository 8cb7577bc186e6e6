"""Laying requests out as tokens: blocks of attention, positions, roles and markers.

One request becomes one :class:`Layout`. A token attends to the tokens of its own block and to those of
the channels that its block listens to; nothing else. Blocks are context windows, question windows, and
outcomes. So a decision's answer cannot depend on other decisions, on the order of outcomes, or on the
rest of a batch.

Training and serving both use this module, so that they read the same thing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")

CLS = 101
SEP = 102

#: Positions: where each kind of block starts, and how many tokens it may hold.
CONTEXT_BASE, CONTEXT_LENGTH = 0, 256
QUESTION_BASE, QUESTION_LENGTH = 256, 128
OUTCOME_BASE, OUTCOME_LENGTH = 384, 128
#: Tokens that neighbouring windows of a long text share.
CONTEXT_OVERLAP = 32
TEXT_OVERLAP = 16

#: Roles: which learned role embedding a token adds.
ROLE_CONTEXT = 0
ROLE_OUTCOME = 4
ROLE_OF_KIND = {"single": 1, "binary": 2, "ordinal": 3}
N_ROLES = 5

#: Columns of ``Layout.blocks``.
BLOCK, CHANNEL, LISTEN_CONTEXT, LISTEN_QUESTION, LISTEN_OUTCOME = range(5)
NO_CHANNEL = 0
NOTHING = -1

#: Stages: a block listens only to blocks of earlier stages.
STAGE_CONTEXT, STAGE_QUESTION, STAGE_CONTINUATION, STAGE_OUTCOME = range(4)


def alone_texts(
    kind: str, question: T, outcomes: Sequence[T], yes: int = 0
) -> tuple[T | None, ...]:
    """Return the text that stands for each outcome in the similarity channel."""
    if kind == "binary":
        return tuple(question if place == yes else None for place in range(len(outcomes)))
    return tuple(outcomes)


@dataclass(frozen=True)
class TokenizedDecision:
    """A decision as token ids, without special tokens."""

    kind: str
    question: Sequence[int]
    outcomes: Sequence[Sequence[int]]
    #: Of a yes/no question, the place of the outcome that the question's words speak for.
    yes: int = 0

    @cached_property
    def alone(self) -> tuple[Sequence[int] | None, ...]:
        """The text of each outcome for the similarity channel; None where similarity is zero."""
        return alone_texts(self.kind, self.question, self.outcomes, self.yes)


@dataclass(frozen=True, slots=True)
class TokenizedRequest:
    """A request as token ids, without special tokens."""

    context: Sequence[int]
    decisions: Sequence[TokenizedDecision]
    #: Of the context, where a choice is compared with each; none where it is with the whole.
    sentences: Sequence[tuple[int, ...]] = ()


@dataclass(frozen=True, slots=True)
class Layout:
    """One request as a packed sequence of n_tokens.

    ``ids``, ``positions`` (0 to 511) and ``roles`` (0 to 4) are int32 of shape (n_tokens,).
    ``blocks`` is int32 of shape (n_tokens, 5): block, channel it speaks on (0: none), and the
    context, question and outcome channels it listens to (-1: none); ids start at 1 and are local to
    the request. ``stages`` is the order in which blocks can be computed, 0 to 3. ``markers`` and
    ``spans`` say for each decision where its outcomes' marker tokens are, and where its tokens
    start and end.
    """

    ids: NDArray[np.int32]
    positions: NDArray[np.int32]
    roles: NDArray[np.int32]
    blocks: NDArray[np.int32]
    stages: NDArray[np.int8]
    markers: tuple[NDArray[np.int32], ...]
    spans: tuple[tuple[int, int], ...]
    kinds: tuple[str, ...]
    context_channel: int
    n_ids: int

    def __len__(self) -> int:
        return int(self.ids.shape[0])


def windows(tokens: Sequence[int], length: int, overlap: int) -> list[Sequence[int]]:
    """Cut a text into windows of at most ``length`` tokens; neighbours share ``overlap``.

    Windows are as few as can be and of like sizes, so that rows of them need little padding.
    Every token is in at least one window; an empty text gives one empty window.
    """
    if len(tokens) <= length:
        return [tokens]
    n_windows = -(-(len(tokens) - overlap) // (length - overlap))
    step = -(-(len(tokens) - overlap) // n_windows)
    starts = range(0, len(tokens) - overlap, step)
    return [tokens[start : start + step + overlap] for start in starts]


class _Writer:
    """Collects the blocks of one request."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.positions: list[int] = []
        self.lengths: list[int] = []
        self.rows: list[tuple[int, int, int, int, int, int, int]] = []
        self.n_ids = 0

    def new_id(self) -> int:
        self.n_ids += 1
        return self.n_ids

    def block(
        self,
        tokens: Sequence[int],
        base: int,
        role: int,
        stage: int,
        channel: int = NO_CHANNEL,
        listens: tuple[int, int, int] = (NOTHING, NOTHING, NOTHING),
    ) -> int:
        """Add a block; return the index of its first token."""
        start = len(self.ids)
        self.ids.extend(tokens)
        self.positions.extend(range(base, base + len(tokens)))
        self.lengths.append(len(tokens))
        self.rows.append((self.new_id(), channel, *listens, role, stage))
        return start


def lay_out(request: TokenizedRequest) -> Layout:
    """Lay one request out: context windows, then each decision's question and outcomes."""
    writer = _Writer()
    context = writer.new_id()
    for window in windows(request.context, CONTEXT_LENGTH - 2, CONTEXT_OVERLAP):
        writer.block(
            [CLS, *window, SEP], CONTEXT_BASE, ROLE_CONTEXT, STAGE_CONTEXT, channel=context
        )
    markers, spans = [], []
    for decision in request.decisions:
        start = len(writer.ids)
        markers.append(_decision(writer, context, decision))
        spans.append((start, len(writer.ids)))
    rows = np.repeat(np.asarray(writer.rows, np.int32), writer.lengths, axis=0)
    return Layout(
        ids=np.asarray(writer.ids, np.int32),
        positions=np.asarray(writer.positions, np.int32),
        roles=np.ascontiguousarray(rows[:, 5]),
        blocks=np.ascontiguousarray(rows[:, :5]),
        stages=rows[:, 6].astype(np.int8),
        markers=tuple(markers),
        spans=tuple(spans),
        kinds=tuple(decision.kind for decision in request.decisions),
        context_channel=context,
        n_ids=writer.n_ids,
    )


def _decision(writer: _Writer, context: int, decision: TokenizedDecision) -> NDArray[np.int32]:
    question = writer.new_id()
    role = ROLE_OF_KIND[decision.kind]
    for window in windows(decision.question, QUESTION_LENGTH - 1, TEXT_OVERLAP):
        writer.block(
            [*window, SEP],
            QUESTION_BASE,
            role,
            STAGE_QUESTION,
            channel=question,
            listens=(context, NOTHING, NOTHING),
        )
    markers = [_outcome(writer, context, question, tokens) for tokens in decision.outcomes]
    return np.asarray(markers, np.int32)


def _outcome(writer: _Writer, context: int, question: int, tokens: Sequence[int]) -> int:
    head, *rest = windows(tokens, OUTCOME_LENGTH - 1, TEXT_OVERLAP)
    channel = NOTHING
    if rest:
        channel = writer.new_id()
        for window in rest:
            writer.block(
                window,
                OUTCOME_BASE + 1,
                ROLE_OUTCOME,
                STAGE_CONTINUATION,
                channel=channel,
                listens=(context, question, NOTHING),
            )
    return writer.block(
        [CLS, *head],
        OUTCOME_BASE,
        ROLE_OUTCOME,
        STAGE_OUTCOME,
        listens=(context, question, channel),
    )


def lay_out_text(tokens: Sequence[int]) -> Layout:
    """Lay one text out alone, as a context is: for the similarity channel."""
    return lay_out(TokenizedRequest(context=tokens, decisions=()))


def shift_ids(blocks: NDArray[np.int32], offset: int) -> NDArray[np.int32]:
    """Move a layout's block and channel ids, so that several can share a row."""
    return np.where(blocks > 0, blocks + np.int32(offset), blocks)
