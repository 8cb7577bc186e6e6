"""Fit a model's temperatures anew: ``python -m steelyard.training.base.recalibrate --help``.

For a model whose weights stay and whose answers do not, such as one that reads requests another
way. The temperatures of its earlier readings are kept.
"""

from __future__ import annotations

from pathlib import Path

import click

from steelyard.scoring.assets import BASE, ENGINES, load_base_model, read_base_files, read_manifest
from steelyard.scoring.engine import FLOAT32
from steelyard.training.base.calibrate import calibration_set, fit_similarity, fit_temperatures
from steelyard.training.base.export import write_manifest
from steelyard.training.base.mixture import load_mixture
from steelyard.training.base.options import FOLDER, mixture_option, status_option
from steelyard.training.graph import Shape


@click.command(context_settings={"show_default": True})
@click.option(
    "--model", type=FOLDER, default=BASE, help="Folder of a base model; its manifest is written."
)
@mixture_option
@status_option
@click.option(
    "--kind",
    "kinds",
    type=click.Choice(["single", "binary", "ordinal"]),
    multiple=True,
    help="Kinds to fit; by default all. May be repeated.",
)
@click.option("--similarity", is_flag=True, help="Also print the best weight of similarity.")
def main(model: Path, data: Path, status: str, kinds: tuple[str, ...], *, similarity: bool) -> None:
    """Fit temperatures on the validation sources and write them to the model's manifest."""
    mixture, validation = load_mixture(data, tuple(status.split(",")))
    chosen = calibration_set(validation, mixture)
    if kinds:
        chosen = chosen.of_kinds(kinds)
    if similarity:
        files = read_base_files(next(name for name in ENGINES if ENGINES[name] == FLOAT32), model)
        fitted, losses = fit_similarity(
            files.weights, Shape.of(files.weights, files.apart), files.tokenizer, chosen
        )
        stored = files.weights["similarity_weight"].tolist()
        click.echo(f"similarity: stored {stored}, best {fitted.tolist()}, log loss {losses}")
    manifest = read_manifest(model)
    for engine, precision in ENGINES.items():
        fitted_table = fit_temperatures(load_base_model(engine, folder=model).scorer, chosen)
        found = fitted_table.to_dict()["temperatures"]
        manifest["temperatures"][precision]["temperatures"] |= found
        click.echo(f"{engine}: {found}")
    write_manifest(model, manifest)


if __name__ == "__main__":
    main()
