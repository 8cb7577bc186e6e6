"""The ways to learn a decision that the fine-tune benchmark compares: ours and four others.

Every method is given the same rows and makes an ``Answerer``: a function from contexts to
probabilities, outcomes in the task's order. Reading contexts once beforehand (vectors, and our
features) is timed apart from learning.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.decisions.rendering import RenderedDecision, RenderedRequest
from steelyard.scoring.heads import Heads
from steelyard.scoring.tuned import TunedScorer
from steelyard.trainer.features import compute_features
from steelyard.trainer.fitting import fit_heads
from steelyard.trainer.rows import TuningRow

Answerer = Callable[[Sequence[str]], np.ndarray]
Embed = Callable[[Sequence[str]], np.ndarray]

#: Inverse penalties that the logistic regressions choose from, by log loss in three folds.
STRENGTHS = [10.0, 100.0]
#: Pairs that SetFit draws for each row, twice (its paper's R), and rows of a batch.
SETFIT_PAIRS, SETFIT_BATCH = 20, 16
_TEXTS_A_CALL = 256


@dataclass(frozen=True, slots=True)
class Task:
    """One decision and its labelled contexts, to train on and to measure on."""

    decision: RenderedDecision
    contexts: list[str]
    labels: np.ndarray
    tests: list[str]
    truths: np.ndarray

    def few(self, per_outcome: int, seed: int) -> Task:
        """Return the task with so many training rows of each outcome."""
        rng = np.random.default_rng(seed)
        chosen = np.concatenate(
            [
                np.sort(rng.permutation(np.flatnonzero(self.labels == label))[:per_outcome])
                for label in np.unique(self.labels)
            ]
        )
        contexts = [self.contexts[i] for i in chosen]
        return Task(self.decision, contexts, self.labels[chosen], self.tests, self.truths)


@dataclass(slots=True)
class Trained:
    """The result of training: its time, and the model."""

    answer: Answerer
    clock: Clock
    note: str = ""


@dataclass(slots=True)
class Clock:
    """Seconds of wall and of CPU time, of reading and of learning."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def measure(self, what: str) -> Any:
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self.seconds[what] = time.perf_counter() - wall
        self.seconds[f"{what} cpu"] = time.process_time() - cpu


def train_ours(task: Task, scorer: Any, seed: int) -> Trained:
    """Heads as a fine-tune makes them; features apart."""
    clock = Clock()
    even = np.eye(len(task.decision.outcomes))
    rows = [
        TuningRow(text, hashlib.sha256(text.encode()).hexdigest(), task.decision, even[label])
        for text, label in zip(task.contexts, task.labels, strict=True)
    ]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "features").mkdir()
        with clock.measure("reading"):
            features = compute_features(rows, scorer, folder / "features", lambda *_: None)
        with clock.measure("learning"):
            report = fit_heads(
                rows, features, method="sft", seed=seed, folder=folder, on_progress=lambda *_: None
            )
        tuned = TunedScorer(Heads.load(folder), scorer)
    [decision] = report.decisions

    def answer(contexts: Sequence[str]) -> np.ndarray:
        requests = [RenderedRequest(text, (task.decision,)) for text in contexts]
        return np.exp(np.stack([one.logits for [one] in tuned.score(requests)]).astype(np.float64))

    parts = ", ".join(f"{name} {weight:.2f}" for name, weight in decision.weights.items())
    return Trained(answer, clock, f"{decision.chosen}: {parts}; {decision.calibration}")


def train_tfidf(task: Task, seed: int) -> Trained:
    """TF-IDF of words, pairs and runs of characters, and logistic regression."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline, make_union

    least = 1 if len(task.contexts) < 1_000 else 2
    words = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), min_df=least)
    runs = TfidfVectorizer(sublinear_tf=True, ngram_range=(2, 4), analyzer="char_wb", min_df=least)
    model = make_pipeline(make_union(words, runs), _regression(seed))
    return _train(model, task, lambda texts: np.array(texts, object), Clock())


def train_regression(task: Task, embed: Embed, seed: int) -> Trained:
    """Logistic regression on frozen vectors."""
    return _train(_regression(seed), task, embed, Clock())


def train_lightgbm(task: Task, embed: Embed, seed: int, rounds: int) -> Trained:
    """LightGBM, a tree for every outcome a round, on frozen vectors."""
    import lightgbm

    model = lightgbm.LGBMClassifier(
        n_estimators=rounds,
        num_leaves=15,
        learning_rate=0.1,
        min_child_samples=5,
        # Without a penalty it diverges where there are many outcomes.
        reg_lambda=1.0,
        colsample_bytree=0.3,
        random_state=seed,
        deterministic=True,
        force_row_wise=True,
        verbosity=-1,
    )
    trained = _train(model, task, embed, Clock())
    trained.note = f"{rounds} rounds"
    return trained


def setfit_lacking() -> str | None:
    """Return why SetFit cannot be measured; None where it can."""
    if importlib.util.find_spec("setfit") is None:
        return "setfit is not installed"
    return None


def train_setfit(task: Task, encoder: Path, seed: int, most_steps: int) -> Trained:
    """SetFit: the encoder tuned on pairs, then its own logistic regression."""
    os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    from setfit import SetFitModel, Trainer, TrainingArguments

    from datasets import Dataset

    model = SetFitModel.from_pretrained(str(encoder), local_files_only=True)
    steps = 2 * SETFIT_PAIRS * len(task.contexts) // SETFIT_BATCH
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            batch_size=SETFIT_BATCH,
            num_iterations=SETFIT_PAIRS,
            num_epochs=1,
            max_steps=min(steps, most_steps),
            seed=seed,
            report_to="none",
            save_strategy="no",
        )
        data = Dataset.from_dict({"text": task.contexts, "label": task.labels.tolist()})
        trainer = Trainer(model=model, args=arguments, train_dataset=data)
        with clock.measure("learning"):
            trainer.train()

    def answer(contexts: Sequence[str]) -> np.ndarray:
        shares = np.asarray(model.predict_proba(list(contexts), as_numpy=True), np.float64)
        return spread(shares, model.model_head.classes_, len(task.decision.outcomes))

    return Trained(answer, clock, f"{min(steps, most_steps):,} of {steps:,} steps")


def in_calls(embed: Embed) -> Embed:
    """Return vectors of many texts a call at a time, those of like lengths together."""

    def embed_all(texts: Sequence[str]) -> np.ndarray:
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        parts = [
            embed([texts[i] for i in order[start : start + _TEXTS_A_CALL]])
            for start in range(0, len(order), _TEXTS_A_CALL)
        ]
        found = np.concatenate(parts)
        vectors = np.empty_like(found)
        vectors[order] = found
        return vectors

    return embed_all


def spread(shares: np.ndarray, labels: np.ndarray, n_outcomes: int) -> np.ndarray:
    """Return the shares of all outcomes from those of the labels that training rows have."""
    everywhere = np.zeros((len(shares), n_outcomes))
    everywhere[:, labels] = shares
    return everywhere


def _regression(seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV, StratifiedKFold

    return GridSearchCV(
        LogisticRegression(max_iter=300, tol=1e-5, random_state=seed),
        {"C": STRENGTHS},
        scoring="neg_log_loss",
        cv=StratifiedKFold(3, shuffle=True, random_state=seed),
    )


def _train(model: Any, task: Task, read: Embed, clock: Clock) -> Trained:
    with clock.measure("reading"):
        features = read(task.contexts)
    with clock.measure("learning"):
        model.fit(features, task.labels)
    n_outcomes = len(task.decision.outcomes)

    def answer(contexts: Sequence[str]) -> np.ndarray:
        return spread(model.predict_proba(read(contexts)), model.classes_, n_outcomes)

    return Trained(answer, clock)
