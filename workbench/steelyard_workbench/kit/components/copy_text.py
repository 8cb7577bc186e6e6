"""Text to copy with a button, and requests as programs in several languages."""

from __future__ import annotations

import json
import pprint
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import param
from panel.custom import JSComponent

from steelyard_workbench.kit.look import BUTTON_CSS, with_tokens
from steelyard_workbench.kit.theme import FONT, SMALL

#: What stands where a key would be: keys are never shown.
KEY_PLACE = "YOUR_API_KEY"
_STYLE = BUTTON_CSS + with_tokens(f"""
:host {{ color: var(--ink); font-family: {FONT}; }}
pre {{
  white-space: pre-wrap; overflow-wrap: anywhere; margin: 0 0 8px; padding: 12px; font-size: {SMALL};
  background: var(--sunk); border: 1px solid var(--line); border-radius: 6px; max-height: 18em; overflow: auto;
}}
[role=tablist] {{ display: flex; flex-wrap: wrap; gap: 4px; margin-bottom: 8px; }}
[role=tab] {{
  color: inherit; background: none; border: 0; border-radius: 0; border-bottom: 2px solid transparent;
}}
[role=tab][aria-selected=true] {{ color: var(--accent); border-color: currentColor; }}
""")


def as_json(request: Mapping[str, Any]) -> str:
    """Return a request as JSON, indented."""
    return json.dumps(request, indent=2, ensure_ascii=False)


def as_curl(url: str, request: Mapping[str, Any], *, with_key: bool) -> str:
    """Return a shell command that sends a request."""
    words = ["curl", "-s", f"{url}/v1/decide", "-H", "Content-Type: application/json"]
    if with_key:
        words += ["-H", f"Authorization: Bearer {KEY_PLACE}"]
    return shlex.join([*words, "-d", json.dumps(request, ensure_ascii=False)])


def as_python(url: str, request: Mapping[str, Any], *, with_key: bool) -> str:
    """Return a Python program that sends a request with the client; as ``as_curl`` takes them."""
    options = {
        name: value for name, value in request.items() if name not in {"context", "decisions"}
    }
    further = "".join(f"    {name}={value!r},\n" for name, value in options.items())
    key = f", api_key={KEY_PLACE!r}" if with_key else ""
    decisions = pprint.pformat(request["decisions"], sort_dicts=False, width=92)
    indented = decisions.replace("\n", "\n    ")
    return (
        "import steelyard\n\n"
        f"client = steelyard.connect({url!r}{key})\n"
        "answer = client.decide(\n"
        f"    {request['context']!r},\n"
        f"    {indented},\n"
        f"{further})\n"
        "for name, result in answer.decisions.items():\n"
        "    print(name, result)\n"
    )


def as_python_named(url: str, request: Mapping[str, Any], *, with_key: bool) -> str:
    """Return a Python program that asks a named decision; as ``as_curl`` takes them."""
    key = f", api_key={KEY_PLACE!r}" if with_key else ""
    fields = f", fields={request['fields']!r}" if "fields" in request else ""
    return (
        "import steelyard\n\n"
        f"client = steelyard.connect({url!r}{key})\n"
        f"answer = client.decision({request['decision']!r}).decide({request['context']!r}{fields})\n"
        "for id_, result in answer.decisions.items():\n"
        "    print(id_, result.action)\n"
    )


class CopyText(JSComponent):
    """A text to copy, or several of which one is shown at a time, by their names.

    Buttons, tabs and boxes of panel-material-ui would be a React root each.
    """

    texts = param.Dict(default={})
    chosen = param.String(default="")

    _esm = Path(__file__).with_suffix(".js")
    _stylesheets = [_STYLE]  # noqa: RUF012  Panel reads it from the class

    def __init__(self, text: str = "", label: str = "", **options: Any) -> None:
        if label:
            options["texts"] = {label: text}
        self.text = text
        super().__init__(**{"sizing_mode": "stretch_width", "margin": (5, 10), **options})
