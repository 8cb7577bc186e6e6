"""A judge's process for tests that answers by a rule, a character a token, at once."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from itertools import takewhile
from types import SimpleNamespace
from typing import Any

import httpx

from steelyard.serving.judge import engine as engines

#: Milliseconds of processor time of a token that is read, and of one that is written.
READ_MS, WRITTEN_MS = 1.0, 10.0
#: How a prompt ends, where the model begins to write.
TAIL = "\nMODEL: "
_HEADER = SimpleNamespace(name="made up", context_tokens=0, file_bytes=0, cache_bytes=0)


class FakeLlama:
    """Answers what an engine sends, with a cache of prompts as llama.cpp has it."""

    is_running, pid, socket, key = True, 1, "", ""

    def __init__(
        self, answer: Callable[[str], dict[str, float]], write: Callable[[str], str] = str
    ) -> None:
        #: Return the shares of the next tokens after a prompt, and a text after it.
        self.answer, self.write = answer, write
        self.cpu_ms = 0.0
        #: The prompts, with the characters of each that were read anew.
        self.prompts: list[tuple[str, int]] = []
        self._cached: dict[int, list[int]] = {}

    def patch(self, monkeypatch: Any) -> None:
        """Make every engine ask this process in place of one that it starts."""
        transport = httpx.MockTransport(self._respond)
        monkeypatch.setattr(engines, "read_header", lambda _: _HEADER)
        monkeypatch.setattr(engines, "JudgeProcess", lambda *_: self)
        # Not the maker of all clients: a module imported meanwhile would keep the made-up one.
        monkeypatch.setattr(
            engines,
            "_client",
            lambda _: httpx.AsyncClient(transport=transport, base_url="http://judge"),
        )

    def start(self) -> None:
        """Begin with nothing read."""
        self._cached.clear()

    def stop(self) -> None:
        """Stay: the next engine asks it too."""

    def _respond(self, request: httpx.Request) -> httpx.Response:
        if request.method == "GET" or request.url.path == "/v1/systemone":
            return httpx.Response(501)
        body = json.loads(request.content)
        if request.url.path == "/apply-template":
            return httpx.Response(200, json={"prompt": body["messages"][0]["content"] + TAIL})
        if request.url.path == "/tokenize":
            return httpx.Response(200, json={"tokens": [*map(ord, body["content"])]})
        return httpx.Response(200, json=self._complete(body))

    def _complete(self, body: dict[str, Any]) -> dict[str, Any]:
        tokens, slot = body["prompt"], body["id_slot"]
        pairs = zip(tokens[:-1], self._cached.get(slot, []), strict=False)
        n_read = len(tokens) - len([*takewhile(lambda pair: pair[0] == pair[1], pairs)])
        text = "".join(map(chr, tokens)).removesuffix(TAIL)
        self.prompts.append((text, n_read))
        self._cached[slot] = tokens
        self.cpu_ms += READ_MS * n_read
        answer: dict[str, Any] = {"timings": {"prompt_n": n_read}}
        if "n_probs" in body:
            top = [
                {"token": token, "logprob": math.log(share)}
                for token, share in self.answer(text).items()
            ]
            return {**answer, "completion_probabilities": [{"top_logprobs": top}]}
        written = self.write(text)[: body["n_predict"]]
        self.cpu_ms += WRITTEN_MS * len(written)
        return {**answer, "content": written, "tokens_predicted": len(written)}
