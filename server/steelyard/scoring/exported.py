"""Models of the Hugging Face hub that were exported once: a graph, a tokenizer, and how they are asked.

``steelyard.training.hub`` makes the folder. Each outcome is a text of its own beside the context, so
that neither the order of outcomes nor the other decisions of a request matter. Texts longer than the
model takes are cut: a context at its end, an outcome with its question at their beginning, and only
where they are longer than half of its length.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
import onnxruntime
from msgspec import Struct
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from steelyard.decisions.rendering import RenderedDecision, RenderedRequest
from steelyard.errors import EngineUnavailableError
from steelyard.scoring.cancellation import check_awaited
from steelyard.wire.decoding import decode

GRAPH, TOKENIZER, MANIFEST = "model.onnx", "tokenizer.json", "hub.json"
#: Below a home, where exports are.
FOLDER = "hub"
#: Texts of one pass, and characters of each that are tokenized: more than any model here reads.
_BATCH, _MAX_CHARACTERS = 16, 16_384
#: What a cosine is multiplied with before the softmax, as in training (Reimers and Gurevych 2019).
_SCALE = 20.0

Kind = Literal["similarity", "relevance", "entailment"]


class HubManifest(Struct, frozen=True, kw_only=True):
    """How an exported model is asked."""

    source: str
    kind: Kind
    inputs: list[str]
    max_tokens: int
    pad_id: int
    sha256: dict[str, str]
    entails: int = 0  # the logit of "entailment"
    contradicts: int | None = None


class ExportedModel:
    """An exported model, loaded; raises ``EngineUnavailableError`` where its files are not as made."""

    def __init__(self, name: str, folder: Path) -> None:
        self.manifest, graph, words = _read(name, folder)
        self._tokenizer = Tokenizer.from_str(words.decode())
        self._words = Tokenizer.from_str(words.decode())
        cut = {
            "similarity": "longest_first",
            "relevance": "only_second",
            "entailment": "only_first",
        }
        self._tokenizer.enable_truncation(
            self.manifest.max_tokens, strategy=cut[self.manifest.kind]
        )
        options = onnxruntime.SessionOptions()
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(
            graph, options, providers=["CPUExecutionProvider"]
        )

    def score(self, request: RenderedRequest) -> list[NDArray[np.float64]]:
        """Return the logits of every decision, in outcome order."""
        texts = [
            self._end_of(text)
            for decision in request.decisions
            for text in _texts(self.manifest.kind, decision)
        ]
        context = request.context[:_MAX_CHARACTERS]
        if self.manifest.kind == "similarity":
            vectors = self._run([context, *texts])
            scores = _SCALE * (vectors[1:] @ vectors[0])
        else:
            pairs = [
                (text, context) if self.manifest.kind == "relevance" else (context, text)
                for text in texts
            ]
            scores = self._scores_of(self._run(pairs))
        ends = np.cumsum([len(decision.outcomes) for decision in request.decisions])
        return np.split(scores, ends[:-1])

    def _end_of(self, text: str) -> str:
        """Return the end of a text that leaves half of the model's length to the context."""
        most = self.manifest.max_tokens // 2
        offsets = self._words.encode(text[-_MAX_CHARACTERS:], add_special_tokens=False).offsets
        return text if len(offsets) <= most else text[-_MAX_CHARACTERS:][offsets[-most][0] :]

    def _scores_of(self, logits: NDArray[np.float64]) -> NDArray[np.float64]:
        manifest = self.manifest
        if manifest.kind == "relevance":
            return logits[:, 0]
        if manifest.contradicts is not None:
            return logits[:, manifest.entails] - logits[:, manifest.contradicts]
        others = np.delete(logits, manifest.entails, axis=1)
        scores: NDArray[np.float64] = logits[:, manifest.entails] - np.logaddexp.reduce(
            others, axis=1
        )
        return scores

    def _run(self, texts: Sequence[Any]) -> NDArray[np.float64]:
        """Return the graph's output for texts or pairs; similar lengths share a batch."""
        encoded = self._tokenizer.encode_batch(list(texts))
        order = sorted(range(len(encoded)), key=lambda place: len(encoded[place]))
        outputs: dict[int, NDArray[np.float64]] = {}
        for start in range(0, len(order), _BATCH):
            check_awaited()
            places = order[start : start + _BATCH]
            inputs = self._inputs([encoded[place] for place in places])
            try:
                [rows] = self._session.run(["output"], inputs)
            except Exception as error:  # the runtime's errors have no common class
                raise EngineUnavailableError(
                    f"The exported model of {self.manifest.source} failed; look at the log."
                ) from error
            outputs |= dict(zip(places, np.asarray(rows, np.float64), strict=True))
        return np.stack([outputs[place] for place in range(len(encoded))])

    def _inputs(self, encoded: Sequence[Encoding]) -> dict[str, NDArray[np.int64]]:
        length = max(len(encoding) for encoding in encoded)

        def padded(rows: Sequence[Sequence[int]], padding: int) -> NDArray[np.int64]:
            return np.array([[*row, *[padding] * (length - len(row))] for row in rows], np.int64)

        tensors = {
            "input_ids": padded([encoding.ids for encoding in encoded], self.manifest.pad_id),
            "attention_mask": padded([encoding.attention_mask for encoding in encoded], 0),
            "token_type_ids": padded([encoding.type_ids for encoding in encoded], 0),
        }
        return {name: tensors[name] for name in self.manifest.inputs}


def _texts(kind: Kind, decision: RenderedDecision) -> list[str]:
    """Return the text that stands for each outcome."""
    question = decision.question
    if kind == "entailment":
        return [f'The answer to "{question}" is: {outcome}.' for outcome in decision.outcomes]
    if kind == "similarity" and decision.kind != "binary":
        return list(decision.outcomes)
    return [f"{question} {outcome}" for outcome in decision.outcomes]


def _read(name: str, folder: Path) -> tuple[HubManifest, bytes, bytes]:
    """Return the content of a folder, its hashes checked."""
    try:
        manifest = decode((folder / MANIFEST).read_bytes(), HubManifest)
        graph, words = ((folder / file).read_bytes() for file in (GRAPH, TOKENIZER))
    except (OSError, msgspec.DecodeError) as error:
        raise EngineUnavailableError(
            f"The export of {name} in {folder} cannot be read; make it again with 'steelyard model add "
            f"{name} --wire hub --model … --replace'."
        ) from error
    for file, content in ((GRAPH, graph), (TOKENIZER, words)):
        if hashlib.sha256(content).hexdigest() != manifest.sha256.get(file):
            raise EngineUnavailableError(
                f"The export of {name} in {folder} was altered or cut short; make it again with "
                f"'steelyard model add {name} --wire hub --model {manifest.source} --replace'."
            )
    return manifest, graph, words
