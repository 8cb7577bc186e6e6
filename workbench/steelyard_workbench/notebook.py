"""The workbench in a notebook: shown in the cell, with its selection returned as frames."""

from __future__ import annotations

import json
import webbrowser
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import polars as pl

import steelyard
from steelyard.client import Client, ClientOptions
from steelyard.settings import read_settings, read_variable
from steelyard_workbench.frame.app import App, prepare
from steelyard_workbench.frame.serving import Served
from steelyard_workbench.kit.session import IN_ADDRESS, Session
from steelyard_workbench.parts.datasets.row_pages import at_places
from steelyard_workbench.parts.evaluations.scored import filter_from
from steelyard_workbench.parts.review.row_filter import read_query

#: Rows that are asked for at once.
_PIECE = 500
#: Places that one filter can tell.
_PLACES = 60
#: Pages whose query chooses rows of a dataset.
_PAGES_OF_ROWS = ("datasets", "review")
_SCHEMA = {"row": pl.Int64, "context": pl.String, "decisions": pl.String, "labels": pl.String}


class Workbench:
    """The workbench, of a server of its own or of one that runs.

    The last expression of a cell shows it: an IFrame on a server of this process, which needs
    nothing from outside. Where the browser cannot reach this machine's loopback (a hosted
    notebook), ``inline`` gives the same app drawn in the cell itself. ``client`` asks the server;
    ``stop`` closes it.

    Parameters
    ----------
    server
        Address of a server, or one that is embedded already; ``STEELYARD_URL`` when left out with
        ``home``, and without that one is started in this process and ends with ``stop``.
    page
        Which page to show.
    api_key
        The key of requests to a server by address, where accounts are on; ``STEELYARD_API_KEY``
        when left out.
    home
        Directory of a server that is started here; a temporary one when left out.
    height
        Of the cell, in pixels.
    **chosen
        The state of the page, such as ``dataset="ds_…"``; names as in its address. Others are a
        ``TypeError``.

    Examples
    --------
    >>> Workbench("http://127.0.0.1:8420", page="review")  # doctest: +SKIP
    """

    def __init__(
        self,
        server: Any = None,
        *,
        page: str = "home",
        api_key: str | None = None,
        home: str | Path | None = None,
        height: int = 800,
        **values: str | int,
    ) -> None:
        unknown = sorted(values.keys() - set(IN_ADDRESS))
        if unknown:
            raise TypeError(f"No page has {unknown[0]!r}; choose among {', '.join(IN_ADDRESS)}.")
        if server is None and home is None:
            server = read_variable("STEELYARD_URL") or None
        self._own = steelyard.embed(home) if server is None else None
        client = self._own or server
        if isinstance(client, str):
            settings = read_settings({"url": client, "api_key": api_key})
            self.server_url, self._api_key = settings.url, settings.api_key
        else:
            self.server_url, self._api_key = client.url, client.api_key
        self.client = Client(ClientOptions(self.server_url, self._api_key))
        self._height = height
        self._chosen = {"page": page, **values}
        self._served = Served(self.server_url, api_key=self._api_key)
        self.url = self._served.url

    @property
    def address(self) -> str:
        """Address of the page that the cell shows."""
        return f"{self.url}/?{urlencode(self._chosen)}"

    @property
    def session(self) -> Session | None:
        """The state of the browser or cell that opened it last; ``None`` before any did."""
        return self._served.apps[-1].session if self._served.apps else None

    @property
    def selection(self) -> pl.DataFrame:
        """The rows that are selected on the page: ``row``, ``context``, ``decisions``, labels.

        Contexts, decisions and labels are JSON; empty when nothing is selected. On the evaluations
        page it is the row whose decision is read, of the version evaluated.
        """
        session = self.session
        if session is None or not session.selected:
            return pl.DataFrame(schema=_SCHEMA)
        places = sorted(set(session.selected))
        if session.page == "evaluations":
            return pl.DataFrame(self._evaluated(session.evaluation, places), schema=_SCHEMA)
        if not session.dataset:
            return pl.DataFrame(schema=_SCHEMA)
        pieces = [places[at : at + _PLACES] for at in range(0, len(places), _PLACES)]
        rows = [row for piece in pieces for row in self._search(where=at_places(piece))]
        return pl.DataFrame(rows, schema=_SCHEMA)

    @property
    def filter(self) -> dict[str, Any]:
        """The filter of the page's rows: ``where`` and ``text`` of ``client.datasets.search``.

        On the evaluations page, the filters of ``client.evaluations.records_page``; empty where nothing
        is chosen, and on pages that show no rows.
        """
        session = self.session
        if session is None:
            return {}
        if session.page == "evaluations":
            return {**filter_from(session.query).client_filters()} if session.query else {}
        if session.page not in _PAGES_OF_ROWS:
            return {}
        row_filter, _ = read_query(session.query)
        fields = {"where": row_filter.where, "text": row_filter.text}
        return {name: value for name, value in fields.items() if value is not None}

    def rows(self) -> pl.DataFrame:
        """Return every row that the page's filter finds, as ``selection`` gives them."""
        session = self.session
        if session is None or not session.dataset:
            return pl.DataFrame(schema=_SCHEMA)
        fields = self.filter if session.page in _PAGES_OF_ROWS else {}
        return pl.DataFrame(self._search(**fields), schema=_SCHEMA)

    def _search(self, **fields: Any) -> list[dict[str, Any]]:
        """Return all rows that a search of the chosen dataset finds."""
        session = self.session
        rows: list[dict[str, Any]] = []
        # The datasets page shows the newest version, whichever was looked at on another page.
        version = session.version if session is not None and session.page != "datasets" else 0
        while session is not None:
            page = self.client.datasets.search(
                session.dataset, **fields, version=version or None, offset=len(rows), limit=_PIECE
            )
            rows += [_row(*placed) for placed in zip(page.indexes, page.data, strict=True)]
            if not page.data or len(rows) >= page.total:
                break
        return rows

    def _evaluated(self, evaluation_id: str, places: list[int]) -> list[dict[str, Any]]:
        """Return rows by their places among the evaluation rows that an evaluation scored."""
        if not evaluation_id:
            return []
        evaluation = self.client.evaluations.get(evaluation_id)
        pages = [
            self.client.datasets.search(
                evaluation.dataset_id,
                partition="evaluation",
                version=evaluation.dataset_version,
                offset=place,
                limit=1,
            )
            for place in places
        ]
        return [
            _row(*placed) for page in pages for placed in zip(page.indexes, page.data, strict=True)
        ]

    def show(self) -> None:
        """Open it in a browser of its own."""
        webbrowser.open(self.address)

    def inline(self) -> Any:
        """Return the app itself, to be drawn in the cell where an IFrame cannot reach this machine."""
        prepare(inline=True)
        app = App(self.client)
        app.session.param.update(**self._chosen)
        self._served.opened(app)
        return app.view()

    def stop(self) -> None:
        """Stop it, and the server if it was started for it."""
        self._served.stop()
        self.client.close()
        if self._own is not None:
            self._own.stop()

    def __enter__(self) -> Workbench:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"Workbench(url={self.url!r}, server={self.server_url!r})"

    def _repr_html_(self) -> str:
        return (
            f'<iframe src="{escape(self.address, quote=True)}" title="Steelyard workbench" '
            f'style="width:100%;height:{self._height}px;border:1px solid #8888"></iframe>'
        )


def _row(number: int, row: Any) -> dict[str, Any]:
    labels = row.targets if isinstance(row.targets, dict) else row.rewards
    context = row.context if isinstance(row.context, str) else json.dumps(row.context)
    return {
        "row": number,
        "context": context,
        "decisions": json.dumps(row.decisions),
        "labels": json.dumps(labels if isinstance(labels, dict) else {}),
    }
