"""The sentences of a long context that are worth a reading, by the vectors of their words alone.

A choice is compared with each sentence of its context, which is half of what a long context costs. Of a
very long one the sentences that are compared are those whose words are nearest to the words of an
outcome, and some at equal distances, for the mean.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from steelyard.scoring.packing import SEP, TokenizedRequest

#: Tokens of sentences that a choice is compared with in a very long context, and the share of them at
#: equal distances.
READ_TOKENS, _SPREAD = 4_096, 0.25
#: Texts whose words are looked up at once: of sentences 25 MB.
_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class WordVectors:
    """The vector of each token as a model's files have it: int8 of (n_tokens, width), and a scale each."""

    weight: NDArray[np.generic]
    scale: NDArray[np.generic]

    def of(self, tokens: Sequence[int]) -> NDArray[np.float32]:
        """Return the vectors of tokens, (n, width)."""
        scale = self.scale[tokens, None]
        vectors: NDArray[np.float32] = np.multiply(self.weight[tokens], scale, dtype=np.float32)
        return vectors

    def select(
        self, request: TokenizedRequest
    ) -> tuple[TokenizedRequest, dict[int, NDArray[np.intp]]]:
        """Return a request with the sentences that are to be read, and the places of each choice's own.

        A choice's own depend on no other decision, nor on the order of its outcomes.
        """
        lengths = np.array([len(sentence) for sentence in request.sentences], np.int64)
        weights = self._weights(request.sentences)
        sentences = self._units(request.sentences, weights, is_centred=True)
        # Every step-th, as many as the spread share of the tokens has room for.
        step = int(np.ceil(lengths.sum() / (READ_TOKENS * _SPREAD)))
        is_spread = np.arange(len(lengths)) % step == 0
        left = READ_TOKENS - lengths[is_spread].sum()
        selected = {}
        for index, decision in enumerate(request.decisions):
            if decision.kind == "single":
                outcomes = self._units([text or (SEP,) for text in decision.outcomes], weights)
                cosines = np.einsum("sw,ow->so", sentences, outcomes)
                # How many sentences are farther from the outcome that a sentence is nearest to.
                nearness = cosines.argsort(axis=0).argsort(axis=0).max(axis=1)
                order = np.lexsort((-cosines.max(axis=1), -nearness))
                order = order[~is_spread[order]]
                near = order[np.cumsum(lengths[order]) <= left]
                selected[index] = np.union1d(np.flatnonzero(is_spread), near)
        read = np.unique(np.concatenate(list(selected.values())))
        texts = [request.sentences[place] for place in read]
        places = {index: np.searchsorted(read, own) for index, own in selected.items()}
        return replace(request, sentences=texts), places

    def _weights(self, sentences: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """Return a weight of each token of the model: a token counts less that is in many sentences."""
        n_sentences = Counter(token for text in sentences for token in set(text))
        weights = np.full(len(self.scale), np.log(len(sentences) + 1.0), np.float32)
        tokens = np.fromiter(n_sentences, np.int64)
        weights[tokens] -= np.log(np.fromiter(n_sentences.values(), np.float32))
        return weights

    def _units(
        self,
        texts: Sequence[Sequence[int]],
        weights: NDArray[np.float32],
        *,
        is_centred: bool = False,
    ) -> NDArray[np.float32]:
        """Return the mean of the tokens' weighted vectors of each text, of length one."""
        means = np.zeros((len(texts), self.weight.shape[1]), np.float32)
        for start in range(0, len(texts), _AT_ONCE):
            some = texts[start : start + _AT_ONCE]
            ids = np.concatenate([np.asarray(text, np.int64) for text in some])
            factors = np.multiply(self.scale[ids], weights[ids])
            vectors = np.multiply(self.weight[ids], factors[:, None], dtype=np.float32)
            lengths = np.array([len(text) for text in some])
            starts = np.cumsum(lengths) - lengths
            means[start : start + len(some)] = np.add.reduceat(vectors, starts) / lengths[:, None]
        if is_centred:
            means -= means.mean(axis=0)
        means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)
        return means
