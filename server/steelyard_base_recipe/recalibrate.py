"""Fit a model's temperatures anew: ``python -m steelyard_base_recipe.recalibrate --help``.

For a model whose weights stay and whose answers do not, such as one that reads requests another
way. The temperatures of its earlier readings are kept.
"""

from __future__ import annotations

from pathlib import Path

import click

from steelyard.scoring.assets import ENGINES, load_base_model, read_base_files, read_manifest
from steelyard.scoring.engine import FLOAT32
from steelyard.scoring.shipped import BASE
from steelyard.training.shape import Shape
from steelyard_base_recipe.calibrate import (
    CalibrationSet,
    calibration_set,
    fit_similarity,
    fit_temperatures,
    logits_of,
)
from steelyard_base_recipe.export import write_manifest
from steelyard_base_recipe.left_out import left_out
from steelyard_base_recipe.mixture import load_mixture
from steelyard_base_recipe.options import FOLDER, mixture_option, status_option


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
@click.option(
    "--left-out",
    "is_left_out",
    is_flag=True,
    help="Write nothing; print a table of each task, with temperatures fitted on all others.",
)
def main(
    model: Path,
    data: Path,
    status: str,
    kinds: tuple[str, ...],
    *,
    similarity: bool,
    is_left_out: bool,
) -> None:
    """Fit temperatures on the validation sources and write them to the model's manifest."""
    mixture, validation = load_mixture(data, tuple(status.split(",")))
    chosen = calibration_set(validation, mixture)
    if kinds:
        chosen = chosen.of_kinds(kinds)
    if is_left_out:
        _show_left_out(chosen, model)
        return
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
        temperatures = fitted_table.to_dict()["temperatures"]
        manifest["temperatures"][precision]["temperatures"] |= temperatures
        click.echo(f"{engine}: {temperatures}")
    write_manifest(model, manifest)


def _show_left_out(chosen: CalibrationSet, model: Path) -> None:
    logits = logits_of(load_base_model(folder=model).scorer, chosen.requests)
    click.echo("| task | kind | n | accuracy | log loss | uniform | ECE |")
    click.echo("|---|---|---|---|---|---|---|")
    tasks = list(left_out(chosen, logits))
    for task in tasks:
        shown = (task.accuracy, task.log_loss, task.uniform, task.ece)
        figures = " | ".join(f"{value:.3f}" for value in shown)
        click.echo(f"| {task.task} | {task.kind} | {task.n} | {figures} |")
    for kind in dict.fromkeys(task.kind for task in tasks):
        mine = [task for task in tasks if task.kind == kind]
        n_below = sum(task.log_loss < task.uniform for task in mine)
        mean = sum(task.ece for task in mine) / len(mine)
        click.echo(f"\n{kind}: below uniform in {n_below} of {len(mine)}, mean ECE {mean:.3f}")


if __name__ == "__main__":
    main()
