"""Train the base model: ``python -m steelyard_base_recipe --help``."""

from __future__ import annotations

from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import click
import msgspec
import torch

from steelyard_base_recipe.beginning import begin
from steelyard_base_recipe.checkpoints import read_scorer, read_weights
from steelyard_base_recipe.mixture import load_mixture
from steelyard_base_recipe.options import (
    NEW_FOLDER,
    PLACE,
    encoder_option,
    mixture_option,
    status_option,
)
from steelyard_base_recipe.start import STARTS
from steelyard_base_recipe.trainer import PRECISIONS, BaseRecipe, BaseTrainer

_DEFAULTS = {field.name: field.default for field in fields(BaseRecipe)}


def _option(name: str, help_text: str) -> Any:
    default = _DEFAULTS[name]
    flag = f"--{name.replace('_', '-')}"
    if isinstance(default, bool):
        return click.option(flag, is_flag=True, help=help_text)
    return click.option(flag, default=default, show_default=True, help=help_text)


@click.command(context_settings={"show_default": True})
@mixture_option
@click.option(
    "--out",
    type=NEW_FOLDER,
    required=True,
    help="Folder for the log and the checkpoint; an unfinished run there is resumed.",
)
@encoder_option
@click.option(
    "--start",
    type=click.Choice(list(STARTS)),
    default=_DEFAULTS["start"],
    help="The published encoder to begin with.",
)
@click.option(
    "--weights",
    type=PLACE,
    help="Start from a checkpoint's weights, or from a base model's folder, such as "
    "server/steelyard/assets/steelyard-base-2; with a fresh optimizer.",
)
@click.option(
    "--teacher",
    type=PLACE,
    help="A checkpoint or a base model's folder whose answers to choices, and whose pooled vectors, "
    "are kept; it takes the starting encoder's place in --anchor.",
)
@status_option
@click.option("--device", default="auto", help="cpu, cuda, or auto.")
@click.option("--threads", default=0, help="CPU threads; 0 leaves the choice to PyTorch.")
@_option("tokens", "Tokens to train on.")
@_option("tokens_per_step", "Tokens of packed requests in a step.")
@_option("learning_rate", "Peak rate of the encoder.")
@_option("new_learning_rate", "Peak rate of the layers that start from nothing.")
@_option("warmup_steps", "Steps of linear warm-up.")
@_option("decay", "Share of the tokens at the end over which the rate falls to zero.")
@_option("anchor", "Weight of the pooled vectors' drift from the starting encoder.")
@_option("layer_decay", "Factor on the rate from each encoder layer to the one below.")
@_option("seed", "Seed of the sampling and of the new layers.")
@_option("full_attention", "Ablation: no block mask.")
@click.option(
    "--apart",
    type=click.IntRange(min=0),
    default=_DEFAULTS["apart"],
    help="Lowest layers in which a question and its outcomes do not see the context.",
)
@_option("validate_every", "Tokens between validations.")
@_option("validation_rows", "Rows of each validation source.")
@click.option(
    "--precision",
    type=click.Choice(PRECISIONS),
    default=PRECISIONS[0],
    help="Of the matrix products; float32 is faster on processors without bfloat16 units.",
)
@_option("save_every_s", "Seconds between checkpoints, beside those of validations.")
@_option("keep_at", "Also keep the weights of every validation from this many tokens on.")
@click.option(
    "--behaviour/--no-behaviour",
    default=True,
    help="Ask the behaviour suite in every validation too, about a minute on two cores.",
)
def main(
    data: Path,
    out: Path,
    encoder: Path | None,
    weights: Path | None,
    teacher: Path | None,
    status: str,
    device: str,
    threads: int,
    behaviour: bool,
    **recipe_options: Any,
) -> None:
    """Train the base model on labelled text; see the model card for the recipe in words."""
    if threads:
        torch.set_num_threads(threads)
    recipe = BaseRecipe(**recipe_options)
    torch.manual_seed(recipe.seed)
    beginning = begin(STARTS[recipe.start], recipe.apart, encoder)
    if weights is not None:
        beginning.model.load_state_dict(read_weights(weights))
    mixture, validation = load_mixture(data, tuple(status.split(",")))
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    out.mkdir(parents=True, exist_ok=True)
    (out / "recipe.json").write_bytes(
        msgspec.json.format(
            msgspec.json.encode(
                {
                    **asdict(recipe),
                    "teacher": teacher and str(teacher),
                    "status": status,
                    "shares": mixture.shares,
                }
            )
        )
    )

    def report(line: dict[str, Any]) -> None:
        line = dict(line)
        measured = line.pop("behaviour", {})
        if "validation" in line:
            line["validation"] = line["validation"]["mean"]
        click.echo(msgspec.json.encode(line))
        for name, value in measured.items():
            click.echo(f"{value:8.3f}  {name}")

    trainer = BaseTrainer(
        beginning.model,
        mixture,
        validation,
        beginning.tokenizer,
        recipe,
        out,
        torch.device(device),
        report,
        beginning.anchor,
        read_scorer(teacher) if teacher is not None else None,
        behaves=behaviour,
    )
    state = trainer.run()
    click.echo(f"Trained {state.tokens:,} tokens in {state.seconds:,.0f} s; see {out}.")


if __name__ == "__main__":
    main()
