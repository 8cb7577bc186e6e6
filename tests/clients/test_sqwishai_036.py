"""sqwishai 0.3.6, the last of the older line, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from support.servers.live_server import LiveServer

SCRIPT = """
import json
import sys

from sqwishai import APIError, OneHot

url = sys.argv[1]
context = "My card was charged twice."
decisions = [{"id": "refund", "kind": "binary", "question": "Is money asked back?"}]
questions = {"refund": {"type": "noul", "instructions": "Is money asked back?"}}
seen = {}
with OneHot(url, api_key="any-key", max_retries=0) as client:
    seen["decide"] = client.decide(context, decisions, idempotency_key="old-1")
    seen["again"] = client.decide(context, decisions, idempotency_key="old-1")
    seen["estimate"] = client.estimate(context, decisions)
    seen["lint"] = client.lint(context, decisions)
    seen["systemone"] = client.systemone(context, questions, model="jev-latest")
    seen["translate"] = client.systemone_translate(context, questions, model="jev-latest")
    seen["translated"] = client.decide(**seen["translate"]["request"])
    seen["models"] = client.models.list()
    seen["discovery"] = client.capabilities()
    seen["account"] = client.account.get()
    try:
        client.decide(context, [])
    except APIError as error:
        seen["error"] = [error.status, error.code, error.details[0]["path"]]
print(json.dumps(seen))
"""


@pytest.fixture(scope="session")
def installed(client_folder, pip_install):
    folder = client_folder("sqwishai-0.3.6")
    pip_install("sqwishai==0.3.6", folder)
    return folder


def test_the_older_client(server: LiveServer, installed):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, server.url],
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["decide"] == seen["again"]
    assert seen["decide"]["decisions"]["refund"]["kind"] == "binary"
    assert seen["estimate"]["currency"] == "USD"
    assert seen["lint"] == {"warnings": []}
    noul = seen["systemone"]["answers"]["refund"]["noul"]
    assert noul == seen["translated"]["decisions"]["refund"]["probabilities"]["yes"]
    assert seen["models"] == seen["discovery"]["models"]
    assert seen["account"]["accounts_enabled"] is False
    assert seen["error"] == [422, "invalid_request", ["body", "decisions"]]
