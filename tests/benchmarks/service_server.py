"""The server that ``service.py`` measures: the real application, controlled by lines on standard input.

One line of JSON says where it listens. Then each line is a command and is answered by one line:
``mark`` begins a measurement, ``take`` gives the CPU time of the whole process and the requests
scored since, and ``replay`` scores the same requests in the same batches with the bare scorer,
nothing else running, and gives the CPU time of that. The end of the input ends the server.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from steelyard.app.application import create_app
from steelyard.app.bootstrap import open_service
from steelyard.decisions.rendering import RenderedRequest
from steelyard.http.logs import configure_logging
from steelyard.http.server import run_server
from steelyard.scoring.protocol import ScoredDecision, Scorer
from steelyard.serving.base import load_named_model
from steelyard.settings import read_settings


class RecordingScorer:
    """Keeps the batches that a scorer is given."""

    def __init__(self, inner: Scorer) -> None:
        self.inner = inner
        self.batches: list[list[RenderedRequest]] = []

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def engine(self) -> str:
        return self.inner.engine

    def score(self, requests: Sequence[RenderedRequest]) -> list[list[ScoredDecision]]:
        self.batches.append(list(requests))
        return self.inner.score(requests)

    def close(self) -> None:
        self.inner.close()


class Control:
    """Measures the process that it runs in."""

    def __init__(self, scorer: RecordingScorer) -> None:
        self._scorer = scorer
        self._began = 0.0
        self._taken: list[list[RenderedRequest]] = []

    def obey(self, command: str) -> dict[str, Any]:
        return {"mark": self._mark, "take": self._take, "replay": self._replay}[command]()

    def _mark(self) -> dict[str, Any]:
        self._scorer.batches = []
        self._began = time.process_time()
        return {}

    def _take(self) -> dict[str, Any]:
        cpu_s = time.process_time() - self._began
        self._taken, self._scorer.batches = self._scorer.batches, []
        return {"cpu_s": cpu_s, "batches": [len(batch) for batch in self._taken]}

    def _replay(self) -> dict[str, Any]:
        # A space makes another text of the same tokens, so that none is found tokenised, and
        # another owner finds none of the states that were cached for the first.
        batches = [
            [
                replace(request, context=f" {request.context}", owner=f"{request.owner} again")
                for request in batch
            ]
            for batch in self._taken
        ]
        began = time.process_time()
        for batch in batches:
            self._scorer.inner.score(batch)
        return {"cpu_s": time.process_time() - began}


def main(given: str) -> None:
    """Serve with the settings given as JSON; with accounts on, one account has a key and credit."""
    settings = read_settings(json.loads(given))
    configure_logging(settings.log_level)
    listener = socket.create_server((settings.host, settings.port))
    recorders: list[RecordingScorer] = []

    def load(engine: str, threads: int | None) -> Any:
        model = load_named_model(engine, threads)
        recorders.append(RecordingScorer(model.scorer))
        return replace(model, scorer=recorders[-1])

    with open_service(settings, load_model=load) as services:
        key = None
        if settings.accounts == "on":
            account = services.accounts.create_account("benchmark").id
            services.accounts.add_credit(account, 10**18)
            key = services.accounts.create_key(account=account).secret
        about = {
            "port": listener.getsockname()[1],
            "api_key": key,
            "model": recorders[0].name,
            "engine": recorders[0].engine,
        }

        def listen() -> None:
            control = Control(recorders[0])
            for line in sys.stdin:
                print(json.dumps(control.obey(line.strip())), flush=True)
            os.kill(os.getpid(), signal.SIGTERM)

        def announce() -> None:
            print(json.dumps(about), flush=True)
            threading.Thread(target=listen, daemon=True).start()

        run_server(create_app(services), listener, on_ready=announce)


if __name__ == "__main__":
    main(sys.argv[1])
