"""Whether this server can do its work: engines score, the state is written, nothing is damaged."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from steelyard import errors
from steelyard.caller import LOCAL_ACCOUNT
from steelyard.ids import new_id
from steelyard.operations import store as rows
from steelyard.scoring.protocol import EngineStatus
from steelyard.serving.decide import wait_for_scores

if TYPE_CHECKING:
    from steelyard.serving.registry import HostedModel, ModelRegistry
    from steelyard.storage import State
    from steelyard.storage.damage import DamageNotes

_log = logging.getLogger(__name__)

#: Seconds that an engine has to score one short question.
_ENGINE_S = 5.0
_QUESTION = {
    "context": "",
    "decisions": [{"id": "ready", "kind": "binary", "question": "Is this a question?"}],
}


async def check_ready(models: ModelRegistry, state: State, damage: DamageNotes) -> dict[str, str]:
    """Try every part of the server."""
    missing: dict[str, str] = {}
    parts = {"state": "ok"}
    try:
        await state.write(write_probe)
    except errors.SteelyardError as error:
        missing["state"] = error.message
    for model in models.hosted:
        if model.is_connected:  # it is another server's to be ready, and asking it may cost
            kind_of_part = "route" if model.is_route else "connected"
            parts[f"{kind_of_part}:{model.name}"] = (
                "failed recently" if model.failed_recently else "ok"
            )
            continue
        part = f"engine:{model.name}"
        parts[part] = "ok"
        try:
            await _score(model)
        except errors.SteelyardError as error:
            missing[part] = error.message
        except Exception:  # noqa: BLE001  # logged, and reported
            _log.exception("The engine of %s failed a question of its own.", model.name)
            missing[part] = f"The engine of {model.name} failed; the log says why."
    for name, status in models.engine_statuses().items():
        if status.remote is not None:
            parts[f"scorer:{name}"] = _status_text(status)
    damaged = damage.found()
    missing.update(damaged)
    if missing:
        kind: type[errors.SteelyardError] = errors.EngineUnavailableError
        if "state" in missing:
            kind = errors.StorageUnavailableError
        if damaged:
            kind = errors.DataDamagedError
        raise kind(
            f"This server is not ready: {', '.join(missing)} cannot be used. See details.",
            details=[{"part": part, "message": message} for part, message in missing.items()],
        )
    return parts


def _status_text(status: EngineStatus) -> str:
    if status.reason is None:
        return f"ok: {status.remote}"
    where = "refused" if status.place == "none" else f"{status.place} instead"
    return f"{where}: {status.reason}"


def write_probe(connection: Connection) -> None:
    """Write a row and remove it."""
    # A transaction that changes nothing would pass on a full disk. What it wrote is gone again.
    probe = rows.KeyRow(
        account_id=LOCAL_ACCOUNT,
        route="GET /v1/ready",
        key=new_id("probe"),
        payload_sha256="",
        state="succeeded",
        operation_id=None,
        body=None,
        replay_until=None,
        forget_at=0.0,
    )
    rows.insert_key(connection, probe)
    rows.delete_key(connection, probe.account_id, probe.route, probe.key)


async def _score(model: HostedModel) -> None:
    # Asked beside what the model keeps of its own failures: a probe of a busy engine must not make
    # it pass for broken.
    if model.hangs:
        raise errors.EngineUnavailableError(f"The engine of {model.name} hangs.")
    prepared = model.decide.prepare(_QUESTION)
    await wait_for_scores(model.queue.submit(prepared.rendered, _ENGINE_S), _ENGINE_S)
