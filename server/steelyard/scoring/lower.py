"""The lower layers, in which questions and contexts are read apart, and a cache of their states.

In the lowest layers of such a model a question and its outcomes see no context, so that their states
there are the same in every request (Cao et al. 2020, "DeFormer"; MacAvaney et al. 2020, "PreTTR"). They
are computed once and kept; those of a context, which listens to no question, are kept for its account.
A token's states do not depend on the rest of its pass, to the last bit (see
``steelyard_base_recipe.graph``), and longer texts are read alone, so that a cached state is the one
that would be computed.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from steelyard.recent import Recent
from steelyard.scoring.packing import (
    QUESTION_LENGTH,
    STAGE_CONTEXT,
    STAGE_OUTCOME,
    STAGE_QUESTION,
    Layout,
    TokenizedDecision,
    TokenizedRequest,
    lay_out,
    shift_ids,
)
from steelyard.scoring.passes import KINDS, WIDTH, lower_inputs
from steelyard.scoring.rows import (
    Tokens,
    block_bounds,
    fill_rows,
    groups_of,
    tokens_of,
    windows_of,
)
from steelyard.scoring.similarity import PASS_TOKENS

if TYPE_CHECKING:
    from steelyard.scoring.engine import PassEngine

#: Tokens of a question and of an outcome up to which they are read in passes with others: a row
#: then sees fewer keys than ``rows.MAX_KEYS``, even with an outcome that began in the row before.
MOST_QUESTION, MOST_OUTCOME = QUESTION_LENGTH - 1, 95
#: Tokens up to which windows and questions share a pass: of more, each row would see too much.
MIXED_TOKENS = PASS_TOKENS // 2

_models = count()


#: Of some tokens, (n_tokens, width).
States = NDArray[np.float32]
#: Whose a text is, and its token ids.
OwnedText = tuple[str, tuple[int, ...]]

#: Bytes that are kept of all models together, unless a setting says otherwise: the questions and
#: outcomes of about 40,000 tokens.
MAX_BYTES = 64 * 1024 * 1024
#: The same of contexts: about 20,000 tokens.
MAX_CONTEXT_BYTES = 32 * 1024 * 1024
#: Tokens of a context, with its overlaps, up to which its states are in memory at once.
MOST_CONTEXT = 20_480
#: Bytes of a kept entry beside its states and its key, about.
_ENTRY_BYTES = 400


@dataclass(frozen=True, slots=True)
class KeptFigures:
    """Counters of a store of states, since it was made."""

    hits: int = 0
    misses: int = 0
    evictions: int = 0
    n_bytes: int = 0


class KeptStates:
    """A store of states, bounded in bytes, least recently used out first; thread-safe."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._kept: Recent[tuple[int, bytes], States] = Recent(
            max_bytes, lambda place, states: len(place[1]) + states.nbytes + _ENTRY_BYTES
        )
        self._hits = self._misses = 0

    def bound(self, max_bytes: int) -> None:
        """Keep at most so many bytes from now on; 0 keeps nothing."""
        self._kept.bound(max_bytes)

    def get(self, model: int, keys: Iterable[bytes]) -> dict[bytes, States]:
        """Return the stored states of a model's keys."""
        by_key = {key: self._kept.find((model, key)) for key in keys}
        stored = {key: states for key, states in by_key.items() if states is not None}
        self._hits += len(stored)
        self._misses += len(by_key) - len(stored)
        return stored

    def put(self, model: int, states: Mapping[bytes, States]) -> None:
        """Keep states of a model, as far as the bound allows."""
        for key, value in states.items():
            self._kept.note((model, key), value)

    def forget(self, model: int) -> None:
        """Drop all that is kept of a model."""
        for place in [place for place in self._kept if place[0] == model]:
            self._kept.pop(place)

    def figures(self) -> KeptFigures:
        """Return the cached states' size, and the counters."""
        return KeptFigures(self._hits, self._misses, self._kept.evictions, self._kept.size)


def _key_of(owner: str, what: bytes, text: Sequence[int]) -> bytes | None:
    """Return the cache key of a text for its owner; ``None`` where it has no owner."""
    return b"%b\0%b%b" % (owner.encode(), what, array("I", text).tobytes()) if owner else None


#: What is kept in this process, of all its models together: of questions, and of contexts.
QUESTION_STATES = KeptStates()
CONTEXT_STATES = KeptStates(MAX_CONTEXT_BYTES)


class LowerLayers:
    """Reads tokens in the lower layers, and caches their states; thread-safe."""

    def __init__(self, engine: PassEngine, apart: int) -> None:
        self.pass_engine = engine
        self._kept, self._contexts = QUESTION_STATES, CONTEXT_STATES
        self._model = next(_models)
        self.apart = apart

    def close(self) -> None:
        """Release the engine, and the cached states of its model."""
        self.pass_engine.close()
        self._kept.forget(self._model)
        self._contexts.forget(self._model)

    def read(self, units: Sequence[Tokens]) -> list[Tokens]:
        """Return blocks that listen to no other, as those of a context, with their states."""
        states = self._run([_Unit(unit) for unit in units])
        return [replace(unit, states=state) for unit, state in zip(units, states, strict=True)]

    def sentence_vectors(
        self, texts: Sequence[OwnedText], encode: Callable[[list[tuple[int, ...]]], States]
    ) -> States:
        """Return the vector of each sentence, (n_texts, width); ``encode`` makes those not kept."""
        keys = [_key_of(owner, b"s", text) for owner, text in texts]
        known = self._known(keys)
        missing = [place for place, vector in enumerate(known) if vector is None]
        encoded = iter(encode([texts[place][1] for place in missing]))
        # A row of a pass alone would keep all of the pass.
        vectors = [next(encoded).copy() if vector is None else vector for vector in known]
        self._keep(keys, vectors, known)
        return np.stack(vectors)

    def read_requests(
        self, requests: Sequence[tuple[Layout, TokenizedRequest, str]]
    ) -> list[States]:
        """Return the states of all tokens of each request, (n_tokens, width).

        Each request comes with its owner; the states of its context are stored for that owner. Those of
        a context that is too long to be stored are left out, the first: callers that need them read its
        windows one by one.
        """
        by_request = [
            [_KeyedDecision.of(decision) for decision in tokenized.decisions]
            for _, tokenized, _ in requests
        ]
        decisions = [decision for group in by_request for decision in group]
        keys = dict.fromkeys(key for decision in decisions for key in decision.keys)
        states_by_key = self._kept.get(self._model, keys)
        missing = _missing(decisions, states_by_key)
        fits = [layout.spans[0][0] <= MOST_CONTEXT for layout, _, _ in requests]
        owned = [
            _key_of(owner, b"c", tokenized.context) if is_short else None
            for (_, tokenized, owner), is_short in zip(requests, fits, strict=True)
        ]
        known = [
            states if is_short else np.zeros((0, WIDTH), np.float32)
            for states, is_short in zip(self._known(owned), fits, strict=True)
        ]
        windows = [
            windows_of(layout, stage=STAGE_CONTEXT) if states is None else []
            for states, (layout, _, _) in zip(known, requests, strict=True)
        ]
        read = iter(self._run([*(_Unit(window) for of in windows for window in of), *missing]))
        contexts = [
            np.concatenate([next(read) for _ in of]) if states is None else states
            for states, of in zip(known, windows, strict=True)
        ]
        self._keep(owned, contexts, known)
        new = {
            # A part of a pass alone would keep all of the pass.
            key: states[start:stop].copy()
            for unit, states in zip(missing, read, strict=True)
            for key, start, stop in unit.parts
        }
        self._kept.put(self._model, new)
        states_by_key |= new
        return [
            np.concatenate(
                [context, *(states_by_key[key] for decision in of for key in decision.keys)]
            )
            for context, of in zip(contexts, by_request, strict=True)
        ]

    def _known(self, keys: Sequence[bytes | None]) -> list[States | None]:
        """Return the cached states of owners' texts, ``None`` where there are none."""
        entries = self._contexts.get(self._model, dict.fromkeys(key for key in keys if key))
        return [entries.get(key) if key else None for key in keys]

    def _keep(
        self,
        keys: Sequence[bytes | None],
        states: Sequence[States],
        known: Sequence[States | None],
    ) -> None:
        """Cache the states of owners' texts that were not there."""
        entries = zip(keys, states, known, strict=True)
        new = {key: value for key, value, before in entries if key and before is None}
        self._contexts.put(self._model, new)

    def _run(self, units: Sequence[_Unit]) -> list[States]:
        """Return the states of each unit."""
        by_place: dict[int, States] = {}
        lengths = [unit.tokens.ids.size for unit in units]
        together = [place for place, unit in enumerate(units) if not unit.is_alone]
        # Windows by their length: those of like lengths see nothing else in rows of their own.
        together.sort(key=lambda place: (not units[place].is_window, lengths[place]))
        kinds = [together]
        if sum(lengths[place] for place in together) > MIXED_TOKENS:
            n_windows = sum(units[place].is_window for place in together)
            kinds = [together[:n_windows], together[n_windows:]]
        groups = [
            group
            for places in kinds
            for group in groups_of(places, PASS_TOKENS, [lengths[place] for place in places])
        ]
        groups += [[place] for place, unit in enumerate(units) if unit.is_alone]
        for group in groups:
            rows = fill_rows(
                _with_separate_ids([units[place].tokens for place in group]),
                is_joint=True,
                of_windows=all(units[place].is_window for place in group),
            )
            states = self.pass_engine.run(lower_inputs(rows), ["states"])["states"]
            flat = np.asarray(states, np.float32).reshape(-1, WIDTH)
            for place, start in zip(group, rows.starts, strict=True):
                by_place[place] = flat[start : start + lengths[place]]
        return [by_place[place] for place in range(len(units))]


@dataclass(frozen=True, slots=True)
class _Unit:
    """Tokens that are read together: a window, or a question with outcomes.

    ``parts`` are to be kept: key, first token, and the one after the last.
    """

    tokens: Tokens
    parts: tuple[tuple[bytes, int, int], ...] = ()
    is_alone: bool = False

    @property
    def is_window(self) -> bool:
        """Whether each of its tokens sees all of them."""
        return not self.parts


@dataclass(frozen=True, slots=True)
class _KeyedDecision:
    """A decision with the keys of its states: its question's, then each outcome's."""

    decision: TokenizedDecision
    keys: tuple[bytes, ...]

    @classmethod
    def of(cls, decision: TokenizedDecision) -> _KeyedDecision:
        # An outcome hears its question, whose kind is in its tokens' roles.
        question = array("I", decision.question).tobytes()
        kind = KINDS.index(decision.kind)
        begun = array("I", (kind, len(decision.question))).tobytes() + question
        of_outcomes = (begun + array("I", outcome).tobytes() for outcome in decision.outcomes)
        return cls(decision, (array("I", (kind,)).tobytes() + question, *of_outcomes))


def _missing(decisions: Sequence[_KeyedDecision], stored: Mapping[bytes, States]) -> list[_Unit]:
    """Return the units to read for keys that are not stored, each key once."""
    to_read: dict[bytes, tuple[TokenizedDecision, dict[bytes, Sequence[int]]]] = {}
    for decision in decisions:
        key, *of_outcomes = decision.keys
        pairs = zip(of_outcomes, decision.decision.outcomes, strict=True)
        outcomes = {
            outcome_key: outcome for outcome_key, outcome in pairs if outcome_key not in stored
        }
        if outcomes or key not in stored:
            to_read.setdefault(key, (decision.decision, {}))[1].update(outcomes)
    return [
        unit
        for key, (decision, outcomes) in to_read.items()
        for unit in _units(decision, key, outcomes)
    ]


def _units(
    decision: TokenizedDecision, key: bytes, outcomes: Mapping[bytes, Sequence[int]]
) -> Iterator[_Unit]:
    """Yield a question with outcomes: several to a unit, or each alone where one of them is long."""
    is_long = len(decision.question) > MOST_QUESTION
    long = {
        outcome_key: text
        for outcome_key, text in outcomes.items()
        if is_long or len(text) > MOST_OUTCOME
    }
    short = [
        _Outcome(outcome_key, text)
        for outcome_key, text in outcomes.items()
        if outcome_key not in long
    ]
    if not short:
        yield _unit(decision, {key: ()}, is_alone=is_long)
    for group in groups_of(short, max(PASS_TOKENS - len(decision.question), 1)):
        yield _unit(decision, {key: (), **{outcome.key: outcome.text for outcome in group}})
    for outcome_key, text in long.items():
        unit = _unit(decision, {key: (), outcome_key: text}, is_alone=True)
        yield replace(unit, parts=unit.parts[1:])


@dataclass(frozen=True, slots=True)
class _Outcome:
    key: bytes
    text: Sequence[int]

    def __len__(self) -> int:
        return len(self.text) + 1


def _unit(
    decision: TokenizedDecision, texts: Mapping[bytes, Sequence[int]], *, is_alone: bool = False
) -> _Unit:
    """Lay out a question, whose key is the first, with some outcomes."""
    keys, outcomes = list(texts), list(texts.values())[1:]
    tokenized_decision = TokenizedDecision(decision.kind, decision.question, outcomes)
    layout = lay_out(TokenizedRequest((), [tokenized_decision]))
    [(start, stop)] = layout.spans
    ends = [
        last - start
        for first, last in block_bounds(layout)
        if layout.stages[first] == STAGE_OUTCOME
    ]
    n_question = int((layout.stages == STAGE_QUESTION).sum())
    edges = [0, n_question, *ends]
    parts = tuple(zip(keys, edges[:-1], edges[1:], strict=True))
    return _Unit(tokens_of(layout).part(start, stop), parts, is_alone)


def _with_separate_ids(units: Sequence[Tokens]) -> list[Tokens]:
    """Return units with shifted ids: no two share a block or a channel."""
    apart, offset = [], 0
    for unit in units:
        apart.append(replace(unit, blocks=shift_ids(unit.blocks, offset)) if offset else unit)
        offset += int(unit.blocks.max())
    return apart
