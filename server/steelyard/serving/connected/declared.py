"""The connected models and the routes of a home: ``models.toml``, read and written whole.

Only a user who may write the file adds models; no address is ever taken from a request. A key is named
by its variable or file, and read when the model is opened: it is not in the file.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct

from steelyard.durable import write_atomically
from steelyard.serving.connected.declared_route import DeclaredRoute
from steelyard.settings import InvalidSettingError, read_variable
from steelyard.wire.decoding import convert
from steelyard.wire.limits import MAX_THOUGHT_TOKENS, THOUGHT_TOKENS
from steelyard.wire.names import FOREIGN_PREFIX

FILE = "models.toml"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
#: Tokens of a judge's context that questions and its chat template keep free.
ROOM_TOKENS = 512
#: A key's longest file; a longer one has none.
_MAX_KEY_BYTES = 8 * 1024

Wire = Literal["systemone", "decisions", "decide", "chat", "hub", "gguf", "entailment"]
#: The wires that run on this machine and have no address, and where each has its file or folder.
HERE = {"hub": "folder", "gguf": "file", "entailment": "file"}
_Label = Literal["entailment", "contradiction", "neutral", "not_entailment"]


class Calibration(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Temperatures fitted on a version of a dataset, by kind and number of outcomes."""

    number: Annotated[int, Meta(ge=1)]
    dataset: str
    version: int
    temperatures: dict[str, dict[str, float]]


class Thinking(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """When a judge writes before it answers, and how much."""

    #: Top probability of its first answer below which it writes.
    below: Annotated[float, Meta(gt=0, lt=1)]
    #: Most tokens that it writes on a decision.
    tokens: Annotated[int, Meta(ge=1, le=MAX_THOUGHT_TOKENS)] = THOUGHT_TOKENS


class ConnectedModel(
    Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True
):
    """A model of another server, and how it is asked."""

    wire: Wire
    url: str = ""
    #: Its name at the other server; Steelyard's own name for it where left out.
    model: str = ""
    #: Of an exported model (``hub``): its folder, seen from the home.
    folder: str = ""
    #: Of a judge (``gguf``) its file, of a reader (``entailment``) its folder: absolute or seen from the
    #: home.
    file: str = ""
    #: Tokens of a context with its question (``gguf``, where each request under way has as many), or
    #: most tokens of a context's part with a statement (``entailment``).
    context_tokens: Annotated[int, Meta(ge=512, le=131_072)] = 4_096
    #: 0 for the setting ``threads``, or every core (``gguf``); for one (``entailment``).
    threads: Annotated[int, Meta(ge=0, le=1_024)] = 0
    #: Layers that run on the GPU; -1 for all that it takes (``gguf``).
    gpu_layers: Annotated[int, Meta(ge=-1, le=10_000)] = -1
    #: Whether answers about texts that say nothing correct the others (``gguf``).
    contextual: bool = False
    #: Whether a yes/no question that has no opposite is asked with one all the same (``gguf``).
    own_opposites: bool = False
    #: When it writes before it answers (``gguf``).
    think: Thinking | None = None
    #: Whether it is loaded when the server starts, and never for want of requests ended (``gguf``).
    warm: bool = False
    #: Of a reader: the meaning of its logits in order, where its config.json has another, and whether
    #: the statement comes first in a pair, where that is otherwise than its folder says.
    labels: tuple[_Label, ...] = ()
    hypothesis_first: bool | None = None
    key_env: str = ""
    key_file: str = ""
    #: USD per million input tokens, as text; callers pay it.
    price_in: str = "0"
    concurrency: Annotated[int, Meta(ge=1, le=256)] = 8
    timeout_s: Annotated[float, Meta(gt=0, le=600)] = 30.0
    #: Orders of the outcomes that are asked and averaged (``chat``, ``gguf``).
    permutations: Annotated[int, Meta(ge=1, le=20)] | Literal["auto"] = "auto"
    max_input_tokens: Annotated[int, Meta(ge=1, le=65_536)] = 65_536
    #: Whether it may label rows.
    teacher: bool = False
    #: Whether prompt tuning may ask it for wordings, and show it rows (``chat``, ``gguf``).
    writer: bool = False
    added: dt.date | None = None
    calibrations: tuple[Calibration, ...] = ()

    def check(self, name: str) -> None:
        """Raise ``InvalidSettingError`` unless it can be asked."""
        check_name(name)
        for wire, field in HERE.items():
            if self.wire == wire and (self.url or not getattr(self, field)):
                raise _bad(
                    name, f"a model of wire {wire!r} has a {field} and no url, any other a url"
                )
        for field in {*HERE.values()} - {HERE.get(self.wire)}:
            if getattr(self, field):
                raise _bad(name, f"a model of wire {self.wire!r} has no {field}; remove it")
        if self.wire not in HERE:
            self._check_url(name)
        if self.writer and self.wire not in {"chat", "gguf"}:
            raise _bad(name, "only a model of wire 'chat' or 'gguf' can be a writer")
        if self.think is not None:
            self._check_thinking(name, self.think)
        if self.key_env and self.key_file:
            raise _bad(name, "set one of key_env and key_file")
        _ = self.price_nano

    def _check_thinking(self, name: str, think: Thinking) -> None:
        if self.wire != "gguf":
            raise _bad(name, "only a model of wire 'gguf' can think; remove think")
        least = ROOM_TOKENS + think.tokens
        if self.context_tokens <= least:
            raise _bad(
                name,
                f"its questions and {think.tokens} tokens of thought leave no room for a context; raise "
                f"context_tokens above {least}, or lower think.tokens",
            )

    def _check_url(self, name: str) -> None:
        needed = "url must be http://HOST[:PORT][/PATH] or https://…"
        try:
            parts = urlsplit(self.url)
            is_address = bool(parts.hostname) and parts.port != 0
        except ValueError:
            raise _bad(name, needed) from None
        if not is_address or parts.scheme not in {"http", "https"} or parts.query or parts.fragment:
            raise _bad(name, needed)
        if parts.username is not None or parts.password is not None:
            raise _bad(name, "leave user and password out of url; name a variable with key_env")

    def calibrated(
        self, dataset: str, version: int, temperatures: dict[str, dict[str, float]]
    ) -> ConnectedModel:
        """Return it with one more calibration, which its answers then have."""
        calibration = Calibration(
            number=1 + len(self.calibrations),
            dataset=dataset,
            version=version,
            temperatures=temperatures,
        )
        return msgspec.structs.replace(self, calibrations=(*self.calibrations, calibration))

    @property
    def price_nano(self) -> int:
        """Nano-USD per input token."""
        try:
            nano = Decimal(self.price_in) * 1000
        except InvalidOperation:
            nano = Decimal(-1)
        if not nano.is_finite() or nano < 0 or nano != int(nano):
            raise _bad(
                "price_in", "write USD per million tokens, a multiple of 0.001, such as 0.15"
            )
        return int(nano)

    @property
    def thought_tokens(self) -> int:
        """Most tokens that it writes on a decision before it answers."""
        return 0 if self.think is None else self.think.tokens

    @property
    def room(self) -> int:
        """Tokens of a judge's context that a text may have."""
        return max(self.context_tokens - ROOM_TOKENS - self.thought_tokens, 1)

    @property
    def reads_tokens(self) -> int:
        """Most input tokens of a request: a judge reads no more than its context has room for."""
        if self.wire != "gguf":
            return self.max_input_tokens
        return min(self.max_input_tokens, self.room)

    @property
    def orders(self) -> int | None:
        """Orders of the outcomes that are asked; ``None`` where the judge chooses."""
        if self.permutations != "auto":
            return self.permutations
        return None if self.wire == "gguf" else 1

    @property
    def calibration(self) -> Calibration | None:
        """The calibration in use: the latest."""
        return self.calibrations[-1] if self.calibrations else None

    def key(self) -> str | None:
        """Return its key; raises ``InvalidSettingError`` where one is named and not there."""
        if self.key_env:
            key = read_variable(self.key_env).strip()
            if not key:
                raise _bad("key_env", f"the variable {self.key_env} is not set")
        elif self.key_file:
            try:
                with Path(self.key_file).expanduser().open("rb") as file:
                    key = file.read(_MAX_KEY_BYTES).decode("ascii").strip()
            except (OSError, ValueError) as error:
                raise _bad("key_file", "the file cannot be read as a key") from error
        else:
            return None
        if not key or not key.isprintable() or not key.isascii():
            raise _bad("key", "a key is one line of visible ASCII characters")
        return key


class ModelsFile(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The content of the file, by name."""

    models: dict[str, ConnectedModel] = {}
    routes: dict[str, DeclaredRoute] = {}

    def with_model(self, name: str, model: ConnectedModel) -> ModelsFile:
        """Return them with a model, in the place of one of its name."""
        return ModelsFile({**self.models, name: model}, self.routes)

    def with_route(self, name: str, route: DeclaredRoute) -> ModelsFile:
        """Return them with a route, in the place of one of its name."""
        return ModelsFile(self.models, {**self.routes, name: route})

    def without(self, name: str) -> ModelsFile:
        """Return the others."""
        models, routes = dict(self.models), dict(self.routes)
        models.pop(name, None)
        routes.pop(name, None)
        return ModelsFile(models, routes)

    def check(self) -> None:
        """Raise ``InvalidSettingError`` unless all of it can be used."""
        for name, model in self.models.items():
            model.check(name)
        for name, route in self.routes.items():
            check_name(name)
            route.check(name)
            if name in self.models:
                raise InvalidSettingError(
                    f"{name!r} names a connected model and a route; rename one of them."
                )
            if through := sorted(self.routes.keys() & set(route.models)):
                raise InvalidSettingError(
                    f"The route {name!r} leads through {through[0]!r}, which is a route itself; name "
                    "its models instead."
                )


def read_file(home: Path) -> ModelsFile:
    """Return a home's connected models and routes; none where there is no file."""
    try:
        content = (home / FILE).read_bytes()
    except FileNotFoundError:
        return ModelsFile()
    except OSError as error:
        raise InvalidSettingError(f"{FILE} cannot be read: {error.strerror}.") from error
    values: dict[str, Any] = {}
    try:
        values = msgspec.toml.decode(content)
        file = convert(values, ModelsFile)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        where = _entry_at_fault(values, content)
        raise InvalidSettingError(
            f"{FILE} cannot be used: {where or f'{error}.'} Correct the file."
        ) from error
    except RecursionError as error:
        raise InvalidSettingError(
            f"{FILE} cannot be used: it is nested too deep. Correct the file."
        ) from error
    try:
        file.check()
    except InvalidSettingError as error:
        raise InvalidSettingError(f"{FILE} cannot be used. {error}") from error
    return file


def _entry_at_fault(values: Mapping[str, Any], content: bytes) -> str | None:
    """Return which entry is wrong, at which line and how; ``None`` where that lies in no entry."""
    for section, shape in (("models", ConnectedModel), ("routes", DeclaredRoute)):
        entries = values.get(section)
        for name, entry in entries.items() if isinstance(entries, Mapping) else ():
            try:
                convert(entry, shape)
            except msgspec.ValidationError as error:
                header = rf'^[ \t]*\[\s*{section}\s*\.\s*"?{re.escape(name)}"?\s*[.\]]'
                text = content.decode()
                match = re.search(header, text, re.MULTILINE)
                line = (
                    "" if match is None else f", line {text.count(chr(10), 0, match.start()) + 1}"
                )
                return f"{section}.{name}{line}: {error}."
    return None


def read_models(home: Path) -> dict[str, ConnectedModel]:
    """Return a home's connected models by name."""
    return read_file(home).models


def file_version(home: Path) -> tuple[int, int, int] | None:
    """Return a value that changes whenever a home's file is written; ``None`` without a file."""
    try:
        status = (home / FILE).stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def write_models(home: Path, models: Mapping[str, ConnectedModel]) -> None:
    """Write a home's connected models, for its owner alone; its routes stay."""
    write_file(home, ModelsFile(dict(models), read_file(home).routes))


def write_routes(home: Path, routes: Mapping[str, DeclaredRoute]) -> None:
    """Write a home's routes, for its owner alone; its connected models stay."""
    write_file(home, ModelsFile(read_file(home).models, dict(routes)))


def write_file(home: Path, file: ModelsFile) -> None:
    """Write a home's file, for its owner alone."""
    file.check()
    path = home / FILE
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    built: dict[str, Any] = msgspec.to_builtins(file, builtin_types=(dt.date,))
    write_atomically(path, msgspec.toml.encode(built))
    path.chmod(0o600)


class DeclaredInHome:
    """The connected models and routes of a home that has no state yet."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def read(self) -> ModelsFile:
        """Return those of its file."""
        return read_file(self._home)

    stored = read

    def files(self) -> dict[str, dict[str, str]]:
        """Return no hash: no file is stored without a state."""
        return {}

    def change(self, change: Callable[[ModelsFile], ModelsFile]) -> None:
        """Write what a function returns of them."""
        write_file(self._home, change(self.read()))


def check_name(name: str) -> None:
    """Raise ``InvalidSettingError`` unless a model or a route may have a name."""
    if not _NAME.fullmatch(name) or name.startswith(FOREIGN_PREFIX):
        raise InvalidSettingError(
            f"{name[:80]!r} cannot be a model's name: write letters, digits, '.', '_' and '-', "
            f"starting with a letter or digit and not with {FOREIGN_PREFIX!r}."
        )


def _bad(what: str, needed: str) -> InvalidSettingError:
    return InvalidSettingError(f"The connected model {what!r} cannot be used: {needed}.")
