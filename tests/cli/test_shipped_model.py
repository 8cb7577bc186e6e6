"""The product end to end, with the model that ships in the package and no double."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

REQUEST = {
    "context": "My card was charged twice for order 118. Please send one payment back.",
    "decisions": [
        {
            "id": "team",
            "question": "Which team should own this ticket?",
            "outcomes": {
                "billing": "charges, invoices and refunds",
                "shipping": "where a parcel is",
                "technical": "the product does not work",
            },
        },
        {"id": "refund", "kind": "binary", "question": "Does the customer ask for money back?"},
        {
            "id": "urgency",
            "kind": "ordinal",
            "question": "How soon does this need an answer?",
            "outcomes": ["0", "1", "2"],
            "rubric": ["any time this week", "today", "at once"],
        },
    ],
}


def run(*arguments: str, stdin: str | None = None) -> str:
    environment = {name: text for name, text in os.environ.items() if name != "STEELYARD_ENGINE"}
    done = subprocess.run(
        [sys.executable, "-m", "steelyard", *arguments],
        input=stdin,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout


def test_a_ticket_is_decided():
    answer = json.loads(run("decide", "-", "--json", stdin=json.dumps(REQUEST)))
    assert answer["decisions"]["team"]["top"] == "billing"
    # A yes/no was asked: the reader answered it, and a choice is the base model's as before.
    assert (answer["model"], answer["decisions"]["refund"]["top"]) == ("auto", "yes")
    choice = {**REQUEST, "decisions": REQUEST["decisions"][:1]}
    alone = json.loads(run("decide", "-", "--json", stdin=json.dumps(choice)))
    assert alone["model"] == "steelyard-base-2"
    assert alone["decisions"]["team"]["p_top"] == answer["decisions"]["team"]["p_top"]
    for decision in answer["decisions"].values():
        assert abs(sum(decision["probabilities"].values()) - 1) <= 1e-6


def test_the_model_shows_its_card_and_hashes():
    shown = json.loads(run("model", "show", "--json"))
    assert shown["name"] == shown["manifest"]["name"]
    assert shown["engine"].startswith("onnxruntime-")
    assert all(len(digest) == 64 for digest in shown["manifest"]["files"].values())
    assert Path(shown["card"]).read_text(encoding="utf-8").strip()
