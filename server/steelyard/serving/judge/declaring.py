"""The judge that a setting names, written into a home's ``models.toml`` like one that a command added."""

from __future__ import annotations

import datetime as dt

import msgspec

from steelyard.serving.connected.declared import ConnectedModel, read_models, write_models
from steelyard.serving.judge.gguf import read_header
from steelyard.settings import Settings, home_of

#: The name of the judge of the setting ``judge``.
NAME = "judge"
#: Requests at once, tokens of a context, and seconds for an answer, where nothing else is declared.
CONCURRENCY, CONTEXT_TOKENS, TIMEOUT_S = 2, 4_096, 120.0


def declare_judge(settings: Settings) -> None:
    """Connect the file of the setting ``judge``; options that it has already stay.

    Its calibrations stay too where the file is the same.
    """
    if settings.judge is None:
        return
    file = settings.judge.expanduser().absolute()
    header = read_header(file)
    home = home_of(settings)
    models = read_models(home)
    known = models.get(NAME)
    if known is not None and known.wire == "gguf" and known.file == str(file):
        return
    if known is not None and known.wire == "gguf":
        declared = msgspec.structs.replace(known, file=str(file), calibrations=())
    else:
        declared = ConnectedModel(
            wire="gguf",
            file=str(file),
            context_tokens=min(CONTEXT_TOKENS, header.context_tokens or CONTEXT_TOKENS),
            concurrency=CONCURRENCY,
            timeout_s=TIMEOUT_S,
            warm=True,
            teacher=True,
            writer=True,
            added=dt.datetime.now(dt.UTC).date(),
        )
    write_models(home, {**models, NAME: declared})
