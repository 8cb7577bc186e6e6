"""Texts unlike any that a model was trained on: how unlike, and who abstains for it."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from steelyard.calibration.temperature import TemperatureTable
from steelyard.decisions.rendering import RenderedRequest
from steelyard.decisions.validation import read_request
from steelyard.decisions.wire import Certified, DecideResponse
from steelyard.families.certifying import abstain_on_novel
from steelyard.scoring.hashing import HashingScorer, WordCounter
from steelyard.scoring.heads import Heads
from steelyard.scoring.novelty import MOST_ROWS, TrainingTexts, word_vectors
from steelyard.scoring.tuned import TunedScorer
from steelyard.serving.decide import DecideService
from support.decisions.factories import make_request_dict

SEEN = [f"seen {n}" for n in range(600)]
HELD_OUT = [f"like {n}" for n in range(99)]


def vectors(texts):
    """Around one direction for seen and similar texts, around another for the rest."""
    found = []
    for text in texts:
        rng = np.random.default_rng(list(text.encode()))
        centre = np.eye(8)[0 if text.startswith(("seen", "like")) else 1]
        vector = centre + 0.1 * rng.normal(size=8)
        found.append(vector / np.linalg.norm(vector))
    return np.array(found, np.float32)


class Reading(HashingScorer):
    embed = staticmethod(vectors)


@pytest.fixture(scope="module")
def training():
    return TrainingTexts.of(SEEN, HELD_OUT, vectors)


def test_texts_like_the_held_out_ones_fall_below_as_often_as_allowed(training, tmp_path):
    likes = training.distances_of(vectors([f"like {n}" for n in range(1000, 2000)]))
    assert 0.02 < np.mean(likes > training.limit(0.05)) < 0.1
    assert (training.distances_of(vectors(["other", "unlike"])) > training.limit(0.01)).all()
    assert [training.share_further(x) for x in (-1, training.distances[-2], 9)] == [
        1,
        1 / MOST_ROWS,
        0,
    ]
    # Of 99 held out the least frequent that can be told is one of a hundred.
    assert training.limit(0.01) == training.evaluation[-1]
    assert training.limit(0.009) is None
    assert TrainingTexts.load(tmp_path) is None
    training.save(tmp_path)
    read = TrainingTexts.load(tmp_path)
    assert not read.of_words
    assert read.vectors.shape == (MOST_ROWS, 8)
    np.testing.assert_array_equal(read.vectors, training.vectors)
    again = TrainingTexts.of(reversed(SEEN), HELD_OUT, vectors)
    np.testing.assert_array_equal(again.evaluation, read.evaluation)


def test_texts_of_a_model_of_words_are_known_by_words_alone(tmp_path):
    lengths = np.linalg.norm(word_vectors(["one two", "", "six"]), axis=1)
    assert lengths.tolist() == pytest.approx([1, 0, 1])
    TrainingTexts.of(SEEN, HELD_OUT, word_vectors, of_words=True).save(tmp_path)
    read = TrainingTexts.load(tmp_path)
    assert read.of_words
    known, strange = read.distances_of(word_vectors(["seen 12", "quite unlike"]))
    assert known < read.distances[-1] < strange


def test_nothing_is_read_for_a_request_that_does_not_ask(training):
    scorer = TunedScorer(Heads([]), HashingScorer(), training=training)  # which has no vectors
    rendered = service().prepare(make_request_dict()).rendered
    [scored] = scorer.score([rendered])
    assert {one.novelty for one in scored} == {None}


@pytest.mark.parametrize(("context", "abstains"), [("seen 3", False), ("something else", True)])
def test_an_answer_abstains_where_its_context_is_unlike_any_seen(training, context, abstains):
    answer = ask(TunedScorer(Heads([]), Reading(), training=training), context)
    assert answer.novelty.unlike == abstains
    assert (answer.novelty.share == 0) == abstains
    check(answer, abstains=abstains)


def test_a_model_that_cannot_tell_abstains(training):
    check(ask(TunedScorer(Heads([]), Reading()), "seen 3"), abstains=True)


def service() -> DecideService:
    return DecideService(
        model_name="router", temperatures=TemperatureTable(), tokenizer=WordCounter()
    )


def ask(scorer: TunedScorer, context: str) -> DecideResponse:
    prepared = service().prepare_request(read_request(make_request_dict(context=context)))
    rendered = RenderedRequest(context, prepared.rendered.decisions, false_alarms=0.05)
    return service().finish(prepared, scorer.score([rendered])[0])


def check(answer: DecideResponse, *, abstains: bool) -> None:
    mark = Certified(error=0.1, confidence=0.95)
    certified = {
        id_: msgspec.structs.replace(result, certified=mark)
        for id_, result in answer.decisions.items()
    }
    answer = abstain_on_novel(msgspec.structs.replace(answer, decisions=certified))
    for result in answer.decisions.values():
        assert (result.action == "abstain") == abstains
        assert (result.certified is msgspec.UNSET) == abstains
