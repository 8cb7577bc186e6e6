"""Decisions to start from: each a file beside this one, with rows of our own and measured figures."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import resources

from msgspec import Struct

from steelyard.errors import NotFoundError
from steelyard.named.files import DecisionFile, read_file_as, to_toml

#: What the name of every model begins with that ships.
SHIPPED = "steelyard-base"
#: The share of its rows of which a model has to be right to act alone.
LEAST_RIGHT = 0.3
#: What a template says whose rows the shipped model does not know.
NEEDS_MORE = (
    "Needs a family of your own rows, or a larger judge: the shipped model is right too rarely."
)


class Measured(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How a model answers a decision of a template about its rows; shares, with a 95 % interval.

    ``right`` and ``wrong`` are of actions; the others abstain. ``top_right`` asks no policy.
    """

    model: str
    decision: str
    n: int
    right: float
    right_low: float
    right_high: float
    wrong: float
    abstained: float
    top_right: float


class Template(DecisionFile, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A decision to start from."""

    measured: tuple[Measured, ...] = ()

    @property
    def needs_more(self) -> bool:
        """Whether the model that ships is wrong about its rows more than half as often as right."""
        shipped = [each for each in self.measured if each.model.startswith(SHIPPED)]
        return any(each.right < max(2 * each.wrong, LEAST_RIGHT) for each in shipped)

    def to_toml(self, name: str, model: str | None = None) -> str:
        """Return it as a decision's file, with its rows as examples."""
        head = {"name": name, "description": self.description or ""}
        content = self.content if model is None else {**self.content, "model": model}
        return to_toml({**head, **content}, self.examples)


@cache
def list_templates() -> Sequence[Template]:
    """Return the templates by name."""
    files = sorted(resources.files(__name__).iterdir(), key=lambda file: file.name)
    return tuple(
        read_file_as(Template, file.read_text(encoding="utf-8"))
        for file in files
        if file.name.endswith(".toml")
    )


def find_template(name: str) -> Template:
    """Return a template, or refuse a name that none has."""
    templates = {template.name: template for template in list_templates()}
    if name not in templates:
        known = ", ".join(templates)
        raise NotFoundError(f"There is no template {name[:64]!r}; there are {known}.")
    return templates[name]
