"""The state of one browser: a page, and the selection on it, all of it in the address."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import parse_qsl, urlencode

import param

from steelyard.client import Client
from steelyard.people.roles import Role
from steelyard.people.wire import CurrentSession
from steelyard_workbench.kit.confirming import Confirming

#: Texts that Panel would read from an address as a number, a truth value or JSON.
_READ_OTHERWISE = re.compile(r"[\[{~]|[-+.]?[0-9]|(true|false|nan|inf|infinity)$", re.IGNORECASE)


class AddressText(param.String):
    """A text that stays one on its way through the address.

    Panel reads ``2024`` from an address as a number and ``{"a": 1}`` as a dict; a tilde is put
    before such a text.
    """

    @classmethod
    def serialize(cls, value: Any) -> Any:
        """Return the text as it stands in the address."""
        return f"~{value}" if _READ_OTHERWISE.match(value) else value

    @classmethod
    def deserialize(cls, value: Any) -> Any:
        """Return the text that an address has."""
        if isinstance(value, str):
            return value.removeprefix("~")
        return json.dumps(value, ensure_ascii=False)


class AddressPlace(param.Integer):
    """A place from 0, or -1 for none: nothing in the address, which Panel would read as a float."""

    @classmethod
    def serialize(cls, value: Any) -> Any:
        """Return the place as it stands in the address."""
        return "" if value < 0 else value

    @classmethod
    def deserialize(cls, value: Any) -> Any:
        """Return the place that an address has."""
        return value if isinstance(value, int) and not isinstance(value, bool) else -1


def _text(doc: str, default: str = "") -> Any:
    """Declare a text of the address; to type checkers it is one."""
    return AddressText(default=default, doc=doc)


class Session(param.Parameterized):
    """The state of one browser."""

    page = _text("Slug of the page.", "home")
    account = _text("Id of the account; empty for the first that the user has a part in.")
    dataset = _text("Id of the dataset; empty for none.")
    version = param.Integer(default=0, doc="Version of it; 0 for the newest.")
    against = param.Integer(
        default=0, doc="Version that it is compared with; 0 for the one before."
    )
    draft = _text("Id of the draft under review.")
    row: Any = AddressPlace(default=-1, doc="Place of the row that review opens at; -1 for none.")
    evaluation = _text("Id of the evaluation.")
    before = _text("Id of the evaluation compared with.")
    after = _text("Id of the evaluation compared.")
    family = _text("Name of the family.")
    model = _text("Name of the model that the playground asks.")
    job = _text("Id of the fine-tune.")
    labeling = _text("Id of the labeling job.")
    tuning = _text("Id of the prompt-tuning job.")
    decision = _text("Id of the decision looked at.")
    named = _text("Name of the named decision.")
    query = _text("JSON of the rows' filter, sort and search.")
    view = _text("How the page shows it, such as `bulk`.")
    theme = _text("`dark` for the dark theme; empty for the light one.")
    selected = param.List(default=[], item_type=int, doc="Numbers of the rows that are selected.")
    waiting_rows: Any = param.Dict(
        default={}, doc="Rows that wait for a new dataset, by its name, until it has enough."
    )
    wording: Any = param.Dict(
        default={}, doc="What a new named decision begins with; not in the address."
    )
    first_step = param.String(
        default="", doc="The first step that comes next, such as `Step 2 of 6`; empty without one."
    )
    is_connected = param.Boolean(default=True, doc="Whether the server answers.")
    reviewer = param.String(default="", doc="Name of whoever reviews; not in the address.")
    is_signed_in = param.Boolean(default=False, doc="Whether somebody is, who is the reviewer.")
    who: Any = param.Parameter(
        default=None, doc="Who is signed in, a `CurrentSession`; `None` where nobody is."
    )
    shortcuts = param.Boolean(default=True, doc="Whether single letters are shortcuts.")

    def __init__(self, client: Client, **values: Any) -> None:
        super().__init__(**values)
        self.client = client
        #: Makes calls that may need a code first.
        self.confirm = Confirming(client)

    @property
    def role(self) -> Role | None:
        """The signed-in user's role in the account."""
        return None if self.who is None else role_of(self.who)

    @property
    def needs_key(self) -> bool:
        """Whether programs call with a key: where people sign in."""
        return self.who is not None

    @property
    def may_change(self) -> bool:
        """Whether data and models are changed here: reviewers label rows alone."""
        return self.role in (None, "owner", "developer")

    def open(
        self, page: str, *, query: str = "", view: str = "", row: int = -1, **values: Any
    ) -> None:
        """Go to a page with something chosen on it; the rest of the choice stays.

        The filter, the view and the row do not: the present ones belong to another dataset.
        """
        self.param.update(page=page, query=query, view=view, row=row, **values)

    def address(self, page: str, **values: Any) -> str:
        """Return the address of a page with something chosen on it, for links; the account stays."""
        chosen = {"page": page, "account": self.account, **values}
        return "?" + urlencode(
            {name: self.param[name].serialize(value) for name, value in chosen.items() if value}
        )


#: The fields of a page's address, so that a view can be sent to another person.
IN_ADDRESS = tuple(
    name
    for name, field in Session.param.objects(instance=False).items()
    if isinstance(field, (AddressText, param.Integer))
)
#: The fields that another reader takes over: the theme and the account are their own.
_IN_VIEW = tuple(name for name in IN_ADDRESS if name not in {"theme", "account"})


def role_of(who: CurrentSession) -> Role | None:
    """Return a user's role in the account of the calls; ``None`` without an account."""
    return next((account.role for account in who.accounts if account.id == who.account_id), None)


def checked_address(address: str) -> str:
    """Return an address with the fields of a view alone, whatever else was in it.

    >>> checked_address("page=home&theme=dark&other=1")
    'page=home'
    """
    return urlencode([pair for pair in parse_qsl(address) if pair[0] in _IN_VIEW])
