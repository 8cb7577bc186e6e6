"""A service whose passes run in a fake Triton server that has the shipped model's engine."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from steelyard.app.application import create_app
from steelyard.app.bootstrap import open_service
from steelyard.app.services import ApiServices
from steelyard.scoring.assets import BaseFiles, read_base_files
from steelyard.scoring.engine import Engine
from steelyard.settings import read_settings
from support.servers.server_thread import ServerThread
from support.triton.fake_triton import FakeModel

BODY = {
    "context": "Invoice 118 was paid twice. Please send the second payment back.",
    "decisions": [
        {"id": "refund", "kind": "binary", "question": "Does the writer ask for money back?"},
        {"id": "team", "question": "Which team?", "outcomes": ["billing", "sales", "support"]},
    ],
}


@cache
def shipped() -> tuple[BaseFiles, Engine]:
    """Return the shipped model's files and its engine, one for all tests."""
    files = read_base_files()
    return files, Engine(files.graph, files.weights, precision=files.precision, threads=1)


def shipped_model() -> tuple[str, FakeModel]:
    """Return the shipped model as a server has it."""
    files, engine = shipped()
    parameters = {"steelyard_sha256": files.sha256, "precision": files.precision}
    return files.manifest["name"], FakeModel(engine.run, parameters)


@dataclass(frozen=True)
class Service:
    """A running service."""

    http: httpx.Client
    services: ApiServices

    def ask(self, context: str = BODY["context"], key: str | None = None) -> httpx.Response:
        """Ask two decisions."""
        headers = {} if key is None else {"Idempotency-Key": key}
        return self.http.post("/v1/decide", json={**BODY, "context": context}, headers=headers)

    def parts(self) -> dict[str, str]:
        """The report of readiness."""
        return self.http.get("/v1/ready").json().get("parts", {})

    def scorer(self) -> str:
        """The report of readiness on the shipped model's passes."""
        [said] = [text for part, text in self.parts().items() if part.startswith("scorer:")]
        return said

    def figure(self, line: str) -> float:
        """A figure of the metrics; 0 where there is none."""
        for one in self.http.get("/metrics").text.splitlines():
            if one.startswith(f"{line} "):
                return float(one.rpartition(" ")[2])
        return 0.0


@contextmanager
def serving_service(home: Path, scorer: str, **overrides: Any) -> Iterator[Service]:
    """Serve the shipped model with passes in a server."""
    given = {
        "home": home,
        "scorer": scorer,
        "threads": 1,
        "jobs": "off",
        "requests_per_minute": 0,
        "tokens_per_minute": 0,
        "public_requests_per_minute": 0,
        "shutdown_s": 1,
    }
    listener = socket.create_server(("127.0.0.1", 0))
    host, port = listener.getsockname()
    with open_service(read_settings({**given, **overrides}, environ={})) as services:
        thread = ServerThread(lambda: create_app(services), listener)
        try:
            with httpx.Client(base_url=f"http://{host}:{port}", timeout=60) as http:
                yield Service(http, services)
        finally:
            thread.stop()


def probabilities(response: httpx.Response) -> np.ndarray:
    """Every probability of an answer, in order."""
    decisions = response.json()["decisions"].values()
    return np.array([p for one in decisions for p in one["probabilities"].values()])
