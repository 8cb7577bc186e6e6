"""Which encoder to begin with: ``python -m steelyard_base_recipe.compare_starts --help``.

Each start is trained on the same rows by the same recipe, in turns of some thousand tokens, so that
at the end of every round all have seen as many. A run that was stopped goes on where it was.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import click
import msgspec
import numpy as np
import torch

from steelyard.calibration.temperature import TemperatureTable, fit_temperature_table
from steelyard.decisions.rendering import RenderedRequest, render_context
from steelyard_base_recipe.augment import plain_examples
from steelyard_base_recipe.beginning import begin
from steelyard_base_recipe.behaviour.everyday import everyday_figures
from steelyard_base_recipe.behaviour.figures import Answer
from steelyard_base_recipe.behaviours import answerer
from steelyard_base_recipe.calibrate import CalibrationSet, calibration_set
from steelyard_base_recipe.mixture import MixtureRow, load_mixture, read_rows
from steelyard_base_recipe.options import FOLDER, NEW_FOLDER, mixture_option, status_option
from steelyard_base_recipe.start import STARTS
from steelyard_base_recipe.trainer import PRECISIONS, BaseRecipe, BaseTrainer

#: One line for each start and round: what its answers to unseen questions say of it.
JUDGED = "judged.jsonl"
#: Of the lowest layers, the share in which a question and its outcomes do not see the context.
APART_SHARE = 2 / 3


def recipe_of(start: str, tokens: int, precision: str) -> BaseRecipe:
    """Return the recipe of a start, which is that of all others but for the number of layers."""
    return BaseRecipe(
        tokens=tokens,
        learning_rate=1e-4,
        new_learning_rate=5e-4,
        warmup_steps=20,
        anchor=1.0,
        apart=round(APART_SHARE * len(STARTS[start].layers)),
        validate_every=tokens,
        validation_rows=20,
        save_every_s=300.0,
        precision=precision,
        start=start,
    )


class StartJudge:
    """Asks a model in training unseen questions, with temperatures fitted elsewhere.

    ``held_out``: rows of each held-out task by its name. ``chosen``: decisions of the validation
    sources, on which temperatures are fitted.
    """

    def __init__(self, held_out: dict[str, list[MixtureRow]], chosen: CalibrationSet) -> None:
        self._held_out, self._chosen = held_out, chosen

    def __call__(self, trainer: BaseTrainer) -> dict[str, Any]:
        """Return the figures of a model as it is now."""
        ask = answerer(trainer.model, trainer.tokenizer, trainer.autocast)
        trainer.model.eval()
        table = self._temperatures(ask)

        def calibrated(request: RenderedRequest) -> list[Answer]:
            decisions = zip(request.decisions, ask(request), strict=True)
            return [table.probabilities(_log(p), decision.kind) for decision, p in decisions]

        tasks = {name: _task(rows, calibrated) for name, rows in self._held_out.items()}
        mean = {
            figure: round(float(np.mean([task[figure] for task in tasks.values()])), 4)
            for figure in ("accuracy", "log_loss")
        }
        everyday = asdict(everyday_figures(calibrated))
        trainer.model.train()
        return {"everyday": everyday, "held_out": mean, "tasks": tasks}

    def _temperatures(self, ask: Any) -> TemperatureTable:
        kinds, logits, targets = [], [], []
        known = iter(self._chosen.targets)
        for request in self._chosen.requests:
            mine = [next(known) for _ in request.decisions]
            with suppress(ValueError):  # outcomes of other tasks may leave a context no room
                logits += [_log(p) for p in ask(request)]
                kinds += [decision.kind for decision in request.decisions]
                targets += mine
        return fit_temperature_table(kinds, logits, targets)


def _log(probabilities: Answer) -> Answer:
    return np.log(np.clip(probabilities, 1e-12, None))


def _task(rows: list[MixtureRow], ask: Any) -> dict[str, float]:
    hits, losses = [], []
    for row in rows:
        examples = plain_examples(row)
        decisions = tuple(example.decision for example in examples)
        try:
            answers = ask(RenderedRequest(render_context(row.context), decisions))
        except ValueError:  # too many outcomes for a row of training
            continue
        for example, p in zip(examples, answers, strict=True):
            hits.append(int(np.argmax(p)) == int(np.argmax(example.targets)))
            losses.append(-float(np.asarray(example.targets) @ np.log(np.clip(p, 1e-9, None))))
    return {
        "n": len(hits),
        "accuracy": round(float(np.mean(hits)), 4),
        "log_loss": round(float(np.mean(losses)), 4),
    }


@click.command(context_settings={"show_default": True})
@mixture_option
@click.option("--held-out", type=FOLDER, required=True, help="Folder of NAME.test.jsonl.gz.")
@click.option("--out", type=NEW_FOLDER, required=True, help="Folder of the runs, one a start.")
@status_option
@click.option(
    "--start",
    "starts",
    type=click.Choice(list(STARTS)),
    multiple=True,
    default=list(STARTS),
    help="A start to train. May be repeated.",
)
@click.option("--tokens", default=2_000_000, help="Tokens of each start.")
@click.option("--each", default=20_000, help="Tokens of a start before the next one's turn.")
@click.option("--judge-every", default=5, help="Rounds between judgements on held-out tasks.")
@click.option("--rows", default=40, help="Rows of each held-out task; of validation sources, half.")
@click.option("--threads", default=2, help="CPU threads.")
@click.option("--precision", type=click.Choice(PRECISIONS), default="float32")
def main(
    data: Path,
    held_out: Path,
    out: Path,
    status: str,
    starts: tuple[str, ...],
    tokens: int,
    each: int,
    judge_every: int,
    rows: int,
    threads: int,
    precision: str,
) -> None:
    """Train starts in turns and write the answers of each to unseen questions."""
    torch.set_num_threads(threads)
    mixture, validation = load_mixture(data, tuple(status.split(",")))
    rng = np.random.default_rng(0)
    tasks = {}
    for path in sorted(held_out.glob("*.test.jsonl.gz")):
        every = read_rows(path)
        tasks[path.name.split(".")[0]] = [every[i] for i in rng.permutation(len(every))[:rows]]
    fitted_on = {source: chosen[: rows // 2] for source, chosen in validation.items()}
    judge = StartJudge(tasks, calibration_set(fitted_on, mixture))
    trainers = {}
    for name in starts:
        recipe = recipe_of(name, tokens, precision)
        torch.manual_seed(recipe.seed)
        beginning = begin(STARTS[name], recipe.apart)
        trainers[name] = BaseTrainer(
            beginning.model,
            mixture,
            validation,
            beginning.tokenizer,
            recipe,
            out / name,
            torch.device("cpu"),
            partial(_report, name),
            beginning.anchor,
        )
    n_done = min(trainer.state.tokens for trainer in trainers.values()) // each
    for turn in range(n_done + 1, -(-tokens // each) + 1):
        for trainer in trainers.values():
            if trainer.state.tokens < turn * each:
                trainer.run(turn * each)
        if turn % judge_every == 0 or turn * each >= tokens:
            for name, trainer in trainers.items():
                _write(out / JUDGED, {"start": name, **asdict(trainer.state), **judge(trainer)})


def _report(start: str, line: dict[str, Any]) -> None:
    click.echo(msgspec.json.encode({"start": start, **line}))


def _write(path: Path, line: dict[str, Any]) -> None:
    with path.open("ab") as file:
        file.write(msgspec.json.encode(line) + b"\n")
    click.echo(msgspec.json.encode({key: line[key] for key in line if key != "tasks"}))


if __name__ == "__main__":
    main()
