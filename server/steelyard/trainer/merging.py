"""From a trained adapter to its serving files, checked against the training.

Only the adapter's matrices are written: tokenizer, graphs and weights stay with the base, and
``steelyard.scoring.merging`` puts them together at load, with NumPy.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.numpy import save

from steelyard.calibration.temperature import softmax
from steelyard.decisions.rendering import RenderedRequest
from steelyard.durable import write_atomically
from steelyard.errors import EngineUnavailableError
from steelyard.scoring import merging
from steelyard.scoring.assets import ENGINES, BaseFiles, read_base_files
from steelyard.trainer.rows import TuningRow
from steelyard.trainer.units import plain_example
from steelyard.training.batches import ROW_LENGTHS, make_batches, make_item
from steelyard.training.model import PackedScorer

#: The largest difference in a probability between the trained model and the merged engine.
PARITY = 1e-3
PARITY_ROWS = 64


class ParityError(RuntimeError):
    """The serving files do not match the trained adapter."""


def write_merged(
    model: PackedScorer,
    pairs: Mapping[str, merging.Pair],
    files: BaseFiles,
    folder: Path,
    *,
    rank: int,
    trained_on: str,
    heldout: Sequence[TuningRow],
) -> None:
    """Write an adapter's files, the one that makes them whole last.

    Raise ``ParityError`` when the float32 engine's probabilities are further than ``PARITY`` from
    the model's.
    """
    chosen = [row for row in heldout if _is_whole(row, files)]
    chosen = _spread(chosen, PARITY_ROWS)
    float32, int8 = (
        _engine_probabilities(read_base_files(engine, files.folder), pairs, chosen)
        for engine in ENGINES
    )
    parity = _largest(_model_probabilities(model, chosen, files), float32)
    if parity > PARITY:
        raise ParityError(
            f"The merged engine's probabilities are up to {parity:.2g} from the trained model's, "
            f"over {PARITY}; the adapter is not served."
        )
    matrices = {
        f"{name}.{part}": value
        for name, pair in pairs.items()
        for part, value in zip("ab", pair, strict=True)
    }
    content = save({name: np.ascontiguousarray(matrices[name]) for name in sorted(matrices)})
    facts = merging.AdapterFacts(
        base=files.manifest["name"],
        base_files=merging.base_hashes(files),
        rank=rank,
        sha256=hashlib.sha256(content).hexdigest(),
        trained_on=trained_on,
        parity=parity,
        parity_decisions=len(chosen),
        int8_difference=_mean(float32, int8),
    )
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / merging.ADAPTER, content)
    encoded = msgspec.json.format(msgspec.json.encode(facts), indent=2) + b"\n"
    write_atomically(folder / merging.ADAPTER_FACTS, encoded)


def is_written(folder: Path, trained_on: str) -> bool:
    """Return whether a folder holds a whole adapter of this training."""
    if not (folder / merging.ADAPTER_FACTS).exists():
        return False
    try:
        return merging.read_adapter(folder).facts.trained_on == trained_on
    except EngineUnavailableError:
        return False  # altered: it is written again


def _engine_probabilities(
    files: BaseFiles, pairs: Mapping[str, merging.Pair], rows: Sequence[TuningRow]
) -> list[NDArray[np.float64]]:
    scorer = files.scorer(merging.merge(files.weights, pairs, files.precision), threads=0)
    scored = scorer.score([RenderedRequest(row.context, (row.decision,)) for row in rows])
    scorer.close()
    return [softmax(decisions[0].logits) for decisions in scored]


def _model_probabilities(
    model: PackedScorer, rows: Sequence[TuningRow], files: BaseFiles
) -> list[NDArray[np.float64]]:
    probabilities = []
    model.eval()
    for row in rows:
        item = make_item(row.context, [plain_example(row)], files.tokenizer, reading=files.reading)
        assert item is not None  # noqa: S101  # it is whole, so it fits
        (batch,) = make_batches([item])
        with torch.no_grad():
            logits = model(batch)[0][0].numpy()
        probabilities.append(softmax(logits[: len(row.labels)]))
    return probabilities


def _is_whole(row: TuningRow, files: BaseFiles) -> bool:
    """Return whether training reads a row as serving does, uncut."""
    tokenizer = files.tokenizer
    item = make_item(row.context, [plain_example(row)], tokenizer, reading=files.reading)
    if item is None or len(item.context) < len(tokenizer.encode(row.context)):
        return False
    alone = [
        text for decision in item.request.decisions for text in decision.alone if text is not None
    ]
    return max(map(len, alone), default=0) <= ROW_LENGTHS[0] - 2


def _spread(rows: Sequence[TuningRow], n_rows: int) -> list[TuningRow]:
    """Take rows at even distances."""
    step = max(1, len(rows) // n_rows)
    return list(rows[::step][:n_rows])


def _largest(ours: list[NDArray[np.float64]], theirs: list[NDArray[np.float64]]) -> float:
    gaps = [float(np.abs(a - b).max()) for a, b in zip(ours, theirs, strict=True)]
    return max(gaps, default=0.0)


def _mean(ours: list[NDArray[np.float64]], theirs: list[NDArray[np.float64]]) -> float:
    gaps = [np.abs(a - b) for a, b in zip(ours, theirs, strict=True)]
    return float(np.concatenate(gaps).mean()) if gaps else 0.0
