"""A judge that is not sure writes before it answers again."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest

from steelyard.decisions.rendering import RenderedDecision, RenderedRequest
from steelyard.serving.connected.answers import UnusableAnswerError
from steelyard.serving.connected.declared import ConnectedModel, Thinking
from steelyard.serving.connected.queue import Loop
from steelyard.serving.connected_hosting import open_queue
from steelyard.settings import InvalidSettingError
from support.models.fake_llama import FakeLlama
from support.models.judges import judge_model

PATIENCE_S = 60
PAID = RenderedDecision("binary", "Is it paid in full?", ("yes", "no"))
TEAM = RenderedDecision("single", "Which team?", ("billing", "shipping", "sales"))
CONTEXT = "Invoice 118 is over 40 EUR, and 25 EUR came in. "
THINKING = Thinking(below=0.6, tokens=100)


@pytest.fixture(scope="module")
def loop():
    loop = Loop()
    yield loop
    loop.close()


@contextmanager
def opened(loop, **options):
    defaults = {"think": THINKING, "permutations": 1}
    model = ConnectedModel(wire="gguf", file="judge.gguf", **defaults | options)
    queue = open_queue("judge", model, loop, max_queue=8)
    try:
        yield queue
    finally:
        queue.close()


def ask(queue, *decisions, context=CONTEXT):
    request = RenderedRequest(context, decisions)
    return queue.submit(request, PATIENCE_S).result(PATIENCE_S)


def once_written(prompt):
    """Lean to yes at first, and be sure of no once the sum is written down."""
    return {"Yes": 0.1, "No": 0.9} if "15 EUR are open" in prompt else {"Yes": 0.55, "No": 0.45}


def test_it_writes_where_it_is_not_sure_and_answers_again_with_that_in_view(loop, monkeypatch):
    fake = FakeLlama(once_written, lambda _: "<think>\n15 EUR are open.\n</think>")
    fake.patch(monkeypatch)
    long = CONTEXT * 10
    with opened(loop) as queue:
        [answer] = ask(queue, PAID, context=long)
    assert np.exp(answer.logits) == pytest.approx([0.1, 0.9])
    thought = answer.thought
    assert (thought.text, thought.n_tokens) == ("15 EUR are open.", 33)
    assert np.exp(thought.first) == pytest.approx([0.55, 0.45])
    first, writing, second = (prompt for prompt, _ in fake.prompts)
    assert "Do not answer yet." in writing
    assert second == first.replace(
        "Question:",
        "Notes on the text, which may be wrong:\n<notes>\n15 EUR are open.\n</notes>\n\nQuestion:",
    )
    # The context is read once: what follows it is all that is read for the thought.
    assert [n < len(long) for _, n in fake.prompts] == [False, True, True]
    n_further = sum(n for _, n in fake.prompts[1:])
    assert thought.cpu_ms == n_further + 33 * 10
    assert answer.cpu_ms == thought.cpu_ms + fake.prompts[0][1]


def test_it_answers_at_once_where_it_is_sure_or_has_nothing_to_write(loop, monkeypatch):
    fake = FakeLlama(lambda _: {"Yes": 0.7, "No": 0.3}, lambda _: " <think></think> ")
    fake.patch(monkeypatch)
    with opened(loop) as queue:
        [answer] = ask(queue, PAID)
        assert (answer.thought, answer.cpu_ms, len(fake.prompts)) == (None, fake.cpu_ms, 1)
    with opened(loop, think=Thinking(below=0.8)) as queue:
        [answer] = ask(queue, PAID)
        assert answer.thought is None
    with opened(loop, think=None) as queue:
        [answer] = ask(queue, PAID)
        assert (answer.thought, answer.cpu_ms) == (None, None)


def test_each_decision_thinks_for_itself_and_all_orders_have_its_thought(loop, monkeypatch):
    teams = {"A": 0.4, "B": 0.3, "C": 0.3}
    fake = FakeLlama(
        lambda prompt: teams if "Which team?" in prompt else {"Yes": 0.9, "No": 0.1},
        lambda _: "It is about money.",
    )
    fake.patch(monkeypatch)
    with opened(loop, permutations="auto") as queue:
        paid, team = ask(queue, PAID, TEAM)
    assert (paid.thought, team.thought.text) == (None, "It is about money.")
    with_notes = [prompt for prompt, _ in fake.prompts if "<notes>" in prompt]
    assert len(with_notes) == 3
    assert all("It is about money." in prompt and "Which team?" in prompt for prompt in with_notes)
    [writing] = [prompt for prompt, _ in fake.prompts if "Do not answer yet." in prompt]
    assert "Options:\n- billing\n- shipping\n- sales\n" in writing


def test_an_opposite_and_answers_about_nothing_correct_both_answers(loop, monkeypatch):
    fake = FakeLlama(once_written, lambda _: "15 EUR are open.")
    fake.patch(monkeypatch)
    with opened(loop, contextual=True) as queue:
        [answer] = ask(queue, PAID)
    assert answer.calibration == "contextual"
    # Both texts that say nothing are answered .55, by which either answer is divided.
    assert np.exp(answer.thought.first) == pytest.approx([0.5, 0.5])
    odds = np.exp(answer.logits[0] - answer.logits[1])
    assert odds == pytest.approx((0.1 / 0.9) / (0.55 / 0.45))


def test_a_thought_has_no_more_tokens_than_it_may_have(loop, monkeypatch):
    fake = FakeLlama(lambda _: {"Yes": 0.5, "No": 0.5}, lambda _: "word " * 100)
    fake.patch(monkeypatch)
    with opened(loop) as queue:
        [answer] = ask(queue, PAID)
    assert answer.thought.n_tokens == len(answer.thought.text) + 1 == 100


def test_an_answer_that_names_no_outcome_is_refused_before_it_thinks(loop, monkeypatch):
    fake = FakeLlama(lambda _: {"<think>": 0.99, "Yes": 0.005, "No": 0.004})
    fake.patch(monkeypatch)
    with opened(loop) as queue, pytest.raises(UnusableAnswerError, match="lies on the labels"):
        ask(queue, PAID)
    assert len(fake.prompts) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"wire": "chat", "url": "http://127.0.0.1:9"}, "only a model of wire 'gguf' can think"),
        ({"wire": "gguf", "file": "judge.gguf", "context_tokens": 612}, "above 612"),
    ],
)
def test_a_declaration_that_cannot_think_is_refused(options, message):
    with pytest.raises(InvalidSettingError, match=message):
        ConnectedModel(**options, think=THINKING).check("judge")
    assert ConnectedModel(wire="gguf", file="j.gguf", think=THINKING).reads_tokens == 4096 - 612


def test_llama_keeps_the_context_and_reads_control_tokens_of_a_thought_as_text(loop):
    context = f"{CONTEXT} Nobody answered my last letter about it, and it is urgent by now. " * 3
    model = judge_model(contextual=False, permutations=1, think=Thinking(below=0.999, tokens=8))
    queue = open_queue("judge", model, loop, max_queue=8)
    engine = queue.remote
    tokenize, notes = engine.tokens, []

    async def with_control_token(run, text, **options):
        if "<notes>" in text:
            text = text.replace("<notes>", "<notes><|im_end|>")
            notes.append(await tokenize(run, text, **options))
            assert len(notes[0]) > len(await tokenize(run, text, is_own=True))
        return await tokenize(run, text, **options)

    engine.tokens = with_control_token
    try:
        [answer] = ask(queue, PAID, context=context)
    finally:
        queue.close()
    assert 0 < answer.thought.n_tokens <= 8
    assert 0 < answer.thought.cpu_ms < answer.cpu_ms
    assert notes
    # Read once, and not three times, with some tokens after it for each prompt.
    assert engine.n_evaluated_tokens < 2 * len(context) / 3.5 + 100
