"""How a model behaves: negation, absent facts, noise, wording, names, none-of-these, levels, trust.

Run it as a script; ``README.md`` beside it says how, and explains the rows of its table. Its own
rows are in ``steelyard_base_recipe.behaviour``, so it needs neither data nor a network.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

import steelyard
from models import add_also, add_arguments, load_model, models_asked
from steelyard.client import Client
from steelyard.decisions.rendering import RenderedDecision, RenderedRequest
from steelyard_base_recipe.behaviour.figures import Answer, BehaviourFigure, answer_all, figures
from steelyard_base_recipe.behaviour.rows import BehaviourRow, make_rows, read_domains

#: Seconds for a request to a server with all its tries, and how many more than one there are.
TIMEOUT_S, MOST_RETRIES = 600.0, 10


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    rows = make_rows()
    columns: dict[str, dict[str, list[BehaviourFigure]]] = {}
    for label, ask in answerers(options).items():
        answers = answer_all(rows, ask, partial(_report, len(rows)))
        columns[label] = {
            "all": figures(rows, answers),
            "reserved": figures(*_of(rows, answers, reserved_domains())),
        }
    print(table(columns))
    if options.json:
        found = {
            label: {
                part: {one.name: {"value": one.value, "n": one.n} for one in lines}
                for part, lines in parts.items()
            }
            for label, parts in columns.items()
        }
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add_arguments(parser)
    add_also(parser)
    parser.add_argument(
        "--checkpoint",
        type=Path,
        action="append",
        default=[],
        help="checkpoint of a training run, as a further column, at temperature 1; repeatable",
    )
    parser.add_argument(
        "--url", help="address of a server to ask instead; its key is in STEELYARD_API_KEY"
    )
    parser.add_argument("--name", help="with --url: the model to ask for (default: the server's)")
    parser.add_argument("--json", type=Path, help="write every figure to this file")
    return parser.parse_args(arguments)


def answerers(options: argparse.Namespace) -> dict[str, Callable[[RenderedRequest], list[Answer]]]:
    """Return the answering functions, by the label of their column."""
    if options.url:
        # The suite takes more requests than a minute allows: the client waits as it is told to.
        client = steelyard.connect(options.url, timeout_s=TIMEOUT_S, max_retries=MOST_RETRIES)
        return {options.name or options.url: server_answerer(client, options.name)}
    found = {}
    for folder, engine in models_asked(options):
        label = f"{folder.name if folder else 'shipped'} {engine}".removesuffix(" auto")
        model = load_model(engine, folder=folder, threads=options.threads)
        found[label] = model_answerer(model)
    for path in options.checkpoint:
        import torch

        from steelyard_base_recipe.behaviours import answerer
        from steelyard_base_recipe.checkpoints import read_scorer

        label = f"{path.parent.name}/{path.name}"
        found[label] = answerer(
            read_scorer(path), model.tokenizer, partial(torch.autocast, "cpu", torch.bfloat16)
        )
    return found


def model_answerer(model) -> Callable[[RenderedRequest], list[Answer]]:

    def ask(request: RenderedRequest) -> list[Answer]:
        [scored] = model.scorer.score([request])
        pairs = zip(request.decisions, scored, strict=True)
        return [model.temperatures.probabilities(one.logits, d.kind) for d, one in pairs]

    return ask


def server_answerer(client: Client, name: str | None) -> Callable[[RenderedRequest], list[Answer]]:
    """Return a function that answers by a server of Steelyard, with any model of it."""

    def ask(request: RenderedRequest) -> list[Answer]:
        decisions = [_to_wire(str(i), one) for i, one in enumerate(request.decisions)]
        answered = client.decide(request.context, decisions, model=name).decisions
        # Outcomes are answered in the order in which they were sent.
        return [
            np.array(list(answered[str(i)].probabilities.values())) for i in range(len(decisions))
        ]

    return ask


def _to_wire(id_: str, one: RenderedDecision) -> dict[str, object]:
    """Return a decision as an application sends it; levels have numbers, and their names describe them."""
    sent: dict[str, object] = {"id": id_, "kind": one.kind, "question": one.question}
    if one.kind == "single":
        sent["outcomes"] = list(one.outcomes)
    elif one.kind == "ordinal":
        sent |= {"outcomes": [str(i) for i in range(len(one.outcomes))], "rubric": one.outcomes}
    return sent


def _report(n_rows: int, n_answered: int) -> None:
    print(f"  {n_answered} of {n_rows}", end="\r", file=sys.stderr, flush=True)


def reserved_domains() -> set[str]:
    """Return the names of the domains that give no wording to training."""
    return {domain.name for domain in read_domains() if domain.is_reserved}


def _of(
    rows: Sequence[BehaviourRow], answers: Sequence[Answer], domains: set[str]
) -> tuple[list[BehaviourRow], list[Answer]]:
    kept = [i for i, row in enumerate(rows) if row.key[0] in domains]
    return [rows[i] for i in kept], [answers[i] for i in kept]


def table(columns: dict[str, dict[str, list[BehaviourFigure]]]) -> str:
    """Write the figures as a table of Markdown, a column or two a model."""
    labels = [(label, part) for label, parts in columns.items() for part in parts]
    header = ["behaviour", "n", "wanted"]
    header += [label if part == "all" else f"{label}, reserved domains" for label, part in labels]
    lines = [header, ["---"] * len(header)]
    for i, one in enumerate(next(iter(columns.values()))["all"]):
        cells = [f"{columns[label][part][i].value:.3f}" for label, part in labels]
        lines.append([one.name, str(one.n), one.target, *cells])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
