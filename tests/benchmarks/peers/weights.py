"""Makes checkpoints of stated architectures with random weights; runs in a peer's own environment.

The peers take their weights from a hub, which is not needed to measure speed: how long a pass takes
does not depend on the values of its weights. Every checkpoint has the tokenizer that is given, which
therefore stands in for the peer's own.
"""

# It runs where Steelyard is not installed, as a script.

from __future__ import annotations

import argparse
import json
import logging
import os
from pathlib import Path
from typing import Any

#: Encoders of the ModernBERT family as their publishers state them.
MODERNBERT = {
    "modernbert-base": {
        "hidden_size": 768,
        "num_hidden_layers": 22,
        "num_attention_heads": 12,
        "intermediate_size": 1152,
        "vocab_size": 50368,
    },
    "modernbert-large": {
        "hidden_size": 1024,
        "num_hidden_layers": 28,
        "num_attention_heads": 16,
        "intermediate_size": 2624,
        "vocab_size": 50368,
    },
    "mmbert-base": {
        "hidden_size": 768,
        "num_hidden_layers": 22,
        "num_attention_heads": 12,
        "intermediate_size": 1152,
        "vocab_size": 256000,
    },
    "ettin-17m": {
        "hidden_size": 256,
        "num_hidden_layers": 7,
        "num_attention_heads": 4,
        "intermediate_size": 384,
        "vocab_size": 50368,
    },
}
#: SmolLM2-135M-Instruct.
SMOLLM2 = {
    "hidden_size": 576,
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "intermediate_size": 1536,
    "vocab_size": 49152,
    "max_position_embeddings": 8192,
    "rope_theta": 100000.0,
    "tie_word_embeddings": True,
}
#: ms-marco-MiniLM-L6-v2.
MINILM = {
    "hidden_size": 384,
    "num_hidden_layers": 6,
    "num_attention_heads": 12,
    "intermediate_size": 1536,
    "vocab_size": 30522,
    "max_position_embeddings": 512,
    "num_labels": 1,
}
#: Tokens that a checkpoint of Laya reads, and how many of them may be the question and outcomes.
LAYA_LIMITS = {"modernbert-large": (512, 192), "mmbert-base": (1024, 192)}
#: The turns of a conversation as SmolLM2-Instruct is given them.
CHAT = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
LONGEST = 8192


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("peer", choices=sorted(MAKERS))
    parser.add_argument("base", choices=[*MODERNBERT, "smollm2-135m", "minilm-l6"])
    parser.add_argument("folder", type=Path, help="where the checkpoint goes; must not exist")
    parser.add_argument("--tokenizer", type=Path, required=True, help="a tokenizer.json")
    parser.add_argument("--precision", default="fp32", help="sysone alone: fp32 or bf16")
    options = parser.parse_args()
    import torch

    torch.manual_seed(0)
    made = options.folder.with_name(options.folder.name + ".part")
    made.mkdir(parents=True)
    size = MAKERS[options.peer](options, made)
    made.rename(options.folder)
    print(json.dumps({"parameters": size}))


def load_tokenizer(file: Path) -> Any:
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(
        tokenizer_file=str(file),
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        pad_token="[PAD]",
        unk_token="[UNK]",
        model_max_length=LONGEST,
    )


def modernbert(name: str) -> Any:
    from transformers import AutoModel, ModernBertConfig

    config = ModernBertConfig(
        **MODERNBERT[name],
        max_position_embeddings=LONGEST,
        pad_token_id=0,
        cls_token_id=101,
        sep_token_id=102,
        bos_token_id=101,
        eos_token_id=102,
    )
    return AutoModel.from_config(config, attn_implementation="sdpa")


def count(model: Any) -> int:
    return sum(weights.numel() for weights in model.parameters())


def make_sysone(options: argparse.Namespace, folder: Path) -> int:
    """Save a base model, and a head that one short fit of the package itself makes."""
    from sysone import EncoderModel

    # What is saved names its base by path, so that path must be the last one.
    base = options.folder.with_name(options.folder.name + ".base")
    model = modernbert(options.base)
    model.save_pretrained(base)
    load_tokenizer(options.tokenizer).save_pretrained(base)
    question = {"type": "choice", "instructions": "Which one?", "criteria": ["one", "two"]}
    rows = [
        {
            "state": f"text {number}",
            "questions": {"q": question},
            "expected": {"q": ("one", "two")[number % 2]},
        }
        for number in range(20)
    ]
    fitted = EncoderModel(
        str(base),
        tuning="head",
        epochs=1,
        max_state_tokens=LONGEST,
        max_option_tokens=64,
        precision=options.precision,
        device="cpu",
        cache_features=False,
    ).fit(rows)
    fitted.save(folder, training_state=False)
    return count(model) + count(fitted.head_)


def make_decisionformer(options: argparse.Namespace, folder: Path) -> int:
    """Save a base model and export it as the package exports its own trained ones."""
    import torch
    from decisionformer.config import RunConfig
    from decisionformer.model import build_model, export_checkpoint
    from transformers import AutoModel, LlamaConfig

    base = options.folder.with_name(options.folder.name + ".base")
    tokenizer = load_tokenizer(options.tokenizer)
    if options.base == "smollm2-135m":
        head = {"type": "code_readout"}
        tokenizer.add_special_tokens({"additional_special_tokens": ["<|im_start|>", "<|im_end|>"]})
        tokenizer.chat_template = CHAT
        config = LlamaConfig(**SMOLLM2, pad_token_id=0, bos_token_id=101, eos_token_id=102)
        model = AutoModel.from_config(config)
    else:
        head = {"type": "option_scoring"}
        model = modernbert(options.base)
    model.save_pretrained(base)
    tokenizer.save_pretrained(base)
    config = RunConfig.model_validate(
        {
            "model": {"backbone": str(base), "head": head},
            "data": {"max_length": LONGEST},
            "train": {"output_dir": str(folder), "mixed_precision": "no"},
        }
    )
    built = build_model(config, torch.device("cpu"), training=False)
    export_checkpoint(built, config, folder)
    return count(built.model)


def make_laya(options: argparse.Namespace, folder: Path) -> int:
    from laya.common import DecisionModel
    from laya.train import save_checkpoint

    longest, of_head = LAYA_LIMITS[options.base]
    model = DecisionModel(modernbert(options.base), head_layers=2, n_act=2)
    config = {
        "encoder": options.base,
        "head_layers": 2,
        "act_costs": {"act": 0.0},
        "max_len": longest,
        "head_max_len": of_head,
        "temperature": [1.0, 1.0, 1.0],
    }
    save_checkpoint(model, load_tokenizer(options.tokenizer), config, str(folder))
    return count(model)


def make_crossencoder(options: argparse.Namespace, folder: Path) -> int:
    from transformers import AutoModelForSequenceClassification, BertConfig

    model = AutoModelForSequenceClassification.from_config(BertConfig(**MINILM))
    model.save_pretrained(folder)
    tokenizer = load_tokenizer(options.tokenizer)
    tokenizer.model_max_length = MINILM["max_position_embeddings"]
    tokenizer.save_pretrained(folder)
    return count(model)


MAKERS = {
    "sysone": make_sysone,
    "decisionformer": make_decisionformer,
    "laya": make_laya,
    "crossencoder": make_crossencoder,
}

if __name__ == "__main__":
    os.environ["HF_HUB_OFFLINE"] = "1"
    logging.basicConfig(level=logging.WARNING)
    main()
