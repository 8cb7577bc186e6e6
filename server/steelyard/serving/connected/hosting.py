"""Connected models as a server has them: each a base model whose engine is another server."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Collection
from contextlib import ExitStack
from typing import TYPE_CHECKING

import msgspec

from steelyard.calibration.temperature import TemperatureTable
from steelyard.decisions.tokens import TokenCounter
from steelyard.serving.connected.chat import ChatWire
from steelyard.serving.connected.decide import DecideWire
from steelyard.serving.connected.decisions import DecisionsWire
from steelyard.serving.connected.declared import ConnectedModel, read_models
from steelyard.serving.connected.queue import ConnectedQueue, Loop
from steelyard.serving.connected.remote import Remote
from steelyard.serving.connected.systemone import SystemOneWire
from steelyard.serving.connected.wire import ModelWire
from steelyard.serving.decide import DecideLimits, DecideService
from steelyard.serving.registry import HostedModel
from steelyard.settings import InvalidSettingError, Settings, home_of

if TYPE_CHECKING:
    from steelyard.billing.prices import Prices


def open_connected(
    settings: Settings,
    prices: Prices,
    tokenizer: TokenCounter,
    taken: Collection[str],
    closing: ExitStack,
) -> list[HostedModel]:
    """Open every connected model of the home; none is asked anything."""
    declared = read_models(home_of(settings))
    if not declared:
        return []
    if both := sorted(declared.keys() & set(taken)):
        raise InvalidSettingError(
            f"{both[0]!r} names a model of this server and a connected one; rename the connected one."
        )
    loop = Loop()
    closing.callback(loop.close)
    hosted = []
    for name, model in declared.items():
        queue = open_queue(name, model, loop, max_queue=settings.max_queue)
        closing.callback(queue.close)
        calibration = model.calibration
        decide = DecideService(
            model_name=name,
            temperatures=TemperatureTable(
                None if calibration is None else calibration.temperatures
            ),
            tokenizer=tokenizer,
            limits=DecideLimits(model.max_input_tokens),
        )
        hosted.append(
            HostedModel(
                decide,
                queue,
                engine=f"connected-{model.wire}",
                description=f"Connected over the wire {model.wire}; it answers on another server.",
                release_date=model.added or dt.datetime.now(dt.UTC).date(),
                price_nano=prices.by_model.get(name, model.price_nano),
                evaluation_key=_identity(name, model),
                is_connected=True,
            )
        )
    return hosted


def open_queue(name: str, model: ConnectedModel, loop: Loop, *, max_queue: int) -> ConnectedQueue:
    """Return what asks one connected model."""
    return ConnectedQueue(
        name,
        wire_of(name, model),
        Remote(name, model),
        loop,
        concurrency=model.concurrency,
        timeout_s=model.timeout_s,
        max_queue=max_queue,
    )


def wire_of(name: str, model: ConnectedModel) -> ModelWire:
    """Return what speaks a model's wire."""
    asked = model.model or name
    if model.wire == "chat":
        return ChatWire(asked, model.permutations)
    if model.wire == "systemone":
        return SystemOneWire(asked)
    if model.wire == "decisions":
        return DecisionsWire(asked)
    return DecideWire(model.model)


def _identity(name: str, model: ConnectedModel) -> str:
    """Return a hash of what decides a model's answers, as far as it is known here."""
    calibration = model.calibration
    parts = [name, model.wire, model.url, model.model, model.permutations]
    parts.append(None if calibration is None else calibration.temperatures)
    return hashlib.sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()
