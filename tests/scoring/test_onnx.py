from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from scoring.reference import Reference, tokenize
from steelyard.calibration.temperature import softmax
from steelyard.decisions.rendering import RenderedDecision, RenderedRequest
from steelyard.decisions.several import multi_label
from steelyard.errors import ContextTooLongError, EngineUnavailableError
from steelyard.scoring import onnx, similarity
from steelyard.scoring.assets import BaseModel, load_base_model
from steelyard.scoring.packing import (
    CONTEXT_LENGTH,
    OUTCOME_LENGTH,
    QUESTION_LENGTH,
)
from steelyard.scoring.protocol import ScoredDecision, Scorer
from steelyard.scoring.rows import MAX_KEYS
from steelyard.serving.decide import DecideLimits, DecideService
from support.models.random_model import make_words

#: What probabilities may differ by between two ways of computing one answer.
TOLERANCES = {"onnxruntime-float32": 1e-5, "onnxruntime-int8": 1e-3}
TEAMS = RenderedDecision(
    "single", "Which team should own this order?", ("bank: money", "school", "green house")
)
PAID = RenderedDecision("binary", "Is money open?", ("yes", "no"))
SPEED = RenderedDecision(
    "ordinal", "How quick must work be?", ("0: slow", "1: this week", "2: early", "3")
)
SHORT = RenderedRequest(make_words(30), (TEAMS, PAID, SPEED))


def long_question(kind: str = "single") -> RenderedDecision:
    outcomes = ("yes", "no") if kind == "binary" else ("paper", "white river", "late train")
    return RenderedDecision(kind, make_words(2 * QUESTION_LENGTH + 30, 1), outcomes)


def long_outcomes() -> RenderedDecision:
    return RenderedDecision(
        "single",
        "Which one?",
        ("card", make_words(OUTCOME_LENGTH + 40, 2), make_words(3 * OUTCOME_LENGTH, 3)),
    )


def many_outcomes(n: int = 255) -> RenderedDecision:
    return RenderedDecision(
        "single", "Which word?", tuple(f"{make_words(1, i)} {i}" for i in range(n))
    )


def long_request(n_words: int) -> RenderedRequest:
    return RenderedRequest(make_words(n_words), (TEAMS, PAID, SPEED, long_outcomes()))


REQUESTS = {
    "short": SHORT,
    "window": RenderedRequest(make_words(CONTEXT_LENGTH + 60), (PAID, TEAMS)),
    "question": RenderedRequest(make_words(20), (long_question(), long_question("binary"), TEAMS)),
    "outcome": RenderedRequest(make_words(20), (long_outcomes(), PAID)),
    "long": long_request(900),
    "sentences": RenderedRequest(
        f"{make_words(20, 1)}. {make_words(90, 2)}! {make_words(12, 3)}.", (PAID, TEAMS, SPEED)
    ),
    "empty": RenderedRequest("no context", (RenderedDecision("single", "?", ("", "a")),)),
}


def probabilities(logits: np.ndarray) -> np.ndarray:
    weights = np.exp(logits - logits.max(), dtype=np.float64)
    return weights / weights.sum()


def assert_same(
    scored: list[ScoredDecision], expected: list[ScoredDecision], tolerance: float
) -> None:
    assert len(scored) == len(expected)
    for one, other in zip(scored, expected, strict=True):
        assert one.logits.shape == other.logits.shape
        difference = probabilities(one.logits) - probabilities(other.logits)
        assert abs(difference).max() <= tolerance


def assert_as_reference(model: BaseModel, reference: Reference, request: RenderedRequest) -> None:
    scored = model.scorer.score([request])[0]
    expected = reference.score(tokenize(request, model.tokenizer, model.scorer.reading))
    for decision, mine, theirs in zip(request.decisions, scored, expected, strict=True):
        assert mine.logits.shape == (len(decision.outcomes),)
        assert abs(mine.logits - theirs.logits).max() <= 1e-4
        assert abs(mine.marker_vectors - theirs.marker_vectors).max() <= 1e-4


@pytest.fixture
def force(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return bounds that make even a short request go in stages and passes small."""

    def set_bounds(*, packed: int, whole: int, weights: int, tokens: int) -> None:
        monkeypatch.setattr(onnx, "PACKED_TOKENS", packed)
        monkeypatch.setattr(onnx, "WHOLE_DECISION_TOKENS", whole)
        monkeypatch.setattr(onnx, "PASS_WEIGHTS", weights)
        for module in (onnx, similarity):
            monkeypatch.setattr(module, "PASS_TOKENS", tokens)

    return set_bounds


@pytest.fixture(scope="module")
def unforced_scores() -> Callable[[BaseModel, str], list[ScoredDecision]]:
    """Return a request's answers within the bounds that are, scored once."""
    kept: dict[tuple[int, str], list[ScoredDecision]] = {}

    def get(model: BaseModel, name: str) -> list[ScoredDecision]:
        # Models are loaded once and never closed, so that an id is one model's.
        if (id(model), name) not in kept:
            kept[id(model), name] = model.scorer.score([REQUESTS[name]])[0]
        return kept[id(model), name]

    return get


@pytest.mark.parametrize("name", ["short", "window", "question", "outcome", "sentences", "empty"])
def test_logits_are_those_of_the_reference(load, references, name):
    model = load("shipped", "onnxruntime-float32")
    assert_as_reference(model, references("shipped"), REQUESTS[name])


# The reference takes half a minute for each long one; weights that mean something are the harder
# case.
@pytest.mark.parametrize(
    ("source", "n_words"),
    [
        ("shipped", 350),
        pytest.param("shipped", 1_000, marks=pytest.mark.slow),
        pytest.param("random", 1_000, marks=pytest.mark.slow),
    ],
    indirect=["source"],
)
def test_a_long_context_has_the_references_logits(
    float32_model, references, source, n_words, monkeypatch
):
    request = long_request(n_words)
    tokens = len(float32_model.scorer.lay_out(request).layout)
    monkeypatch.setattr(onnx, "PACKED_TOKENS", min(onnx.PACKED_TOKENS, tokens // 3))
    assert tokens > 2 * onnx.PACKED_TOKENS
    assert_as_reference(float32_model, references(source), request)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["short", "question", "outcome"])
def test_int8_stays_near_the_reference(load, references, name):
    model = load("random", "onnxruntime-int8")
    expected = references("random").score(tokenize(REQUESTS[name], model.tokenizer))
    for mine, theirs in zip(model.scorer.score([REQUESTS[name]])[0], expected, strict=True):
        assert abs(probabilities(mine.logits) - probabilities(theirs.logits)).max() <= 0.1


@pytest.mark.parametrize(
    "bounds",
    [
        {"packed": 0, "whole": 10**6, "weights": 10**9, "tokens": 4_096},
        {"packed": 0, "whole": 0, "weights": 10**9, "tokens": 4_096},
        {"packed": 0, "whole": 0, "weights": 60_000, "tokens": 150},
        {"packed": 0, "whole": 30, "weights": 1, "tokens": 1},
        {"packed": 10**6, "whole": 10**6, "weights": 1, "tokens": 1},
    ],
    ids=["staged", "by-blocks", "small-passes", "block-a-pass", "packed"],
)
@pytest.mark.parametrize("name", ["short", "window", "question", "outcome"])
def test_stages_and_passes_change_no_answer(
    model, engine_name, unforced_scores, force, bounds, name
):
    unforced = unforced_scores(model, name)
    force(**bounds)
    forced = model.scorer.score([REQUESTS[name]])[0]
    # Sums of other passes round another way in their last bit, by the processor's kernels; int8 then
    # takes the next step here and there.
    tolerance = 0.02 if engine_name == "onnxruntime-int8" else TOLERANCES[engine_name]
    assert_same(forced, unforced, tolerance)


@pytest.fixture
def seen(random_model, monkeypatch) -> list[tuple[int, int]]:
    """Return a list that gets the tokens and the attention weights of each pass."""
    found: list[tuple[int, int]] = []
    engine = type(random_model.scorer.pass_engine)
    run = engine.run

    def watch(self, inputs, outputs):
        n_rows, length = inputs["input_ids"].shape
        past = len(inputs["past_channels"])
        found.append((int((inputs["blocks"][..., 0] > 0).sum()), n_rows * length * (past + length)))
        return run(self, inputs, outputs)

    monkeypatch.setattr(engine, "run", watch)
    return found


@pytest.mark.slow
def test_passes_over_a_long_request_stay_within_their_bounds(random_model, force, seen):
    force(packed=0, whole=64, weights=200_000, tokens=300)
    random_model.scorer.score([REQUESTS["long"]])
    assert len(seen) > 6
    largest_block = max(CONTEXT_LENGTH, QUESTION_LENGTH, OUTCOME_LENGTH)
    assert max(tokens for tokens, _ in seen) <= max(300, largest_block)
    past = 2 * len(random_model.scorer.lay_out(REQUESTS["long"]).layout)
    assert max(cells for _, cells in seen) <= 2 * max(200_000, largest_block * past)


def test_a_hundred_short_requests_go_in_passes_of_a_bounded_size(random_model, force, seen):
    force(packed=512, whole=512, weights=4_000_000, tokens=400)
    alone = random_model.scorer.score([SHORT])[0]
    seen.clear()
    scored = random_model.scorer.score([SHORT] * 20)
    n_tokens = [tokens for tokens, _ in seen]
    assert max(n_tokens) <= 400
    assert sum(n_tokens) == 20 * len(random_model.scorer.lay_out(SHORT).layout)
    for item in scored:
        assert_same(item, alone, 1e-5)


def test_eight_labels_read_their_context_once(random_model, seen):
    labels = multi_label("topics", [f"{make_words(1, n)} {n}" for n in range(8)])
    payload = {"context": make_words(60), "decisions": labels}
    together = make_decide(random_model).prepare(payload).rendered
    random_model.scorer.score([together])  # keeps what questions read without a context
    seen.clear()
    random_model.scorer.score([together])
    n_passes, n_tokens = len(seen), sum(tokens for tokens, _ in seen)
    seen.clear()
    for decision in together.decisions:
        random_model.scorer.score([replace(together, decisions=(decision,))])
    assert (n_passes, len(seen)) == (1, 8)
    n_context = len(random_model.scorer.lay_out(replace(together, decisions=())).layout)
    assert n_context >= random_model.tokenizer.count(together.context)
    assert sum(tokens for tokens, _ in seen) - n_tokens == 7 * n_context


@pytest.mark.slow
@pytest.mark.parametrize("engine", list(TOLERANCES))
def test_the_order_of_long_outcomes_changes_nothing(load, engine):
    model = load("shipped", engine)
    texts = tuple(make_words(n, n) for n in (400, 205, 180, 300))
    question, context = make_words(60, 5), make_words(253, 6)
    found = []
    for turn in range(len(texts)):
        asked = RenderedDecision("single", question, texts[turn:] + texts[:turn])
        request = RenderedRequest(context, (asked,))
        # What is read before the outcomes is more than a matrix product adds up in one go.
        assert len(model.scorer.lay_out(request).layout) > 2 * MAX_KEYS
        [[scored]] = model.scorer.score([request])
        found.append(np.roll(softmax(scored.logits), turn))
    for one in found[1:]:
        assert abs(one - found[0]).max() <= TOLERANCES[engine]


def test_many_outcomes(float32_model, force):
    request = RenderedRequest(make_words(40), (many_outcomes(), PAID))
    scored = float32_model.scorer.score([request])[0]
    assert scored[0].logits.shape == (255,)
    assert np.isfinite(scored[0].logits).all()
    assert len(np.unique(scored[0].logits)) > 200
    alone = float32_model.scorer.score([RenderedRequest(request.context, (PAID,))])[0]
    assert_same(scored[1:], alone, 1e-5)
    force(packed=10**6, whole=0, weights=10**9, tokens=10**6)
    assert_same(float32_model.scorer.score([request])[0], scored, 1e-5)


@pytest.mark.slow
def test_many_decisions_of_every_size_are_answered_in_order(random_model):
    decisions = (long_outcomes(), PAID, long_question(), TEAMS, many_outcomes(60), SPEED, PAID)
    request = RenderedRequest(make_words(600), decisions)
    together = random_model.scorer.score([request])[0]
    for decision, scored in zip(decisions, together, strict=True):
        alone = random_model.scorer.score([RenderedRequest(request.context, (decision,))])[0]
        assert_same([scored], alone, 1e-5)


@pytest.mark.slow
def test_long_and_short_requests_are_answered_in_order(random_model):
    requests = [REQUESTS[name] for name in ("long", "short", "window", "question", "short")]
    for request, scored in zip(requests, random_model.scorer.score(requests), strict=True):
        assert_same(scored, random_model.scorer.score([request])[0], 1e-5)


def with_other_end(text: str) -> str:
    head, _, last = text.rpartition(" ")
    assert last != "water"
    return f"{head} water"


@pytest.mark.parametrize(
    "n_words", [CONTEXT_LENGTH - 20, 700, pytest.param(1_500, marks=pytest.mark.slow)]
)
def test_the_last_word_of_a_context_is_read(float32_model, n_words):
    other = RenderedRequest(with_other_end(make_words(n_words)), (TEAMS, PAID))
    request = RenderedRequest(make_words(n_words), (TEAMS, PAID))
    scored, again = float32_model.scorer.score([request, request])
    (changed,) = float32_model.scorer.score([other])
    for one, same, two in zip(scored, again, changed, strict=True):
        noise = abs(one.logits - same.logits).max()
        assert abs(one.logits - two.logits).max() > max(1e-4, 10 * noise)


@pytest.mark.parametrize("context_words", [10, pytest.param(900, marks=pytest.mark.slow)])
def test_the_last_word_of_a_question_and_of_an_outcome_is_read(float32_model, context_words):
    def logits(question: str, outcome: str) -> np.ndarray:
        decision = RenderedDecision("single", question, ("card", outcome))
        request = RenderedRequest(make_words(context_words), (decision,))
        return float32_model.scorer.score([request])[0][0].logits

    question, outcome = long_question().question, long_outcomes().outcomes[2]
    base = logits(question, outcome)
    assert abs(logits(with_other_end(question), outcome) - base).max() > 1e-4
    assert abs(logits(question, with_other_end(outcome)) - base).max() > 1e-4


@pytest.mark.slow
def test_shapes_and_types(model, engine_name):
    scorer: Scorer = model.scorer
    assert scorer.engine == engine_name
    assert scorer.name == model.manifest["name"]
    for name in ("short", "long"):
        scored = scorer.score([REQUESTS[name]])[0]
        for decision, one in zip(REQUESTS[name].decisions, scored, strict=True):
            assert one.logits.shape == (len(decision.outcomes),)
            assert one.marker_vectors.shape == (len(decision.outcomes), 384)
            assert {one.logits.dtype, one.marker_vectors.dtype} == {np.dtype(np.float32)}
            assert np.isfinite(one.logits).all()
    assert scorer.score([]) == []


def test_scores_outlive_the_pass_they_came_from(random_model):
    scored = random_model.scorer.score([SHORT])[0][0]
    assert scored.logits.base is None
    assert scored.marker_vectors.base is None


def test_a_closed_scorer_is_unavailable(random_folder):
    model = load_base_model(folder=random_folder)
    model.scorer.score([SHORT])
    model.scorer.close()
    with pytest.raises(EngineUnavailableError):
        model.scorer.score([SHORT])


def make_decide(model: BaseModel, max_input_tokens: int = 65_536) -> DecideService:
    return DecideService(
        model_name=model.scorer.name,
        temperatures=model.temperatures,
        tokenizer=model.tokenizer,
        limits=DecideLimits(max_input_tokens=max_input_tokens),
    )


def largest_payload(model: BaseModel, max_input_tokens: int = 65_536) -> dict[str, object]:
    """A request of exactly as many tokens as are allowed."""
    decision = {"id": "d", "question": "Which team?", "outcomes": ["bank", "school", "river"]}
    others = model.tokenizer.count("Which team?") + 3
    return {"context": make_words(max_input_tokens - others), "decisions": [decision]}


def test_one_token_more_than_is_allowed_is_too_long(random_model):
    decide = make_decide(random_model)
    payload = largest_payload(random_model)
    prepared = decide.prepare(payload)
    assert prepared.input_tokens == 65_536
    # Everything that was counted reaches the scorer, special tokens and overlaps on top.
    assert len(random_model.scorer.lay_out(prepared.rendered).layout) > 65_536
    payload["context"] = f"{payload['context']} card"
    with pytest.raises(ContextTooLongError, match="65537 input tokens, and 65536"):
        decide.prepare(payload)


_LARGEST = """
import resource, sys
from pathlib import Path
import numpy as np
from scoring.test_onnx import largest_payload, make_decide
from steelyard.scoring.assets import load_base_model
from support.decisions.factories import decided

model = load_base_model(folder=Path(sys.argv[1]))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
payload = largest_payload(model)
answer = decided(make_decide(model), payload, lambda rendered: model.scorer.score([rendered])[0])
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
result = answer.decisions["d"]
print(answer.usage.input_tokens, sum(result.probabilities.values()), (after - before) / 2**20)
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_longest_context_is_answered_in_bounded_memory(random_folder):
    done = subprocess.run(
        [sys.executable, "-c", _LARGEST, str(random_folder)],
        env={
            "PYTHONPATH": ":".join(path for path in sys.path if path),
            "OMP_WAIT_POLICY": "PASSIVE",
        },
        capture_output=True,
        text=True,
        timeout=850,
        check=True,
    )
    n_tokens, total, gibibytes = map(float, done.stdout.split())
    assert n_tokens == 65_536
    assert total == pytest.approx(1, abs=1e-6)
    # Keys and values are 1.2 GiB; a pass holds as much again, and some copies.
    assert gibibytes < 8


@pytest.mark.parametrize("engine", TOLERANCES)
def test_a_text_has_one_unit_vector_alone_and_in_company(load, engine):
    scorer = load("random", engine).scorer
    texts = ["card", make_words(2 * CONTEXT_LENGTH, 4), "", "card"]
    vectors = scorer.embed(texts)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(vectors[0], vectors[3], atol=1e-6)
    for text, vector in zip(texts, vectors, strict=True):
        np.testing.assert_allclose(scorer.embed([text])[0], vector, atol=1e-2)
    assert scorer.embed([]).shape == (0, vectors.shape[1])
    words, of_words = scorer.static_words()
    assert of_words.shape == (len(words), vectors.shape[1])
    assert not any(word.startswith(("##", "[")) and len(word) > 1 for word in words)
