"""Which hosts of a state would answer as which model."""

from __future__ import annotations

import msgspec
from sqlalchemy import Connection, delete, insert, select

from steelyard.serving.registry import ModelRegistry
from steelyard.serving.tables import model_hosts
from steelyard.storage import State
from steelyard.wire.decoding import decoder_of

_decode = decoder_of(dict[str, bool]).decode


class ModelHosts:
    """The hosts that answer on a state that several share; each process writes what changes with it.

    ``host`` names this machine and home: the processes of one are one host.
    """

    def __init__(self, state: State, models: ModelRegistry, host: str) -> None:
        self._state, self._models, self._host = state, models, host
        self._written: dict[str, bool] | None = None

    def tick(self) -> None:
        """Write which models would answer here, where that is otherwise than written."""
        ready = {model.name: model.can_answer for model in self._models.hosted}
        if ready == self._written:
            return
        table = model_hosts
        row = {"instance": self._state.instance, "host": self._host}

        def work(connection: Connection) -> None:
            for instance in connection.scalars(select(table.c.instance)).all():
                if instance == row["instance"] or not self._state.is_alive(connection, instance):
                    connection.execute(delete(table).where(table.c.instance == instance))
            connection.execute(insert(table).values(**row, models=msgspec.json.encode(ready)))

        self._state.write_now(work)
        self._written = ready

    async def count(self, model: str) -> tuple[int, int] | None:
        """Return how many hosts there are, and how many would answer as a model.

        ``None`` where one host alone has the state.
        """
        if not self._state.is_shared:
            return None

        def read(connection: Connection) -> dict[str, bool]:
            hosts: dict[str, bool] = {}
            for row in connection.execute(select(model_hosts)):
                if self._state.is_alive(connection, row.instance):
                    is_ready = _decode(row.models).get(model, False)
                    hosts[row.host] = is_ready and hosts.get(row.host, True)
            return hosts

        hosts = await self._state.read(read)
        return len(hosts), sum(hosts.values())
