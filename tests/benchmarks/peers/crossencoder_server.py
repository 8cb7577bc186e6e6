"""A thin server around a CrossEncoder, as a user would write one; runs in its own environment.

It speaks ``POST /v1/systemone``: each outcome of each question is one pair of the state and a text,
all pairs of a request go to one call of ``predict``, and a softmax makes a question's answer.
"""

# It runs where Steelyard is not installed, as a script.

from __future__ import annotations

import argparse
import threading
from typing import Any

import numpy as np


def pairs_of(body: dict[str, Any]) -> list[tuple[str, list[str], list[str]]]:
    """Return each question's name, the names of its outcomes, and the texts that stand for them."""
    found = []
    for name, question in body["questions"].items():
        names = ["yes", "no"] if question["type"] == "noul" else list(question["criteria"])
        texts = [f"{question['instructions']} {outcome}" for outcome in names]
        found.append((name, names, texts))
    return found


def softmax(scores: np.ndarray) -> np.ndarray:
    shifted = np.exp(scores - scores.max())
    return shifted / shifted.sum()


class Answerer:
    """Answers one request at a time: a pass of the model uses every core already."""

    def __init__(self, folder: str, batch: int, *, int8: bool) -> None:
        import torch
        from sentence_transformers import CrossEncoder

        self._model = CrossEncoder(folder, device="cpu", max_length=512)
        self._batch = batch
        self._turn = threading.Lock()
        if int8:
            torch.ao.quantization.quantize_dynamic(
                self._model.model, {torch.nn.Linear}, dtype=torch.qint8, inplace=True
            )

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        questions = pairs_of(body)
        pairs = [(body["state"], text) for _, _, texts in questions for text in texts]
        with self._turn:
            scores = self._model.predict(
                pairs, batch_size=self._batch, show_progress_bar=False, convert_to_numpy=True
            )
        answers, at = {}, 0
        for name, outcomes, texts in questions:
            shares = softmax(scores[at : at + len(texts)]).tolist()
            at += len(texts)
            answers[name] = {"probabilities": dict(zip(outcomes, shares, strict=True))}
        return {"answers": answers}


def main() -> None:
    import uvicorn
    from fastapi import FastAPI

    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--batch", type=int, default=32, help="pairs of a pass of the model")
    parser.add_argument("--int8", action="store_true", help="linear layers in int8")
    options = parser.parse_args()
    answerer = Answerer(options.folder, options.batch, int8=options.int8)
    app = FastAPI()

    def systemone(body: dict[str, Any]) -> dict[str, Any]:
        return answerer.answer(body)

    # The names of the types must be there when the route is made, as they are not in strings.
    systemone.__annotations__ = {"body": dict, "return": dict}
    app.post("/v1/systemone")(systemone)
    uvicorn.run(app, host="127.0.0.1", port=options.port, log_level="warning")


if __name__ == "__main__":
    main()
