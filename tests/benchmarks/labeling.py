"""The labels that often-right teachers give to real queries, a family of them, and the order of rows."""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from click.testing import CliRunner
from finetune_methods import Task, train_ours
from machine import describe_machine
from quality_tables import text_table

import steelyard
from steelyard.cli.main import main as steelyard_command
from steelyard.decisions.rendering import RenderedDecision, RenderedRequest
from steelyard.labeling.choosing import choose, doubt_of
from steelyard.labeling.contested import most_contested
from steelyard.scoring.assets import load_base_model
from steelyard.scoring.protocol import ScoredDecision
from steelyard.serving.connected.declared import Calibration, ConnectedModel, write_models
from steelyard.trainer.linear import fit_linear

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from support.models.remote_models import remote_model

#: The share of the rows that people look at.
_REVIEWED = 0.15
#: Labels after which heads are trained again, seeds, and how often it is to be right.
_SIZES = [200, 500, 800, 1_100, 1_400, 1_800, 2_400]
_SEEDS, _WANTED = 5, 0.85
#: Queries that a family learns from, and the penalty of its linear head.
_GROWTH, _PENALTY = [800, 1_600, 3_200, 4_800, 8_000], 0.3
_CALIBRATED = Calibration(number=1, dataset="ds_1", version=1, temperatures={"single": {"2": 1.0}})


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure teachers, or a family distilled from one; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("teachers", "distill", "growth", "next"))
    parser.add_argument("--data", type=Path, required=True, help="folder of labelled text")
    parser.add_argument("--task", help="clinc150 for distill and growth, banking77 else")
    parser.add_argument("--rows", type=int, default=2_000, help="queries that are labelled")
    parser.add_argument(
        "--test", type=int, default=1_000, help="rows whose truth is known, to test on"
    )
    parser.add_argument(
        "--accuracies", type=float, nargs="+", help="how often each teacher is right"
    )
    options = parser.parse_args(arguments)
    task = options.task or ("clinc150" if options.what in {"distill", "growth"} else "banking77")
    file = options.data / "heldout" / f"{task}.train.jsonl.gz"
    if not file.is_file():
        print(f"There is no {file}; nothing was measured.")
        return 0
    of_test = file.with_name(f"{task}.test.jsonl.gz")
    if task == "clinc150":
        # One traffic: clinc150's queries out of scope are in its test file alone.
        pool = _rows(file, of_test)
        test, rows = pool[: options.test], pool[options.test :][: options.rows]
    else:
        rows, test = _rows(file)[: options.rows], _rows(of_test)[: options.test]
    print("\n".join([*describe_machine(), f"{len(rows)} queries of {task}"]))
    if options.what == "teachers":
        _teachers(rows, options.accuracies or [0.9, 0.8])
    elif options.what == "next":
        _next(rows, test)
    elif options.what == "growth":
        _growth(rows, test, *(options.accuracies or [0.9])[:1])
    else:
        _distill(rows, test, options.accuracies or [0.9])
    return 0


def _rows(*paths: Path) -> list[dict[str, Any]]:
    rows = {}
    for path in paths:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            rows |= {row["context"]: row for row in map(json.loads, lines)}
    chosen = list(rows.values())
    random.Random(1).shuffle(chosen)
    return chosen


def _truth(row: dict[str, Any]) -> str:
    [target] = row["targets"].values()
    return max(target, key=target.get)


def _teacher(rows: list[dict[str, Any]], accuracy: float, seed: int) -> Callable[[str, Any], Any]:
    """Answer ``systemone``: sure to degrees, right as often as it is sure, so often in the mean."""
    truths = {row["context"]: _truth(row) for row in rows}

    def answer(path: str, body: Any) -> Any:
        assert path == "/v1/systemone"
        context = body["state"]
        digest = hashlib.sha256(f"{seed} {context}".encode()).digest()
        draw = np.random.default_rng(int.from_bytes(digest[:8]))
        answers = {}
        for name, question in body["questions"].items():
            labels = list(question["criteria"])
            # Beta: most answers all but sure, a few in doubt.
            sure = float(np.clip(draw.beta(5 * accuracy, 5 * (1 - accuracy)), 0.02, 0.999))
            truth = truths[context]
            others = [label for label in labels if label != truth]
            wrong = others[int(draw.integers(len(others)))]
            chosen, other = (truth, wrong) if draw.random() < sure else (wrong, truth)
            rest = (1 - sure) / 2
            shares = dict.fromkeys(labels, rest / max(len(labels) - 2, 1))
            shares |= {chosen: sure, other: rest}
            total = sum(shares.values())
            answers[name] = {
                "type": "choice",
                "choice": chosen,
                "probabilities": {label: share / total for label, share in shares.items()},
            }
        return {"answers": answers}

    return answer


class _Taught(ExitStack):
    """A server with simulated teachers."""

    def __init__(self, rows: list[dict[str, Any]], accuracies: Sequence[float]) -> None:
        super().__init__()
        home = Path(self.enter_context(TemporaryDirectory()))
        self.names = [f"teacher-{accuracy:g}" for accuracy in accuracies]
        declared = {}
        for seed, (name, accuracy) in enumerate(zip(self.names, accuracies, strict=True)):
            far = self.enter_context(remote_model(_teacher(rows, accuracy, seed)))
            declared[name] = ConnectedModel(
                wire="systemone",
                url=far.url,
                teacher=True,
                concurrency=2,
                price_in="0.15",
                calibrations=(_CALIBRATED,),
            )
        write_models(home, declared)
        self.server = self.enter_context(steelyard.embed(home=home))


def _teachers(rows: list[dict[str, Any]], accuracies: Sequence[float]) -> None:
    """Print how many labels are right: each teacher's, all together, and after a review."""
    with _Taught(rows, accuracies) as taught:
        client = taught.server.client
        queries = [{"context": row["context"], "decisions": row["decisions"]} for row in rows]
        source = client.labeling.upload("queries", queries)
        for weighting in ("votes", "probabilities"):
            job = client.labeling.create(
                source.id, teacher_models=taught.names, weighting=weighting
            )
            job = client.labeling.wait(job, progress=False)
            results = list(client.labeling.results(job.id))
            right = [
                max(next(iter(one.targets.values())).items(), key=lambda held: held[1])[0]
                == _truth(row)
                for one, row in zip(results, rows, strict=True)
            ]
            seen = set(most_contested(results, _REVIEWED))
            for place, name in enumerate(taught.names):
                alone = [
                    next(iter(one.teachers[place].labels.values())) == _truth(row)
                    for one, row in zip(results, rows, strict=True)
                ]
                print(f"{weighting}: {name} alone {np.mean(alone):.3f}")
            reviewed = [is_right or n in seen for n, is_right in enumerate(right)]
            print(
                f"{weighting}: all teachers {np.mean(right):.3f}, after a review of the contested "
                f"{_REVIEWED:.0%} {np.mean(reviewed):.3f}"
            )


def _distill(
    rows: list[dict[str, Any]], test: list[dict[str, Any]], accuracies: Sequence[float]
) -> None:
    """Print how often the family of a teacher is right where the truth is known."""
    with _Taught([*rows, *test], accuracies) as taught:
        client = taught.server.client
        queries = [{"context": row["context"], "decisions": row["decisions"]} for row in rows]
        source = client.labeling.upload("queries", queries)
        words = ["family", "distill", "student", "--source", source.id, "--yes"]
        for name in taught.names:
            words += ["--teacher", name]
        began = time.monotonic()
        done = CliRunner().invoke(steelyard_command, [*words, "--url", taught.server.url])
        print(done.output)
        print(f"in {time.monotonic() - began:.0f} s")
        for model in ("steelyard-base-2", *taught.names, "student"):
            right, times = [], []
            for row in test:
                began = time.perf_counter()
                answer = client.decide(row["context"], row["decisions"], model=model)
                times.append((time.perf_counter() - began) * 1e3)
                [decision] = answer.decisions.values()
                right.append(decision.top == _truth(row))
            error = 1.96 * float(np.std(right)) / len(right) ** 0.5
            print(
                f"{model}: {np.mean(right):.3f} ± {error:.3f} right of {len(right)}, "
                f"{np.median(times):.0f} ms, {answer.charge.amount_usd} USD for the last"
            )


def _growth(rows: list[dict[str, Any]], test: list[dict[str, Any]], accuracy: float) -> None:
    """Print how often a linear head is right on truth, by queries that a teacher labelled.

    The head is that of fine-tunes on the shipped model's vectors alone, for lack of time.
    """
    scorer = load_base_model().scorer
    vectors, held_out = (scorer.embed([row["context"] for row in found]) for found in (rows, test))
    names = list(rows[0]["decisions"][0]["outcomes"])
    teacher = _teacher([*rows, *test], accuracy, seed=0)
    asked = {"intent": {"criteria": dict.fromkeys(names)}}

    def said(row: dict[str, Any]) -> np.ndarray:
        body = {"state": row["context"], "questions": asked}
        shares = teacher("/v1/systemone", body)["answers"]["intent"]["probabilities"]
        return np.array([shares[name] for name in names], np.float32)

    labels, told = (np.stack([said(row) for row in found]) for found in (rows, test))
    truth, held_truth = (
        np.array([names.index(_truth(row)) for row in found]) for found in (rows, test)
    )
    in_scope = held_truth != (names.index("out of scope") if "out of scope" in names else -1)
    known = np.eye(len(names), dtype=np.float32)
    taught = {"probabilities": labels, "votes": known[labels.argmax(1)], "truth": known[truth]}
    header = ["queries", "labels", "right", "of those in scope"]
    right = told.argmax(1) == held_truth
    body = [["", "the teacher itself", f"{right.mean():.3f}", f"{right[in_scope].mean():.3f}"]]
    for size in sorted({min(size, len(rows)) for size in _GROWTH}):
        for name, targets in taught.items():
            fit = fit_linear(vectors[:size], targets[:size], _PENALTY)
            right = fit.logits(held_out).argmax(1) == held_truth
            shares = [f"{right.mean():.3f}", f"{right[in_scope].mean():.3f}"]
            body.append([f"{size:,}", name, *shares])
    print(text_table(header, body))


class _Remembering:
    """A scorer that reads a text once: fine-tunes on parts of the same rows ask for it again."""

    def __init__(self, inner: Any) -> None:
        self.name, self.engine, self._inner = inner.name, inner.engine, inner
        self._vectors: dict[str, np.ndarray] = {}
        self._scored: dict[RenderedRequest, list[ScoredDecision]] = {}

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        self._vectors.update(zip(new, self._inner.embed(new), strict=True))
        return np.stack([self._vectors[text] for text in texts])

    def score(self, requests: Sequence[RenderedRequest]) -> list[list[ScoredDecision]]:
        new = [one for one in dict.fromkeys(requests) if one not in self._scored]
        for start in range(0, len(new), 64):
            part = new[start : start + 64]
            self._scored.update(zip(part, self._inner.score(part), strict=True))
        return [self._scored[one] for one in requests]


def _next(rows: list[dict[str, Any]], test: list[dict[str, Any]]) -> None:
    """Print how often fine-tunes are right by labels, of rows chosen at random and as ``next`` does.

    After each step the heads are trained anew as those of a family, and their doubts choose the
    next rows.
    """
    scorer = _Remembering(load_base_model().scorer)
    [asked] = rows[0]["decisions"]
    decision = RenderedDecision("single", asked["question"], tuple(asked["outcomes"]))
    contexts, tests = ([row["context"] for row in found] for found in (rows, test))
    labels, truths = (
        np.array([decision.outcomes.index(_truth(row)) for row in found]) for found in (rows, test)
    )
    vectors = scorer.embed(contexts)
    print(f"{len(rows)} rows read", flush=True)
    found: dict[str, list[list[float]]] = {"random": [], "next": []}
    for seed in range(_SEEDS):
        order = np.random.default_rng(seed).permutation(len(rows))
        for name, accuracies in found.items():
            chosen = order[: _SIZES[0]]
            accuracies.append([])
            for size in [*_SIZES[1:], None]:  # the size of the next step
                began = time.monotonic()
                task = Task(decision, [contexts[i] for i in chosen], labels[chosen], tests, truths)
                answer = train_ours(task, scorer, seed).answer
                right = float((answer(tests).argmax(1) == truths).mean())
                accuracies[-1].append(right)
                took = f"in {time.monotonic() - began:.0f} s"
                print(f"seed {seed}, {name}, {len(chosen)} labels: {right:.3f} {took}", flush=True)
                if size is None or right >= _WANTED:
                    break
                if name == "random":
                    chosen = order[:size]
                    continue
                rest = np.setdiff1d(order, chosen)
                doubts = [doubt_of([one]) for one in answer([contexts[i] for i in rest])]
                places = choose(vectors[rest], doubts, size - len(chosen), labelled=vectors[chosen])
                chosen = np.concatenate([chosen, rest[places]])
    header = ["labels", *map(str, _SIZES), f"to {_WANTED}"]
    body = []
    for name, accuracies in found.items():
        cells = []
        for step in range(len(_SIZES)):
            # Where a seed had enough before, the mean of the others would be of the worse ones.
            of_all = [one[step] for one in accuracies if len(one) > step]
            is_whole = len(of_all) == _SEEDS
            cells.append(f"{np.mean(of_all):.3f} ± {np.std(of_all):.3f}" if is_whole else "")
        enough = [np.interp(_WANTED, one, _SIZES[: len(one)]) for one in accuracies]
        is_reached = all(one[-1] >= _WANTED for one in accuracies)
        told = f"{np.mean(enough):.0f} ± {np.std(enough):.0f}" if is_reached else "not by all"
        body.append([name, *cells, told])
    print(text_table(header, body))


if __name__ == "__main__":
    sys.exit(main())
