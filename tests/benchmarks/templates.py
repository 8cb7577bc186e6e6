"""How the base model and a judge answer the rows of every template of a named decision.

    python tests/benchmarks/templates.py [--judge FILE [--permutations N]] [--write] [NAME ...]

The rows were written beside the templates and nothing was tuned on them. ``--write`` puts the figures
into the templates' files.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from importlib import resources
from pathlib import Path

import msgspec
import tomli_w
from msgspec.structs import replace

import steelyard
from steelyard.calibration.intervals import proportion_interval
from steelyard.client import Client
from steelyard.decisions.wire import ABSTAIN
from steelyard.named import templates
from steelyard.named.files import to_toml
from steelyard.named.templates import Measured, Template, list_templates
from steelyard.serving.connected.declared import ConnectedModel, write_models

#: The name under which a judge is connected.
JUDGE = "judge"
#: Seconds of a request at most: the machine may be busy.
_PATIENCE_S = 300


def main() -> None:
    """Measure, print a table, and write the figures where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--judge", type=Path, help="A GGUF file; the base alone if not.")
    parser.add_argument("--permutations", type=int, help="Orders of the outcomes. [auto]")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    chosen = [each for each in list_templates() if each.name in (given.names or {each.name})]
    print("| template | decision | model | right | 95 % | wrong | abstained | top right |")
    print("|---|---|---|---:|---|---:|---:|---:|")
    with ExitStack() as closing:
        home = Path(closing.enter_context(tempfile.TemporaryDirectory()))
        if given.judge is not None:
            write_models(home, {JUDGE: declare(given.judge, given.permutations)})
        running = closing.enter_context(steelyard.embed(home, deadline_s=_PATIENCE_S))
        client = closing.enter_context(steelyard.connect(running.url, timeout_s=_PATIENCE_S))
        base = client.decide(
            "", [{"id": "d", "kind": "binary", "question": "Is it?"}], store=False
        ).model
        for template in chosen:
            figures = list(measure(client, template, base))
            if given.judge is not None:
                judged = measure(client, template, JUDGE)
                figures += [replace(each, model=given.judge.stem) for each in judged]
            for each in figures:
                print(
                    f"| {template.name} | {each.decision} | {each.model} | {each.right:.2f} | "
                    f"{each.right_low:.2f} to {each.right_high:.2f} | {each.wrong:.2f} | "
                    f"{each.abstained:.2f} | {each.top_right:.2f} |",
                    flush=True,
                )
            if given.write:
                write(template, figures)


def declare(file: Path, permutations: int | None) -> ConnectedModel:
    """Return a judge as a server's home declares it."""
    return ConnectedModel(
        wire="gguf",
        file=str(file.resolve()),
        permutations=permutations or "auto",
        warm=True,
        timeout_s=_PATIENCE_S,
    )


def measure(client: Client, template: Template, model: str) -> Iterator[Measured]:
    """Ask a model every row of a template, and yield its figures for each decision."""
    # Nobody answers in its place.
    content = {**template.content, "model": model, "fallback": "none"}
    answers = [
        client.decide(example.context, **content, store=False) for example in template.examples
    ]
    for question in template.decisions:
        pairs = [
            (answer.decisions[question.id], example.expected[question.id])
            for answer, example in zip(answers, template.examples, strict=True)
        ]
        n = len(pairs)
        right = sum(result.action == expected for result, expected in pairs)
        abstained = sum(result.action == ABSTAIN for result, _ in pairs)
        interval = proportion_interval(right, n)
        yield Measured(
            model=answers[0].model,
            decision=question.id,
            n=n,
            right=round(right / n, 3),
            right_low=round(interval.low, 3),
            right_high=round(interval.high, 3),
            wrong=round((n - right - abstained) / n, 3),
            abstained=round(abstained / n, 3),
            top_right=round(sum(result.top == expected for result, expected in pairs) / n, 3),
        )


def write(template: Template, figures: list[Measured]) -> None:
    """Write a template's file anew with its figures; those of other models stay."""
    models = {each.model for each in figures}
    figures = [*figures, *(each for each in template.measured if each.model not in models)]
    head = {"name": template.name, "description": template.description or ""}
    text = to_toml({**head, **template.content}, template.examples)
    measured = tomli_w.dumps({"measured": [msgspec.to_builtins(each) for each in figures]})
    path = Path(str(resources.files(templates) / f"{template.name}.toml"))
    path.write_text(f"{text}\n{measured}", encoding="utf-8")


if __name__ == "__main__":
    main()
