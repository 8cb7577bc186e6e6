"""The tests of ``test_schemathesis.py``, with boundary values and many times the examples."""

from __future__ import annotations

import pytest
from hypothesis import settings

from support.api.conforming import BODIES, answer_all, call, common, load

MANY = 400
OPEN = load(with_security=False, boundaries=True)
KEYED = load(with_security=True, boundaries=True)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


@OPEN.parametrize()
@settings(common, max_examples=MANY)
def test_with_accounts_off(case, open_server):
    call(case, open_server)


@KEYED.parametrize()
@settings(common, max_examples=MANY)
def test_with_a_key(case, keyed_server, key):
    call(case, keyed_server, headers={"Authorization": f"Bearer {key}"})


@pytest.mark.parametrize("path", sorted(BODIES))
def test_every_request_that_must_be_answered_is(path, open_server):
    answer_all(OPEN[path]["POST"], open_server, MANY)
