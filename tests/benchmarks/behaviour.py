"""How a model behaves: negation, absent facts, noise, wording, names, none-of-these, levels, trust.

Run it as a script; ``README.md`` beside it says how, and what the rows of its table mean. Its own
rows are in this repository, so it needs neither data nor a network.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx
import numpy as np
from behaviour_rows import NONE, BehaviourRow, make_rows, read_domains
from models import add_arguments, load_model

from steelyard.calibration.metrics import ece, pad_rows
from steelyard.decisions.rendering import RenderedDecision, RenderedRequest

Answer = np.ndarray
#: Decisions of one request at most, and seconds that a server has for it.
MOST_DECISIONS, TIMEOUT_S = 64, 120.0
#: What a probability says where it is held against what was right.
TRUSTED = (0.8, 0.9)


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table: what was measured, on how many rows, and what is wanted."""

    name: str
    value: float
    n: int
    wanted: str


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    rows = make_rows()
    columns: dict[str, dict[str, list[Figure]]] = {}
    for label, ask in answerers(options).items():
        answers = answer_all(rows, ask)
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
    parser.add_argument(
        "--also",
        type=Path,
        action="append",
        default=[],
        help="folder of another base model, as a further column; repeatable",
    )
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
    """Return what answers a request, by the label of its column."""
    if options.url:
        return {options.name or options.url: server_answerer(options.url, options.name)}
    found = {}
    for folder in (options.model, *options.also):
        for engine in options.engine or ["auto"]:
            label = f"{folder.name if folder else 'shipped'} {engine}".removesuffix(" auto")
            model = load_model(engine, folder=folder, threads=options.threads)
            found[label] = model_answerer(model)
    for path in options.checkpoint:
        found[f"{path.parent.name}/{path.name}"] = checkpoint_answerer(path, model.tokenizer)
    return found


def model_answerer(model) -> Callable[[RenderedRequest], list[Answer]]:

    def ask(request: RenderedRequest) -> list[Answer]:
        [scored] = model.scorer.score([request])
        pairs = zip(request.decisions, scored, strict=True)
        return [model.temperatures.probabilities(one.logits, d.kind) for d, one in pairs]

    return ask


def checkpoint_answerer(path: Path, tokenizer) -> Callable[[RenderedRequest], list[Answer]]:
    """Return what answers with weights in training, which no graph holds yet."""
    import torch

    from steelyard.training.base.augment import WordedDecision
    from steelyard.training.base.batches import make_batches, make_item
    from steelyard.training.base.checkpoints import read_scorer

    model = read_scorer(path).eval()

    def ask(request: RenderedRequest) -> list[Answer]:
        sizes = [len(one.outcomes) for one in request.decisions]
        items = [
            make_item(request.context, [WordedDecision(one, (1 / n,) * n)], tokenizer)
            for one, n in zip(request.decisions, sizes, strict=True)
        ]
        # Batches are by length, the shortest first: what is sorted by length stays in its order.
        order = sorted(range(len(items)), key=lambda i: len(items[i].layout))
        answers: dict[int, Answer] = {}
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            logits = [
                row for batch in make_batches([items[i] for i in order]) for row in model(batch)[0]
            ]
        for i, row in zip(order, logits, strict=True):
            answers[i] = torch.softmax(row[: sizes[i]].double(), -1).numpy()
        return [answers[i] for i in range(len(items))]

    return ask


def server_answerer(url: str, name: str | None) -> Callable[[RenderedRequest], list[Answer]]:
    """Return what answers with a server of Steelyard, whichever model it has there."""
    key = os.environ.get("STEELYARD_API_KEY")
    client = httpx.Client(
        base_url=url,
        headers={"Authorization": f"Bearer {key}"} if key else {},
        timeout=TIMEOUT_S,
    )

    def ask(request: RenderedRequest) -> list[Answer]:
        decisions = []
        for i, one in enumerate(request.decisions):
            decision: dict[str, object] = {"id": str(i), "kind": one.kind, "question": one.question}
            if one.kind != "binary":
                decision["outcomes"] = list(one.outcomes)
            decisions.append(decision)
        body: dict[str, object] = {"context": request.context, "decisions": decisions}
        if name:
            body["model"] = name
        answered = client.post("/v1/decide", json=body).raise_for_status().json()["decisions"]
        return [
            np.array([answered[str(i)]["probabilities"][outcome] for outcome in one.outcomes])
            for i, one in enumerate(request.decisions)
        ]

    return ask


def answer_all(
    rows: Sequence[BehaviourRow], ask: Callable[[RenderedRequest], list[Answer]]
) -> list[Answer]:
    """Ask every row; those of one context go together, as no answer depends on another."""
    by_context: dict[str, list[int]] = {}
    for i, row in enumerate(rows):
        by_context.setdefault(row.context, []).append(i)
    answers: dict[int, Answer] = {}
    for context, places in by_context.items():
        for start in range(0, len(places), MOST_DECISIONS):
            part = places[start : start + MOST_DECISIONS]
            decisions = [
                RenderedDecision(rows[i].kind, rows[i].question, rows[i].outcomes) for i in part
            ]
            found = ask(RenderedRequest(context, tuple(decisions)))
            answers.update(zip(part, found, strict=True))
        print(f"  {len(answers)} of {len(rows)}", end="\r", file=sys.stderr, flush=True)
    return [answers[i] for i in range(len(rows))]


def figures(rows: Sequence[BehaviourRow], answers: Sequence[Answer]) -> list[Figure]:
    asked = _Asked(rows, answers)
    return [*_polarity(asked), *_stated(asked), *_wording(asked), *_outcomes(asked), *_trust(asked)]


class _Asked:
    """Rows with their answers, found by group and key."""

    def __init__(self, rows: Sequence[BehaviourRow], answers: Sequence[Answer]) -> None:
        self.pairs = list(zip(rows, answers, strict=True))

    def group(self, *names: str) -> list[tuple[BehaviourRow, Answer]]:
        return [(row, p) for row, p in self.pairs if row.group.split(":")[0] in names]

    def exactly(self, name: str) -> list[tuple[BehaviourRow, Answer]]:
        return [(row, p) for row, p in self.pairs if row.group == name]

    def beside(
        self, first: str, pairs: Sequence[tuple[BehaviourRow, Answer]]
    ) -> list[tuple[BehaviourRow, Answer, BehaviourRow, Answer]]:
        """Put the row of a group beside each row that has its key."""
        by_key = {row.key: (row, p) for row, p in self.group(first)}
        return [(*by_key[row.key], row, p) for row, p in pairs]


def _polarity(asked: _Asked) -> list[Figure]:
    found = []
    for name, pairs in [
        ("all wordings", asked.group("negated")),
        *((made, asked.exactly(f"negated: {made}")) for made in ("opposite", "false", "not")),
    ]:
        both = asked.beside("asked", pairs)
        flips = [p.argmax() != q.argmax() for _, p, _, q in both]
        found.append(_share(f"negated question, {name}: answers that flip", flips, ">= .70"))
        yes = np.array([[p[0], q[0]] for _, p, _, q in both])
        correlation = float(np.corrcoef(yes.T)[0, 1]) if np.ptp(yes, axis=0).all() else 0.0
        label = f"negated question, {name}: correlation of p(yes) with its negation's"
        found.append(Figure(label, correlation, len(both), "< 0"))
    opposite = asked.beside("asked", asked.exactly("negated: opposite"))
    above = [(p[0] > q[0]) == (row.right == 0) for row, p, _, q in opposite]
    found.append(_share("true question above its opposite", above, ">= .80"))
    found.append(_share("true claim above its denial", _hits(asked.group("claims")), ">= .80"))
    checks = asked.group("asked", "negated")
    found.append(_share("yes/no questions: accuracy", _hits(checks), "high"))
    share = [p.argmax() == 0 for _, p in checks]
    found.append(_share("yes/no questions: share of yes, of .50 that are", share, ".40 to .60"))
    return found


def _stated(asked: _Asked) -> list[Figure]:
    stated, silent = asked.group("stated"), asked.group("not stated")
    area = _area([p[0] for _, p in stated], [p[0] for _, p in silent])
    return [
        _share("stated: answered yes", [p.argmax() == 0 for _, p in stated], "high"),
        _share("not stated: answered yes", [p.argmax() == 0 for _, p in silent], "low"),
        Figure("stated or not: AUC of p(yes)", area, len(stated) + len(silent), ">= .90"),
    ]


def _wording(asked: _Asked) -> list[Figure]:
    found = [_share("choice: accuracy", _hits(asked.group("choice")), "high")]
    for name, group, wanted in (
        ("200 irrelevant words", asked.group("distracted"), "<= .15"),
        ("question paraphrased", asked.group("paraphrased"), "<= .05"),
        *(
            (f"names {style}", asked.exactly(f"named: {style}"), "<= .03")
            for style in ("lettered", "numbered", "camelCase", "snake_case", "capitals")
        ),
    ):
        both = asked.beside("choice", group)
        changes = [p.argmax() != q.argmax() for _, p, _, q in both]
        found.append(_share(f"{name}: answers that change", changes, wanted))
        found.append(_share(f"{name}: accuracy", _hits(group), "as of choice"))
    return found


def _outcomes(asked: _Asked) -> list[Figure]:
    def none(pairs: Sequence[tuple[BehaviourRow, Answer]]) -> list[float]:
        return [float(p[row.outcomes.index(NONE)]) for row, p in pairs]

    absent, present = asked.group("none right"), asked.group("none offered")
    traps = asked.group("trap")
    caught = [row.outcomes[p.argmax()] == row.group.removeprefix("trap: ") for row, p in traps]
    levels = asked.group("ordinal")
    errors = [abs(int(p.argmax()) - (row.right or 0)) for row, p in levels]
    return [
        _share("none of these is right: chosen", _hits(absent), "high"),
        Figure(
            "none of these is right or not: AUC of its probability",
            _area(none(absent), none(present)),
            len(absent) + len(present),
            ">= .75",
        ),
        _share("words of a wrong outcome: accuracy", _hits(traps), "high"),
        _share("words of a wrong outcome: it is chosen", caught, "low"),
        Figure("ordinal: mean error in levels", float(np.mean(errors)), len(errors), "<= .80"),
    ]


def _trust(asked: _Asked) -> list[Figure]:
    found = []
    for name, groups in (
        ("choices", ("choice", "claims", "none offered", "none right", "trap")),
        ("yes/no", ("asked", "negated", "stated", "not stated")),
    ):
        pairs = asked.group(*groups)
        top = np.array([p.max() for _, p in pairs])
        hits = np.array(_hits(pairs))
        within = (top >= TRUSTED[0]) & (top < TRUSTED[1])
        value = float(hits[within].mean()) if within.any() else float("nan")
        label = f"{name}: right where the top probability is .8 to .9"
        found.append(Figure(label, value, int(within.sum()), ".75 to .95"))
        loss = -np.mean([np.log(max(float(p[row.right]), 1e-6)) for row, p in pairs])
        found.append(Figure(f"{name}: log loss", float(loss), len(pairs), "low"))
        right = pad_rows([np.eye(len(p))[row.right] for row, p in pairs])
        error = ece(pad_rows([p for _, p in pairs]), right)
        found.append(Figure(f"{name}: calibration error", error, len(pairs), "<= .06"))
    return found


def _share(name: str, values: Sequence[bool], wanted: str) -> Figure:
    return Figure(name, float(np.mean(values)), len(values), wanted)


def _hits(pairs: Sequence[tuple[BehaviourRow, Answer]]) -> list[bool]:
    return [int(p.argmax()) == row.right for row, p in pairs]


def _area(positive: Sequence[float], negative: Sequence[float]) -> float:
    """Return how often a number of the first is above one of the second; ties count half."""
    first, second = np.array(positive)[:, None], np.array(negative)[None, :]
    return float(((first > second) + 0.5 * (first == second)).mean())


def reserved_domains() -> set[str]:
    """Return the names of the domains that give no wording to training."""
    return {domain.name for domain in read_domains() if domain.is_reserved}


def _of(
    rows: Sequence[BehaviourRow], answers: Sequence[Answer], domains: set[str]
) -> tuple[list[BehaviourRow], list[Answer]]:
    kept = [i for i, row in enumerate(rows) if row.key[0] in domains]
    return [rows[i] for i in kept], [answers[i] for i in kept]


def table(columns: dict[str, dict[str, list[Figure]]]) -> str:
    """Write the figures as a table of Markdown, a column or two a model."""
    labels = [(label, part) for label, parts in columns.items() for part in parts]
    header = ["behaviour", "n", "wanted"]
    header += [label if part == "all" else f"{label}, reserved domains" for label, part in labels]
    lines = [header, ["---"] * len(header)]
    for i, one in enumerate(next(iter(columns.values()))["all"]):
        cells = [f"{columns[label][part][i].value:.3f}" for label, part in labels]
        lines.append([one.name, str(one.n), one.wanted, *cells])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
