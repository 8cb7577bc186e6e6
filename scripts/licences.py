"""Print a table of the licences in a bill of materials in CycloneDX's JSON: ``licences.py FILE``."""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from typing import Any


def licence(component: dict[str, Any]) -> str:
    """Return what a component says of its licence: an identifier, a classifier, or how its text begins."""
    entries = component.get("licenses", [])
    identifiers = [entry.get("expression") or entry["license"].get("id") for entry in entries]
    if found := [name for name in identifiers if name]:
        return "; ".join(dict.fromkeys(found))
    licences = [entry["license"] for entry in entries]
    classifiers = [each["name"].rsplit(" :: ")[-1] for each in licences if "::" in each["name"]]
    texts = [_text(each["text"]).strip().partition("\n")[0] for each in licences if "text" in each]
    return "; ".join(dict.fromkeys(classifiers or texts)) or "not stated"


def _text(attached: dict[str, str]) -> str:
    content = attached["content"]
    is_coded = attached.get("encoding") == "base64"
    return base64.b64decode(content).decode(errors="replace") if is_coded else content


def main() -> None:
    """Print name, version and licence of each component."""
    materials = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    print("| package | version | licence |\n|---|---|---|")
    for component in sorted(materials["components"], key=lambda entry: entry["name"].lower()):
        print(f"| {component['name']} | {component['version']} | {licence(component)} |")


if __name__ == "__main__":
    main()
