"""@typesafe-ai/sdk 0.6.0, TypeSafe's JavaScript client, under Node."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from support.servers.live_server import LiveServer

PACKAGE = "@typesafe-ai/sdk@0.6.0"
SCRIPT = """
import { APIError, TypeSafeClient, UnprocessableEntityError, choice, noul, score } from
  "@typesafe-ai/sdk";

const client = new TypeSafeClient({
  apiKey: "any-key",
  baseURL: process.argv[2],
  retry: { backoffInitialMs: 1, respectRetryAfter: false },
});
const { data, requestId } = await client
  .systemOne({
    state: { message: "I was charged twice." },
    questions: {
      refund: noul("Does the writer ask for money back?"),
      described: noul(null, { true: "asks for money" }),
      team: choice(null, { billing: "charges", other: null }),
      urgency: score("How urgent is it?", ["can wait", null]),
    },
  })
  .withResponse();
const models = await client.models.list();
let refused;
try {
  await client.systemOne({ state: "Hi", questions: { dog: { type: "box" } } });
} catch (error) {
  refused = {
    isClass: error instanceof UnprocessableEntityError && error instanceof APIError,
    message: error.message,
    requestId: error.requestId,
  };
}
console.log(JSON.stringify({ data, requestId, models, refused }));
"""


@pytest.fixture(scope="session")
def script(npm_install) -> Path:
    path: Path = npm_install("typesafe-js", PACKAGE) / "ask.mjs"
    path.write_text(SCRIPT)
    return path


def test_the_javascript_client(server: LiveServer, script: Path, fail_first):
    calls = fail_first(1)
    done = subprocess.run(
        ["node", str(script), server.url],
        cwd=script.parent,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert len(calls) == 2  # it tried again
    answers = seen["data"]["answers"]
    assert list(answers) == ["refund", "described", "team", "urgency"]
    assert 0 <= answers["refund"]["noul"] <= 1
    assert answers["team"]["choice"] in ("billing", "other")
    assert answers["urgency"]["legend"] == {"0": "can wait", "1": ""}
    assert seen["requestId"].startswith("req_")
    assert {"hashing", "jev-latest"} <= {model["name"] for model in seen["models"]}
    assert seen["refused"]["isClass"]
    assert "questions.dog.type" in seen["refused"]["message"]
    assert seen["refused"]["requestId"].startswith("req_")
