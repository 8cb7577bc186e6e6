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

    def tick(self) -> None:
        """Write which models would answer here, where that is otherwise than written."""
        ready = {model.name: model.can_answer for model in self._models.hosted}
        table, instance = model_hosts, self._state.instance
        row = {"instance": instance, "host": self._host, "models": msgspec.json.encode(ready)}
        # Another host removes it while this one's lock on the state is lost with its connection.
        written = select(table.c.models).where(table.c.instance == instance)
        if self._state.read_now(lambda connection: connection.scalar(written)) == row["models"]:
            return

        def work(connection: Connection) -> None:
            for each in connection.scalars(select(table.c.instance)).all():
                if each == instance or not self._state.is_alive(connection, each):
                    connection.execute(delete(table).where(table.c.instance == each))
            connection.execute(insert(table).values(**row))

        self._state.write_now(work)

    async def count(self, model: str) -> tuple[int, int] | None:
        """Return how many hosts there are, and would answer as a model; ``None`` where one alone has the state."""
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
