"""The judge that a setting names and its route, written into ``models.toml`` like those of commands."""

from __future__ import annotations

import datetime as dt

import msgspec

from steelyard.scoring.shipped import default_name
from steelyard.serving.auto import JUDGE, ROUTE, auto_route
from steelyard.serving.connected.declared import ConnectedModel, ModelsFile, read_file, write_file
from steelyard.serving.judge.gguf import read_header
from steelyard.settings import Settings, home_of

#: Requests at once, tokens of a context, and seconds for an answer, where nothing else is declared.
CONCURRENCY, CONTEXT_TOKENS, TIMEOUT_S = 2, 4_096, 120.0


def declare_judge(settings: Settings) -> None:
    """Connect the file of the setting ``judge`` with its route; options that it has already stay.

    Its calibrations stay too where the file is the same.
    """
    if settings.judge is None:
        return
    file = settings.judge.expanduser().absolute()
    header = read_header(file)
    home = home_of(settings)
    declared = read_file(home)
    judge = _judge(declared.models.get(JUDGE), str(file), header.context_tokens)
    route = declared.routes.get(ROUTE) or msgspec.structs.replace(
        auto_route(default_name(settings), None, JUDGE), added=dt.datetime.now(dt.UTC).date()
    )
    written = ModelsFile({**declared.models, JUDGE: judge}, {**declared.routes, ROUTE: route})
    if written != declared:
        write_file(home, written)


def _judge(known: ConnectedModel | None, file: str, most_tokens: int) -> ConnectedModel:
    if known is not None and known.wire == "gguf":
        if known.file == file:
            return known
        return msgspec.structs.replace(known, file=file, calibrations=())
    return ConnectedModel(
        wire="gguf",
        file=file,
        context_tokens=min(CONTEXT_TOKENS, most_tokens or CONTEXT_TOKENS),
        concurrency=CONCURRENCY,
        timeout_s=TIMEOUT_S,
        warm=True,
        teacher=True,
        writer=True,
        added=dt.datetime.now(dt.UTC).date(),
    )
