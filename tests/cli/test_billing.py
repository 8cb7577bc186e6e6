"""``steelyard billing`` on a state of its own."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from steelyard.billing import applying
from steelyard.cli.main import main
from steelyard.ledger.money import NANO
from steelyard.storage import open_state


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("billing")


def run(home, *arguments: str, status: int = 0):
    result = CliRunner().invoke(main, ["billing", *arguments, "--home", str(home), "--json"])
    assert result.exit_code == status, result.output
    return json.loads(result.output) if status == 0 else result.output


def test_a_transfer_is_confirmed_and_sent_back(home):
    state = open_state(f"sqlite:///{home / 'state.sqlite'}")
    try:
        state.write_now(
            lambda connection: applying.begin(
                connection,
                "pur_1",
                account_id="local",
                provider="manual",
                amount_nano=20 * NANO,
                now=1.0,
                lifetime_s=1e10,
            )
        )
    finally:
        state.close()
    assert run(home, "balance", "local")["purchases_pending"] == "20"
    assert run(home, "confirm", "pur_1")["state"] == "paid"
    assert run(home, "balance", "local")["paid"] == "20"
    assert run(home, "refund", "pur_1")["state"] == "refunded"
    books = run(home, "balance", "local")
    assert (books["paid"], books["refunds"], books["funding"]) == ("0", "20", "-20")
    assert run(home, "parked") == []


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("confirm", "pur_0"), "There is no purchase"),
        (("balance", "nobody"), "There is no account"),
        (("parked", "--clear", "evt"), "is parked"),
    ],
)
def test_unknown_purchases_are_refused(home, asked, said):
    assert said in run(home, *asked, status=2)
