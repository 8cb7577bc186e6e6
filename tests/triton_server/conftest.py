from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.triton.environment import Environment
from steelyard.triton.repository import ModelSource, base_source
from support.triton.triton_hosting import triton_environment


@pytest.fixture(scope="session")
def base(random_folder: Path) -> ModelSource:
    """The random model in float32; not to be changed."""
    return base_source(random_folder)


@pytest.fixture(scope="session")
def environment() -> Environment:
    """Triton's environment; skips where it cannot be built."""
    return triton_environment()
