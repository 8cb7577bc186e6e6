"""How far a judge agrees with people, its identity then, and which models are its kin."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import to_builtins

from steelyard.calibration.temperature import TemperatureTable
from steelyard.datasets.canonical import digest
from steelyard.datasets.tasks import fingerprint
from steelyard.decision_log.traffic import mean_of, proportion_of
from steelyard.decisions.kinds import Decision
from steelyard.decisions.validation import decisions_of
from steelyard.models.qualification_wire import JudgeIdentity, Qualification
from steelyard.scoring.entailment.folder import fingerprint as folder_fingerprint
from steelyard.serving.connected.calibrating import LabelledAnswers
from steelyard.serving.connected.declared import ConnectedModel
from steelyard.wire.measures import Measure
from steelyard.wire.origins import counts, origins_of

_MEGABYTE = 1 << 20
#: The series in the name of open weights: what stands before the number of their parameters.
_SERIES = re.compile(r"([a-z][a-z0-9.-]*?)[-_]?\d+(?:\.\d+)?[bm](?![a-z0-9])")


@dataclass(frozen=True, slots=True)
class Figures:
    """How a judge agreed with people."""

    agreement: Measure
    accuracy: Measure
    log_loss: Measure


def figures_of(scored: LabelledAnswers, table: TemperatureTable) -> Figures:
    """Return the figures of answers under a judge's temperatures; there is one at least."""
    n = len(scored.kinds)
    shares, hits, losses = [], 0, []
    pairs = zip(scored.kinds, scored.logits, scored.targets, strict=True)
    for kind, logits, target in pairs:
        top = int(np.argmax(logits))
        shares.append(float(target[top]))
        hits += top == int(np.argmax(target))
        losses.append(-float(target @ table.log_probabilities(logits, kind)))
    return Figures(proportion_of(sum(shares), n), proportion_of(hits, n), mean_of(losses))


def labelled(
    rows: Iterable[Mapping[str, Any]], origins: Iterable[str]
) -> Iterator[Mapping[str, Any]]:
    """Yield the rows that have labels of such origins."""
    chosen = list(origins)
    for row in rows:
        if row.get("targets") and counts(origins_of(row.get("metadata")), chosen):
            yield row


def origins_of_labels(rows: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """Return how many labelled rows have labels of each origin."""
    return Counter(
        origin for row in rows if row.get("targets") for origin in origins_of(row.get("metadata"))
    )


def wordings_of(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the hashes of the wordings of labelled decisions, in order."""
    hashes = {
        wording
        for row in rows
        for name, wording in wordings_by_id(row["decisions"]).items()
        if name in row["targets"]
    }
    return sorted(hashes)


def wordings_by_id(decisions: Sequence[Any]) -> dict[str, str]:
    """Return the hash of each decision's wording, by its id."""
    return {decision.id: _wording_of(decision).hex() for decision in decisions_of(decisions)}


def _wording_of(decision: Decision) -> bytes:
    """Return the hash of a decision's wording with its guideline, which a judge reads too."""
    wording = fingerprint(decision)
    return digest(wording, decision.guideline.encode()) if decision.guideline else wording


def identity_of(model: ConnectedModel, home: Path, provider_model: str) -> JudgeIdentity:
    """Return the identity of a model; it reads the hash of its file."""
    calibration, place = model.calibration, model.file or model.folder
    settings: dict[str, Any] = {
        "orders": model.orders,
        "contextual": model.contextual,
        "own_opposites": model.own_opposites,
        "context_tokens": model.context_tokens,
        "labels": list(model.labels),
        "hypothesis_first": model.hypothesis_first,
        "temperatures": None if calibration is None else calibration.temperatures,
    }
    if model.think is not None:
        settings["think"] = to_builtins(model.think)
    return JudgeIdentity(
        wire=model.wire,
        url=model.url,
        model=model.model,
        file=place,
        file_sha256=_hash_of(home / place) if place else "",
        settings=settings,
        provider_model=provider_model,
    )


def changes_between(before: JudgeIdentity, now: JudgeIdentity | None) -> list[str]:
    """Return the names of the changed fields, or ``disconnected`` without a model now."""
    if now is None:
        return ["disconnected"]
    # A file that moved is the same.
    names = {"file_sha256": "file", **{name: name for name in ("wire", "url", "model", "settings")}}
    changes = [
        label for name, label in names.items() if getattr(before, name) != getattr(now, name)
    ]
    # A server that was not asked since the start has given no name.
    both = [each.provider_model for each in (before, now) if each.provider_model]
    return [*changes, "provider_model"] if len(set(both)) > 1 else changes


def doubt_of(
    stored: Sequence[Qualification], identity: JudgeIdentity, wordings: set[str]
) -> str | None:
    """Return why none of a judge's qualifications, the newest first, holds for some wordings."""
    if not stored:
        return "it has not been held to labels of people"
    current = [each for each in stored if not changes_between(each.identity, identity)]
    if not current:
        changed = ", ".join(changes_between(stored[0].identity, identity))
        return f"it is another since it qualified ({changed})"
    passed = [each for each in current if each.passed]
    if not passed:
        newest = current[0]
        return (
            f"it agrees with people in {newest.agreement.value:.0%}, of {newest.floor:.0%} needed"
        )
    if any(wordings <= set(each.wordings) for each in passed):
        return None
    return "it qualified on other wordings"


def origins_of_model(name: str, identity: JudgeIdentity | None) -> set[str]:
    """Return what a model comes from; models that share any of it are kin.

    That is its file, the model's name at another server, and the family of open weights that either
    is named after: ``Qwen3-8B-Q4_K_M.gguf`` and ``Qwen/Qwen3-4B`` are both of ``qwen3``.
    """
    origins = {name}
    if identity is None:
        return origins
    if identity.file_sha256:
        origins.add(f"file {identity.file_sha256[:12]}")
    for place in (identity.model, identity.file):
        last = place.lower().rstrip("/").rpartition("/")[2]
        series = _SERIES.match(last)
        if series is not None:
            origins.add(series[1])
    if identity.model:
        origins.add(identity.model.lower())
    return origins


def kin_of(name: str, identities: Mapping[str, JudgeIdentity]) -> list[str]:
    """Return the other models that share what a model comes from."""
    own = origins_of_model(name, identities[name])
    return sorted(
        other
        for other, identity in identities.items()
        if other != name and own & origins_of_model(other, identity)
    )


def _hash_of(path: Path) -> str:
    """Return a hash of a file's length and ends, or of a folder; empty where there is none."""
    if path.is_dir():
        return folder_fingerprint(path)
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            digest.update(f"{size}\n".encode() + file.read(_MEGABYTE))
            file.seek(max(size - _MEGABYTE, 0))
            digest.update(file.read(_MEGABYTE))
    except OSError:
        return ""
    return digest.hexdigest()
