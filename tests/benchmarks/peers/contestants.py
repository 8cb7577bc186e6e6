"""The contestants: packages, checkpoint, how each server is started, and its limits."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
TORCH = "torch==2.13.0"
OURS = "steelyard"

#: float32 for all, as each one is by default; and each one's best.
PLAIN, BEST = 1, 2

_NO_WEIGHTS = (
    "Its wheel holds no weights: they come from a hub of models when it is first started. It runs "
    "here with random weights of the architecture named, and with the tokenizer of Steelyard's "
    "model in place of its own. That leaves its speed as it is (the number of tokens may differ by "
    "a few per cent), and its answers mean nothing."
)


@dataclass(frozen=True, slots=True)
class Peer:
    """A package: its requirement for pip, and in whole sentences its limits."""

    name: str
    requirements: tuple[str, ...]
    says: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Contestant:
    """One way to run a peer: a table, an architecture of ``weights.py``, and its text on the page.

    ``flags`` are more arguments of its server; settings of Laya, which has none, as ``NAME=VALUE``.
    """

    peer: str
    table: int
    base: str
    setting: str
    flags: tuple[str, ...] = ()
    precision: str = "fp32"

    @property
    def key(self) -> str:
        return f"{self.peer}, {self.setting}"

    @property
    def checkpoint(self) -> str:
        return f"{self.peer}-{self.base}-{self.precision}"


PEERS = {
    peer.name: peer
    for peer in (
        Peer(OURS, (), ("The checkout that the benchmark is part of, with the shipped model.",)),
        Peer(
            "sysone",
            ("sysone[serve]==0.5.2", TORCH),
            (
                _NO_WEIGHTS,
                (
                    "It has no model of its own: a user fits one. Its default base is ModernBERT-base; "
                    "the smallest that it names is ettin-encoder-17m. The head is made by one short "
                    "fit of the package itself, the limit of a state set to what the base can read."
                ),
            ),
        ),
        Peer(
            "decisionformer",
            ("decisionformer[serve]==0.2.0", TORCH),
            (
                _NO_WEIGHTS,
                (
                    "It has no model of its own: a user trains one. Its recipe for a machine without "
                    "an accelerator has SmolLM2-135M-Instruct and reads outcomes' codes; its fastest "
                    "setting found here is the outcome-scoring head on ettin-encoder-17m, which none "
                    "of its recipes has."
                ),
                "It answers 422 where a state is longer than its model reads; none here is.",
            ),
        ),
        Peer(
            "laya",
            ("laya[serve]==0.4.15", TORCH),
            (
                _NO_WEIGHTS,
                (
                    "Its checkpoint for English reads 512 tokens, its multilingual one 1,024 (up to "
                    "8,192 where a request asks for it, in a field that not all others take), and 192 of "
                    "them are meant for question and outcomes. The rest of a long context is left "
                    "unread, and of 77 outcomes each keeps 3 tokens of its text: at those sizes it "
                    "does less work than the others."
                ),
                (
                    "It refuses more than 100 outcomes of a question and 512 of a request (413), which "
                    "10 questions of 77 outcomes are beyond."
                ),
                (
                    "It refuses a 17th request while 16 are under way (503); LAYA_MAX_CONCURRENT is "
                    "raised to 64, so that 32 clients are answered."
                ),
                "Its ONNX backend cannot be chosen in its server.",
            ),
        ),
        Peer(
            "crossencoder",
            ("sentence-transformers==6.2.0", TORCH, "fastapi", "uvicorn"),
            (
                (
                    "A CrossEncoder of sentence-transformers behind a thin server of ours "
                    "(`crossencoder_server.py`): a pair of context and text for every outcome."
                ),
                (
                    "The weights of ms-marco-MiniLM-L6-v2 come from a hub, which is not reached: it "
                    "runs with random weights of that architecture and the tokenizer that it has too."
                ),
                "A pair is cut at 512 tokens: most of a long context is left unread.",
            ),
        ),
    )
}

CONTESTANTS = (
    Contestant(OURS, PLAIN, "", "float32", ("--engine", "onnxruntime-float32")),
    Contestant("sysone", PLAIN, "modernbert-base", "ModernBERT-base, float32"),
    Contestant("decisionformer", PLAIN, "smollm2-135m", "SmolLM2-135M, float32"),
    Contestant("laya", PLAIN, "modernbert-large", "laya (ModernBERT-large), float32"),
    Contestant("crossencoder", PLAIN, "minilm-l6", "MiniLM-L6, float32"),
    Contestant(OURS, BEST, "", "int8", ("--engine", "onnxruntime-int8")),
    Contestant("sysone", BEST, "ettin-17m", "ettin-encoder-17m, float32"),
    Contestant("sysone", BEST, "ettin-17m", "ettin-encoder-17m, bfloat16", precision="bf16"),
    Contestant(
        "decisionformer", BEST, "ettin-17m", "ettin-encoder-17m, float32", ("--max-batch", "32")
    ),
    Contestant("laya", BEST, "mmbert-base", "laya-multilingual (mmBERT-base), float32"),
    Contestant(
        "laya",
        BEST,
        "mmbert-base",
        "laya-multilingual (mmBERT-base), bfloat16",
        ("LAYA_CPU_AMP=bf16",),
    ),
    Contestant(
        "crossencoder",
        BEST,
        "minilm-l6",
        "MiniLM-L6, float32, 128 pairs a pass",
        ("--batch", "128"),
    ),
    Contestant("crossencoder", BEST, "minilm-l6", "MiniLM-L6, int8", ("--int8",)),
)


def needs_bfloat16(contestant: Contestant) -> bool:
    """Whether it needs a processor with bfloat16: without, it may end its process."""
    return "bfloat16" in contestant.setting


def has_bfloat16(cpuinfo: str) -> bool:
    flags = cpuinfo.split()
    return "avx512_bf16" in flags or "amx_bf16" in flags


def server_command(
    contestant: Contestant,
    *,
    environments: Path,
    checkpoint: Path,
    port: int,
    home: Path,
    threads: int,
) -> tuple[list[str], dict[str, str]]:
    """Return the command that starts a contestant's server, and its environment variables."""
    scripts = environments / contestant.peer / "bin"
    python, flags = str(scripts / "python"), list(contestant.flags)
    if contestant.peer == OURS:
        own = [sys.executable, "-m", "steelyard", "serve"]
        return [
            *own,
            "--port",
            str(port),
            "--home",
            str(home),
            "--threads",
            str(threads),
            *flags,
        ], {
            "STEELYARD_REQUESTS_PER_MINUTE": "0",
            "STEELYARD_TOKENS_PER_MINUTE": "0",
        }
    if contestant.peer in {"sysone", "decisionformer"}:
        # Batches and waits are the packages' own defaults unless the contestant says otherwise.
        start = [str(scripts / contestant.peer), "serve", str(checkpoint), "--port", str(port)]
        return [*start, "--device", "cpu", *flags], {}
    if contestant.peer == "laya":
        return [str(scripts / "laya-serve")], {
            "LAYA_HOST": "127.0.0.1",
            "LAYA_PORT": str(port),
            "LAYA_DEVICE": "cpu",
            # Every text is to be answered by the one checkpoint, whatever language it is taken for.
            "LAYA_MODELS": "english",
            "LAYA_DEFAULT_MODEL": "english",
            "LAYA_EXTRA_MODELS": json.dumps({"english": str(checkpoint)}),
            "LAYA_MAX_CONCURRENT": "64",
            "LAYA_LOG_LEVEL": "warning",
            **dict(flag.split("=", 1) for flag in flags),
        }
    script = str(HERE / "crossencoder_server.py")
    return [python, "-B", script, str(checkpoint), "--port", str(port), *flags], {}


def chosen(names: Sequence[str], tables: Sequence[int]) -> list[Contestant]:
    """Return the contestants of those peers and tables; all peers where none is named."""
    return [
        one
        for one in CONTESTANTS
        if one.table in tables and (not names or one.peer in names or one.peer == OURS)
    ]
