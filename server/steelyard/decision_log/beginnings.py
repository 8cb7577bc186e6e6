"""The first characters of contexts, which lists of stored answers show."""

from __future__ import annotations

import re
from collections.abc import Collection

import msgspec
from sqlalchemy import Connection, func, select

from steelyard.decision_log.tables import decisions
from steelyard.decision_log.withheld import has_text

#: Characters of a context that a list shows, and the bytes of a request that hold as many.
_BEGINNING, _BEGINNING_BYTES = 200, 1_300
_QUOTED = re.compile(r'"((?:[^"\\]|\\u[0-9a-fA-F]{4}|\\[^u])*)')


def beginnings(connection: Connection, ids: Collection[str]) -> dict[str, str]:
    """Return the first characters of the context of each answer that the database has."""
    first = func.substr(decisions.c.request, 1, _BEGINNING_BYTES)
    rows = connection.execute(select(decisions.c.id, first).where(decisions.c.id.in_(ids)))
    return {id_: beginning_of(bytes(request)) for id_, request in rows}


def beginning_of(request: bytes) -> str:
    r"""Return the first characters of the context of a stored request, which its JSON begins with.

    Empty where the text is not stored.

    >>> beginning_of(b'{"context":"It is \\"late\\".","decisions":[]}')
    'It is "late".'
    >>> beginning_of(b'{"context":{"a":1},"decisions":[]}')
    '{"a":1}'
    """
    if not has_text(request):
        return ""
    text = request[:_BEGINNING_BYTES].decode(errors="ignore").removeprefix('{"context":')
    quoted = _QUOTED.match(text)
    text = msgspec.json.decode(f'"{quoted[1]}"') if quoted else text.split(',"decisions":')[0]
    return str(text)[:_BEGINNING]
