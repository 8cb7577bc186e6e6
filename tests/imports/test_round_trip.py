"""Tables that other programs write come back cell by cell, or the reason is reported."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from support.datasets.written_tables import difference, written_tables


@pytest.fixture(scope="module", autouse=True)
def quiet():
    """Load the writers once; they need extras."""
    pytest.importorskip("fastexcel", reason="needs the excel extra")
    library = pytest.importorskip("datasets", reason="needs the package datasets")
    library.disable_progress_bars()


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(table=written_tables())
def test_no_cell_differs_in_silence(table):
    assert difference(table) is None
