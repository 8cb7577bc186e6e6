"""Entailment encoders are read from a folder, and asked about pairs one by one."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from steelyard.scoring.entailment.encoder import Encoder
from steelyard.scoring.entailment.evidence import weigh_outcome, weigh_yes_no
from steelyard.scoring.entailment.folder import read_folder
from steelyard.scoring.entailment.windows import windows_of
from steelyard.settings import InvalidSettingError
from support.models.entailment_models import THREE, TWO, VOCABULARIES, write_encoder

CONTEXT = "The customer is happy. The parcel came on Monday."
YES, NO = "The customer is pleased.", "The customer is not pleased."


def weigh(folder, context=CONTEXT, **options):
    """Return an encoder's logits of a statement and its negation."""
    encoder = Encoder(read_folder(folder, **options))
    parts = encoder.windows(context, (YES, NO))
    rows = [[encoder.logits(part, text) for part in parts] for text in (YES, NO)]
    return weigh_yes_no(encoder.facts, *rows, temperature=1.0)


@pytest.mark.parametrize("vocabulary", VOCABULARIES)
@pytest.mark.parametrize("labels", [THREE, THREE[::-1], TWO, TWO[::-1]])
@pytest.mark.parametrize("length", [None, 48])
def test_every_shape_of_encoder_reads(tmp_path, vocabulary, labels, length):
    write_encoder(tmp_path, labels, vocabulary=vocabulary, length=length)
    answer = weigh(tmp_path)
    assert answer.evidence == pytest.approx(6, abs=0.01)
    assert (answer.unstated is None) == (len(labels) == 2)
    assert weigh(tmp_path, CONTEXT.replace("happy", "angry")).evidence == pytest.approx(
        -6, abs=0.01
    )


@pytest.mark.parametrize("hypothesis_first", [False, True])
@pytest.mark.parametrize("has_types", [False, True])
def test_the_order_of_a_pair_is_the_folders(tmp_path, hypothesis_first, has_types):
    write_encoder(tmp_path, hypothesis_first=hypothesis_first, has_types=has_types)
    assert weigh(tmp_path).evidence == pytest.approx(6, abs=0.01)
    # In the other order "not" is read in the context, where this encoder passes it over.
    turned = weigh(tmp_path, hypothesis_first=not hypothesis_first)
    assert turned.evidence == pytest.approx(0, abs=0.01)


def test_labels_in_another_order_are_given(tmp_path):
    write_encoder(tmp_path, config={"id2label": {str(n): f"LABEL_{n}" for n in range(3)}})
    with pytest.raises(InvalidSettingError, match="--labels"):
        read_folder(tmp_path)
    assert weigh(tmp_path, labels=THREE).evidence == pytest.approx(6, abs=0.01)


def test_threads_at_once_have_the_bits_that_each_has_alone(tmp_path):
    encoder = Encoder(read_folder(write_encoder(tmp_path)))
    texts = [f"{CONTEXT} {'It was a parcel. ' * n}" for n in range(4)] * 8
    alone = [encoder.logits(text, YES).tobytes() for text in texts]
    with ThreadPoolExecutor(4) as pool:
        together = pool.map(lambda text: encoder.logits(text, YES).tobytes(), texts)
        assert list(together) == alone


def test_a_text_that_says_nothing_is_unstated(tmp_path):
    write_encoder(tmp_path)
    silent, loud = weigh(tmp_path, "A parcel came."), weigh(tmp_path)
    assert silent.evidence == pytest.approx(0, abs=0.01)
    assert silent.unstated > 0.5 > loud.unstated


def test_a_long_text_is_read_in_parts_and_the_strongest_evidence_counts(tmp_path):
    write_encoder(tmp_path, max_tokens=32)
    before, after = ("It was a parcel. " * 40 for _ in range(2))
    for mood, sign in (("happy", 1), ("furious", -1)):
        answer = weigh(tmp_path, f"{before}The customer is {mood}. {after}")
        assert answer.evidence * sign > 2
        assert answer.unstated < 0.3
    both = weigh(tmp_path, f"The customer is happy. {before}The customer is angry.")
    assert both.evidence == pytest.approx(0, abs=0.1)


def test_parts_have_whole_sentences_and_fit(tmp_path):
    encoder = Encoder(read_folder(write_encoder(tmp_path, max_tokens=32)))
    context = "The customer is not happy . It came on Monday ! " * 9 + "a" + " parcel" * 50
    parts = encoder.windows(context, (YES,))
    assert len(parts) > 3
    assert all(part in context for part in parts)
    assert parts[0].startswith("The customer")
    assert parts[-1].endswith("parcel")
    assert sum(len(part) for part in parts) >= len(context) - len(parts)
    assert windows_of("One.", [(0, 3), (3, 4)], 2) == ["One."]


def test_a_pair_has_the_same_bits_in_any_company(tmp_path):
    encoder = Encoder(read_folder(write_encoder(tmp_path)))
    alone = encoder.logits(CONTEXT, YES)
    encoder.logits(CONTEXT * 3, NO)
    assert encoder.logits(CONTEXT, YES).tobytes() == alone.tobytes()


def test_control_tokens_in_a_text_are_text(tmp_path):
    encoder = Encoder(read_folder(write_encoder(tmp_path, has_types=False)))
    forged = encoder.logits("It was a parcel. [SEP] The customer is happy. [SEP]", YES)
    assert forged[THREE.index("entailment")] > 2  # read as a part of the context


@pytest.mark.parametrize(
    ("config", "most"),
    [
        ({"model_type": "bert"}, 64),
        ({"model_type": "xlm-roberta", "pad_token_id": 1}, 62),
        ({"model_type": "mpnet", "pad_token_id": 1}, 62),
        ({"model_type": "deberta-v2", "max_position_embeddings": -1}, 512),
        ({"model_type": "bert", "max_position_embeddings": None}, 512),
    ],
)
def test_the_most_tokens_are_the_encoders_positions(tmp_path, config, most):
    assert read_folder(write_encoder(tmp_path, config=config)).max_tokens == most


def test_a_long_statement_leaves_half_to_the_context(tmp_path):
    encoder = Encoder(read_folder(write_encoder(tmp_path, max_tokens=32)))
    statement = encoder.fitting("It was a parcel. " * 40 + YES)
    assert statement.endswith(YES)
    assert encoder.windows("The customer is happy.", (statement,)) == ["The customer is happy."]
    assert np.isfinite(encoder.logits("The customer is happy.", statement)).all()


def test_an_outcome_is_as_likely_as_its_statement_follows(tmp_path):
    encoder = Encoder(read_folder(write_encoder(tmp_path)))
    odds = [
        weigh_outcome(encoder.facts, [encoder.logits(CONTEXT, text)], 1.0) for text in (YES, NO)
    ]
    assert odds[0] > 0 > odds[1]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("model.onnx", None, "has no model.onnx"),
        ("config.json", None, "has no config.json"),
        ("config.json", "<html>", "config.json cannot be used"),
        ("config.json", json.dumps({"id2label": {"0": "spam", "1": "ham"}}), "spam, ham"),
        ("config.json", json.dumps({"id2label": {"0": "entailment"}}), "not_entailment"),
        ("config.json", json.dumps({"id2label": []}), "cannot be used"),
        ("steelyard.json", json.dumps({"temperature": 0}), "temperature"),
        ("steelyard.json", json.dumps({"max_tokens": 4}), "reads 4 tokens"),
        ("tokenizer.json", "{}", "cannot be loaded"),
        ("model.onnx", "<html>", "cannot be loaded"),
    ],
)
def test_other_folders_are_refused_in_a_sentence(tmp_path, name, content, message):
    write_encoder(tmp_path)
    (tmp_path / name).unlink(missing_ok=True)
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(InvalidSettingError, match=message):
        Encoder(read_folder(tmp_path))


def test_labels_that_the_graph_does_not_have_are_refused(tmp_path):
    write_encoder(tmp_path, TWO, config={"id2label": dict(zip("012", THREE, strict=True))})
    with pytest.raises(InvalidSettingError, match="gives 2 logits"):
        Encoder(read_folder(tmp_path))
