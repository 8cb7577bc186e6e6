"""Vercel's AI SDK with its TypeSafe provider, under Node: the client of Langfuse's evaluators."""

from __future__ import annotations

import json
import subprocess

import pytest

from support.servers.live_server import LiveServer

PACKAGES = ("ai@7.0.173", "@ai-sdk/typesafe-ai@3.0.0")
SCRIPT = """
import { experimental_decide, experimental_evaluate } from "ai";
import { createTypeSafeAi } from "@ai-sdk/typesafe-ai";

const provider = createTypeSafeAi({ apiKey: "any-key", baseURL: `${process.argv[2]}/v1` });
const call = {
  model: provider.evaluationModel("jev-latest"),
  state: { input: "I was charged twice.", output: { reply: "We refund." } },
  questions: {
    team: {
      type: "choice",
      instructions: "Which team should handle `input`?",
      criteria: { billing: { includes: ["charges", "refunds"] }, technical: ["bugs"], other: null },
    },
    severity: { type: "score", instructions: "How severe is it?", criteria: ["low", "high"] },
    refund: {
      type: "boolean",
      instructions: "Is money asked back?",
      criteria: { true: "asks for money", false: "does not" },
    },
  },
};
const decided = await experimental_decide(call);
const evaluated = await experimental_evaluate(call);
console.log(JSON.stringify([decided, evaluated].map(({ answers, usage }) => ({ answers, usage }))));
"""

pytestmark = pytest.mark.slow


def test_both_calls_of_the_ai_sdk(server: LiveServer, npm_install):
    folder = npm_install("ai-sdk", *PACKAGES)
    (folder / "ask.mjs").write_text(SCRIPT)
    done = subprocess.run(
        ["node", "ask.mjs", server.url],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for seen in json.loads(done.stdout):
        answers = seen["answers"]
        assert answers["team"]["choice"] in {"billing", "technical", "other"}
        assert set(answers["severity"]["probabilities"]) == {"0", "1"}
        assert 0 <= answers["refund"]["probability"] <= 1
        assert seen["usage"]["inputTokens"] > 0
