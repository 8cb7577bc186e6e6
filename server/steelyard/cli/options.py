"""Options that are settings, whose name, help and default come from the one table; types and values of options."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, TypeVar

import click

from steelyard.ledger.money import InvalidAmountError, from_usd
from steelyard.settings import SETTINGS

_Command = TypeVar("_Command", bound=Callable[..., Any])

_BY_NAME = {setting.name: setting for setting in SETTINGS}


def setting_option(name: str) -> Callable[[_Command], _Command]:
    """Return an option ``--name`` for a setting; the environment and the default stand behind it."""
    setting = _BY_NAME[name]
    default = "unset" if setting.default is None else setting.default
    return click.option(
        f"--{name.replace('_', '-')}",
        name,
        metavar=setting.type.__name__.upper(),
        help=f"{setting.help} [${setting.variable}; default: {default}]",
    )


def together(*options: Callable[[Any], Any]) -> Callable[[_Command], _Command]:
    """Return a decorator that adds several options, in this order."""

    def add(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def setting_options(*names: str) -> Callable[[_Command], _Command]:
    """Return a decorator that adds ``setting_option`` of each name, in this order."""
    return together(*map(setting_option, names))


#: The settings of a process that answers over HTTP.
SERVER_SETTINGS = ("host", "port", "hosts", "home", "state_url", "new_state", "accounts")
#: The settings of what answers in it.
ENGINE_SETTINGS = ("engine", "threads", "scorer", "judge")


json_option = click.option("--json", "as_json", is_flag=True, help="Print as JSON.")


class _UtcTime(click.DateTime):
    """A time without a zone, which is UTC, in Unix seconds."""

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:  # noqa: ARG002
        """Return the two usual forms."""
        return "2026-11-30[T08:00:00]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return a time in Unix seconds."""
        try:
            time: dt.datetime = super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(
                f"{value!r} is not a time; write 2026-11-30 or 2026-11-30T08:00:00.", param, ctx
            )
        return time.replace(tzinfo=dt.UTC).timestamp()


UTC_TIME = _UtcTime()
SHARE = click.FloatRange(0, 1)
#: A share that is neither nothing nor all.
PROBABILITY = click.FloatRange(0, 1, min_open=True, max_open=True)
PORT_NUMBER = click.IntRange(0, 65535)
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
NEW_FILE = click.Path(dir_okay=False, path_type=Path)
#: Written out, as the command line reads no wire: ``steelyard.wire.origins``.
_ORIGINS = ("person", "expert", "outcome", "click", "model")
ORIGINS, ORIGINS_AND_UNKNOWN = click.Choice(_ORIGINS), click.Choice((*_ORIGINS, "unknown"))
origin_option = click.option(
    "--by",
    type=ORIGINS,
    help="Only feedback of this origin; all but that of clicks and models when left out.",
)
#: Which stored decisions are meant.
stored_options = together(
    click.option(
        "--since", type=UTC_TIME, help="Only those answered at this time of UTC or later."
    ),
    click.option("--until", type=UTC_TIME, help="Only those answered before this time of UTC."),
    click.option("--model", help="Only those that this model, family or number answered."),
    click.option("--named", help="Only those of this named decision, or of a version: triage@7."),
)


def read_usd(text: str, name: str) -> int:
    """Return an amount of USD in nano-USD."""
    try:
        return from_usd(text)
    except InvalidAmountError as error:
        raise click.BadParameter(str(error), param_hint=name) from None


def read_json(text: str | bytes, option: str) -> Any:
    """Return the value that the text of an option holds."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise click.BadParameter(f"is not JSON: {error}", param_hint=option) from None
    except RecursionError:
        raise click.BadParameter("is JSON that is nested too deep.", param_hint=option) from None


def read_list(file: IO[str] | None, option: str) -> list[Any] | None:
    """Return the array in the file of an option; ``None`` without the option."""
    if file is None:
        return None
    value = read_json(file.read(), option)
    if not isinstance(value, list):
        raise click.BadParameter("is not a JSON array.", param_hint=option)
    return value
