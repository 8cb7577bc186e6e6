"""Questions that the lowest layers read apart from the context: kept, and as if they were not."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from scoring.reference import Reference, read_stored, tokenize
from steelyard.decisions.rendering import RenderedDecision, RenderedRequest
from steelyard.errors import EngineUnavailableError
from steelyard.scoring import lower, onnx, similarity, word_vectors
from steelyard.scoring.assets import LOWER_GRAPHS, BaseModel, load_base_model, read_base_files
from steelyard.scoring.engine import FLOAT32, Engine
from steelyard.scoring.lower import QUESTION_STATES, KeptFigures, KeptStates
from steelyard.scoring.onnx import OnnxScorer
from steelyard.scoring.packing import TokenizedDecision, TokenizedRequest
from steelyard.scoring.passes import CHUNK, N_LAYERS, WIDTH
from steelyard.scoring.protocol import ScoredDecision
from steelyard.scoring.word_vectors import WordVectors
from support.models.random_model import make_words, write_random_model

APART = 3
ENGINES = ["onnxruntime-float32", "onnxruntime-int8"]
#: What logits may differ by between two ways of computing one answer.
CLOSE = {"onnxruntime-float32": 1e-4, "onnxruntime-int8": 1e-3}
TEAMS = RenderedDecision(
    "single", "Which team should own this order?", ("bank: money", "school", "green house")
)
PAID = RenderedDecision("binary", "Is money open?", ("yes", "no"))
SPEED = RenderedDecision("ordinal", "How quick?", ("0: slow", "1: this week", "2: early", "3"))
MANY = RenderedDecision(
    "single", "Which word?", tuple(f"{make_words(1, i)} {i}" for i in range(40))
)
LONG_QUESTION = RenderedDecision("single", make_words(135, 1), ("paper", "white river"))
LONG_OUTCOMES = RenderedDecision(
    "single", "Which?", ("card", make_words(100, 2), make_words(150, 3))
)
REQUESTS = {
    "short": RenderedRequest(make_words(30), (TEAMS, PAID, SPEED)),
    "sentences": RenderedRequest(
        f"{make_words(20)}. {make_words(30, 2)}. {make_words(9, 3)}.", (TEAMS, PAID)
    ),
    "windows": RenderedRequest(make_words(260), (PAID, TEAMS)),
    "question": RenderedRequest(make_words(20), (LONG_QUESTION, TEAMS)),
    "outcomes": RenderedRequest(make_words(20), (LONG_OUTCOMES, PAID)),
    "many": RenderedRequest(make_words(40), (MANY, SPEED)),
    "long": RenderedRequest(make_words(300), (TEAMS, LONG_OUTCOMES, PAID)),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a base model whose lowest layers read questions apart."""
    place = tmp_path_factory.mktemp("apart-model")
    write_random_model(place, apart=APART)
    return place


@pytest.fixture(scope="module")
def load_apart(folder: Path) -> Iterator[Callable[[str], BaseModel]]:
    loaded: dict[str, BaseModel] = {}

    def get(engine: str) -> BaseModel:
        if engine not in loaded:
            loaded[engine] = load_base_model(engine, folder=folder)
        return loaded[engine]

    yield get
    for model in loaded.values():
        model.scorer.close()


@pytest.fixture(params=ENGINES)
def model(load_apart, request: pytest.FixtureRequest) -> BaseModel:
    return load_apart(request.param)


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseModel, int], KeptStates]:
    """Return a function that empties a model's cache of questions and sets its bytes."""

    def renew(model: BaseModel, max_bytes: int = 10**9) -> KeptStates:
        kept = KeptStates(max_bytes)
        monkeypatch.setattr(model.scorer._lower, "_kept", kept)
        return kept

    return renew


def assert_same_bits(scored: list[ScoredDecision], expected: list[ScoredDecision]) -> None:
    assert len(scored) == len(expected)
    for one, other in zip(scored, expected, strict=True):
        assert np.array_equal(one.logits, other.logits)
        assert np.array_equal(one.marker_vectors, other.marker_vectors)


def assert_close(
    scored: list[ScoredDecision], expected: list[ScoredDecision], tolerance: float
) -> None:
    for one, other in zip(scored, expected, strict=True):
        assert abs(one.logits - other.logits).max() <= tolerance


def test_logits_are_those_of_the_reference(load_apart, folder):
    model = load_apart("onnxruntime-float32")
    asked = RenderedRequest(make_words(9), (LONG_QUESTION, PAID, SPEED))
    expected = Reference(read_stored(folder), APART).score(tokenize(asked, model.tokenizer))
    for mine, theirs in zip(model.scorer.score([asked])[0], expected, strict=True):
        assert abs(mine.logits - theirs.logits).max() <= 1e-4
        assert abs(mine.marker_vectors - theirs.marker_vectors).max() <= 1e-4


def test_a_known_question_has_the_bits_of_one_that_is_not(model, fresh):
    fresh(model, 0)
    expected = {name: model.scorer.score([asked])[0] for name, asked in REQUESTS.items()}
    kept = fresh(model)
    for name, asked in REQUESTS.items():
        assert_same_bits(model.scorer.score([asked])[0], expected[name])
    n_misses = kept.figures().misses
    for name, asked in REQUESTS.items():
        assert_same_bits(model.scorer.score([asked])[0], expected[name])
    assert kept.figures().misses == n_misses, "all was known the second time"
    assert kept.figures().hits >= n_misses


@pytest.mark.slow
def test_the_bits_do_not_depend_on_the_first_pass_of_a_question(model, fresh):
    fresh(model, 0)
    asked = [REQUESTS[name] for name in ("short", "outcomes", "many")]
    expected = [model.scorer.score([one])[0] for one in asked]
    rng = np.random.default_rng(1)
    for _ in range(2):
        kept = fresh(model)
        decisions = [TEAMS, MANY, SPEED, LONG_OUTCOMES, PAID]
        warmed = [
            RenderedRequest(
                make_words(int(rng.integers(1, 60))),
                tuple(
                    RenderedDecision(one.kind, one.question, drawn)
                    for one in rng.permutation(np.array(decisions, object))
                    for n in [int(rng.integers(2, len(one.outcomes) + 1))]
                    for drawn in [tuple(rng.permutation(np.array(one.outcomes, object))[:n])]
                ),
            )
            for _ in range(3)
        ]
        model.scorer.score(warmed)
        for one, wanted in zip(asked, expected, strict=True):
            assert_same_bits(model.scorer.score([one])[0], wanted)
        assert kept.figures().hits > 40


@pytest.mark.parametrize("name", REQUESTS)
def test_a_known_context_has_the_bits_of_one_that_is_not_and_is_known_to_its_owner_alone(
    model, monkeypatch, name
):
    """Whatever it came with the first time, and whatever else is asked beside it the second time."""
    asked = REQUESTS[name]
    [expected] = model.scorer.score([asked])
    kept = KeptStates()
    monkeypatch.setattr(model.scorer._lower, "_contexts", kept)
    model.scorer.score([asked])
    assert kept.figures() == KeptFigures(), "it has no owner"
    first = replace(asked, decisions=(SPEED, MANY), owner="acc_1")
    model.scorer.score([first, replace(first, owner="acc_2")])
    n_misses = kept.figures().misses
    assert_same_bits(model.scorer.score([replace(asked, owner="acc_1")])[0], expected)
    assert (kept.figures().hits, kept.figures().misses) == (n_misses // 2, n_misses)
    model.scorer.score([replace(asked, owner="acc_3")])
    assert kept.figures().misses == n_misses * 3 // 2


def test_a_question_is_read_once_for_all_contexts_and_outcomes(model, fresh):
    kept = fresh(model)
    model.scorer.score([REQUESTS["short"]])
    assert kept.figures().misses == 3 + 3 + 2 + 4
    more = RenderedDecision("single", TEAMS.question, (*TEAMS.outcomes[::-1], "late train"))
    model.scorer.score([RenderedRequest(make_words(9, 3), (more, PAID))])
    found = kept.figures()
    assert (found.misses, found.hits) == (3 + 3 + 2 + 4 + 1, 1 + 3 + 1 + 2)


def test_the_same_words_of_another_kind_are_another_question(model, fresh):
    kept = fresh(model)
    texts = ("1", "2")
    both = [RenderedDecision(kind, "How quick?", texts) for kind in ("single", "ordinal")]
    context = make_words(5)
    together = model.scorer.score([RenderedRequest(context, tuple(both))])[0]
    assert kept.figures().misses == 6
    for one, scored in zip(both, together, strict=True):
        alone = model.scorer.score([RenderedRequest(context, (one,))])[0]
        assert_close([scored], alone, CLOSE[model.scorer.engine])


def test_a_small_store_changes_no_answer_and_keeps_its_bound(model, fresh):
    fresh(model, 0)
    asked = [REQUESTS[name] for name in ("short", "many", "short")]
    expected = [model.scorer.score([one])[0] for one in asked]
    kept = fresh(model, 60_000)
    for one, wanted in zip(asked, expected, strict=True):
        assert_same_bits(model.scorer.score([one])[0], wanted)
        assert 0 < kept.figures().n_bytes <= 60_000
    assert kept.figures().evictions > 20


@pytest.mark.parametrize("name", ["sentences", "windows"])
def test_a_choice_over_sentences_does_without_the_last_layer_of_its_context(
    model, monkeypatch, name
):
    engine, sizes = model.scorer.pass_engine, []
    run = engine.run

    def record(inputs, outputs):
        if "logits" in outputs:
            sizes.append(inputs["kept"].size)
        return run(inputs, outputs)

    sentences = replace(REQUESTS[name], context=f"{REQUESTS[name].context}. {make_words(9, 3)}.")
    [beside_another] = model.scorer.score([replace(sentences, decisions=(TEAMS, PAID))])
    monkeypatch.setattr(engine, "run", record)
    [[alone]] = model.scorer.score([replace(sentences, decisions=(TEAMS,))])
    assert_same_bits([alone], beside_another[:1])
    assert sizes == [len(TEAMS.outcomes)]


def test_a_sentence_that_comes_again_is_read_once(model, monkeypatch):
    engine, read = model.scorer.pass_engine, []
    run = engine.run

    def record(inputs, outputs):
        if list(outputs) == ["pooled"]:
            read.append(int((inputs["blocks"][..., 0] > 0).sum()))
        return run(inputs, outputs)

    sentences = [make_words(20), make_words(30, 2)]
    model.scorer.score([RenderedRequest("late", (TEAMS,))])  # its outcomes are known from here on
    monkeypatch.setattr(engine, "run", record)
    for times in (1, 3):
        model.scorer.score([RenderedRequest(". ".join(sentences * times) + ".", (TEAMS,))])
    once, again = read
    assert once == again > 50


def test_of_a_very_long_context_each_choice_reads_sentences_of_its_own(model, monkeypatch):
    context = ". ".join(make_words(20, place) for place in range(40)) + "."
    every = model.scorer.lay_out(RenderedRequest(context, (TEAMS, MANY))).tokenized
    monkeypatch.setattr(word_vectors, "READ_TOKENS", 200)
    assert not model.scorer.lay_out(RenderedRequest(context, (TEAMS,))).selected, (
        "it is not so long"
    )
    monkeypatch.setattr(onnx, "LONG_CONTEXT", len(every.context) - 1)
    item = model.scorer.lay_out(RenderedRequest(context, (PAID, TEAMS, MANY)))
    read = item.tokenized.sentences
    assert list(read) == [one for one in every.sentences if one in read] != list(every.sentences)
    assert list(item.selected) == [1, 2]
    for places in item.selected.values():
        assert 100 < sum(len(read[place]) for place in places) <= 200
    together = model.scorer.score([RenderedRequest(context, (PAID, TEAMS, MANY))])[0]
    turned = RenderedDecision("single", TEAMS.question, TEAMS.outcomes[::-1])
    alone = model.scorer.score([RenderedRequest(context, (turned,))])[0][0]
    close = CLOSE[model.scorer.engine]
    assert abs(alone.logits[::-1] - together[1].logits).max() <= close


def test_the_sentences_of_an_outcomes_words_are_read_and_some_at_equal_distances():
    generator = np.random.default_rng(1)
    words = WordVectors(
        generator.integers(-9, 9, (99, WIDTH), np.int8), np.full(99, 0.1, np.float32)
    )
    sentences = [tuple(map(int, generator.integers(20, 99, 64))) for _ in range(200)]
    for place in (77, 155):
        sentences[place] = tuple(range(place % 10, place % 10 + 6))
    outcomes = [(5, 6, 7), (8, 9, 10, 11)]
    request = TokenizedRequest((), [TokenizedDecision("single", (1,), outcomes)], sentences)
    read, places = words.select(request)
    assert {sentences[0], sentences[77], sentences[155]} <= set(read.sentences)
    assert sum(map(len, read.sentences)) <= word_vectors.READ_TOKENS
    assert places[0].tolist() == list(range(len(read.sentences)))
    few = replace(request, sentences=sentences[:60])
    assert words.select(few)[0] == few


@pytest.mark.parametrize("longest", [onnx.WHOLE_DECISION_TOKENS, 0], ids=["whole", "in stages"])
def test_a_long_context_is_read_in_chunks_and_has_the_same_bits(model, monkeypatch, longest):
    decisions = (TEAMS, PAID, MANY) if longest == 0 else (TEAMS, LONG_OUTCOMES, PAID)
    long = RenderedRequest(make_words(2_000), decisions)
    monkeypatch.setattr(onnx, "WHOLE_DECISION_TOKENS", longest)
    expected = model.scorer.score([long, REQUESTS["windows"]])
    n_tokens = len(model.scorer.lay_out(long).layout)
    assert n_tokens > CHUNK
    for module, name in ((lower, "MOST_CONTEXT"), (onnx, "LONG_CONTEXT")):
        monkeypatch.setattr(module, name, onnx.APART_CONTEXT)
    tracemalloc.start()
    scored = model.scorer.score([replace(long, owner="acc_1"), REQUESTS["windows"]])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    for one, other in zip(scored, expected, strict=True):
        assert_same_bits(one, other)
    if model.scorer.engine.endswith("int8"):  # else the layers' weights are most of it
        keys_and_values = n_tokens * 2 * (N_LAYERS - APART) * WIDTH * 4
        assert peak < keys_and_values / 2


@pytest.mark.slow
def test_an_answer_depends_on_its_own_decision_alone(model):
    tolerance = CLOSE[model.scorer.engine]
    asked = REQUESTS["short"]
    together = model.scorer.score([asked])[0]
    for decision, scored in zip(asked.decisions, together, strict=True):
        alone = model.scorer.score([RenderedRequest(asked.context, (decision,))])[0]
        assert_close(alone, [scored], tolerance)
    turned = RenderedDecision("single", TEAMS.question, TEAMS.outcomes[::-1])
    backwards = model.scorer.score([RenderedRequest(asked.context, (turned,))])[0][0]
    assert abs(backwards.logits[::-1] - together[0].logits).max() <= tolerance
    batch = [REQUESTS["windows"], asked, REQUESTS["many"], asked, REQUESTS["long"]]
    scored = model.scorer.score(batch)
    for place in (1, 3):
        assert_close(scored[place], together, tolerance)


def test_stages_and_passes_change_no_answer(model, monkeypatch):
    whole = model.scorer.score([REQUESTS["question"]])[0]
    for module in (onnx, similarity):
        monkeypatch.setattr(module, "PASS_TOKENS", 150)
    monkeypatch.setattr(onnx, "PACKED_TOKENS", 0)
    for longest in (10**6, 0):
        monkeypatch.setattr(onnx, "WHOLE_DECISION_TOKENS", longest)
        staged = model.scorer.score([REQUESTS["question"]])[0]
        assert_close(staged, whole, CLOSE[model.scorer.engine])


def test_the_whole_graph_which_another_server_runs_gives_the_same(load_apart, folder):
    files = read_base_files("onnxruntime-float32", folder)
    engine = Engine(files.graph, files.weights, precision=FLOAT32)
    whole = files.scorer(files.weights, threads=0, engine=engine)
    split = load_apart("onnxruntime-float32").scorer
    for name in ("short", "outcomes"):
        asked = REQUESTS[name]
        assert_close(whole.score([asked])[0], split.score([asked])[0], 1e-4)
    whole.close()


def test_a_closed_model_leaves_nothing_behind(folder):
    before = QUESTION_STATES.figures().n_bytes
    model = load_base_model("onnxruntime-int8", folder=folder)
    assert isinstance(model.scorer, OnnxScorer)
    model.scorer.score([REQUESTS["short"]])
    assert QUESTION_STATES.figures().n_bytes > before
    model.scorer.close()
    assert QUESTION_STATES.figures().n_bytes == before
    with pytest.raises(EngineUnavailableError):
        model.scorer.score([REQUESTS["short"]])


def test_a_graph_of_the_lowest_layers_that_was_altered_is_refused(folder, tmp_path):
    for file in folder.iterdir():
        (tmp_path / file.name).symlink_to(file)
    name = LOWER_GRAPHS[FLOAT32]
    (tmp_path / name).unlink()
    with pytest.raises(EngineUnavailableError, match=f"{name} is missing"):
        load_base_model("onnxruntime-float32", folder=tmp_path)
    (tmp_path / name).write_bytes(b"other")
    with pytest.raises(EngineUnavailableError, match=f"{name} has SHA-256"):
        load_base_model("onnxruntime-float32", folder=tmp_path)
