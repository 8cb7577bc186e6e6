"""Whether a judge could run here, without running it."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from steelyard.serving.judge.gguf import read_header
from steelyard.serving.judge.memory import free_bytes, required_bytes, shortage
from steelyard.settings import InvalidSettingError


def examine_judge(name: str, file: Path, context_tokens: int, slots: int) -> tuple[str, str | None]:
    """Return the state of a judge, and the remedy where it could not run."""
    if find_spec("xllamacpp") is None:
        return (
            f"{name}: xllamacpp, which runs it, is not installed",
            "Install it: pip install 'steelyard[judge]'.",
        )
    try:
        header = read_header(file)
    except InvalidSettingError as error:
        return f"{name}: {error}", "Download the file again, or name another one."
    free, needed = free_bytes(), required_bytes(header, context_tokens, slots)
    if free is not None and free < needed:
        return shortage(name, header, context_tokens, slots, free), "Or end other programs."
    return (
        f"{name}: {header.name} ({header.architecture}), needs about {needed / 1e9:.1f} GB of memory",
        None,
    )
