"""Exports of the hub's models answer as the models do."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the train extra: pip install steelyard[train]")
pytest.importorskip("transformers", reason="needs the train extra: pip install steelyard[train]")

import torch
from tokenizers import BertWordPieceTokenizer
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertModel,
    BertTokenizerFast,
)

from steelyard.decisions.rendering import RenderedDecision, RenderedRequest
from steelyard.errors import EngineUnavailableError
from steelyard.scoring.exported import GRAPH, ExportedModel
from steelyard.training.hub import HubExportError, export

CONTEXT = "Invoice 118 was paid twice, and nobody has answered since."
REQUEST = RenderedRequest(
    CONTEXT,
    (
        RenderedDecision("single", "Which team?", ("billing", "shipping: parcels", "other")),
        RenderedDecision("binary", "Was it paid?", ("yes", "no")),
    ),
)
NLI = {0: "contradiction", 1: "neutral", 2: "entailment"}


def save(folder, model_class, **config):
    """Save a tiny random BERT with its tokenizer."""
    torch.manual_seed(3)
    words = BertWordPieceTokenizer()
    words.train_from_iterator([CONTEXT, "Which team? billing shipping other"], vocab_size=200)
    tokenizer = BertTokenizerFast(tokenizer_object=words._tokenizer, model_max_length=128)
    tokenizer.save_pretrained(folder)
    shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    tiny = BertConfig(
        vocab_size=len(tokenizer),
        intermediate_size=48,
        max_position_embeddings=128,
        **shape,
        **config,
    )
    model = model_class(tiny).eval()
    model.save_pretrained(folder)
    return model, tokenizer


def make_sentence_transformer(folder, pooling="mean", *, more=()):
    model, tokenizer = save(folder, BertModel)
    kinds = ["Transformer", "Pooling", "Normalize", *more]
    modules = [
        {
            "idx": n,
            "name": str(n),
            "path": "" if n == 0 else f"{n}_{kind}",
            "type": f"s.models.{kind}",
        }
        for n, kind in enumerate(kinds)
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    config = {
        f"pooling_mode_{one}": one.startswith(pooling)
        for one in ("cls_token", "mean_tokens", "max_tokens")
    }
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(config))
    return model, tokenizer


def scores(folder):
    return ExportedModel("far", folder).score(REQUEST)


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_a_sentence_transformer_compares_the_context_with_each_outcome(tmp_path, pooling):
    model, tokenizer = make_sentence_transformer(tmp_path / "model", pooling)

    def vector(text):
        tokens = tokenizer(text, return_tensors="pt")
        with torch.no_grad():
            hidden = model(**tokens).last_hidden_state[0]
        pooled = hidden[0] if pooling == "cls" else hidden.mean(0)
        return (pooled / pooled.norm()).numpy()

    team, paid = scores(export(str(tmp_path / "model"), tmp_path / "hub"))
    expected = [20 * vector(CONTEXT) @ vector(one) for one in REQUEST.decisions[0].outcomes]
    assert team == pytest.approx(expected, abs=1e-3)
    expected = [20 * vector(CONTEXT) @ vector(f"Was it paid? {one}") for one in ("yes", "no")]
    assert paid == pytest.approx(expected, abs=1e-3)


def test_a_cross_encoder_scores_question_and_outcome_against_the_context(tmp_path):
    model, tokenizer = save(tmp_path / "model", BertForSequenceClassification, num_labels=1)
    (team, _) = scores(export(str(tmp_path / "model"), tmp_path / "hub"))
    tokens = tokenizer("Which team? billing", CONTEXT, return_tensors="pt")
    with torch.no_grad():
        assert team[0] == pytest.approx(float(model(**tokens).logits[0, 0]), abs=1e-3)


def test_a_classifier_of_entailment_is_asked_for_each_outcome(tmp_path):
    given = {"id2label": NLI, "label2id": {name: n for n, name in NLI.items()}}
    model, tokenizer = save(tmp_path / "model", BertForSequenceClassification, **given)
    (_, paid) = scores(export(str(tmp_path / "model"), tmp_path / "hub"))
    tokens = tokenizer(CONTEXT, 'The answer to "Was it paid?" is: no.', return_tensors="pt")
    with torch.no_grad():
        logits = model(**tokens).logits[0].numpy()
    assert paid[1] == pytest.approx(logits[2] - logits[0], abs=1e-3)


def test_an_export_is_named_by_its_hash_and_checked_when_loaded(tmp_path):
    save(tmp_path / "model", BertForSequenceClassification, num_labels=1)
    first, again = (export(str(tmp_path / "model"), tmp_path / "hub") for _ in range(2))
    assert first == again
    assert [path.name for path in (tmp_path / "hub").iterdir()] == [first.name]
    long = RenderedRequest("word " * 5_000, REQUEST.decisions)
    assert all(np.isfinite(row).all() for row in ExportedModel("far", first).score(long))
    (first / GRAPH).write_bytes((first / GRAPH).read_bytes()[:-1])
    with pytest.raises(EngineUnavailableError, match="altered or cut short"):
        ExportedModel("far", first)


def test_models_of_fixed_outcomes_are_refused(tmp_path):
    save(tmp_path / "topics", BertForSequenceClassification, num_labels=4)
    with pytest.raises(HubExportError, match="its own labels"):
        export(str(tmp_path / "topics"), tmp_path / "hub")
    save(tmp_path / "words", BertForMaskedLM)
    with pytest.raises(HubExportError, match="BertForMaskedLM"):
        export(str(tmp_path / "words"), tmp_path / "hub")
    make_sentence_transformer(tmp_path / "dense", more=["Dense"])
    with pytest.raises(HubExportError, match="Dense"):
        export(str(tmp_path / "dense"), tmp_path / "hub")
    make_sentence_transformer(tmp_path / "max", "max")
    with pytest.raises(HubExportError, match="pools by max"):
        export(str(tmp_path / "max"), tmp_path / "hub")
    with pytest.raises(HubExportError, match="is no folder"):
        export("no such model", tmp_path / "hub")
    assert not (tmp_path / "hub").exists() or not list((tmp_path / "hub").iterdir())
