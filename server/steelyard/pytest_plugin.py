"""A plugin of pytest: the fixture ``steelyard_decision`` asks named decisions as files have them.

Nothing that is asked is stored. ``--steelyard-at`` asks an alias or a version of the server instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from steelyard.client import Client
    from steelyard.client.answers import DecideAnswer
    from steelyard.named.files import DecisionFile


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options: where the files are, and which server is asked."""
    group = parser.getgroup("steelyard")
    group.addoption("--steelyard-url", help="The server; STEELYARD_URL, or this machine, if not.")
    group.addoption("--steelyard-at", help="Ask this alias or version instead of the files.")
    group.addoption(
        "--steelyard-decisions", default="decisions", help="The folder of files; decisions if not."
    )


class TestedDecision:
    """A named decision under test, as its file says or, with ``at``, as it is on the server."""

    __test__ = False

    def __init__(self, client: Client, file: DecisionFile, at: str | None) -> None:
        self._client, self._at = client, at
        #: The file, with its examples.
        self.file = file

    def decide(self, context: Any, fields: Mapping[str, Any] | None = None) -> DecideAnswer:
        """Return the answer about a context with fields; it is not stored."""
        if self._at is None:
            return self._client.decide(context, **self.file.questions, store=False)
        named = self._client.decision(f"{self.file.name}@{self._at}")
        return named.decide(context, fields=fields, store=False)

    def actions(self, context: Any) -> dict[str, str]:
        """Return the action of each of its decisions about a context."""
        return {name: result.action for name, result in self.decide(context).decisions.items()}

    def failures(self) -> list[str]:
        """Ask every example of the file, and return those that came out otherwise, in words."""
        wrong = []
        for place, example in enumerate(self.file.examples):
            answer = self.decide(example.context, example.fields)
            wrong += [
                f"examples[{place}]: {miss.name} is {miss.action}, not {miss.expected}"
                for miss in self.file.misses(example, answer)
            ]
        return wrong


@pytest.fixture(scope="session")
def steelyard_decision(pytestconfig: pytest.Config) -> Iterator[Callable[[str], TestedDecision]]:
    """Return a finder of named decisions by name, in the folder of files.

    >>> def test_triage(steelyard_decision):  # doctest: +SKIP
    ...     triage = steelyard_decision("support_triage")
    ...     assert triage.actions("I was charged twice.")["team"] == "billing"
    ...     assert triage.failures() == []
    """
    from steelyard.client import Client, ClientOptions  # noqa: PLC0415
    from steelyard.named.files import read_file  # noqa: PLC0415
    from steelyard.settings import read_settings  # noqa: PLC0415

    settings = read_settings({"url": pytestconfig.getoption("--steelyard-url")})
    folder = Path(pytestconfig.getoption("--steelyard-decisions"))
    at = pytestconfig.getoption("--steelyard-at")
    with Client(ClientOptions(settings.url, settings.api_key)) as client:

        def find(name: str) -> TestedDecision:
            path = folder / f"{name}.toml"
            if not path.is_file():
                raise FileNotFoundError(
                    f"There is no {path}; write it with steelyard decision pull {name}."
                )
            return TestedDecision(client, read_file(path.read_text(encoding="utf-8")), at)

        yield find
