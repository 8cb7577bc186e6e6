"""The in-process scorer: requests to passes of the packed graph, and passes to logits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from steelyard.decisions.rendering import RenderedRequest, render_context
from steelyard.errors import SteelyardError
from steelyard.scoring.engine import LARGE_PAST, Engine, PassEngine, Tensors
from steelyard.scoring.lower import LowerLayers
from steelyard.scoring.ngrams import WORD
from steelyard.scoring.packing import (
    SEP,
    STAGE_CONTEXT,
    STAGE_CONTINUATION,
    STAGE_OUTCOME,
    STAGE_QUESTION,
    Layout,
    TokenizedRequest,
    lay_out,
)
from steelyard.scoring.passes import (
    GIVEN,
    NO_DECISION,
    NO_POOL,
    WIDTH,
    AnyPast,
    LongPast,
    PassDecision,
    ReadTokens,
    no_past,
    pass_inputs,
    tokens_read,
)
from steelyard.scoring.protocol import EngineStatus, ScoredDecision
from steelyard.scoring.reading import READING, identity_at, is_unread, read_request
from steelyard.scoring.rows import (
    ROW_LENGTH,
    PassRows,
    Tokens,
    block_bounds,
    fill_rows,
    groups_of,
    tokens_of,
)
from steelyard.scoring.similarity import PASS_TOKENS, OutcomeVectors
from steelyard.scoring.tokenizer import Tokenizer
from steelyard.scoring.word_vectors import WordVectors

#: A request of up to this many tokens is one unit of one pass; a longer one goes in stages.
PACKED_TOKENS = 512
#: Tokens of a context from which on it has a pass of its own, where the layers below are apart: what
#: reads it needs no row of its windows, which see themselves alone.
APART_CONTEXT = 192
#: Tokens of a context, with its overlaps, from which on its past is read in chunks, and without from
#: which on not every sentence is compared.
LONG_CONTEXT = 8_192
#: A decision of up to this many tokens stays whole in a staged pass.
WHOLE_DECISION_TOKENS = 512
#: Attention weights of one head in a pass, at most, as far as a single unit allows.
PASS_WEIGHTS = 1_000_000

Vectors = dict[tuple[int, ...], NDArray[np.float32]]
DECISION_OUTPUTS = ("logits", "marker_vectors")
#: The vector whose cosine with any other is zero.
NOT_SIMILAR = np.zeros(WIDTH, np.float32)


@dataclass(frozen=True, slots=True)
class LaidOut:
    """A request ready for the engine."""

    layout: Layout
    tokenized: TokenizedRequest
    #: Places of the sentences that a decision is compared with, by its index; all where it is left out.
    selected: Mapping[int, NDArray[np.intp]] = field(default_factory=dict)
    #: Similarity of the outcomes of decisions that are compared with sentences, by their index.
    similarities: Mapping[int, NDArray[np.float32]] = field(default_factory=dict)
    #: What the lowest layers made of its tokens, where those are read apart; of its last ones, where the
    #: context is long.
    states: NDArray[np.float32] | None = None
    #: The account for which the states of its context are kept.
    owner: str = ""

    @property
    def is_pooled(self) -> bool:
        """Whether a decision is compared with the context as a whole."""
        return len(self.similarities) < len(self.layout.kinds)


@dataclass(frozen=True, slots=True)
class LongLayers:
    """The upper layers for long contexts: loaded for each, 50 ms, and let go of with its answer."""

    load: Callable[[], PassEngine]
    #: What they take for no past.
    past: LongPast


class OnnxScorer:
    """Scores requests with an engine of passes; implements ``Scorer``; thread-safe.

    Short requests share rows of a pass. A long one is read in stages: its context's windows first,
    whose keys and values then serve all its decisions. Both give the same logits, up to floating point.
    Time is linear in the context's length, and memory is bounded by ``PASS_WEIGHTS`` and the keys and
    values (18 kB a token of context), or by the cached layer inputs of a long context in their place.
    """

    def __init__(
        self,
        engine: PassEngine,
        tokenizer: Tokenizer,
        *,
        name: str,
        engine_name: str,
        sha256: str = "",
        folder: Path | None = None,
        reading: int = READING,
        lower: LowerLayers | None = None,
        long: LongLayers | None = None,
        words: WordVectors | None = None,
    ) -> None:
        self.pass_engine, self._lower, self._long = engine, lower, long
        self._words = words
        self._tokenizer = tokenizer
        self._vectors = OutcomeVectors(engine, lower=lower)
        self._past = no_past(lower.apart if lower else 0)
        self._sha256 = sha256
        self.name, self.engine = name, engine_name
        self.reading = reading
        #: Where the model's files are, when they are known.
        self.folder = folder

    @property
    def sha256(self) -> str:
        """Identifies the model, on any engine; empty when it is unknown."""
        return identity_at(self._sha256, self.reading)

    def engine_status(self) -> EngineStatus | None:
        """Return where passes go; ``None`` where they run in this process and nowhere else."""
        status: EngineStatus | None = getattr(self.pass_engine, "status", None)
        return status

    def close(self) -> None:
        """Release the engine."""
        self.pass_engine.close()
        if self._lower is not None:
            self._lower.close()

    def give_back(self) -> None:
        """Return the memory of passes to the system, by a small one: 80 MB after 8,000 characters."""
        lower = None if self._lower is None else self._lower.pass_engine
        for engine in (self.pass_engine, lower):
            if isinstance(engine, Engine):
                engine.gives_back_at = 0.0
        with suppress(SteelyardError):
            self._vectors.encode([(SEP,)])

    def score(self, requests: Sequence[RenderedRequest]) -> list[list[ScoredDecision]]:
        """Score every decision of every request, in the order given."""
        laid = self._read_apart([self.lay_out(request) for request in requests])
        vectors = self._vectors.get(
            [
                tuple(text)
                for item in laid
                for decision in item.tokenized.decisions
                for text in decision.alone
                if text is not None
            ]
        )
        laid = self._compare(laid, vectors)
        scored: list[list[ScoredDecision]] = [[] for _ in requests]
        lengths = [item.layout.ids.size for item in laid]
        short = [i for i, item in enumerate(laid) if not self._is_staged(item)]
        # Rows of requests of like lengths see like numbers of keys.
        short.sort(key=lengths.__getitem__)
        for members in groups_of(short, PASS_TOKENS, [lengths[i] for i in short]):
            inputs = self.plan([laid[i] for i in members], vectors)
            outputs = _split(inputs, self.pass_engine.run(inputs, DECISION_OUTPUTS))
            for i in members:
                scored[i] = [next(outputs) for _ in laid[i].layout.kinds]
        for i, item in enumerate(laid):
            if not scored[i]:
                scored[i] = self._score_long(item, vectors)
        if any(item.layout.spans[0][0] > LARGE_PAST for item in laid):
            with suppress(SteelyardError):  # the answers are there
                self._vectors.encode(
                    [(SEP,)]
                )  # a small pass gives the memory of the large ones back
        for i, request in enumerate(requests):
            if is_unread(request, self.reading):
                scored[i] = [replace(decision, is_unread=True) for decision in scored[i]]
        return scored

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a unit vector of each text, (n_texts, width): of contexts, to see which are alike."""
        encoded = [
            tuple(tokens)
            for tokens in self._tokenizer.encode_many(list(map(render_context, texts)))
        ]
        return self._vectors.encode(encoded)

    def static_words(self) -> tuple[list[str], NDArray[np.float32]]:
        """Return the words that are a token, the commonest first, and the vector of each before any layer."""
        if self._words is None:
            return [], np.zeros((0, 0), np.float32)
        ids = {w: i for w, i in self._tokenizer.vocabulary().items() if WORD.fullmatch(w)}
        return list(ids), self._words.of(list(ids.values()))

    def lay_out(self, request: RenderedRequest) -> LaidOut:
        """Tokenise a request and lay it out."""
        tokenized = read_request(request, self._tokenizer, self.reading)
        selected: Mapping[int, NDArray[np.intp]] = {}
        is_long = len(tokenized.context) > LONG_CONTEXT
        if self._words is not None and is_long and tokenized.sentences:
            tokenized, selected = self._words.select(tokenized)
        return LaidOut(lay_out(tokenized), tokenized, selected=selected, owner=request.owner)

    def plan(self, items: Sequence[LaidOut], vectors: Vectors | None) -> Tensors:
        """Return the inputs of the one pass that answers short requests.

        Without ``vectors`` similarity is zero.
        """
        units, channels, decisions = [], [], []
        offset = 0
        for item in items:
            units.append(tokens_of(item.layout, offset, item.states))
            channels.append(offset + item.layout.context_channel if item.is_pooled else NO_POOL)
            offset += item.layout.n_ids
        rows = fill_rows(units)
        for pool, (item, start) in enumerate(zip(items, rows.starts, strict=True)):
            for index, markers in enumerate(item.layout.markers):
                moved = markers + np.int32(start)
                decisions.append(_decision(item, index, moved, vectors, pool))
        return pass_inputs(rows, decisions, channels, past=self._past)

    def _read_apart(self, laid: list[LaidOut]) -> list[LaidOut]:
        """Read requests in the layers below the context, where the engine is of those above."""
        if self._lower is None:
            return laid
        states = self._lower.read_requests(
            [(item.layout, item.tokenized, item.owner) for item in laid]
        )
        return [replace(item, states=state) for item, state in zip(laid, states, strict=True)]

    def _compare(self, laid: Sequence[LaidOut], vectors: Vectors) -> list[LaidOut]:
        """Compare the outcomes of choices with every sentence of their contexts."""
        if not any(item.tokenized.sentences for item in laid):
            return list(laid)
        texts = [(item.owner, text) for item in laid for text in item.tokenized.sentences]
        # Each once, and those of like lengths together: their rows need no padding.
        distinct = sorted(dict.fromkeys(texts), key=lambda text: len(text[1]))
        if self._lower is None:
            units = self._vectors.encode([text for _, text in distinct])
        else:
            units = self._lower.sentence_vectors(distinct, self._vectors.encode)
        places = {text: place for place, text in enumerate(distinct)}
        units = units[[places[text] for text in texts]]
        ends = accumulate(len(item.tokenized.sentences) for item in laid)
        return [
            replace(item, similarities=_similarities(item, units[:end], vectors))
            for item, end in zip(laid, ends, strict=True)
        ]

    def _is_staged(self, item: LaidOut) -> bool:
        """Whether a request is read in stages."""
        n_context = item.layout.spans[0][0]
        is_apart = self._lower is not None and n_context >= APART_CONTEXT
        return is_apart or item.layout.ids.size > PACKED_TOKENS

    def _score_long(self, item: LaidOut, vectors: Vectors) -> list[ScoredDecision]:
        engine: PassEngine = self.pass_engine
        past: AnyPast = self._past
        if self._long is not None and item.layout.spans[0][0] > LONG_CONTEXT:
            engine, past = self._long.load(), self._long.past
        reader = _LongReader(engine, self._lower, item, vectors, past)
        spans = item.layout.spans
        whole = [
            i for i, (start, stop) in enumerate(spans) if stop - start <= WHOLE_DECISION_TOKENS
        ]
        scored = dict(reader.whole_decisions(whole))
        for i in range(len(spans)):
            if i not in scored:
                scored[i] = reader.large_decision(i)
        return [scored[i] for i in range(len(spans))]


class _LongReader:
    """One request read in stages; reads the context when made."""

    def __init__(
        self,
        engine: PassEngine,
        lower: LowerLayers | None,
        item: LaidOut,
        vectors: Vectors,
        no_past: AnyPast,
    ) -> None:
        self.pass_engine, self._lower = engine, lower
        self._item, self._vectors = item, vectors
        self._no_past = no_past
        self._tokens = tokens_of(item.layout)
        self._bounds = block_bounds(item.layout)
        # Where nothing is compared with the context as a whole, its last layer is not needed.
        self._channels = [item.layout.context_channel if item.is_pooled else NO_POOL]
        self._pooled = np.zeros((1, WIDTH), np.float32)
        self._past = self._read(no_past, 0, len(item.layout), STAGE_CONTEXT)

    def whole_decisions(self, indices: Sequence[int]) -> Iterator[tuple[int, ScoredDecision]]:
        """Score decisions that fit a row, several to a pass."""
        spans = self._item.layout.spans
        by_length = sorted(indices, key=lambda i: spans[i][1] - spans[i][0])
        lengths = [spans[i][1] - spans[i][0] for i in by_length]
        for group in groups_of(by_length, self._room(self._past), lengths):
            rows = fill_rows([self._part(*spans[i]) for i in group])
            decisions = [
                _decision(
                    self._item,
                    i,
                    self._item.layout.markers[i] + np.int32(start - spans[i][0]),
                    self._vectors,
                )
                for i, start in zip(group, rows.starts, strict=True)
            ]
            inputs = pass_inputs(
                rows, decisions, self._channels, past=self._past, pooled_past=self._pooled
            )
            outputs = self.pass_engine.run(inputs, DECISION_OUTPUTS)
            yield from zip(group, _split(inputs, outputs), strict=True)

    def large_decision(self, index: int) -> ScoredDecision:
        """Score a decision that fits no row: question, long outcomes' rest, outcomes, set.

        A long outcome is read beside its own rest alone. With the rest of others between, where in
        the past its own is would depend on the outcomes' order, and so would the last bit of sums.
        """
        start, stop = self._item.layout.spans[index]
        past = self._read(self._past, start, stop, STAGE_QUESTION)
        heads, rests = self._outcomes(start, stop)
        vectors = np.zeros((len(heads), WIDTH), np.float32)
        short = [place for place in range(len(heads)) if not rests[place]]
        for group in groups_of(short, self._room(past), [len(heads[place]) for place in short]):
            vectors[group] = self._markers([heads[place] for place in group], past)
        long = [(place, rest) for place, of in enumerate(rests) for rest in of]
        read: dict[int, list[ReadTokens]] = {}
        for run in groups_of(long, self._room(past), [len(rest) for _, rest in long]):
            rows, outputs = self._read_pass([rest for _, rest in run], past)
            tokens = tokens_read(rows, outputs, past.outputs)
            for (place, rest), at in zip(run, rows.starts, strict=True):
                read.setdefault(place, []).append(tokens.part(at, at + len(rest)))
        for place, parts in read.items():
            extended = past.extended(parts, sum(len(part.channels) for part in parts))
            vectors[place] = self._markers([heads[place]], extended)[0]
        markers = np.full(len(vectors), GIVEN, np.int32)
        decision = _decision(self._item, index, markers, self._vectors, given=vectors)
        inputs = pass_inputs(
            fill_rows([self._part(start, start + 1)]),  # the one token that a pass must have
            [decision],
            [NO_POOL],
            past=self._no_past,
            pooled_past=self._pooled,
        )
        return next(_split(inputs, self.pass_engine.run(inputs, DECISION_OUTPUTS)))

    def _outcomes(self, start: int, stop: int) -> tuple[list[Tokens], list[list[Tokens]]]:
        """Return the block of each outcome of a decision, and the blocks of its rest."""
        heads: list[Tokens] = []
        rests: list[list[Tokens]] = [[]]
        for first, last in self._bounds:
            if not start <= first < stop:
                continue
            stage = self._item.layout.stages[first]
            # The rest comes before the block that listens to it.
            if stage == STAGE_CONTINUATION:
                rests[-1].append(self._part(first, last))
            elif stage == STAGE_OUTCOME:
                heads.append(self._part(first, last))
                rests.append([])
        return heads, rests[:-1]

    def _markers(self, group: Sequence[Tokens], past: AnyPast) -> NDArray[np.float32]:
        """Return the marker vectors of outcomes."""
        rows = fill_rows(group)
        markers = PassDecision("single", np.asarray(rows.starts, np.int32), None, 0)
        inputs = pass_inputs(rows, [markers], self._channels, past=past)
        outputs = self.pass_engine.run(inputs, ("marker_vectors",))
        return np.asarray(outputs["marker_vectors"][0], np.float32)

    def _read(self, past: AnyPast, start: int, stop: int, stage: int) -> AnyPast:
        """Add the blocks of a stage to the past; pool them where they are the context's."""
        blocks = self._blocks(start, stop, stage)
        if not blocks:
            return past
        return past.extended(self._read_parts(blocks, past, stage), sum(map(len, blocks)))

    def _read_parts(
        self, blocks: Sequence[Tokens], past: AnyPast, stage: int
    ) -> Iterator[ReadTokens]:
        # Windows of a context attend to themselves alone: they need no past.
        is_context = stage == STAGE_CONTEXT
        past = self._no_past if is_context else past
        for blocks_of_pass in groups_of(blocks, self._room(past)):
            group = blocks_of_pass
            if self._lower is not None and blocks_of_pass[0].states is None:
                group = self._lower.read(blocks_of_pass)
            rows, outputs = self._read_pass(group, past, of_windows=is_context)
            self._pooled = np.asarray(outputs["pooled"], np.float32)
            tokens = tokens_read(rows, outputs, past.outputs)
            for at, block in zip(rows.starts, group, strict=True):
                yield tokens.part(at, at + len(block))

    def _read_pass(
        self, group: Sequence[Tokens], past: AnyPast, *, of_windows: bool = False
    ) -> tuple[PassRows, Tensors]:
        rows = fill_rows(group, of_windows=of_windows)
        inputs = pass_inputs(
            rows, [NO_DECISION], self._channels, past=past, pooled_past=self._pooled
        )
        return rows, self.pass_engine.run(inputs, ("pooled", *past.outputs))

    def _part(self, start: int, stop: int) -> Tokens:
        tokens, states = self._tokens.part(start, stop), self._item.states
        if states is None:
            return tokens
        first = len(self._item.layout) - len(states)
        return (
            replace(tokens, states=states[start - first : stop - first])
            if start >= first
            else tokens
        )

    def _blocks(self, start: int, stop: int, stage: int) -> list[Tokens]:
        return [
            self._part(first, last)
            for first, last in self._bounds
            if start <= first < stop and self._item.layout.stages[first] == stage
        ]

    def _room(self, past: AnyPast) -> int:
        """Count the tokens that a pass may hold beside this past."""
        return min(PASS_TOKENS, PASS_WEIGHTS // (past.n_at_once + ROW_LENGTH))


def _decision(
    item: LaidOut,
    index: int,
    markers: NDArray[np.int32],
    vectors: Vectors | None,
    pool: int = 0,
    given: NDArray[np.float32] | None = None,
) -> PassDecision:
    similarity = item.similarities.get(index)
    alone = None if vectors is None or similarity is not None else _alone(item, index, vectors)
    return PassDecision(item.layout.kinds[index], markers, alone, pool, given, similarity)


def _alone(item: LaidOut, index: int, vectors: Vectors) -> NDArray[np.float32]:
    texts = item.tokenized.decisions[index].alone
    return np.stack([NOT_SIMILAR if text is None else vectors[tuple(text)] for text in texts])


def _similarities(
    item: LaidOut, sentences: NDArray[np.float32], vectors: Vectors
) -> dict[int, NDArray[np.float32]]:
    """Return each outcome's cosine with the sentence most similar to it, of every choice.

    The mean of the sentences is compared too: it is near an outcome that the text as a whole is of.
    The request's sentences are the last of those given.
    """
    n_sentences = len(item.tokenized.sentences)
    if not n_sentences:
        return {}
    sentences = sentences[-n_sentences:]
    every = None if item.selected else _with_mean(sentences)
    # Not a matrix product: of these sums no term depends on how many texts are compared.
    return {
        index: np.einsum(
            "sw,ow->so",
            _with_mean(sentences[item.selected[index]]) if every is None else every,
            _alone(item, index, vectors),
        ).max(axis=0)
        for index, kind in enumerate(item.layout.kinds)
        if kind == "single"
    }


def _with_mean(sentences: NDArray[np.float32]) -> NDArray[np.float32]:
    whole = sentences.sum(axis=0, keepdims=True)
    whole /= np.maximum(np.linalg.norm(whole), 1e-12)
    return np.concatenate([sentences, whole])


def _split(inputs: Tensors, outputs: Tensors) -> Iterator[ScoredDecision]:
    """Yield each decision's part of a pass's outputs."""
    for index, markers in enumerate(inputs["marker_index"]):
        n = int((markers >= GIVEN).sum())
        yield ScoredDecision(
            logits=np.array(outputs["logits"][index, :n], np.float32),
            marker_vectors=np.array(outputs["marker_vectors"][index, :n], np.float32),
        )
