"""The ablation: block mask against full attention, on tasks that were not trained on.

``python -m steelyard_base_recipe.ablation --help``. Both models read the same packed sequences
and were trained on the same rows for as many tokens; they differ in what a token attends to.
"""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np
import torch

from steelyard.calibration.intervals import proportion_interval
from steelyard.scoring.tokenizer import Tokenizer
from steelyard.training.batches import Item, make_batches
from steelyard.training.model import PackedScorer
from steelyard_base_recipe.checkpoints import read_details, read_scorer
from steelyard_base_recipe.mixture import read_rows
from steelyard_base_recipe.options import FOLDER, PLACE, encoder_option
from steelyard_base_recipe.start import find_encoder
from steelyard_base_recipe.trainer import plain_item

#: Tokens of the largest request that is evaluated: one with 151 outcomes has 600.
LONGEST = 1_024
BATCH = 16


def hits(model: PackedScorer, items: list[Item], *, full_attention: bool) -> list[bool]:
    """Return for each decision whether the likeliest outcome is right."""
    is_right: list[bool] = []
    for start in range(0, len(items), BATCH):
        group = items[start : start + BATCH]
        for batch in make_batches(group, full_attention=full_attention, longest=LONGEST):
            with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
                logits, _ = model(batch)
            is_right += (logits.argmax(-1) == batch.targets.argmax(-1)).tolist()
    return is_right


@click.command(context_settings={"show_default": True})
@click.option(
    "--data", type=FOLDER, required=True, help="Folder of held-out tasks: NAME.test.jsonl.gz."
)
@click.option("--block", type=PLACE, required=True, help="Weights trained with the block mask.")
@click.option("--full", type=PLACE, required=True, help="Weights trained with full attention.")
@click.option("--rows", default=300, help="Rows of each task.")
@encoder_option
def main(data: Path, block: Path, full: Path, rows: int, encoder: Path | None) -> None:
    """Print the accuracy of both models on every held-out task."""
    content = (find_encoder(encoder) / "tokenizer.json").read_bytes()
    tokenizer = Tokenizer(content, name="start", revision="start")
    models = {}
    for name, path in (("block mask", block), ("full attention", full)):
        models[name] = read_scorer(path)
        click.echo(f"{name}: {read_details(path)['state']['tokens']:,} tokens")
    click.echo(
        "\n| task | n | block mask | full attention | difference, points |\n|---|---|---|---|---|"
    )
    means: dict[str, list[float]] = {name: [] for name in models}
    for path in sorted(data.glob("*.test.jsonl.gz")):
        every = read_rows(path)
        order = np.random.default_rng(0).permutation(len(every))[:rows]
        items = [
            item
            for index in order
            if (item := plain_item(every[index], tokenizer, LONGEST)) is not None
        ]
        cells, n_decisions = [], 0
        for name, model in models.items():
            is_right = hits(model, items, full_attention=name == "full attention")
            n_decisions = len(is_right)
            interval = proportion_interval(sum(is_right), n_decisions)
            means[name].append(float(np.mean(is_right)))
            cells.append(f"{means[name][-1]:.3f} [{interval.low:.3f}, {interval.high:.3f}]")
        difference = 100 * (means["block mask"][-1] - means["full attention"][-1])
        task = path.name.removesuffix(".test.jsonl.gz")
        click.echo(f"| {task} | {n_decisions} | {cells[0]} | {cells[1]} | {difference:+.1f} |")
    block_mean, full_mean = (float(np.mean(values)) for values in means.values())
    click.echo(
        f"| **mean** | | {block_mean:.3f} | {full_mean:.3f} | "
        f"{100 * (block_mean - full_mean):+.1f} |"
    )


if __name__ == "__main__":
    main()
