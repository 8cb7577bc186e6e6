"""Teachers on loopback, and a server whose rows they label."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from steelyard.serving.connected.declared import Calibration, ConnectedModel, write_models
from support.datasets.dataset_rows import REFUND, ROUTE, to_ndjson
from support.models.remote_models import RemoteModel, remote_model
from support.servers.live_server import live_server

#: What rows ask that carry no decisions of their own.
SHARED = [REFUND]
_CALIBRATION = Calibration(number=1, dataset="ds_1", version=1, temperatures={"binary": {"2": 1.0}})


def teaching(yes: Callable[[str], float]) -> Callable[[str, Any], Any]:
    """Answer the wire ``systemone``: yes by the words of a context, the first outcome of others."""

    def answer(path: str, body: Any) -> Any:
        assert path == "/v1/systemone"
        answers: dict[str, Any] = {}
        for name, question in body["questions"].items():
            if question["type"] == "noul":
                answers[name] = {"type": "noul", "noul": yes(body["state"])}
                continue
            labels = list(question["criteria"])
            shares = {label: float(label == labels[0]) for label in labels}
            answers[name] = {"type": "choice", "choice": labels[0], "probabilities": shares}
        return {"answers": answers}

    return answer


def is_even(context: str) -> float:
    """Answer rather yes to every other row."""
    return 0.8 if int(context.split()[1]) % 2 == 0 else 0.3


def queries(n: int, *, start: int = 0, is_open: bool = True) -> bytes:
    """Rows without targets, which ask nothing themselves or two decisions."""
    rows: list[dict[str, Any]] = [
        {"context": f"Invoice {number} was paid twice."} for number in range(start, start + n)
    ]
    if not is_open:
        rows = [{**row, "decisions": [ROUTE, REFUND]} for row in rows]
    return to_ndjson(rows)


@contextmanager
def taught_server(
    home: Path, teachers: dict[str, Callable[[str], float]], *, price_in: str = "0", **settings: Any
) -> Iterator[tuple[Any, dict[str, RemoteModel]]]:
    """A server with teachers that answer, and no worker; the second is calibrated."""
    with ExitStack() as closing:
        models = {
            name: closing.enter_context(remote_model(teaching(yes)))
            for name, yes in teachers.items()
        }
        declared = {
            name: ConnectedModel(
                wire="systemone",
                url=one.url,
                price_in=price_in,
                teacher=True,
                concurrency=2,
                calibrations=() if place == 0 else (_CALIBRATION,),
            )
            for place, (name, one) in enumerate(models.items())
        }
        write_models(home, declared)
        settings = {"jobs": "off", "dataset_min_rows": 1, **settings}
        yield closing.enter_context(live_server(home=str(home), **settings)), models
