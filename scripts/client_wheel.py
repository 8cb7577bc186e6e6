"""Write the project of ``steelyard-client`` into a new folder: ``client_wheel.py FOLDER``.

Its modules are those of ``steelyard.client`` and what they import, as they are; it has the version,
licence and requirements of ``steelyard``. ``scripts/release`` builds it.
"""

from __future__ import annotations

import importlib
import pkgutil
import shutil
import sys
import tomllib
from pathlib import Path

import msgspec

import steelyard.client
import steelyard.settings

ROOT = Path(__file__).resolve().parents[1]
#: What a client cannot do without; frames and figures need more, and name it.
REQUIRED = ("httpx", "msgspec", "tenacity")
README = """# steelyard-client

The Python client of [Steelyard](https://pypi.org/project/steelyard/) alone, for programs that call a server:

    import steelyard

    with steelyard.connect("http://127.0.0.1:8420") as client:
        print(client.health().status)

The modules are those of the package `steelyard`, of the same version. It conflicts with that package, which has
them too: install one of the two in an environment.
"""


def modules() -> list[str]:
    """Return the names of the modules that a client has."""
    for module in pkgutil.walk_packages(steelyard.client.__path__, "steelyard.client."):
        importlib.import_module(module.name)
    return sorted(name for name in sys.modules if name.split(".")[0] == "steelyard")


def project() -> str:
    """Return the client's ``pyproject.toml``."""
    whole = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    requirements = [line for line in whole["dependencies"] if line.startswith(REQUIRED)]
    facts = {
        **{name: whole[name] for name in ("requires-python", "license", "classifiers")},
        "name": "steelyard-client",
        "version": steelyard.__version__,
        "description": "The client of Steelyard, a server of calibrated decisions.",
        "readme": "README.md",
        "license-files": ["LICENSE"],
        "dependencies": requirements,
    }
    build = {"requires": ["hatchling>=1.27"], "build-backend": "hatchling.build"}
    wheel = {"packages": ["steelyard"]}
    tool = {"hatch": {"build": {"targets": {"wheel": wheel}}}}
    return msgspec.toml.encode({"build-system": build, "project": facts, "tool": tool}).decode()


def main() -> None:
    """Write the folder."""
    folder = Path(sys.argv[1])
    package = Path(steelyard.__file__).parents[1]
    files = [Path(str(sys.modules[name].__file__)).relative_to(package) for name in modules()]
    for file in (*files, Path("steelyard", "py.typed")):
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(package / file, folder / file)
    shutil.copyfile(ROOT / "LICENSE", folder / "LICENSE")
    (folder / "README.md").write_text(README, encoding="utf-8")
    (folder / "pyproject.toml").write_text(project(), encoding="utf-8")


if __name__ == "__main__":
    main()
