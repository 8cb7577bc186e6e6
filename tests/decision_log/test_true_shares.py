"""True shares: checks by chance, of all answers or of strata, and their weights."""

from __future__ import annotations

import dataclasses
import io
import math
import re
import time

import httpx
import msgspec
import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from steelyard.cli.main import main
from steelyard.ids import new_id
from support.api.error_shape import assert_canonical_error
from support.decisions.drifting import answers, store, tell
from support.servers.live_server import live_server

pytestmark = pytest.mark.usefixtures("every_response_is_checked")

TEAM = {"id": "team", "kind": "binary", "question": "Is it for the team?"}
LOG, SERIES = "/v1/decisions/log", "/v1/decisions/series"


class Stored:
    """A server with answers in random order of ids, and the truth of each."""

    def __init__(self, server, client, n, shares, seed):
        self.state, self.client = server.services.state, client
        self.now = math.floor(time.time() / 3600) * 3600.0
        drawn = np.random.default_rng(0).integers(2**63, size=n).tolist()
        made = answers(n, shares, at=self.now - 3_000, seed=seed)
        self.pairs = [
            (
                dataclasses.replace(
                    stored, id=f"{new_id('dec')[:14]}{by_chance:016x}", named="desk@1"
                ),
                truth,
            )
            for by_chance, (stored, truth) in zip(drawn, made, strict=True)
        ]
        store(self.state, self.pairs)
        self.window = {"since": self.now - 3600, "until": self.now}
        self.true = sum(truth == "yes" for _, truth in made) / n

    def check(self, ids):
        """Report the truth of some answers."""
        tell(self.state, [pair for pair in self.pairs if pair[0].id in ids], self.now)

    def order(self, **params):
        response = self.client.get(LOG, params={"decision": "team", "limit": 200, **params})
        assert response.status_code == 200, response.text
        return [entry["id"] for entry in response.json()["data"]]

    def of_yes(self):
        params = {**self.window, "bucket_s": 3600}
        outcomes = self.client.get(SERIES, params=params).json()["outcomes"]
        return next(each for each in outcomes if each["outcome"] == "yes")

    def weights(self):
        """Return the weight of each row of the export that has one, by id."""
        body = self.client.get(f"{LOG}/export", params=self.window).content
        rows = pq.read_table(io.BytesIO(body)).to_pylist()
        return {row["id"]: row["weight"] for row in rows if row["weight"] is not None}


@pytest.fixture
def stored_of():
    with live_server() as server, httpx.Client(base_url=server.url, timeout=30) as client:
        yield lambda *args: Stored(server, client, *args)


def test_a_share_is_corrected_by_those_that_were_checked_in_the_order_of_chance(stored_of):
    stored = stored_of(400, {"yes": 0.84, "no": 0.16}, 4)
    order = stored.order(order="chance")
    in_order = sorted((each.id for each, _ in stored.pairs), key=lambda id_: id_[14:])
    assert order == stored.order(order="chance") == in_order[:200]
    found = stored.of_yes()
    assert (found["true_share"], found["checks_to_halve"], found["answers"]) == (None, None, 400)
    # Picked by hand: all that were wrong, and none of the first in the order.
    wrong = {
        each.id
        for each, truth in stored.pairs
        if truth != msgspec.json.decode(each.results)["team"]["top"] and each.id not in order[:150]
    }
    stored.check(wrong)
    assert stored.of_yes()["true_share"] is None
    assert stored.of_yes()["checks_left_out"] == len(wrong) > 10
    assert stored.weights() == {}
    stored.check(order[:100])
    found = stored.of_yes()
    assert found["share"]["n"] == 400
    assert found["true_share"]["n"] == 100 < found["checks_to_halve"] < 300
    assert found["true_share"]["low"] < stored.true < found["true_share"]["high"]
    assert found["true_share"]["low"] < found["true_share"]["value"] < found["true_share"]["high"]
    assert found["checks_left_out"] == len(wrong)
    stored.check(order[101:102])
    assert stored.of_yes()["true_share"]["n"] == 100
    assert stored.order(order="chance", has_feedback=False)[0] == order[100]
    assert stored.weights() == dict.fromkeys(order[:100], 4.0)
    refused = stored.client.get(LOG, params={"order": "chance", "cursor": order[0]})
    assert_canonical_error(refused, 422, "invalid_request")


def test_strata_that_were_checked_count_by_how_many_answers_they_have(stored_of):
    stored = stored_of(600, {"yes": 0.03, "no": 0.97}, 7)
    query = {"order": "strata", "outcome": "yes", "has_feedback": False}
    order = stored.order(**query)
    said_yes = {
        each.id
        for each, _ in stored.pairs
        if msgspec.json.decode(each.results)["team"]["probabilities"]["yes"] >= 0.5
    }
    assert len(said_yes) < 30
    # The rare ones come first, five of each stratum, and then as many as it has.
    assert len(said_yes & set(order[:20])) >= 5
    stored.check(order[:120])
    found = stored.of_yes()
    assert found["true_share"]["n"] == 120
    assert found["true_share"]["low"] < stored.true < found["true_share"]["high"]
    assert found["checks_left_out"] == 0
    weights = stored.weights()
    assert set(weights) == set(order[:120])
    assert sum(weights.values()) == pytest.approx(600)
    assert len({round(weight, 9) for weight in weights.values()}) > 1
    yes = {each.id for each, truth in stored.pairs if truth == "yes"}
    weighed = sum(weight for id_, weight in weights.items() if id_ in yes) / 600
    assert abs(weighed - stored.true) < 0.1
    assert stored.order(**query)[0] == order[120]

    def run(*arguments):
        result = CliRunner().invoke(main, [*arguments, "--url", str(stored.client.base_url)])
        assert result.exit_code == 0, result.output
        return result.output

    drawn = run("decisions", "sample", "team", "--outcome", "yes", "--rows", "2")
    assert re.findall(r"dec_\w+", drawn) == order[120:122]
    true, low = found["true_share"]["value"], found["true_share"]["low"]
    line = f"team, yes: {true:.0%}".replace("%", f" % [{low * 100:.0f}, ")
    assert line in run("decisions", "shares", "--named", "desk")
    stored.client.post("/v1/named-decisions", json={"name": "desk", "decisions": [TEAM]})
    shown = run("decision", "show", "desk")
    assert f"# last 7 days: {line}" in shown
    assert " of 600, from 120 checks; the model says " in shown
    assert re.search(r"\d+ more checks halve the interval.", shown)
    for missing in ({"order": "strata"}, {"order": "strata", "decision": "team"}):
        refused = stored.client.get(LOG, params=missing)
        assert_canonical_error(refused, 422, "invalid_request")
