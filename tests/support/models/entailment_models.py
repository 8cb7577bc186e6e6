"""Entailment encoders as the hub has them, tiny and made without PyTorch.

A word has a mood; a statement follows from a context where their moods agree, contradicts it where
they differ, and turns round with "not". So that a pass's company would show, each logit has a share of
its length in it.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

MOODS = {"happy": 1.0, "pleased": 1.0, "angry": -1.0, "furious": -2.0}
_WORDS = " ".join(
    [*MOODS, "the customer is not a parcel came on monday . ? ! answer to yes no it was"]
).split()
#: A space as BPE of bytes writes it.
SPACE = "\u0120"
THREE = ("contradiction", "entailment", "neutral")
TWO = ("entailment", "not_entailment")
#: Vocabularies, by the models whose way of writing pairs they have: WordPiece, BPE of bytes, Unigram.
VOCABULARIES = ("bert", "roberta", "deberta")


def write_encoder(
    folder: Path,
    labels: tuple[str, ...] = THREE,
    *,
    vocabulary: str = "bert",
    length: int | None = None,
    max_tokens: int = 64,
    has_types: bool = True,
    hypothesis_first: bool = False,
    config: dict | None = None,
    **manifest,
) -> Path:
    """Write the folder of an encoder whose logits are ``labels``, in this order."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer, pad, separator = _tokenizer(vocabulary)
    has_types = has_types and vocabulary != "roberta"
    positions = max_tokens + (pad + 1 if vocabulary == "roberta" else 0)
    graph = _graph(tokenizer, separator, labels, length, has_types, hypothesis_first)
    (folder / "model.onnx").write_bytes(graph)
    (folder / "tokenizer.json").write_text(tokenizer.to_str())
    described = {
        "model_type": vocabulary,
        "id2label": {str(place): label for place, label in enumerate(labels)},
        "max_position_embeddings": positions,
        "pad_token_id": pad,
    }
    (folder / "config.json").write_text(json.dumps({**described, **(config or {})}))
    if hypothesis_first or manifest:
        given = {"hypothesis_first": hypothesis_first, **manifest}
        (folder / "steelyard.json").write_text(json.dumps(given))
    return folder


def _tokenizer(vocabulary: str) -> tuple[Tokenizer, int, int]:
    """Return a tokenizer, and the ids of its padding and of its separator of two texts."""
    if vocabulary == "roberta":
        special = ["<s>", "<pad>", "</s>", "<unk>"]
        pair = "<s> $A </s> </s> $B </s>"
    else:
        special = ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]
        pair = "[CLS] $A [SEP] $B:1 [SEP]:1"
    unknown, separator, pad = (
        special[3],
        special[2],
        special.index("[PAD]" if vocabulary != "roberta" else "<pad>"),
    )
    if vocabulary == "deberta":
        pieces = [*special, *(f"\u2581{word}" for word in _WORDS), *_WORDS]
        tokenizer = Tokenizer(models.Unigram([(piece, -1.0) for piece in pieces], unk_id=3))
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Punctuation(), pre_tokenizers.Metaspace()]
        )
        tokenizer.add_special_tokens(special)
    elif vocabulary == "roberta":
        tokenizer = Tokenizer(models.BPE(*_merged(special), unk_token=unknown))
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
        tokenizer.add_special_tokens(special)
    else:
        ids = {word: place for place, word in enumerate([*special, *_WORDS])}
        tokenizer = Tokenizer(models.WordPiece(ids, unk_token=unknown))
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizer.add_special_tokens(special)
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{special[0 if vocabulary == 'roberta' else 1]} $A {separator}",
        pair=pair,
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in special],
    )
    return tokenizer, pad, tokenizer.token_to_id(separator)


def _merged(special: list[str]) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Return pieces and merges with which BPE reads each known word as one piece, from the left on."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = {
        (word[:end], word[end]): None
        for word in (f"{SPACE}{each}" for each in _WORDS)
        for end in range(1, len(word))
    }
    pieces = dict.fromkeys([*special, *letters, *(left + right for left, right in merges)])
    return {piece: place for place, piece in enumerate(pieces)}, list(merges)


def _graph(
    tokenizer: Tokenizer,
    separator: int,
    labels: tuple[str, ...],
    length: int | None,
    has_types: bool,
    hypothesis_first: bool,
) -> bytes:
    n_tokens = tokenizer.get_vocab_size()
    moods, negations = np.zeros(n_tokens, np.float32), np.zeros(n_tokens, np.float32)
    for token, place in tokenizer.get_vocab().items():
        word = token.removeprefix("\u2581").removeprefix(SPACE)
        moods[place] = MOODS.get(word, 0.0)
        negations[place] = word == "not"
    # How much of the agreement each logit has, and what it is without any.
    shares = {
        "contradiction": (-1, 0),
        "not_entailment": (-1, 0),
        "entailment": (1, 0),
        "neutral": (0, 2),
    }
    slope, base = (
        np.array(column, np.float32)
        for column in zip(*(shares[each] for each in labels), strict=True)
    )
    node = helper.make_node
    if has_types:
        segments = [node("Cast", ["token_type_ids"], ["second"], to=TensorProto.FLOAT)]
    else:
        segments = [
            node("Equal", ["input_ids", "separator"], ["ends"]),
            node("Cast", ["ends"], ["ended"], to=TensorProto.FLOAT),
            node("CumSum", ["ended", "axis"], ["so_far"], exclusive=1),
            node("Min", ["so_far", "one"], ["second"]),
        ]
    nodes = [
        *segments,
        node("Sub", ["one", "second"], ["first"]),
        node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        node("Gather", ["moods", "input_ids"], ["mood"]),
        node("Gather", ["negations", "input_ids"], ["negation"]),
        node("Mul", ["mood", "mask"], ["read"]),
        node("Mul", ["read", "first"], ["of_first"]),
        node("Mul", ["read", "second"], ["of_second"]),
        node("ReduceSum", ["of_first", "axes"], ["sum_first"], keepdims=1),
        node("ReduceSum", ["of_second", "axes"], ["sum_second"], keepdims=1),
        node("Mul", ["negation", "first" if hypothesis_first else "second"], ["negated"]),
        node("ReduceSum", ["negated", "axes"], ["n_negated"], keepdims=1),
        node("Mul", ["n_negated", "two"], ["twice"]),
        node("Sub", ["one", "twice"], ["sign"]),
        node("Mul", ["sum_first", "sum_second"], ["agreement"]),
        node("Mul", ["agreement", "sign"], ["signed"]),
        node("Mul", ["signed", "three"], ["evidence"]),
        node("Mul", ["evidence", "slope"], ["sloped"]),
        node("Add", ["sloped", "base"], ["based"]),
        node("Shape", ["input_ids"], ["shape"]),
        node("Cast", ["shape"], ["sizes"], to=TensorProto.FLOAT),
        node("ReduceSum", ["sizes"], ["size"], keepdims=0),
        node("Mul", ["size", "thousandth"], ["company"]),
        node("Mul", ["company", "slope"], ["leaning"]),
        node("Add", ["based", "leaning"], ["logits"]),
    ]
    used = {name for each in nodes for name in each.input}
    weights = {
        "moods": moods,
        "negations": negations,
        "slope": slope,
        "base": base,
        "separator": np.array(separator, np.int64),
        "axis": np.array(1, np.int64),
        "axes": np.array([1], np.int64),
        "one": np.array(1, np.float32),
        "two": np.array(2, np.float32),
        "three": np.array(3, np.float32),
        "thousandth": np.array(1e-3, np.float32),
    }
    names = ["input_ids", "attention_mask", *(["token_type_ids"] if has_types else [])]
    shape = ["batch" if length is None else 1, length or "length"]
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info(name, TensorProto.INT64, shape) for name in names],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [shape[0], len(labels)])],
        [numpy_helper.from_array(array, name) for name, array in weights.items() if name in used],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    onnx.checker.check_model(model)
    return model.SerializeToString()
