"""How often the gate errs, by simulation: false passes, misses, false findings.

Two models answer made-up held-out decisions whose truth is known, and the gate judges them; over
many draws each table gives how often it came to which verdict. Nothing is trained and no weights are
needed. Equal seeds give equal tables.

``python tests/benchmarks/gate.py [--draws 400] [--seed 0] [--workers 1]``

How a decision is made up: its right outcome has evidence above the others', with noise that both
models see; each model adds noise of its own (a model with less is better) and gives the softmax of a
multiple of it (a larger multiple is surer). The multiple that suits the noise makes it calibrated.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray
from quality_tables import text_table

from steelyard.calibration.intervals import proportion_interval
from steelyard.evaluations.gate_wire import Gate, JudgedOn
from steelyard.evaluations.measures.gate import judge
from steelyard.evaluations.measures.gate_rules import (
    BELOW_BASELINE,
    DECISION_WORSE,
    EARLIER_ALLOWANCE,
    EARLIER_WORSE,
    INCONCLUSIVE,
    NEW_WORSE,
    NO_GAIN,
    OUTCOME_WORSE,
    TOO_FEW,
)
from steelyard.evaluations.measures.records import Records, records_from_columns
from steelyard.proof.differences import Bootstrap

Array = NDArray[np.float64]

#: Draws from which a model's true loss is told.
_LARGE = 100_000
_LEAST_PROBABILITY = 1e-6
#: A pass claims that the new rows became better: these reasons withhold the claim.
_NOT_BETTER = {TOO_FEW, NEW_WORSE, NO_GAIN, INCONCLUSIVE}
_MAX_FALSE_CLAIMS = 0.05
_LEAST_POWER = 0.80


@dataclass(frozen=True)
class Task:
    """A simulated task; decisions on one context share half of every noise, and its difficulty.

    ``evidence`` is that of the right outcome, in standard deviations of the noise that both models
    see. With rewards the right outcome earns 1, another 0, and the others something between.
    """

    outcomes: int = 4
    per_context: int = 1
    evidence: float = 2.0
    supervision: str = "targets"


@dataclass(frozen=True)
class Model:
    """How a model answers: standard deviation of its own noise, and how sure it is (1 is calibrated)."""

    noise: float = 0.0
    sureness: float = 1.0


@dataclass(frozen=True)
class Held:
    """Held-out decisions: right outcomes, rewards, and evidence of shape (n, outcomes)."""

    task: Task
    contexts: NDArray[np.intp]
    right: NDArray[np.intp]
    labels: Array
    evidence: Array

    def __len__(self) -> int:
        return len(self.right)


def draw(task: Task, n_contexts: int, rng: np.random.Generator) -> Held:
    n, k = n_contexts * task.per_context, task.outcomes
    contexts = np.repeat(np.arange(n_contexts), task.per_context)
    right = rng.integers(k, size=n)
    is_right = np.eye(k)[right]
    hardness = np.exp(0.3 * rng.normal(size=n_contexts)) if task.per_context > 1 else 1.0
    strength = task.evidence * np.broadcast_to(hardness, n_contexts)[contexts]
    evidence = strength[:, None] * is_right + _noise(task, contexts, rng)
    labels = is_right
    if task.supervision == "rewards":
        labels = np.where(is_right > 0, 1.0, rng.random((n, k)) * 0.8)
        labels[np.arange(n), (right + 1) % k] = 0.0
    return Held(task, contexts, right, labels, evidence)


def answer(model: Model, held: Held, rng: np.random.Generator) -> Array:
    """Return a model's probabilities, of shape (n, outcomes)."""
    seen = held.evidence
    if model.noise:
        seen = seen + model.noise * _noise(held.task, held.contexts, rng)
    logits = model.sureness * held.task.evidence / (1 + model.noise**2) * seen
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def harm(probabilities: Array, held: Held) -> Array:
    """Return the gate's measure, with worse counted up: loss, or scaled reward less than 1."""
    if held.task.supervision == "rewards":
        return 1 - (probabilities * held.labels).sum(axis=1)
    right = probabilities[np.arange(len(held)), held.right]
    return -np.log(np.maximum(right, _LEAST_PROBABILITY))


@cache
def true_harm(model: Model, task: Task) -> float:
    """Return a model's mean harm over very many decisions."""
    rng = np.random.default_rng(1)
    held = draw(task, _LARGE // task.per_context, rng)
    return float(harm(answer(model, held, rng), held).mean())


@cache
def as_bad_as(other: Model, task: Task, *, noise: float = 0.0) -> Model:
    """Return a model less sure of itself than another, and in truth exactly as bad."""
    low, high, wanted = 0.01, 1.0, true_harm(other, task)
    for _ in range(25):
        middle = (low + high) / 2
        # A less sure model is the worse the less sure it is.
        if true_harm(Model(noise, middle), task) > wanted:
            low = middle
        else:
            high = middle
    return Model(noise, (low + high) / 2)


def records(held: Held, probabilities: Array, *, group: str) -> Records:
    n, task = len(held), held.task
    return records_from_columns(
        contexts=[f"{group}{context:06d}" for context in held.contexts],
        decision_ids=[f"d{place % task.per_context}" for place in range(n)],
        kinds=["single"] * n,
        outcomes=[tuple(f"o{place}" for place in range(task.outcomes))] * n,
        probabilities=list(probabilities),
        labels=list(held.labels),
        supervision="rewards" if task.supervision == "rewards" else "targets",
    )


@dataclass(frozen=True)
class Scene:
    """The judged pair: a predecessor and a candidate on ``n_new`` contexts, and on earlier ones.

    On these the candidate is as ``earlier`` says, or as the predecessor with noise of its own. It
    confuses outcome 0 with outcome 1 on the share ``broken`` of the decisions where 0 is right.
    """

    task: Task
    before: Model
    after: Model
    n_new: int
    n_earlier: int = 0
    earlier: Model | None = None
    text: Model | None = None
    broken: float = 0.0
    judged_on: JudgedOn = "new"


def verdict(scene: Scene, rng: np.random.Generator) -> Gate:
    """Draw once, and have the gate judge."""
    sides: dict[str, list[Records]] = {"before": [], "after": [], "text": []}
    is_new: list[bool] = []
    for group, n in (("new", scene.n_new), ("earlier", scene.n_earlier)):
        if not n:
            continue
        held = draw(scene.task, n, rng)
        candidate = scene.after if group == "new" else scene.earlier or scene.before
        after = _confuse(answer(candidate, held, rng), held, scene.broken, rng)
        sides["before"].append(records(held, answer(scene.before, held, rng), group=group))
        sides["after"].append(records(held, after, group=group))
        if scene.text is not None:
            sides["text"].append(records(held, answer(scene.text, held, rng), group=group))
        is_new += [group == "new"] * len(held)
    text = sides["text"]
    return judge(
        _joined(sides["before"]),
        _joined(sides["after"]),
        against="parent" if scene.n_earlier else "base",
        is_new=is_new,
        judged_on=scene.judged_on,
        baseline=_joined(text) if text else None,
        bootstrap=Bootstrap(seed=int(rng.integers(2**31))),
    ).gate


def verdicts(scene: Scene, given: argparse.Namespace, key: str) -> list[Gate]:
    """Judge as many draws as asked for, the same ones for the same key."""
    seeds = [[given.seed, number, *key.encode()] for number in range(given.draws)]
    if given.workers == 1:
        return [_seeded(scene, seed) for seed in seeds]
    with ProcessPoolExecutor(given.workers) as pool:
        return list(pool.map(partial(_seeded, scene), seeds, chunksize=10))


def _seeded(scene: Scene, seed: Sequence[int]) -> Gate:
    return verdict(scene, np.random.default_rng(seed))


def is_claimed(gate: Gate) -> bool:
    """Whether the gate holds that the new rows became better, whatever else is wrong."""
    return not _NOT_BETTER & set(gate.reasons)


def false_claims(given: argparse.Namespace) -> Iterator[list[str]]:
    """Candidates equal in truth: how often the gate claims that they are better.

    No bound holds for those that are merely surer of the same answers: a gain whose whole interval
    lies below 0 passes where no decision was broken.
    """
    yield ["equal in truth", "contexts", "claimed better", "passed", "interval alone", "at most"]
    twin = Model(noise=1.0)
    clustered, rewards = Task(per_context=3), Task(supervision="rewards")
    surer, far_surer = Model(sureness=1.25), Model(sureness=2.0)
    easy = Task(evidence=3.0)
    cases: list[tuple[str, Task, Model, Model, Sequence[int]]] = [
        ("alike", Task(), twin, twin, (20, 50, 200, 500)),
        ("alike, 2 outcomes", Task(outcomes=2), twin, twin, (20, 50, 200)),
        ("alike, 77 outcomes", Task(outcomes=77, evidence=4.0), twin, twin, (50, 200)),
        ("alike, 3 decisions a context", clustered, twin, twin, (20, 50, 200)),
        ("alike, rewards", rewards, twin, twin, (20, 50, 200)),
        ("a little too sure", Task(), as_bad_as(surer, Task()), surer, (20, 50, 200, 500)),
        ("far too sure", Task(), as_bad_as(far_surer, Task()), far_surer, (20, 50, 200, 500)),
        ("too sure, an easy task", easy, as_bad_as(surer, easy), surer, (20, 50, 200)),
        ("too sure, 3 a context", clustered, as_bad_as(surer, clustered), surer, (20, 50, 200)),
        (
            "surer and noisier, rewards",
            rewards,
            as_bad_as(Model(0.7, 3.0), rewards),
            Model(0.7, 3.0),
            (20, 50, 200),
        ),
    ]
    for name, task, before, after, sizes in cases:
        for n in sizes:
            found = verdicts(Scene(task, before, after, n), given, f"{name}/{n}")
            claimed = _rate(found, is_claimed)
            yield [
                name,
                str(n),
                _shown(claimed, len(found)),
                f"{_rate(found, lambda gate: gate.passed):.1%}",
                f"{_rate(found, _interval_alone):.1%}",
                _verdict_of(claimed <= _MAX_FALSE_CLAIMS) if before == after else "",
            ]


def power(given: argparse.Namespace) -> Iterator[list[str]]:
    """Candidates better in truth: how often the gate passes them, at how many contexts."""
    yield ["a real gain", "change", "new", "earlier", "passed", "at least", "needed by formula"]
    base = Model(noise=2.0)
    cases: list[tuple[str, Task, Model, Model, int, int]] = [
        ("first model, a base that guesses", Task(), base, Model(0.0), 30, 0),
        ("first model", Task(), Model(1.0), Model(0.0), 60, 0),
        ("first model, 3 decisions a context", Task(per_context=3), Model(1.0), Model(0.0), 40, 0),
        ("first model, smaller gain", Task(), Model(1.0), Model(0.5), 140, 0),
        ("first model, small gain", Task(), Model(1.0), Model(0.75), 500, 0),
        (
            "first model, 77 outcomes",
            Task(outcomes=77, evidence=4.0),
            Model(1.0),
            Model(0.5),
            60,
            0,
        ),
        ("continued", Task(), Model(1.0), Model(0.5), 150, 800),
        ("continued, small gain", Task(), Model(1.0), Model(0.75), 600, 800),
        ("first model, rewards", Task(supervision="rewards"), Model(1.0), Model(0.5), 80, 0),
    ]
    for name, task, before, after, n_new, n_earlier in cases:
        scene = Scene(task, before, after, n_new, n_earlier, text=replace(before, noise=1.5))
        found = verdicts(scene, given, name)
        passed = _rate(found, lambda gate: gate.passed)
        gain = true_harm(after, task) - true_harm(before, task)
        yield [
            name,
            f"{gain if task.supervision == 'targets' else -gain:+.3f}",
            str(n_new),
            str(n_earlier),
            _shown(passed, len(found)),
            _verdict_of(passed >= _LEAST_POWER),
            str(contexts_needed(task, before, after)),
        ]


def corrections(given: argparse.Namespace) -> Iterator[list[str]]:
    """Versions that correct labels, judged on all decisions: candidates worse, alike and better.

    A candidate that is worse by the allowance, or by more, may pass at most so often; one that is
    alike or better by the corrected labels should.
    """
    yield ["in truth", "change", "contexts", "passed", "at most"]
    tasks = [
        ("", Task()),
        (", an easy task", Task(evidence=4.0)),
        (", 20 outcomes", Task(outcomes=20, evidence=3.0)),
        (", 3 decisions a context", Task(per_context=3)),
        (", rewards", Task(supervision="rewards")),
    ]
    parent = Model(noise=1.0)
    for name, task in tasks:
        for n in (20, 50, 200):
            worse = worse_by(EARLIER_ALLOWANCE, parent, task)
            cases = [("worse by the allowance", worse, True)]
            if task.supervision == "targets":  # whoever is surer earns more
                surer = worse_by(EARLIER_ALLOWANCE, parent, task, is_surer=True)
                cases.append(("too sure, worse by it", surer, True))
            if not name:
                cases += [("alike", parent, False), ("better", Model(noise=0.7), False)]
            for truth, candidate, is_false in cases:
                scene = Scene(task, parent, candidate, n, judged_on="all")
                found = verdicts(scene, given, f"corrections/{truth}{name}/{n}")
                passed = _rate(found, lambda gate: gate.passed)
                change = true_harm(candidate, task) - true_harm(parent, task)
                yield [
                    f"{truth}{name}",
                    f"{change:+.3f}",
                    str(n),
                    _shown(passed, len(found)),
                    _verdict_of(passed <= _MAX_FALSE_CLAIMS) if is_false else "",
                ]


@cache
def worse_by(rise: float, other: Model, task: Task, *, is_surer: bool = False) -> Model:
    """Return a model that is worse than another by a rise of harm: noisier, or too sure of itself."""
    low, high, goal = 1.0, 8.0, true_harm(other, task) + rise
    made = other
    for _ in range(25):
        middle = (low + high) / 2
        made = replace(other, sureness=middle) if is_surer else replace(other, noise=middle)
        low, high = (low, middle) if true_harm(made, task) > goal else (middle, high)
    return made


def contexts_needed(task: Task, before: Model, after: Model) -> int:
    """Return contexts for a power of 80 % at 2.5 % on one side, by the normal approximation."""
    rng = np.random.default_rng(2)
    held = draw(task, _LARGE // task.per_context, rng)
    changes = harm(answer(after, held, rng), held) - harm(answer(before, held, rng), held)
    means = changes.reshape(-1, task.per_context).mean(axis=1)
    return int(np.ceil(((1.960 + 0.842) * means.std() / means.mean()) ** 2))


def planted(given: argparse.Namespace) -> Iterator[list[str]]:
    """A fall on one outcome of a candidate that is better in all: how often it is caught."""
    yield ["a fall on one outcome", "its decisions", "confused", "its change", "caught", "passed"]
    for k in (4, 20):
        task = Task(outcomes=k, evidence=2.0 if k == 4 else 3.0)
        for each, broken in (
            (15, 0.5),
            (15, 1.0),
            (30, 0.25),
            (30, 0.5),
            (30, 1.0),
            (100, 0.25),
            (100, 0.5),
        ):
            scene = Scene(task, Model(1.0), Model(0.5), n_new=each * k, broken=broken)
            found = verdicts(scene, given, f"planted/{k}/{each}/{broken}")
            falls = [
                one.loss.change
                for gate in found
                for one in gate.by_outcome
                if one.outcome == "o0" and one.loss
            ]
            caught = _rate(found, _has_caught)
            yield [
                f"1 outcome of {k}",
                f"about {each}",
                f"{broken:.0%}",
                f"{np.mean(falls):+.2f}" if falls else "-",
                _shown(caught, len(found)),
                f"{_rate(found, lambda gate: gate.passed):.1%}",
            ]


def other_rules(given: argparse.Namespace) -> Iterator[list[str]]:
    """The other rules: how often each is broken by chance, and by a real fall."""
    yield ["rule", "in truth", "change", "contexts", "broken", "at most"]
    alike, better, worse = Model(1.0), Model(0.5), Model(1.5)
    many = Task(outcomes=20, evidence=3.0)
    clustered = Task(per_context=8)

    def has(*reasons: str) -> Callable[[Gate], bool]:
        return lambda gate: bool(set(reasons) & set(gate.reasons))

    cases: list[tuple[str, str, Scene, Callable[[Gate], bool], float, float | None]] = []
    for n in (100, 500, 1_000):
        for truth, candidate in (
            ("as before", alike),
            ("worse", Model(1.25)),
            ("much worse", worse),
        ):
            scene = Scene(Task(), alike, better, 200, n_earlier=n, earlier=candidate)
            change = true_harm(candidate, Task()) - true_harm(alike, Task())
            cases.append(("earlier rows worse", truth, scene, has(EARLIER_WORSE), change, None))
    easy, sure, less_sure = Task(evidence=5.0), Model(), Model(sureness=0.7)
    for n in (100, 500):
        scene = Scene(easy, sure, sure, 200, n_earlier=n, earlier=less_sure)
        change = true_harm(less_sure, easy) - true_harm(sure, easy)
        has_failed = has(EARLIER_WORSE)
        cases.append(
            (
                "earlier rows worse",
                "as right, less sure",
                scene,
                has_failed,
                change,
                _MAX_FALSE_CLAIMS,
            )
        )
    for n in (50, 200):
        for truth, candidate in (("as the baseline", alike), ("worse", worse)):
            scene = Scene(Task(), Model(2.0), candidate, n, text=alike)
            change = true_harm(candidate, Task()) - true_harm(alike, Task())
            limit = _MAX_FALSE_CLAIMS if candidate == alike else None
            cases.append(
                ("below the text baseline", truth, scene, has(BELOW_BASELINE), change, limit)
            )
    for truth, task, n in (
        ("4 outcomes, as before", Task(), 200),
        ("20 outcomes, as before", many, 1_000),
        ("8 decisions, as before", clustered, 100),
    ):
        cases.append(
            (
                "a decision or outcome worse",
                truth,
                Scene(task, alike, alike, n),
                has(DECISION_WORSE, OUTCOME_WORSE),
                0.0,
                _MAX_FALSE_CLAIMS,
            )
        )
    for rule, truth, scene, is_broken, change, limit in cases:
        n = scene.n_earlier or scene.n_new
        found = verdicts(scene, given, f"{rule}/{truth}/{n}")
        broken = _rate(found, is_broken)
        yield [
            rule,
            truth,
            f"{change:+.3f}",
            str(n),
            _shown(broken, len(found)),
            "" if limit is None else _verdict_of(broken <= limit),
        ]


def _noise(task: Task, contexts: NDArray[np.intp], rng: np.random.Generator) -> Array:
    """Return noise of standard deviation 1; the decisions of a context share half its variance."""
    shape = (len(contexts), task.outcomes)
    if task.per_context == 1:
        return rng.normal(size=shape)
    shared = rng.normal(size=(int(contexts[-1]) + 1, task.outcomes))[contexts]
    return np.sqrt(0.5) * (shared + rng.normal(size=shape))


def _confuse(probabilities: Array, held: Held, share: float, rng: np.random.Generator) -> Array:
    """Swap the probabilities of outcomes 0 and 1 on a share of the decisions where 0 is right."""
    if share == 0:
        return probabilities
    rows = np.flatnonzero((held.right == 0) & (rng.random(len(held)) < share))
    confused = probabilities.copy()
    confused[rows[:, None], [0, 1]] = probabilities[rows[:, None], [1, 0]]
    return confused


def _joined(parts: Sequence[Records]) -> Records:
    if len(parts) == 1:
        return parts[0]
    return records_from_columns(
        contexts=[name for part in parts for name in part.contexts],
        decision_ids=[name for part in parts for name in part.decision_ids],
        kinds=[kind for part in parts for kind in part.kinds],
        outcomes=[part.outcomes_of(row) for part in parts for row in range(len(part))],
        probabilities=[part.probabilities_of(row) for part in parts for row in range(len(part))],
        labels=[part.labels_of(row) for part in parts for row in range(len(part))],
        supervision=parts[0].supervision,
    )


def _interval_alone(gate: Gate) -> bool:
    """Whether the 95 % interval of the change lies on the side of a gain."""
    new = gate.groups["new"]
    return new.loss.high < 0 if new.loss else bool(new.scaled_reward and new.scaled_reward.low > 0)


def _has_caught(gate: Gate) -> bool:
    return any(one.worse and one.outcome == "o0" for one in gate.by_outcome)


def _rate(found: Sequence[Gate], is_so: Callable[[Gate], bool]) -> float:
    return sum(map(is_so, found)) / len(found)


def _shown(rate: float, n: int) -> str:
    interval = proportion_interval(round(rate * n), n)
    return f"{rate:.1%} [{interval.low:.1%}, {interval.high:.1%}]"


def _verdict_of(is_kept: bool) -> str:
    return "kept" if is_kept else "over"


def _print_table(title: str, rows: Iterator[list[str]]) -> None:
    began = time.perf_counter()
    header, *lines = rows
    print(
        f"\n{title}\n{text_table(header, lines)}({time.perf_counter() - began:.0f} s)", flush=True
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--draws", type=int, default=400, help="of every line")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument(
        "--tables",
        nargs="+",
        choices=list(_TABLES),
        default=list(_TABLES),
    )
    given = parser.parse_args(arguments)
    print(f"{given.draws} draws of every line, seed {given.seed}; brackets are Wilson's 95 %.")
    for name in given.tables:
        title, rows = _TABLES[name]
        _print_table(title, rows(given))
    return 0


_TABLES: dict[str, tuple[str, Callable[[argparse.Namespace], Iterator[list[str]]]]] = {
    "claims": (f"Claims of a gain that is none (at most {_MAX_FALSE_CLAIMS:.0%})", false_claims),
    "power": (f"Real gains passed (at least {_LEAST_POWER:.0%})", power),
    "planted": ("Planted falls on one outcome", planted),
    "corrections": (f"Corrections (at most {_MAX_FALSE_CLAIMS:.0%} of worse ones)", corrections),
    "rules": ("The other rules", other_rules),
}


if __name__ == "__main__":
    raise SystemExit(main())
