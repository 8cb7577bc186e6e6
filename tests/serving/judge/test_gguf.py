"""The header of a GGUF file."""

from __future__ import annotations

import pytest

from steelyard.serving.judge.gguf import read_header
from steelyard.serving.judge.memory import required_bytes
from steelyard.settings import InvalidSettingError
from support.models.judges import smollm2


def test_a_header_has_the_figures_of_the_memory_estimate():
    header = read_header(smollm2())
    assert header.architecture == "llama"
    # 30 layers of 3 heads, keys and values of 64 numbers, 2 bytes each
    assert header.cache_bytes == 30 * 3 * 2 * 64 * 2
    assert required_bytes(header, 1000, 2) > header.file_bytes + 2000 * header.cache_bytes


@pytest.mark.parametrize(
    "content", [b"", b"GGUF", b"PK\x03\x04" + bytes(40), b"GGUF" + b"\xff" * 60]
)
def test_a_file_that_is_no_model_is_refused(tmp_path, content):
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    with pytest.raises(InvalidSettingError, match="not a GGUF file"):
        read_header(path)
