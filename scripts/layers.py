"""Write what is made of the rooms' values: the contracts of pyproject.toml, and the table of packages.

The layers follow from what each room stands on. A module that meets nothing of the world joins the
contract of pure ones; one that is named there stays until its file is gone.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

from steelyard.app.rooms import ROOMS

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "server" / "steelyard"
PROJECT = ROOT / "pyproject.toml"
PAGE = ROOT / "docs" / "contributors" / "architecture.md"

#: Packages that are no rooms: above all of these, between them with what they stand on, and below.
ABOVE = ("cli | pytest_plugin", "embedded", "batch", "app", "mcp", "triton | client")
BETWEEN = {
    "trainer": ("evaluations", "training"),
    "training": ("serving",),
    "scoring": ("calibration", "decisions"),
    "proof": ("calibration",),
    "calibration": (),
}
BELOW = (
    "room",
    "job_frame",
    "house",
    "http",
    "operations",
    "ledger",
    "jobs",
    "outbox",
    "storage",
    "exports | imports",
    "wire | tracing",
    "settings | asking | http_clients | ids | version | caller | durable | memory | model_use | patience | processes | recent | waiting",
    "errors",
)
#: Packages that meet the world everywhere; of all others some modules are pure.
WORLDLY = {
    *("accounts", "app", "cli", "client", "durable", "embedded", "house", "http", "job_frame"),
    *(
        "http_clients",
        "jobs",
        "mcp",
        "memory",
        "operations",
        "processes",
        "pytest_plugin",
        "room",
        "scoring",
        "serving",
    ),
    *("settings", "storage"),
    *("tracing", "trainer", "training", "triton", "version", "waiting"),
}
#: Names of the modules by which a room meets the world.
AT_THE_EDGE = re.compile(r"(^|_)(room|routes|run|service|store|tables)$")


def layers() -> list[str]:
    """Return the layers of packages from the top, with ``|`` between those that do not know each other."""
    stands_on = {room.name: room.after for room in ROOMS if room.after} | BETWEEN
    sorter = TopologicalSorter(
        {name: set(after) & stands_on.keys() for name, after in stands_on.items()}
    )
    sorter.prepare()
    between: list[str] = []
    while sorter.is_active():
        ready = sorter.get_ready()
        between.insert(0, " | ".join(sorted(ready)))
        sorter.done(*ready)
    return [*ABOVE, *between, *BELOW]


def module_of(path: Path) -> str:
    """Return the name of a module's file."""
    return ".".join(("steelyard", *path.relative_to(PACKAGE).with_suffix("").parts))


def is_within(module: str, names: list[str]) -> bool:
    """Whether a module is among packages or modules."""
    return any(module == name or module.startswith(f"{name}.") for name in names)


def imported_by(path: Path) -> set[str]:
    """Return the modules that a file imports by their names."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    named = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return named | {
        node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module
    }


def pure() -> list[str]:
    """Return the modules of the contract of pure ones."""
    contracts = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["tool"]["importlinter"]
    contract = next(one for one in contracts["contracts"] if one["id"] == "pure")
    named = [
        name
        for name in contract["source_modules"]
        if (path := PACKAGE.joinpath(*name.split(".")[1:])).is_dir()
        or path.with_suffix(".py").exists()
    ]
    joining = [
        module_of(path)
        for path in PACKAGE.rglob("*.py")
        if path.stem != "__init__"
        and path.relative_to(PACKAGE).with_suffix("").parts[0] not in {*WORLDLY, "__main__"}
        and not AT_THE_EDGE.search(path.stem)
        and not is_within(module_of(path), named)
        and not any(is_within(name, contract["forbidden_modules"]) for name in imported_by(path))
    ]
    return sorted({*named, *joining})


def packages() -> Iterator[tuple[str, str]]:
    """Yield each package from the top with what it is, which its docstring says first."""
    for name in (name for layer in layers() for name in layer.split(" | ")):
        folder = PACKAGE / name
        file = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
        text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
        first = re.split(r"\.(?:\s|$)", " ".join(text.split()))[0].replace("``", "`")
        place = f"{name}/" if folder.is_dir() else file.name
        yield f"server/steelyard/{place}", first


def project_text() -> str:
    """Return ``pyproject.toml`` with the contracts as they are now."""
    text = PROJECT.read_text(encoding="utf-8")
    for key, names in (
        ("layers", [" | ".join(f"steelyard.{n}" for n in one.split(" | ")) for one in layers()]),
        ("source_modules", pure()),
    ):
        lines = "".join(f'  "{name}",\n' for name in names)
        text = re.sub(
            rf"^{key} = \[\n.*?^\]\n", f"{key} = [\n{lines}]\n", text, count=1, flags=re.M | re.S
        )
    return text


def page_text() -> str:
    """Return the page of the architecture with the table of packages as it is now."""
    rows = "".join(f"| `{place}` | {what} |\n" for place, what in packages())
    head, rest = PAGE.read_text(encoding="utf-8").split("| package | what is there |\n|---|---|\n")
    after = rest.partition("\n\n")[2]
    return f"{head}| package | what is there |\n|---|---|\n{rows}\n{after}"


if __name__ == "__main__":
    PROJECT.write_text(project_text(), encoding="utf-8")
    PAGE.write_text(page_text(), encoding="utf-8")
