"""Settings as data: one table of names, defaults and meanings, and the only reader of the environment.

``SETTINGS`` is the source of the defaults, of the command line's help and of the table in the
README (a test compares them). Nothing else in the package looks at ``os.environ``.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_NOUNS = {str: "a text", int: "a whole number", float: "a number", Path: "a path"}


class InvalidSettingError(ValueError):
    """A setting's value cannot be used; the message names the setting and what to give."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table.

    Parameters
    ----------
    name : str
        The attribute of ``Settings``, in snake case.
    type : type
        ``str``, ``int``, ``float`` or ``pathlib.Path``.
    default : object
        The value when nothing else is given; ``None`` means unset.
    help : str
        What it does, in one sentence, with its unit.
    minimum, maximum : float or None
        Bounds of a number, both included.
    choices : tuple of str
        The values allowed; empty when any is.
    """

    name: str
    type: type
    default: Any
    help: str
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()

    @property
    def variable(self) -> str:
        """Name of the environment variable, such as ``STEELYARD_PORT``."""
        return f"STEELYARD_{self.name.upper()}"

    def parse(self, value: Any) -> Any:
        """Give the value in this setting's type.

        Raises
        ------
        InvalidSettingError
            When the value is not of the type, out of bounds or not among the choices.
        """
        if value is None and self.default is None:
            return None
        try:
            parsed: Any = Path(value).expanduser() if self.type is Path else self.type(value)
        except (TypeError, ValueError):
            raise self._refusal(value, _NOUNS[self.type]) from None
        if self.choices and parsed not in self.choices:
            raise self._refusal(value, f"one of {', '.join(self.choices)}")
        if self.minimum is not None and not parsed >= self.minimum:
            raise self._refusal(value, f"at least {self.minimum:g}")
        if self.maximum is not None and parsed > self.maximum:
            raise self._refusal(value, f"at most {self.maximum:g}")
        if isinstance(parsed, float) and not math.isfinite(parsed):
            raise self._refusal(value, "a finite number")
        return parsed

    def _refusal(self, value: Any, needed: str) -> InvalidSettingError:
        return InvalidSettingError(
            f"The setting {self.name} ({self.variable}) is {value!r}; give {needed}."
        )


SETTINGS: tuple[Setting, ...] = (
    Setting("host", str, "127.0.0.1", "Address the server listens on; loopback only."),
    Setting(
        "port",
        int,
        8420,
        "Port the server listens on; 0 takes a free one.",
        minimum=0,
        maximum=65535,
    ),
    Setting(
        "home",
        Path,
        None,
        "Directory of this server's files; `serve.json` there names the address while it runs.",
    ),
    Setting(
        "engine",
        str,
        "auto",
        "Engine and precision: `auto` (the model's own choice), `onnxruntime-float32`, "
        "`onnxruntime-int8`, or `hashing`, a test double whose answers mean nothing.",
        choices=("auto", "onnxruntime-float32", "onnxruntime-int8", "hashing"),
    ),
    Setting("threads", int, 0, "Threads of the engine; 0 leaves it to the engine.", minimum=0),
    Setting(
        "body_bytes",
        int,
        1024 * 1024,
        "Largest request body, in bytes.",
        minimum=1024,
        maximum=64 * 1024 * 1024,
    ),
    Setting(
        "deadline_s",
        float,
        90.0,
        "Seconds after which a request that has no answer yet ends with 504.",
        minimum=0.01,
        maximum=300.0,
    ),
    Setting(
        "max_queue",
        int,
        256,
        "Requests that may wait for the engine; more are refused with 503 and Retry-After.",
        minimum=1,
    ),
)

_BY_NAME = {setting.name: setting for setting in SETTINGS}


@dataclass(frozen=True, slots=True)
class Settings:
    """Checked settings; ``SETTINGS`` says what each means.

    Examples
    --------
    >>> read_settings({"port": 9000}, environ={}).port
    9000
    """

    host: str
    port: int
    home: Path | None
    engine: str
    threads: int
    body_bytes: int
    deadline_s: float
    max_queue: int


def read_settings(
    overrides: Mapping[str, Any] | None = None, *, environ: Mapping[str, str] | None = None
) -> Settings:
    """Give the settings: an override wins over the environment, which wins over the default.

    Parameters
    ----------
    overrides : mapping of str to object, optional
        Values by setting name; ``None`` counts as not given.
    environ : mapping of str to str, optional
        Read instead of the process's environment. A blank value counts as not given.

    Raises
    ------
    InvalidSettingError
        When a value cannot be used, or an override names no setting.
    """
    given = {name: value for name, value in (overrides or {}).items() if value is not None}
    unknown = sorted(given.keys() - _BY_NAME.keys())
    if unknown:
        raise InvalidSettingError(
            f"There is no setting {unknown[0]!r}; the settings are {', '.join(_BY_NAME)}."
        )
    source = os.environ if environ is None else environ
    values = {}
    for setting in SETTINGS:
        value = given.get(setting.name)
        if value is None:
            value = source.get(setting.variable, "").strip() or setting.default
        values[setting.name] = setting.parse(value)
    return Settings(**values)
