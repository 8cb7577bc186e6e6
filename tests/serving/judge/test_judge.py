"""A judge answers in a process of its own, which may end or hang at any time."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from steelyard.decisions.rendering import RenderedDecision, RenderedRequest
from steelyard.errors import ContextTooLongError, EngineUnavailableError
from steelyard.serving.connected.breaker import RemoteFailureError
from steelyard.serving.connected.queue import Loop
from steelyard.serving.connected_hosting import open_queue
from steelyard.serving.judge import engine as engines
from steelyard.serving.judge.pool import JudgePool
from steelyard.serving.judge.prompts import opposed, read_opposite, write_question
from support.models.judges import judge_model
from support.waiting import wait_until

PATIENCE_S = 60
YES_NO = RenderedDecision("binary", "Was something paid twice?", ("yes", "no"))
TEAM = RenderedDecision("single", "Which team?", ("billing", "shipping", "sales"))
LEVEL = RenderedDecision("ordinal", "How urgent?", ("low", "middle", "high"))
CONTEXT = "Invoice 118 was paid twice. Please send the second payment back."


@pytest.fixture(scope="module")
def loop():
    loop = Loop()
    yield loop
    loop.close()


@contextmanager
def opened(loop, pool=None, **options):
    queue = open_queue("judge", judge_model(**options), loop, max_queue=8, pool=pool)
    try:
        yield queue, queue.remote
    finally:
        queue.close()


@pytest.fixture(scope="module")
def judge(loop):
    with opened(loop) as (queue, engine):
        yield queue, engine


def ask(queue, *decisions, context=CONTEXT):
    scored = queue.submit(RenderedRequest(context, decisions), PATIENCE_S).result(PATIENCE_S)
    return [np.exp(decision.logits) for decision in scored]


def test_it_answers_every_kind_with_every_outcome(judge):
    queue, _ = judge
    answers = ask(queue, YES_NO, TEAM, LEVEL)
    assert [len(answer) for answer in answers] == [2, 3, 3]
    assert [answer.sum() for answer in answers] == pytest.approx([1, 1, 1], abs=1e-3)


def test_the_order_of_outcomes_hardly_matters(judge):
    queue, _ = judge
    turned = RenderedDecision("single", TEAM.question, (*TEAM.outcomes[1:], TEAM.outcomes[0]))
    [first], [second] = ask(queue, TEAM), ask(queue, turned)
    assert first == pytest.approx(second[[2, 0, 1]], abs=0.05)


def test_it_names_the_corrections_of_an_answer(judge):
    queue, _ = judge
    both = replace(YES_NO, opposite="Was nothing paid twice?")
    request = RenderedRequest(CONTEXT, (YES_NO, both))
    answers = queue.submit(request, PATIENCE_S).result(PATIENCE_S)
    assert [answer.calibration for answer in answers] == ["contextual", "opposite"]


def test_it_is_asked_both_and_writes_an_opposite_once_that_no_rule_makes(judge, monkeypatch):
    queue, engine = judge
    written = []

    async def write(run, messages, max_tokens):
        written.append(messages[-1]["content"])
        return "Was nothing paid twice?"

    monkeypatch.setattr(engine, "_writes_opposites", True)
    monkeypatch.setattr(engine, "_write", write)
    described = replace(YES_NO, outcomes=("yes: money", "no: none"))
    declined = replace(YES_NO, question="Is it praise or a complaint?")
    request = RenderedRequest(CONTEXT, (YES_NO, declined, TEAM, described))
    for _ in range(2):
        answers = queue.submit(request, PATIENCE_S).result(PATIENCE_S)
    assert [answer.calibration for answer in answers] == ["own_opposite", "own_opposite", "", ""]
    assert [declined.question in text for text in written] == [True]


def test_only_another_question_is_an_opposite():
    assert read_opposite("Opposite: Is it paid?\nQuestion: Is", "Is it due?") == "Is it paid?"
    assert not read_opposite(" is it due", "Is it due?")
    assert not read_opposite("", "Is it due?")


def test_a_guideline_follows_the_question_where_there_is_one():
    guided = replace(TEAM, guideline="Invoices are *billing*.")
    plain, text = (write_question(each, [0, 1, 2]).text for each in (TEAM, guided))
    assert text == plain.replace("\nOptions:", "\nGuideline: Invoices are *billing*.\nOptions:")
    both = replace(YES_NO, opposite="Was nothing paid twice?", guideline="A voucher is none.")
    assert write_question(opposed(both), [0, 1]).text == (
        "Question: Was nothing paid twice?\n"
        'Guideline: (for "Was something paid twice?") A voucher is none.\n'
        "Answer with Yes or No."
    )


def test_a_leaning_is_asked_once(judge):
    queue, engine = judge
    decision = replace(YES_NO, question="Has the writer paid?")
    tokens = []
    for context in ("It is paid.", "Not yet paid.", "All was paid."):
        before = engine.n_evaluated_tokens
        ask(queue, decision, context=context)
        tokens.append(engine.n_evaluated_tokens - before)
    assert tokens[0] > 2 * tokens[1]
    assert tokens[1] == pytest.approx(tokens[2], abs=10)


def test_a_context_is_read_once(judge, monkeypatch):
    queue, engine = judge
    monkeypatch.setattr(engine, "_takes_leanings", False)
    context = f"{CONTEXT} It is urgent, and nobody answered my last letter about it. " * 8
    decisions = [RenderedDecision("binary", f"Is it about {n}?", ("yes", "no")) for n in range(3)]
    ask(queue, YES_NO, context="something else")
    alone = []
    for decision in decisions:
        before = engine.n_evaluated_tokens
        ask(queue, decision)
        alone.append(engine.n_evaluated_tokens - before)
    before = engine.n_evaluated_tokens
    ask(queue, *decisions, context=context)
    evaluated = engine.n_evaluated_tokens - before
    context_tokens = len(context) / 3.5
    assert evaluated <= 1.1 * (context_tokens + sum(alone))


def test_control_tokens_in_a_context_are_text(judge):
    queue, engine = judge
    run = engine._run
    text = "<|im_end|>"
    assert len(queue._loop.run(engine.tokens(run, text))) > 1
    assert len(queue._loop.run(engine.tokens(run, text, is_own=True))) == 1


def test_a_context_that_is_too_long_is_refused(judge):
    queue, _ = judge
    with pytest.raises(ContextTooLongError, match=r"Shorten it"):
        ask(queue, YES_NO, context="word " * 2_000)


@pytest.mark.slow
def test_a_process_that_ends_is_replaced(judge):
    queue, engine = judge
    ask(queue, YES_NO)
    before = engine.pid
    os.kill(before, signal.SIGKILL)
    ask(queue, YES_NO)
    assert engine.pid not in {None, before}


def test_a_connection_that_ends_is_replaced(judge, monkeypatch):
    queue, engine = judge
    send, paths = engine.send, []

    async def lose_one(run, method, path, body=None):
        paths.append(path)
        if paths.count("/completion") == 1 and path == "/completion":
            raise RemoteFailureError("The connection ended.")
        return await send(run, method, path, body)

    ask(queue, YES_NO)
    before = engine.pid
    monkeypatch.setattr(engine, "send", lose_one)
    ask(queue, YES_NO)
    assert engine.pid == before


def test_a_process_that_hangs_is_ended(judge, monkeypatch):
    queue, engine = judge
    monkeypatch.setattr(engines, "HUNG_S", 0.5)
    ask(queue, YES_NO)
    before = engine.pid
    os.kill(before, signal.SIGSTOP)
    ask(queue, YES_NO)  # asked again in the next process
    assert engine.pid not in {None, before}


def test_a_judge_that_does_not_fit_is_refused(loop):
    with opened(loop, JudgePool(memory_bytes=1)) as (queue, engine):
        with pytest.raises(EngineUnavailableError, match=r"needs about 0\.\d GB of memory"):
            ask(queue, YES_NO)
        assert engine.pid is None


@pytest.mark.slow
def test_the_judge_unused_for_longest_leaves(loop):
    pool = JudgePool(memory_bytes=600_000_000)  # for one
    with opened(loop, pool) as (first, engine), opened(loop, pool) as (second, other):
        ask(first, YES_NO)
        ask(second, YES_NO)
        assert engine._run is None
        assert other.pid is not None


@pytest.mark.slow
def test_closing_ends_the_process(loop):
    with opened(loop) as (queue, engine):
        ask(queue, YES_NO)
        pid = engine.pid
    wait_until(lambda: not Path(f"/proc/{pid}").exists())
