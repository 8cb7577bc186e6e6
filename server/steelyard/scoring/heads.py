"""Heads: the trained part of a fine-tuned model, one for each decision.

``heads.json`` says how each is made, ``heads.safetensors`` holds the numbers. Reading them needs
NumPy, and LightGBM where a head has a booster; nothing that trains.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from steelyard.decisions.rendering import RenderedDecision
from steelyard.durable import write_atomically
from steelyard.scoring.head_specs import (
    LEAST_LOG,
    BaseMember,
    EvidenceMember,
    Floats,
    HeadSpec,
    Inputs,
    LinearMember,
    MarkerMember,
    ParentMember,
    calibrate,
    evidence_logits,
    evidence_of,
    linear_logits,
    log_softmax,
    marker_logits,
    pair_features,
)
from steelyard.scoring.ngrams import NgramTable
from steelyard.scoring.protocol import ScoredDecision
from steelyard.wire.decoding import decode

SPECS, NUMBERS = "heads.json", "heads.safetensors"
FORMAT: Literal["steelyard-heads-1"] = "steelyard-heads-1"

_ORDINAL = "ordinal"
_PARENT = "parent."


class HeadsFile(Struct, frozen=True, kw_only=True):
    """The content of ``heads.json``: the format, the tables of n-grams, and the heads."""

    format: Literal["steelyard-heads-1"]
    tables: list[str]
    heads: list[HeadSpec]


def canonical_order(decision: RenderedDecision) -> list[int]:
    """Return where each canonical outcome stands in a decision."""
    places = range(len(decision.outcomes))
    if decision.kind == _ORDINAL:
        return list(places)
    return sorted(places, key=decision.outcomes.__getitem__)


def fingerprint(decision: RenderedDecision) -> str:
    """Name a decision by its words; the order of outcomes counts only where they are levels."""
    outcomes = [decision.outcomes[place] for place in canonical_order(decision)]
    content = msgspec.json.encode([decision.kind, decision.question, outcomes])
    return hashlib.sha256(content).hexdigest()


class Head:
    """Answers one decision, worded as in training, from it and the context alone; thread-safe.

    Raises ``ValueError`` when a tensor is missing or of another shape than the spec says.
    """

    def __init__(
        self,
        spec: HeadSpec,
        tensors: Mapping[str, NDArray[Any]],
        tables: Mapping[str, NgramTable],
    ) -> None:
        self.spec = spec
        self._tensors = dict(tensors)
        self._tables = {name: tables[name] for name in _tables_of(spec)}
        self._members = [_under(self._tensors, f"{i}.") for i in range(len(spec.members))]
        self._parents = {
            i: Head(member.head, _under(self._members[i], _PARENT), tables)
            for i, member in enumerate(spec.members)
            if isinstance(member, ParentMember)
        }
        self._check()

    @property
    def tensors(self) -> dict[str, NDArray[Any]]:
        """Its numbers, by name."""
        return dict(self._tensors)

    @property
    def tables(self) -> dict[str, NgramTable]:
        """The tables of n-grams that it reads contexts with, by name."""
        return dict(self._tables)

    @cached_property
    def needs_base(self) -> bool:
        """Whether it reads the base's scores of the decision."""
        return self._reads_base or any(parent.needs_base for parent in self._parents.values())

    @cached_property
    def needs_markers(self) -> bool:
        """Whether it reads the vectors at the outcomes' markers."""
        return any(isinstance(member, MarkerMember) for member in self.spec.members) or any(
            parent.needs_markers for parent in self._parents.values()
        )

    @cached_property
    def needs_embedding(self) -> bool:
        """Whether it reads the context's vector."""
        return any(
            isinstance(member, LinearMember)
            and (member.has_embedding or member.sharpness is not None)
            for member in self.spec.members
        ) or any(parent.needs_embedding for parent in self._parents.values())

    @cached_property
    def reads_words_alone(self) -> bool:
        """Whether it reads nothing of the base, neither its scores nor its vectors."""
        return not (self.needs_base or self.needs_embedding or self.needs_evidence)

    @cached_property
    def needs_evidence(self) -> bool:
        """Whether it reads a reader's evidence."""
        return any(isinstance(member, EvidenceMember) for member in self.spec.members) or any(
            parent.needs_evidence for parent in self._parents.values()
        )

    @property
    def depth(self) -> int:
        """How many parents' heads lie within each other; 0 where there is none."""
        return max((1 + parent.depth for parent in self._parents.values()), default=0)

    def log_probabilities(
        self,
        context: str,
        decision: RenderedDecision,
        base: ScoredDecision | None,
        embedding: NDArray[np.float32] | None,
        evidence: ScoredDecision | None = None,
    ) -> NDArray[np.float32]:
        """Return the calibrated log probabilities of a decision's outcomes, in their order.

        ``base`` and ``evidence`` are the answers of the base and of the reader. Raises ``ValueError`` when
        one of them or the context's vector is missing and needed.
        """
        needs = (self.needs_base, self.needs_embedding, self.needs_evidence)
        for needed, value in zip(needs, (base, embedding, evidence), strict=True):
            if needed and value is None:
                raise ValueError(
                    "The head needs the base's scores, the context's vector or a reader's evidence; "
                    "pass all of them."
                )
        order = canonical_order(decision)
        inputs = Inputs(
            (context,),
            None if embedding is None else embedding[None],
            None if base is None else base.logits[None, order],
            None if base is None or not self.needs_markers else base.marker_vectors[None, order],
            None if evidence is None else evidence_of(evidence)[None, [*order, -1]],
        )
        logs = np.empty(len(order), np.float32)
        logs[order] = self.evaluate(inputs)[0]
        return logs

    def answer_words(self, requests: Sequence[tuple[str, RenderedDecision]]) -> list[Floats]:
        """Return ``log_probabilities`` of many contexts, where it reads words alone."""
        logs = self.evaluate(Inputs([context for context, _ in requests])).astype(np.float32)
        answers = []
        for each, (_, decision) in zip(logs, requests, strict=True):
            answer = np.empty_like(each)
            answer[canonical_order(decision)] = each
            answers.append(answer)
        return answers

    def evaluate(self, inputs: Inputs) -> NDArray[np.float64]:
        """Return calibrated log probabilities of many contexts, (n, n_outcomes), in canonical order."""
        spec = self.spec
        logs = [log_softmax(self._member_logits(i, inputs)) for i in range(len(spec.members))]
        blended: NDArray[np.float64] = np.zeros_like(logs[0])
        for weight, log in zip(spec.weights, logs, strict=True):
            blended += weight * np.maximum(log, LEAST_LOG)
        blended = log_softmax(blended)
        if spec.booster is not None:
            base = inputs.logits if self._reads_base else None
            lengths = np.array([len(text) for text in inputs.texts], np.float64)
            features = pair_features(logs, blended, base, np.array(spec.prior), lengths)
            flat = features.reshape(-1, features.shape[-1])
            blended = blended + self._booster.predict(flat, num_threads=1).reshape(blended.shape)
        logs_of_head: NDArray[np.float64] = calibrate(blended, spec.calibration)
        return logs_of_head

    def _member_logits(self, i: int, inputs: Inputs) -> NDArray[np.float64]:
        member, tensors = self.spec.members[i], self._members[i]
        if isinstance(member, LinearMember):
            return linear_logits(member, tensors, self._tables, inputs)
        if isinstance(member, MarkerMember):
            return marker_logits(member, tensors, inputs)
        if isinstance(member, EvidenceMember):
            return evidence_logits(member, tensors, inputs)
        if isinstance(member, BaseMember):
            assert inputs.logits is not None  # noqa: S101
            logits = inputs.logits.astype(np.float64) / member.temperature
            return np.asarray(logits + tensors["bias"], np.float64)
        return self._parents[i].evaluate(inputs)

    @property
    def _reads_base(self) -> bool:
        """Whether base logits are a feature of the booster: where a member reads them anyway."""
        return any(isinstance(member, BaseMember | MarkerMember) for member in self.spec.members)

    @cached_property
    def _booster(self) -> Any:
        import lightgbm  # noqa: PLC0415  # half a second and 40 MB, for the heads that have one

        return lightgbm.Booster(model_str=self.spec.booster)

    def _check(self) -> None:
        spec = self.spec
        n_outcomes = len(spec.outcomes)
        if not len(spec.members) == len(spec.weights) >= 1 or len(spec.prior) != n_outcomes:
            raise ValueError(f"The head of {spec.question!r} has parts that do not fit together.")
        for i, (member, tensors) in enumerate(zip(spec.members, self._members, strict=True)):
            if isinstance(member, ParentMember):
                continue
            shapes: dict[str, tuple[int | None, ...]] = {"bias": (n_outcomes,)}
            if isinstance(member, LinearMember):
                if member.has_embedding:
                    shapes["embedding"] = (None, n_outcomes)
                if member.sharpness is not None:
                    shapes |= {"landmarks": (None, None), "nearness": (None, n_outcomes)}
                if member.table is not None:
                    shapes["ngrams"] = (len(self._tables[member.table]), n_outcomes)
            elif isinstance(member, MarkerMember):
                shapes |= {"centre": (None,), "shared": (None,), "own": (n_outcomes, None)}
            elif isinstance(member, EvidenceMember):
                shapes["weights"] = (n_outcomes + 1, n_outcomes)
            for name, shape in shapes.items():
                if name not in tensors or not _fits(tensors[name].shape, shape):
                    raise ValueError(
                        f"The head of {spec.question!r} lacks {i}.{name}, or its size."
                    )


class Heads:
    """The heads of a model, by the decisions that they answer; immutable and thread-safe."""

    def __init__(self, heads: Iterable[Head]) -> None:
        self._heads = {head.spec.fingerprint: head for head in heads}

    def __len__(self) -> int:
        return len(self._heads)

    def __iter__(self) -> Iterator[Head]:
        return iter([self._heads[name] for name in sorted(self._heads)])

    @classmethod
    def load(cls, folder: Path) -> Heads:
        """Read a folder's heads; ``OSError`` for a lost file, ``ValueError`` for parts of another version."""
        try:
            file = decode((folder / SPECS).read_bytes(), HeadsFile)
            numbers = load((folder / NUMBERS).read_bytes())
            tables = {
                name: NgramTable(numbers[f"{name}.columns"], numbers[f"{name}.rarity"])
                for name in file.tables
            }
            return cls(
                Head(spec, _under(numbers, f"{i}."), tables) for i, spec in enumerate(file.heads)
            )
        except (msgspec.DecodeError, SafetensorError, KeyError) as error:
            raise ValueError(f"{folder.name} holds no heads that this version reads.") from error

    def save(self, folder: Path) -> None:
        """Write the heads into a folder; equal heads give equal bytes."""
        heads = list(self)
        tables = {name: table for head in heads for name, table in head.tables.items()}
        numbers: dict[str, NDArray[Any]] = {}
        for name, table in sorted(tables.items()):
            numbers |= {f"{name}.columns": table.columns, f"{name}.rarity": table.rarity}
        for i, head in enumerate(heads):
            numbers |= {f"{i}.{name}": tensor for name, tensor in sorted(head.tensors.items())}
        file = HeadsFile(format=FORMAT, tables=sorted(tables), heads=[head.spec for head in heads])
        contiguous = {name: np.ascontiguousarray(tensor) for name, tensor in numbers.items()}
        write_atomically(folder / NUMBERS, save(contiguous))
        write_atomically(folder / SPECS, msgspec.json.encode(file, order="deterministic"))

    def find(self, decision: RenderedDecision) -> Head | None:
        """Return the head of a decision; ``None`` where none was trained on its words."""
        return self._heads.get(fingerprint(decision))


def _under(tensors: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }


def _tables_of(spec: HeadSpec) -> set[str]:
    tables: set[str] = set()
    for member in spec.members:
        if isinstance(member, ParentMember):
            tables |= _tables_of(member.head)
        elif isinstance(member, LinearMember) and member.table is not None:
            tables.add(member.table)
    return tables


def _fits(shape: tuple[int, ...], expected: tuple[int | None, ...]) -> bool:
    return len(shape) == len(expected) and all(
        size == want for size, want in zip(shape, expected, strict=True) if want is not None
    )
