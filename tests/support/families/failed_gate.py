"""A family with two models and a third fine-tune that its gate did not pass."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx
import pytest

from steelyard.app.job_runtime import open_worker
from support.families.family_data import gate, group
from support.families.fine_tuned import ask_stand_in, stand_in
from support.families.grown_family import ended, post
from support.families.learnable_rows import learnable_rows
from support.servers.live_server import live_server

WORSE = gate(
    passed=False,
    reasons=["new_rows_worse"],
    groups={"new": group(before=0.4, after=0.9), "earlier": group(after=0.91)},
)


@contextmanager
def server_with_failed_gate(home, **settings):
    """A server whose family ``router`` is at its second model, with a failed fine-tune after it.

    Parameters
    ----------
    home : pathlib.Path
    """
    with (
        live_server(home=home, jobs="off", **settings) as running,
        ThreadPoolExecutor(1) as thread,
    ):
        # In a thread of its own: the browser's has a loop, beside which no worker is opened.
        assert thread.submit(_grow_router, running, home).result() == "gate_failed"
        yield running


def _grow_router(server, home):
    """Grow the family; gives how its last fine-tune ended."""
    with (
        pytest.MonkeyPatch.context() as patch,
        open_worker(server.services.settings),
        httpx.Client(base_url=server.url, timeout=60) as http,
    ):
        stand_in(patch, home)
        body = {"name": "tickets", "examples": learnable_rows(0), "evaluation_fraction": 0.3}
        dataset_id = post(http, "/v1/datasets", body)["id"]
        job = post(http, "/v1/families", {"family": "router", "dataset_id": dataset_id})
        # Stand-ins cannot be loaded: a family that is off serves nobody.
        post(http, "/v1/families/router/switch", {"on": False})
        for batch, told in ((1, {}), (2, {"passed": False, "gate": WORSE})):
            ended(http, job["id"])
            ask_stand_in(home, **told)
            rows = {"examples": learnable_rows(batch), "evaluation_fraction": 0.3}
            post(http, f"/v1/datasets/{dataset_id}/versions", rows)
            job = post(http, "/v1/families/router/continue", {})
        return ended(http, job["id"])["outcome"]
