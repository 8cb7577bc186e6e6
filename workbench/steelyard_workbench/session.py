"""What one browser looks at: a page, and the things chosen on it. All of it is in the address."""

from __future__ import annotations

from typing import Any

import param

from steelyard.client import Client

#: What is kept in the address of a page, so that a view can be sent to somebody else.
IN_ADDRESS = (
    "page",
    "dataset",
    "version",
    "draft",
    "evaluation",
    "before",
    "after",
    "family",
    "job",
    "decision",
    "query",
    "view",
)


class Session(param.Parameterized):
    """The state of one browser.

    Parameters
    ----------
    client : steelyard.client.Client
        Asks the server; the only way to it.
    """

    page = param.String(default="home", doc="Slug of the page.")
    dataset = param.String(default="", doc="Id of the dataset; empty for none.")
    version = param.Integer(default=0, doc="Version of it; 0 for the newest.")
    draft = param.String(default="", doc="Id of the draft under review.")
    evaluation = param.String(default="", doc="Id of the evaluation.")
    before = param.String(default="", doc="Id of the evaluation compared with.")
    after = param.String(default="", doc="Id of the evaluation compared.")
    family = param.String(default="", doc="Name of the family.")
    job = param.String(default="", doc="Id of the fine-tune.")
    decision = param.String(default="", doc="Id of the decision looked at.")
    query = param.String(default="", doc="JSON of the rows' filter, sort and search.")
    view = param.String(default="", doc="How the page shows it, such as `bulk`.")
    selected = param.List(default=[], item_type=int, doc="Numbers of the rows that are selected.")
    is_connected = param.Boolean(default=True, doc="Whether the server answers.")
    reviewer = param.String(default="", doc="Name of whoever reviews; not in the address.")
    shortcuts = param.Boolean(default=True, doc="Whether single letters are shortcuts.")

    def __init__(self, client: Client, **given: Any) -> None:
        super().__init__(**given)
        self.client = client

    def open(self, page: str, **chosen: Any) -> None:
        """Go to a page with something chosen on it; the rest of the choice stays."""
        self.param.update(page=page, **chosen)
