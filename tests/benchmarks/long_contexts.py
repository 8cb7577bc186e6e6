"""Measure a context of 180,000 characters: CPU, memory at most, and memory that stays.

Run it with ``python tests/benchmarks/long_contexts.py``; with another environment's Python it measures the
version that is installed there.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from pathlib import Path

from workloads import make_payload

from models import load_model
from steelyard.memory import keep_memory_whole, trim_memory
from steelyard.serving.decide import DecideService

N_CHARACTERS = 180_000
WORDS = {
    "short words": "a I to of in is it on no up we he by or an as at be do go if me my so us",
    "prose": "the customer wrote that billing was late and asked for a refund of the second invoice.",
}


def main() -> int:
    """Print a line; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--words", choices=WORDS, default="short words")
    parser.add_argument("--engine", default="auto")
    options = parser.parse_args()
    keep_memory_whole()  # as the server does
    model = load_model(options.engine, threads=1)
    service = DecideService(model_name="made", temperatures=None, tokenizer=model.tokenizer)

    def ask(context: str) -> int:
        prepared = service.prepare(make_payload(context=context, n_questions=3, n_outcomes=4))
        model.scorer.score([prepared.rendered])
        return prepared.input_tokens

    ask("a short one")
    trim_memory()
    before, _ = megabytes()
    words = random.Random(1).choices(WORDS[options.words].split(), k=N_CHARACTERS)
    began = time.process_time()
    n_tokens = ask(" ".join(words)[:N_CHARACTERS])
    cpu_s = time.process_time() - began
    _, most = megabytes()
    trim_memory()
    after, _ = megabytes()
    print(
        f"{options.words}: {n_tokens:,} tokens, {cpu_s:.1f} s of CPU, "
        f"+{most - before:.0f} MB at most, +{after - before:.0f} MB stay"
    )
    return 0


def megabytes() -> tuple[float, float]:
    """Return the memory of this process, now and at most."""
    lines = Path("/proc/self/status").read_text().splitlines()
    figures = {name: rest.split() for name, _, rest in (line.partition(":") for line in lines)}
    return int(figures["VmRSS"][0]) / 1024, int(figures["VmHWM"][0]) / 1024


if __name__ == "__main__":
    sys.exit(main())
