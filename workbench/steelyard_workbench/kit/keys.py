"""Every key of the workbench, in one table: the key listener, the help and the buttons read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Where = Literal["everywhere", "rows", "review", "table", "go", "found"]
_SHOWN = {" ": "space", "ArrowDown": "down", "ArrowUp": "up"}
#: What the places are called in the table of keys, in its order.
PLACES: dict[Where, str] = {
    "everywhere": "On every page",
    "rows": "On pages with rows; there arrows scroll, but in a review",
    "table": "On the row of a table, once Tab went into it",
    "review": "In a review",
    "go": "To another page",
    "found": "Find anything",
}
#: Pages that go from row to row; on the others those keys stay the browser's.
_WITH_ROWS = frozenset({"datasets", "versions", "evaluations", "compare", "families", "live"})
_REVIEW = "review"


@dataclass(frozen=True, slots=True)
class Key:
    """One key."""

    action: str
    keys: tuple[str, ...]
    help: str
    #: Where it works: on every page; on pages with rows; on the review page; on the row of a table
    #: that has the focus, whatever the page does with it; on every page, to go to another; on every
    #: page, where the search listens for it.
    where: Where = "everywhere"

    @property
    def shown(self) -> str:
        """The first of them, as a button prints it."""
        return shown_key(self.keys[0])

    @property
    def listed(self) -> str:
        """All of them, as a table of keys has them."""
        is_digit = self.action == "choose"
        return "0 to 9" if is_digit else " or ".join(map(shown_key, self.keys))


def shown_key(key: str) -> str:
    """Return a key as a person reads it."""
    return _SHOWN.get(key, key)


KEYS: tuple[Key, ...] = (
    Key("next", ("j", "ArrowDown"), "Next row", "rows"),
    Key("previous", ("k", "ArrowUp"), "Previous row", "rows"),
    Key("back", ("[",), "Page before", "rows"),
    Key("forward", ("]",), "Next page", "rows"),
    Key("choose", tuple("1234567890"), "Choose the answer of that number", "review"),
    Key("accept", ("a", "Enter"), "Accept the label or the suggestion", "review"),
    Key("take", ("t",), "Choose what the model suggests", "review"),
    Key("exclude", ("x",), "Exclude the row", "review"),
    Key("skip", ("s", " "), "Skip the row", "review"),
    Key("undo", ("u", "Ctrl+z"), "Undo", "review"),
    Key("redo", ("Ctrl+y", "Ctrl+Shift+Z"), "Redo", "review"),
    Key("similar", ("f",), "Find similar rows", "review"),
    Key("note", ("n",), "Write a note on the row", "review"),
    Key("view", ("b",), "Focus or bulk view", "review"),
    Key("extend", ("Shift+J", "Shift+K"), "Extend the selection", "review"),
    Key("all", ("*",), "Select every row that matches", "review"),
    Key("row after", ("ArrowDown", "j"), "Go to the row after", "table"),
    Key("row before", ("ArrowUp", "k"), "Go to the row before", "table"),
    Key("first row", ("Home",), "Go to the first row of the page", "table"),
    Key("last row", ("End",), "Go to the last row of the page", "table"),
    Key("open row", ("Enter",), "Open the row", "table"),
    Key("select row", (" ",), "Select the row, where rows can be selected", "table"),
    Key("extend rows", ("Shift+J", "Shift+K"), "Select the row and go on", "table"),
    Key("note row", ("n",), "Write a note on the row, in a review", "table"),
    Key("page before", ("[",), "Page before", "table"),
    Key("page after", ("]",), "Next page", "table"),
    Key("search", ("/",), "Search"),
    Key("find", ("Ctrl+k",), "Find a page, dataset, model or row; in a field too", "found"),
    Key("close", ("Escape",), "Close, or leave the field"),
    Key("help", ("?",), "This table"),
    Key("go home", ("g h",), "Go to Home", "go"),
    Key("go datasets", ("g d",), "Go to Datasets", "go"),
    Key("go review", ("g r",), "Go to Review", "go"),
    Key("go evaluations", ("g e",), "Go to Evaluations", "go"),
    Key("go compare", ("g c",), "Go to Compare", "go"),
    Key("go families", ("g f",), "Go to Model lines", "go"),
    Key("go live", ("g l",), "Go to Live", "go"),
    Key("go jobs", ("g j",), "Go to Jobs", "go"),
    Key("go playground", ("g p",), "Go to Playground", "go"),
    Key("go settings", ("g s",), "Go to Settings", "go"),
)
_ACTIONS = {
    key: (entry.action, n)
    for entry in KEYS
    if entry.where not in {"table", "found"}
    for n, key in enumerate(entry.keys, start=1)
}


def action_of(pressed: str) -> tuple[str, int] | None:
    """Return a key's action and its place among the action's keys, from 1; ``None`` for an unused key.

    >>> action_of("3")
    ('choose', 3)
    """
    return _ACTIONS.get(pressed)


def watched_on(slug: str, *, shortcuts: bool = True) -> list[str]:
    """Return the keys that a page has a use for; all others are left to the browser."""
    places: set[Where] = {"everywhere", "go"}
    if slug == _REVIEW:
        places |= {"rows", "review"}
    elif slug in _WITH_ROWS:
        places.add("rows")
    return [
        key
        for entry in KEYS
        if entry.where in places
        for key in entry.keys
        if slug == _REVIEW or not key.startswith("Arrow")
        if shortcuts or not is_character(key)
    ]


def is_character(key: str) -> bool:
    """Whether a key is a character alone, or several in turn, which can be switched off.

    ``?`` is none of them: it shows how the others are switched on again.

    >>> [is_character(key) for key in ("j", "g d", "Shift+J", "Ctrl+z", "Escape", "?")]
    [True, True, True, False, False, False]
    """
    plain = key.removeprefix("Shift+")
    return key != "?" and (len(plain) == 1 or plain.startswith("g "))


def key_of(action: str) -> Key:
    """Return the entry of an action; raise ``KeyError`` when there is none."""
    return {entry.action: entry for entry in KEYS}[action]
