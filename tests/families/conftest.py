"""Families kept on a state of each kind, for a process whose engines load nothing."""

from __future__ import annotations

import pytest

from support.families.stored_lineage import Kept, base_models


@pytest.fixture(scope="module")
def bases():
    with base_models() as registry:
        yield registry


@pytest.fixture
def make_kept(state, bases):
    """Make families under other rules, with a dataset to train on."""

    def make(**given):
        kept = Kept(state, bases, **given)
        kept.add_dataset()
        return kept

    return make


@pytest.fixture
def kept(make_kept):
    return make_kept()
