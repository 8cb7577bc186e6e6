"""JSON that an option names, or the refusal of the option."""

from __future__ import annotations

import json
from typing import IO, Any

import click


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
