"""A decision whose wording says nothing, and a server with a model that reads words."""

from __future__ import annotations

import re
from contextlib import contextmanager

import httpx

from steelyard.serving.connected.declared import ConnectedModel, write_models
from support.models.remote_models import remote_model
from support.servers.live_server import live_server

#: Outcomes whose names say nothing, and what their rows say.
SAID = {
    "t1": ("invoice paid twice", "refund the charge"),
    "t2": ("parcel never arrived", "courier lost the box"),
    "t3": ("password does not work", "cannot sign in"),
}
TEAM = {"id": "team", "kind": "single", "question": "Which team?", "outcomes": list(SAID)}


def reads_words(path, body):
    """Answer the wire ``systemone`` by the words that a context and a criterion share."""
    context = set(re.findall(r"\w+", body["state"].lower()))
    answers = {}
    for name, question in body["questions"].items():
        weights = {
            label: 1 + 20 * len(context & set(re.findall(r"\w+", f"{text}".lower())))
            for label, text in question["criteria"].items()
        }
        total = sum(weights.values())
        shares = {label: weight / total for label, weight in weights.items()}
        top = max(shares, key=shares.__getitem__)
        answers[name] = {"type": "choice", "choice": top, "probabilities": shares}
    return {"answers": answers}


def reads_nothing(path, body):
    """Answer the wire ``systemone`` alike, whatever is asked."""
    answers = {}
    for name, question in body["questions"].items():
        labels = list(question["criteria"])
        shares = dict.fromkeys(labels, 1 / len(labels))
        answers[name] = {"type": "choice", "choice": labels[0], "probabilities": shares}
    return {"answers": answers}


def rows(n=40, *, decision=TEAM, wrong=(), start=0):
    """Rows of each outcome by turns; those whose number is wrong have another's label."""
    made = []
    names = list(SAID)
    for number in range(start, start + n):
        outcome = names[number % 3]
        label = names[(number + 1) % 3] if number in wrong else outcome
        text = f"{SAID[outcome][number % 2]}, ticket {number}"
        made.append({"context": text, "decisions": [decision], "targets": {"team": {label: 1.0}}})
    return made


@contextmanager
def tuned_server(home, *, answer=reads_words, price_in="0", **settings):
    with remote_model(answer) as remote:
        write_models(
            home, {"far": ConnectedModel(wire="systemone", url=remote.url, price_in=price_in)}
        )
        given = {"jobs": "off", "dataset_min_rows": 1, **settings}
        with (
            live_server(home=str(home), **given) as server,
            httpx.Client(base_url=server.url, timeout=60) as http,
        ):
            yield server.services, http, remote
