"""Every key of the workbench, in one table: the key listener, the help and the buttons read it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Key:
    """One key.

    Parameters
    ----------
    action : str
        What it does, by name.
    keys : tuple of str
        As the browser names them, ``Shift+`` and ``Ctrl+`` before them; ``g d`` is one after the
        other.
    help : str
        What it does, for the table of keys.
    where : {"everywhere", "review", "go"}
        On which pages it works.
    """

    action: str
    keys: tuple[str, ...]
    help: str
    where: str = "everywhere"

    @property
    def shown(self) -> str:
        """The first of them, as a button prints it."""
        return shown_key(self.keys[0])


_SHOWN = {" ": "space", "ArrowDown": "down", "ArrowUp": "up"}


def shown_key(key: str) -> str:
    """Give a key as a person reads it."""
    return _SHOWN.get(key, key)


KEYS: tuple[Key, ...] = (
    Key("next", ("j", "ArrowDown"), "Next row", "review"),
    Key("previous", ("k", "ArrowUp"), "Previous row", "review"),
    Key("choose", tuple("123456789"), "Choose the outcome of that number", "review"),
    Key("accept", ("a", "Enter"), "Accept the label or the suggestion", "review"),
    Key("exclude", ("x",), "Exclude the row", "review"),
    Key("skip", ("s", " "), "Skip the row", "review"),
    Key("undo", ("u", "Ctrl+z"), "Undo", "review"),
    Key("redo", ("Ctrl+y", "Ctrl+Shift+Z"), "Redo", "review"),
    Key("similar", ("f",), "Find similar rows", "review"),
    Key("note", ("n",), "Write a note on the row", "review"),
    Key("view", ("b",), "Focus or bulk view", "review"),
    Key("extend", ("Shift+J", "Shift+K"), "Extend the selection", "review"),
    Key("all", ("*",), "Select every row that matches", "review"),
    Key("back", ("[",), "Page before", "review"),
    Key("forward", ("]",), "Next page", "review"),
    Key("search", ("/",), "Search"),
    Key("close", ("Escape",), "Close, or leave the field"),
    Key("help", ("?",), "This table"),
    Key("go home", ("g h",), "Go to Home", "go"),
    Key("go datasets", ("g d",), "Go to Datasets", "go"),
    Key("go review", ("g r",), "Go to Review", "go"),
    Key("go evaluations", ("g e",), "Go to Evaluations", "go"),
    Key("go compare", ("g c",), "Go to Compare", "go"),
    Key("go families", ("g f",), "Go to Families", "go"),
    Key("go live", ("g l",), "Go to Live", "go"),
    Key("go jobs", ("g j",), "Go to Jobs", "go"),
    Key("go playground", ("g p",), "Go to Playground", "go"),
    Key("go settings", ("g s",), "Go to Settings", "go"),
)

_ACTIONS = {key: (entry.action, n) for entry in KEYS for n, key in enumerate(entry.keys, start=1)}


def action_of(pressed: str) -> tuple[str, int] | None:
    """Give what a key does and which of its keys it was, from 1; ``None`` for a key of no use.

    Examples
    --------
    >>> action_of("3")
    ('choose', 3)
    """
    return _ACTIONS.get(pressed)


def key_of(action: str) -> Key:
    """Give the entry of an action.

    Raises
    ------
    KeyError
        When there is none.
    """
    found = next((entry for entry in KEYS if entry.action == action), None)
    if found is None:
        raise KeyError(action)
    return found
