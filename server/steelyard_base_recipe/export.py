"""From a checkpoint to the files that ship: ``python -m steelyard_base_recipe.export --help``."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import msgspec
import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from steelyard.decisions.rendering import RenderedRequest, render_context
from steelyard.durable import write_atomically
from steelyard.scoring.assets import (
    ENGINES,
    MANIFEST,
    TOKENIZER,
    WEIGHTS,
    load_base_model,
)
from steelyard.scoring.engine import FLOAT32, INT8
from steelyard.scoring.passes import KINDS
from steelyard.scoring.reading import READING
from steelyard.scoring.tokenizer import Tokenizer
from steelyard.training.shape import Shape
from steelyard.training.weights import pack_weights
from steelyard_base_recipe.augment import plain_examples
from steelyard_base_recipe.calibrate import (
    CalibrationSet,
    calibration_set,
    fit_similarity,
    fit_temperatures,
)
from steelyard_base_recipe.checkpoints import CHECKPOINT, mean_weights, read_apart, read_details
from steelyard_base_recipe.graph_files import graph_files
from steelyard_base_recipe.mixture import Mixture, load_mixture
from steelyard_base_recipe.options import (
    FOLDER,
    NEW_FOLDER,
    PLACE,
    encoder_option,
    mixture_option,
    status_option,
)
from steelyard_base_recipe.quantize import activation_scales
from steelyard_base_recipe.start import MINILM, find_encoder
from steelyard_base_recipe.trainer import LOG

#: Rows whose activations are measured.
QUANTIZE_ROWS = 1_024
TRAINING_LOG = "training_log.jsonl"


def write_model(
    state: dict[str, NDArray[np.float32]],
    tokenizer_json: bytes,
    sample: Sequence[RenderedRequest],
    folder: Path,
    name: str,
    chosen: CalibrationSet | None = None,
    *,
    apart: int = 0,
    as_trained: Sequence[str] = (),
) -> dict[str, Any]:
    """Write weights, graphs and tokenizer; return a manifest with temperatures of 1.

    In the lowest ``apart`` layers a question and its outcomes do not see the context. The weights of
    similarity are fitted to the targets, but those of the kinds in ``as_trained``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    words, rest = pack_weights(state, Shape())
    shape = Shape.of(rest, apart)
    tokenizer_json = _without_padding(tokenizer_json)
    tokenizer = Tokenizer(tokenizer_json, name="bert-base-uncased", revision=MINILM.sha256[:12])
    similarity: dict[str, Any] = {}
    if chosen is not None:
        if as_trained:
            chosen = chosen.of_kinds([kind for kind in KINDS if kind not in as_trained])
        fitted, losses = fit_similarity({**words, **rest}, shape, tokenizer, chosen)
        similarity = {
            "trained": rest["similarity_weight"].tolist(),
            "fitted": fitted.tolist(),
            "log_loss": losses,
        }
        rest["similarity_weight"] = fitted
    scales = activation_scales({**words, **rest}, shape, tokenizer, sample)
    files = {
        TOKENIZER: tokenizer_json,
        WEIGHTS[0]: save({key: np.ascontiguousarray(value) for key, value in words.items()}),
        WEIGHTS[1]: save({key: np.ascontiguousarray(value) for key, value in rest.items()}),
        **graph_files(shape, scales),
    }
    for file, content in files.items():
        write_atomically(folder / file, content)
    manifest = {
        "name": name,
        "engine": "onnxruntime-float32",
        "reading": READING,
        **({"apart": apart} if apart else {}),
        "files": {file: hashlib.sha256(files[file]).hexdigest() for file in sorted(files)},
        "tokenizer": {"name": tokenizer.name, "revision": tokenizer.revision},
        "started_from": {"name": MINILM.name, "sha256": MINILM.sha256},
        "temperatures": {FLOAT32: {"temperatures": {}}, INT8: {"temperatures": {}}},
        "similarity": similarity,
    }
    write_manifest(folder, manifest)
    return manifest


def sample_requests(mixture: Mixture, n_rows: int = QUANTIZE_ROWS) -> list[RenderedRequest]:
    """Word some training rows as an application would send them."""
    return [
        RenderedRequest(
            render_context(row.context), tuple(example.decision for example in plain_examples(row))
        )
        for row in mixture.sample(np.random.default_rng(0), n_rows)
    ]


def write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    """Write a base model's manifest."""
    content = msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"
    write_atomically(folder / MANIFEST, content)


def _without_padding(tokenizer_json: bytes) -> bytes:
    content = json.loads(tokenizer_json)
    content["padding"] = content["truncation"] = None
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()


@click.command(context_settings={"show_default": True})
@click.option("--run", type=FOLDER, required=True, help="Folder of a training run.")
@click.option("--checkpoint", default=CHECKPOINT, help="Checkpoint in that folder.")
@click.option(
    "--average",
    type=PLACE,
    multiple=True,
    help="Weights to average with the checkpoint's, in equal parts: another checkpoint, or a base "
    "model's folder. May be repeated.",
)
@mixture_option
@click.option("--out", type=NEW_FOLDER, required=True, help="Folder to fill.")
@click.option("--name", default="steelyard-base-2", help="The base model's name.")
@click.option(
    "--engine",
    type=click.Choice(list(ENGINES)),
    default="onnxruntime-int8",
    help="The default engine.",
)
@click.option(
    "--as-trained",
    type=click.Choice(KINDS),
    multiple=True,
    help="Kind whose weight of similarity stays as it was trained, instead of being fitted.",
)
@status_option
@encoder_option
def main(
    run: Path,
    checkpoint: str,
    average: tuple[Path, ...],
    data: Path,
    out: Path,
    name: str,
    engine: str,
    as_trained: tuple[str, ...],
    status: str,
    encoder: Path | None,
) -> None:
    """Quantise, calibrate and write a base model."""
    weights = mean_weights([run / checkpoint, *average])
    state = {name: value.numpy() for name, value in weights.items()}
    mixture, validation = load_mixture(data, tuple(status.split(",")))
    chosen = calibration_set(validation, mixture)
    tokenizer_json = (find_encoder(encoder) / "tokenizer.json").read_bytes()
    apart = read_apart(run / checkpoint)
    sample = sample_requests(mixture)
    manifest = write_model(
        state, tokenizer_json, sample, out, name, chosen, apart=apart, as_trained=as_trained
    )
    click.echo(f"similarity: {manifest['similarity']}")
    manifest["training"] = {**read_details(run / checkpoint), "averaged": 1 + len(average)}
    manifest["calibration_decisions"] = chosen.counts()
    for engine_name, precision in ENGINES.items():
        table = fit_temperatures(load_base_model(engine_name, folder=out).scorer, chosen)
        manifest["temperatures"][precision] = table.to_dict()
        click.echo(f"{engine_name}: {table.to_dict()['temperatures']}")
    manifest["engine"] = engine
    write_manifest(out, manifest)
    if (run / LOG).exists():
        write_atomically(out / TRAINING_LOG, (run / LOG).read_bytes())
    size = sum(file.stat().st_size for file in out.iterdir())
    click.echo(f"Wrote {out}: {size / 1e6:.1f} MB.")


if __name__ == "__main__":
    main()
