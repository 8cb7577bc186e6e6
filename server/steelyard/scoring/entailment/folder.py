"""The folder of an entailment encoder: its graph, its tokenizer, and the meaning of its logits.

``config.json`` is the hub's own: ``id2label`` names the logits, ``max_position_embeddings`` bounds a
pair. ``steelyard.json`` beside it may add the order of a pair, and the temperature that makes evidence
a probability.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from steelyard.settings import InvalidSettingError
from steelyard.wire.decoding import convert, decode

GRAPH, TOKENIZER, CONFIG, MANIFEST = "model.onnx", "tokenizer.json", "config.json", "steelyard.json"
#: Tokens of a pair where a configuration does not say, and the fewest that are of use.
_USUAL_TOKENS, _LEAST_TOKENS = 512, 16
#: Bytes of a configuration; a longer file is none.
_MAX_CONFIG = 4 * 1024 * 1024
#: What a logit can mean, by how its label begins.
LABELS = ("entailment", "contradiction", "neutral")
_BEGINNINGS = {"entail": 0, "contradict": 1, "neutral": 2, "not_entail": 1, "non_entail": 1}
_LIKE_ROBERTA = ("roberta", "camembert", "mpnet", "longformer", "data2vec", "xmod")
_Struct = TypeVar("_Struct")


class _Config(Struct, frozen=True):
    model_type: str = ""
    id2label: dict[str, str] = {}
    label2id: dict[str, int] = {}
    max_position_embeddings: int = _USUAL_TOKENS
    pad_token_id: int | None = None


class FolderManifest(Struct, frozen=True):
    """The fields of a folder's ``steelyard.json``; all are optional."""

    #: Whether the statement is the first segment of a pair, and the context the second.
    hypothesis_first: bool = False
    #: Evidence is divided by the temperature of its kind of decision, or else by this one. Encoders of
    #: the hub are surer than they are right.
    temperature: float = 2.0
    temperatures: dict[str, float] = {}
    #: Added to the evidence for yes.
    bias: float = 0.0
    #: Most tokens of a pair, where the encoder is worse on longer ones; 0 for all that it reads.
    max_tokens: int = 0
    #: Whether it was trained on questions as they are typed, and to tell false from not said. It then
    #: reads a statement without its negation, and a question that has no statement as it is typed.
    questions: bool = False
    licence: str = ""


@dataclass(frozen=True, slots=True)
class EncoderFacts:
    """How an encoder is asked, and the places of its logits."""

    folder: Path
    entails: int
    #: With two logits, the one of "not entailed".
    contradicts: int
    #: ``None`` with two logits.
    neutral: int | None
    #: Most tokens of a pair, with the special ones.
    max_tokens: int
    pad_id: int | None
    manifest: FolderManifest

    @property
    def n_labels(self) -> int:
        """Number of logits."""
        return 2 if self.neutral is None else 3

    @property
    def memory_bytes(self) -> int:
        """Memory that the loaded encoder takes, about: its graph, and room to compute."""
        return int(1.3 * (self.folder / GRAPH).stat().st_size) + 40_000_000


def read_folder(
    folder: Path, *, labels: Sequence[str] = (), hypothesis_first: bool | None = None
) -> EncoderFacts:
    """Return the facts of a folder's encoder; raise ``InvalidSettingError`` where it has none.

    ``labels`` are the meaning of each logit, in order, in place of ``id2label``;
    ``hypothesis_first``, the order of a pair, in place of the manifest's.
    """
    missing = [name for name in (GRAPH, TOKENIZER, CONFIG) if not (folder / name).is_file()]
    if missing:
        raise InvalidSettingError(
            f"{folder} has no {' and no '.join(missing)}. Name a folder with {GRAPH}, {TOKENIZER} and "
            f"{CONFIG}."
        )
    config = _read(folder / CONFIG, _Config)
    has_manifest = (folder / MANIFEST).is_file()
    manifest = _read(folder / MANIFEST, FolderManifest) if has_manifest else FolderManifest()
    if hypothesis_first is not None:
        manifest = msgspec.structs.replace(manifest, hypothesis_first=hypothesis_first)
    if min(manifest.temperature, *manifest.temperatures.values(), 1.0) <= 0:
        raise InvalidSettingError(
            f"{folder / MANIFEST} has a temperature of 0 or less; correct it."
        )
    places = _places(folder, tuple(labels) or _named(config))
    # Positions of RoBERTa and its like begin after the padding's.
    is_like_roberta = any(name in config.model_type for name in _LIKE_ROBERTA)
    offset = (config.pad_token_id or 0) + 1 if is_like_roberta else 0
    # Encoders with relative positions alone have none, or -1.
    positions = config.max_position_embeddings - offset
    if config.max_position_embeddings <= 0:
        positions = _USUAL_TOKENS
    facts = EncoderFacts(
        folder=folder,
        entails=places[0],
        contradicts=places[1],
        neutral=places.get(2),
        max_tokens=positions,
        pad_id=config.pad_token_id,
        manifest=manifest,
    )
    return bounded(facts, manifest.max_tokens or positions)


def bounded(facts: EncoderFacts, most_tokens: int) -> EncoderFacts:
    """Return the facts with no more tokens of a pair than a number."""
    most = min(facts.max_tokens, most_tokens)
    if most < _LEAST_TOKENS:
        raise InvalidSettingError(
            f"The encoder in {facts.folder} reads {most} tokens, and {_LEAST_TOKENS} are needed at least; "
            "choose another."
        )
    return replace(facts, max_tokens=most)


def fingerprint(folder: Path) -> str:
    """Return a hash of a folder's configuration and of how long its files are; empty without them."""
    digest = hashlib.sha256()
    try:
        for name in (GRAPH, TOKENIZER, CONFIG, MANIFEST):
            path = folder / name
            if path.exists() or name != MANIFEST:
                digest.update(f"{name} {path.stat().st_size}\n".encode())
                if name in {CONFIG, MANIFEST}:
                    digest.update(path.read_bytes()[:_MAX_CONFIG])
    except OSError:
        return ""
    return digest.hexdigest()


def sha256_of(folder: Path) -> str:
    """Return the SHA-256 of a folder's files and their names; empty where one is missing."""
    digest = hashlib.sha256()
    try:
        for name in (GRAPH, TOKENIZER, CONFIG, MANIFEST):
            path = folder / name
            if path.exists() or name != MANIFEST:
                digest.update(f"{name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    except OSError:
        return ""
    return digest.hexdigest()


def _named(config: _Config) -> tuple[str, ...]:
    """Return the label of each logit, in order."""
    by_place = {int(place): label for place, label in config.id2label.items() if place.isdecimal()}
    by_place = by_place or {place: label for label, place in config.label2id.items()}
    if sorted(by_place) != list(range(len(by_place))):
        return ()
    return tuple(by_place[place] for place in range(len(by_place)))


def _places(folder: Path, labels: Sequence[str]) -> Mapping[int, int]:
    """Return the place of the logit of each meaning in ``LABELS``; two labels have no neutral one."""
    meanings = [_meaning(label) for label in labels]
    places = {meaning: place for place, meaning in enumerate(meanings) if meaning is not None}
    if len(places) != len(labels) or not {0, 1} <= places.keys():
        names = f"are {', '.join(labels)[:120]}" if labels else "have no names in config.json"
        raise InvalidSettingError(
            f"The logits of the encoder in {folder} {names}. An entailment encoder has "
            f"{', '.join(LABELS)}, or entailment and not_entailment; give their order with --labels."
        )
    return places


def _meaning(label: str) -> int | None:
    text = label.strip().lower().replace("-", "_").replace(" ", "_")
    return next((place for start, place in _BEGINNINGS.items() if text.startswith(start)), None)


def _read(path: Path, kind: type[_Struct]) -> _Struct:
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_CONFIG + 1)
        if len(content) > _MAX_CONFIG:
            raise InvalidSettingError(f"{path} is too long for a configuration; download it again.")
        fields: dict[str, Any] = decode(content, dict[str, Any])
        # A null of the hub's means the default.
        return convert({name: value for name, value in fields.items() if value is not None}, kind)
    except OSError as error:
        raise InvalidSettingError(f"{path} cannot be read: {error.strerror}.") from error
    except msgspec.DecodeError as error:  # a ValidationError is one
        raise InvalidSettingError(f"{path} cannot be used: {error}. Correct the file.") from error
