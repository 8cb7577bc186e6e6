"""The wire ``systemone`` with other packages' own servers, which answer at random."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import platformdirs
import pytest

from steelyard.decisions.kinds import BINARY_NAMES, Decision, Outcomes
from steelyard.decisions.rendering import RenderedRequest, render_decision
from steelyard.serving.connected.declared import ConnectedModel
from steelyard.serving.connected.queue import Loop
from steelyard.serving.connected_hosting import open_queue

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
PATIENCE_S = 60
#: Packages whose servers speak it, each in an environment that is made once and kept.
PACKAGES = ["sysone", "decisionformer", "laya"]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


@pytest.fixture(params=PACKAGES)
def url(request, monkeypatch):
    """Run a package's server with random weights of its architecture; return its address."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    from peers import contestants, servers

    folder = platformdirs.user_cache_path("steelyard", appauthor=False) / "peers"
    folder.mkdir(parents=True, exist_ok=True)
    contestant = next(one for one in contestants.CONTESTANTS if one.peer == request.param)
    server = servers.Server(contestant, folder, {0})
    try:
        servers.prepare_environment(contestant.peer, folder, ["--quiet"])
        servers.prepare_checkpoint(contestant, folder)
        server.start()
    except servers.ServerError as error:
        pytest.skip(f"{contestant.peer} does not run here: {error}")
    yield f"http://127.0.0.1:{server.port}"
    server.stop()
    for name in [name for name in sys.modules if name.partition(".")[0] == "peers"]:
        del sys.modules[name]


def test_it_answers_every_kind_with_every_outcome(url):
    asked = [
        ("binary", BINARY_NAMES),
        ("single", ("refund", "exchange", "something else")),
        ("ordinal", ("low", "middle", "high")),
    ]
    decisions = tuple(
        render_decision(
            Decision(f"d{n}", kind, "What is it?", Outcomes(names, (None,) * len(names)))
        )
        for n, (kind, names) in enumerate(asked)
    )
    loop = Loop()
    model = ConnectedModel(wire="systemone", url=url, timeout_s=PATIENCE_S)
    queue = open_queue("far", model, loop, max_queue=8)
    try:
        request = RenderedRequest("Invoice 118 was paid twice.", decisions)
        scored = queue.submit(request, PATIENCE_S).result(PATIENCE_S)
    finally:
        queue.close()
        loop.close()
    for one, (_, names) in zip(scored, asked, strict=True):
        assert one.logits.shape == (len(names),)
        assert np.exp(one.logits).sum() == pytest.approx(1, abs=1e-3)
