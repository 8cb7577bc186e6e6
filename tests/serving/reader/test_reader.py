"""A reader answers decisions in this process, and reports unstated ones."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import numpy as np
import pytest

from steelyard.decisions.rendering import RenderedDecision, RenderedRequest
from steelyard.decisions.statements import read_yes_no
from steelyard.errors import EngineUnavailableError
from steelyard.scoring.entailment.hypotheses import hypotheses_of
from steelyard.scoring.shares import Share
from steelyard.serving.connected.declared import ConnectedModel
from steelyard.serving.connected.queue import Loop
from steelyard.serving.connected_hosting import open_queue
from steelyard.serving.reader import engine
from steelyard.waiting import Precedence
from support.models.entailment_models import THREE, TWO, write_encoder

PATIENCE_S = 30
HAPPY, ANGRY = "The customer is happy.", "The customer is angry."


def yes_no(question="Is the customer happy?", **fields):
    names = ("yes", "no")
    return RenderedDecision("binary", question, fields.pop("outcomes", names), names, **fields)


MOOD = RenderedDecision(
    "single",
    "How does the customer feel?",
    ("good: The customer is happy.", "bad: The customer is angry."),
    ("good", "bad"),
)


@pytest.fixture(scope="module")
def loop():
    loop = Loop()
    yield loop
    loop.close()


@pytest.fixture
def open_reader(loop, tmp_path):
    """Return a function that opens the queue of a reader."""
    queues = []

    def open_reader(*labels, folder="reader", length=None, **options):
        write_encoder(tmp_path / folder, *labels, length=length)
        model = ConnectedModel(wire="entailment", file=folder, **options)
        queue = open_queue("reader", model, loop, home=tmp_path, max_queue=64)
        queues.append(queue)
        return queue

    yield open_reader
    for queue in queues:
        queue.close()


def ask(queue, context, *decisions, account="acme"):
    request = RenderedRequest(context, decisions)
    scored = queue.submit(request, PATIENCE_S, Share(account)).result(PATIENCE_S)
    for score, decision in zip(scored, decisions, strict=True):
        assert score.logits.shape == (len(decision.outcomes),)
        assert np.exp(score.logits).sum() == pytest.approx(1)
    return scored


def test_a_yes_no_and_a_choice_are_read(open_reader):
    reader = open_reader()
    for context, yes in ((HAPPY, 0), (ANGRY, 1)):
        scored = ask(reader, context, yes_no(), MOOD)
        assert [int(score.logits.argmax()) for score in scored] == [yes, yes]
        assert scored[0].unstated < 0.4
        assert scored[1].unstated is None
    [silent] = ask(reader, "A parcel came.", yes_no())
    assert silent.unstated > 0.4
    assert abs(np.exp(silent.logits[0]) - 0.5) < 0.05


def test_two_logits_have_no_unstated_probability(open_reader):
    [score] = ask(open_reader(TWO), HAPPY, yes_no())
    assert score.unstated is None
    assert score.logits[0] > score.logits[1]


def test_company_order_and_cache_change_no_bit(open_reader):
    reader = open_reader()
    decisions = (yes_no(), MOOD, yes_no("Is the customer furious?"))
    alone = [ask(reader, HAPPY, decision)[0].logits.tobytes() for decision in decisions]
    passes = reader.remote.reader.n_passes
    together = ask(reader, HAPPY, *decisions[::-1])
    assert [score.logits.tobytes() for score in together[::-1]] == alone
    assert reader.remote.reader.n_passes == passes
    again = ask(reader, HAPPY, *decisions, account="other")
    assert [score.logits.tobytes() for score in again] == alone
    assert reader.remote.reader.n_passes == 2 * passes


@pytest.mark.parametrize("labels", [THREE, TWO])
@pytest.mark.parametrize("length", [None, 48])
def test_fifty_at_once_have_the_bits_that_each_has_alone(open_reader, labels, length):
    reader = open_reader(labels, length=length)
    texts = [f"{HAPPY} {'A parcel came. ' * (n % 4)}" for n in range(10)] * 5
    decisions = (yes_no(), MOOD)

    def submit(account):
        return [
            reader.submit(RenderedRequest(text, decisions[:: (-1) ** n], owner=account), PATIENCE_S)
            for n, text in enumerate(texts)
        ]

    together = [scores.result(PATIENCE_S) for scores in submit("acme")]
    for n, (text, scored) in enumerate(zip(texts, together, strict=True)):
        for decision, score in zip(decisions[:: (-1) ** n], scored, strict=True):
            alone = ask(reader, text, decision, account=f"alone {n}")[0]
            assert alone.logits.tobytes() == score.logits.tobytes()


def test_a_long_context_is_read_in_parts_which_the_answer_says(open_reader):
    reader = open_reader()
    [score] = ask(reader, f"{'It was a parcel. ' * 60}{HAPPY}", yes_no())
    assert score.logits[0] > score.logits[1]
    assert "parts" in score.doubt
    assert not ask(reader, HAPPY, yes_no())[0].doubt


def test_the_temperature_of_a_kind_is_the_manifests(open_reader, tmp_path):
    [plain] = ask(open_reader(), HAPPY, yes_no())
    soft = open_reader()
    (tmp_path / "reader" / "steelyard.json").write_text('{"temperatures": {"binary": 4}}')
    [score] = ask(soft, HAPPY, yes_no())
    assert np.ptp(score.logits) == pytest.approx(np.ptp(plain.logits) / 2)


def test_an_encoder_of_questions_reads_one_text_of_a_yes_no(open_reader, tmp_path):
    reader, both = open_reader(), open_reader(folder="both")
    (tmp_path / "reader" / "steelyard.json").write_text('{"questions": true}')
    for context, yes in ((HAPPY, 0), (ANGRY, 1)):
        [alone], [paired] = (ask(each, context, yes_no()) for each in (reader, both))
        assert int(alone.logits.argmax()) == int(paired.logits.argmax()) == yes
        assert alone.unstated < 0.4
    declined = yes_no("Happy or not so much, would one say?")
    assert hypotheses_of(declined, questions=True) == (declined.question,)
    guided = yes_no(f"{declined.question} Jokes do not count.")
    assert hypotheses_of(guided, questions=True) == (declined.question,)
    assert hypotheses_of(yes_no(), questions=True) == (HAPPY,)
    described = yes_no(declined.question, outcomes=(f"yes: {HAPPY}", f"no: {ANGRY}"))
    assert hypotheses_of(described, questions=True) == (HAPPY, ANGRY)
    assert hypotheses_of(MOOD, questions=True) == hypotheses_of(MOOD)


def test_a_folder_that_is_gone_is_a_sentence(open_reader, tmp_path):
    reader = open_reader()
    (tmp_path / "reader" / "model.onnx").unlink()
    with pytest.raises(EngineUnavailableError, match=r"reader: .* has no model\.onnx"):
        ask(reader, HAPPY, yes_no())


def test_each_pass_waits_for_those_of_the_shipped_model(open_reader, monkeypatch):
    begun = []
    give_way = SimpleNamespace(give_way=lambda: begun.append(queue.remote.reader.n_passes))
    monkeypatch.setattr(engine, "PASSES", give_way)
    queue = open_reader()
    ask(queue, HAPPY, yes_no(), MOOD)
    # "The customer is happy." is an outcome's statement too.
    assert begun == list(range(queue.remote.reader.n_passes)) == [0, 1, 2]


def test_work_gives_way_until_others_end_or_for_some_time():
    passes, ended = Precedence(), threading.Event()
    waiting = threading.Thread(target=lambda: (passes.give_way(PATIENCE_S), ended.set()))
    with passes.running():
        waiting.start()
        passes.give_way(0.0)
        assert not ended.is_set()
    assert ended.wait(PATIENCE_S)
    waiting.join()


def test_grammar_reads_a_question_once(open_reader):
    reader, question = open_reader(), yes_no("Is the customer who wrote on Friday happy?")
    before = read_yes_no.cache_info().misses
    [score] = ask(reader, HAPPY, question)
    assert score.reading.statement == "The customer who wrote on Friday is happy."
    assert read_yes_no.cache_info().misses == before + 1


def test_a_given_opposite_is_the_negation():
    opposite = yes_no(opposite="Is the customer angry?")
    assert hypotheses_of(opposite) == ("The customer is happy.", "The customer is angry.")


def test_declined_questions_go_as_they_were_typed():
    typed = hypotheses_of(yes_no("Urgent so?"))
    assert typed == ('The answer to "Urgent so?" is yes.', 'The answer to "Urgent so?" is no.')
    assert hypotheses_of(yes_no("Urgent so? Holidays do not count.")) == typed
    outcomes = ("yes: The parcel is very late.", "no: The parcel came on Monday.")
    described = hypotheses_of(yes_no("Urgent so?", outcomes=outcomes))
    assert described == ("The parcel is very late.", "The parcel came on Monday.")


def test_outcomes_are_statements():
    topics = RenderedDecision(
        "single", "Which team?", ("billing: charges", "sales"), ("billing", "sales")
    )
    assert hypotheses_of(topics) == (
        "The team is billing (charges).",
        "The team is sales.",
    )
    assert hypotheses_of(MOOD) == ("The customer is happy.", "The customer is angry.")
