"""Steelyard: calibrated decisions in process, from a shell or over HTTP.

``steelyard.decide`` answers a request in this process, and ``steelyard.lint`` finds the parts of a
request that make its answers worse. ``steelyard.connect`` gives a client of a server, and
``steelyard.embed`` a server of its own inside this process. Importing the package loads none of the
engine, the web framework or NumPy: they load with the first decision.

>>> import steelyard
>>> answer = steelyard.decide(
...     "Invoice 118 was paid twice.",
...     [{"id": "refund", "kind": "binary", "question": "Does the writer ask for money back?"}],
... )  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import environ  # noqa: TID251  # written, not read
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.version import __version__

if TYPE_CHECKING:
    from steelyard.batch.classifier import SteelyardClassifier
    from steelyard.client import AsyncClient, Client, ClientOptions
    from steelyard.decisions.several import multi_label
    from steelyard.embedded import Embedded

__all__ = [
    "SteelyardClassifier",
    "__version__",
    "connect",
    "connect_async",
    "decide",
    "decide_frame",
    "embed",
    "lint",
    "multi_label",
]

# Set before anything of this package can load them, and for the processes that it starts: these
# libraries send events to their makers, and leave an identifier of the machine's in its cache.
environ |= dict.fromkeys(("HF_HUB_DISABLE_TELEMETRY", "ORT_DISABLE_TELEMETRY"), "1")


def decide(
    context: str | Mapping[str, Any] | Sequence[Any],
    decisions: Sequence[Mapping[str, Any]],
    *,
    temperature: float | None = None,
    model: str | None = None,
    explain: bool = False,
) -> dict[str, Any]:
    """Answer decisions about one context, in this process.

    The fields are those of ``POST /v1/decide`` and so is the answer. The model loads on the first
    call and stays loaded. Safe to call from several threads; concurrent calls share the engine's
    passes.

    Parameters
    ----------
    context
        The text to decide on, or any JSON object or array.
    decisions
        1 to 64 of them, each with ``id``, ``question``, and by kind ``kind``, ``outcomes``,
        ``rubric`` and the fields of the action.
    temperature
        0.2 to 5; below 1 sharpens the probabilities, above 1 softens them.
    model
        Name of a base model; the shipped one when left out. A yes/no is answered better by the route
        ``auto`` of a server: ``steelyard.embed``.
    explain
        Answer again without each sentence of the context, at most 8 parts, and say in
        ``explanation`` by how much the top outcome's probability falls.

    Returns
    -------
    dict
        ``decisions`` maps each id to its ``probabilities`` (in outcome order, summing to 1),
        ``top``, ``p_top`` and ``action``; beside it ``model``, ``usage`` and ``timing_ms``.

    Raises
    ------
    steelyard.errors.InvalidRequestError
        When a field cannot be used; ``details`` names each one.
    steelyard.errors.EngineUnavailableError
        When the model cannot be loaded or is too busy.
    """
    with _whole_package():
        from steelyard.app.deployment import default_deployment

    request: dict[str, Any] = {"context": context, "decisions": decisions}
    if temperature is not None:
        request["temperature"] = temperature
    if model is not None:
        request["model"] = model
    if explain:
        request["explain"] = True
    return default_deployment(model).answers.answer_dict(request)


def decide_frame(
    frame: Any,
    decisions: Sequence[Mapping[str, Any]] | str,
    *,
    context: str | Sequence[str] = "text",
    fields: Mapping[str, str] | None = None,
    model: str | None = None,
    temperature: float | None = None,
    client: Client | None = None,
    progress: bool = True,
    resume: str | Path | None = None,
) -> Any:
    """Return a frame with the answers to decisions about each of its rows.

    Parameters
    ----------
    frame : polars.DataFrame, pandas.DataFrame or dask.dataframe.DataFrame
        Rows to decide about; it is not changed. Rows of Dask are answered when the frame that is
        returned is computed, each partition by the worker that holds it.
    decisions
        1 to 64 of them, as for ``decide``; or a named decision of the client's server, such as
        ``"support_triage"`` or ``"support_triage@staging"``: all rows are answered by the version
        that it names when the call begins, which has the model and the temperature.
    context
        The column of contexts, or several that make an object.
    fields
        Of a named decision whose version declares fields: the column of each. A field that is not here
        is in the column of its name, where there is one.
    model, temperature
        As for ``decide``; the model is the server's default when left out with a client.
    client
        Asks this client's server, for its families, routes and connected models; this process
        answers when left out. A row is charged once, however often it is sent. Not with Dask.
    progress
        Whether a notebook or a terminal shows how far it is.
    resume
        A folder in which answered rows are kept: the same call after a crash goes on from them.
        Remove it when it is no longer needed. Not with Dask, which has means of its own.

    Returns
    -------
    polars.DataFrame, pandas.DataFrame or dask.dataframe.DataFrame
        As given, with columns for each decision: ``ID.top``, ``ID.p_top``, ``ID.action``,
        ``ID.p.OUTCOME`` for each outcome and, for an ordinal, ``ID.expected_level``; then ``rule``,
        the action of a named decision's rules, where its version has any; last ``error``, which says
        why a row has no answer and is null where it has one.

    Raises
    ------
    ValueError
        When a column is missing or would be there twice, or ``resume`` holds other rows.
    steelyard.errors.SteelyardError
        When the decisions are invalid, or no model answers.
    """
    with _whole_package():
        from steelyard.batch.clusters import decide_partitions, is_dask
        from steelyard.batch.scoring import Questions, decide_rows, named_questions
    from steelyard.client.progress import progress_bar

    if isinstance(decisions, str):
        questions = named_questions(decisions, client, [*map(str, frame.columns)], fields)
    elif fields:
        raise ValueError("Only a named decision has fields; leave fields out.")
    else:
        questions = Questions(decisions, model, temperature, client)
    if is_dask(frame):
        if resume is not None:
            raise ValueError("A Dask frame takes no resume; write its partitions with to_parquet.")
        return decide_partitions(frame, questions, context=context)
    with progress_bar("Decide", is_shown=progress) as show:
        return decide_rows(
            frame,
            questions,
            context=context,
            progress=lambda done, total: show(done, total, "rows"),
            resume=None if resume is None else Path(resume),
        )


def lint(
    context: str | Mapping[str, Any] | Sequence[Any],
    decisions: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Return warnings about decisions that make their answers worse; loads no model.

    Fields and errors are those of ``decide``, and the answer is that of ``POST /v1/lint``:
    ``warnings`` with ``decision`` (its id), ``rule``, ``severity`` (``warning`` or ``info``) and
    ``message``, by decision and then by rule. Empty when nothing was found.

    Examples
    --------
    >>> question = {"id": "late", "kind": "binary", "question": "Is the parcel not late?"}
    >>> [warning["rule"] for warning in lint("It came on time.", [question])["warnings"]]
    ['negation']
    """
    with _whole_package():
        from steelyard.decisions.lint.service import lint_dict

    return lint_dict({"context": context, "decisions": decisions})


def connect(
    url: str | None = None,
    api_key: str | None = None,
    *,
    timeout_s: float = 120.0,
    max_retries: int = 2,
    gzip_over: int | None = None,
) -> Client:
    """Return a client of a server, also a context manager; every call waits for its answer.

    Nothing is sent before the first call. Raise ``ValueError`` when an argument cannot be used.

    Parameters
    ----------
    url
        The server's address; ``STEELYARD_URL`` when left out, and this machine's port 8420 when
        that is not set either.
    api_key
        The key of an account; ``STEELYARD_API_KEY`` when left out. A server without accounts needs
        none.
    timeout_s
        Seconds for one call with all its attempts and waits.
    max_retries
        How often a call is repeated after a failure that may pass, such as a busy engine or a
        broken connection; 0 to 10. A write carries a key under which the server does it once.
    gzip_over
        Bodies of more bytes than this go out compressed; none when left out.

    Examples
    --------
    >>> with connect("http://127.0.0.1:8420") as client:
    ...     client.health()  # doctest: +SKIP
    """
    from steelyard.client import Client

    return Client(_client_options(url, api_key, timeout_s, max_retries, gzip_over))


def connect_async(
    url: str | None = None,
    api_key: str | None = None,
    *,
    timeout_s: float = 120.0,
    max_retries: int = 2,
    gzip_over: int | None = None,
) -> AsyncClient:
    """Return a client of a server whose calls are awaited, as ``connect`` does.

    For the event loop that it is first used in; also an asynchronous context manager.
    """
    from steelyard.client import AsyncClient

    return AsyncClient(_client_options(url, api_key, timeout_s, max_retries, gzip_over))


def embed(
    home: str | Path | None = None,
    *,
    engine: str | None = None,
    accounts: str = "off",
    port: int = 0,
    **settings: Any,
) -> Embedded:
    """Start a server inside this process, on a loopback port, and return it with a client.

    Running: ``url`` says where and ``client`` asks it. ``stop`` ends it, and so do leaving a
    ``with`` block and the end of the process. Works with and without a running event loop, takes no
    signal handlers, and several servers in one process do not see each other. Without accounts,
    requests and tokens per minute are bounded only where such a setting is given, here or in the
    environment.

    Parameters
    ----------
    home
        Directory of the server's files; a temporary one, removed at the end, when left out.
    engine
        As the setting ``engine``, whose variable stands behind it.
    accounts : {"off", "on"}
        With ``on`` every call needs an API key; ``client`` has one, and so has ``api_key``.
    port
        Port to listen on; 0 takes a free one.
    **settings
        Any other setting of a server by its name, such as ``deadline_s=5``.

    Raises
    ------
    steelyard.errors.EngineUnavailableError
        When the model cannot be loaded.
    steelyard.errors.StorageUnavailableError
        When the home cannot be written.
    steelyard.settings.InvalidSettingError
        When a setting cannot be used.
    OSError
        When the port is taken.
    """
    with _whole_package():
        from steelyard.embedded import Embedded

    return Embedded(home, engine=engine, accounts=accounts, port=port, **settings)


def _client_options(
    url: str | None,
    api_key: str | None,
    timeout_s: float,
    max_retries: int,
    gzip_over: int | None,
) -> ClientOptions:
    from steelyard.client import ClientOptions
    from steelyard.settings import read_settings

    settings = read_settings({"url": url, "api_key": api_key})
    return ClientOptions(settings.url, settings.api_key, timeout_s, max_retries, gzip_over)


@contextmanager
def _whole_package() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        if not str(error.name).startswith("steelyard."):
            raise
        message = (
            "steelyard-client only asks servers: steelyard.connect(). To answer in this process, "
            "pip uninstall steelyard-client, and pip install steelyard."
        )
        raise ModuleNotFoundError(message, name=error.name) from error


def __getattr__(name: str) -> Any:
    # scikit-learn is loaded with the classifier, not with the package.
    if name == "SteelyardClassifier":
        with _whole_package():
            from steelyard.batch.classifier import SteelyardClassifier

        return SteelyardClassifier
    if name == "multi_label":
        with _whole_package():
            from steelyard.decisions.several import multi_label

        return multi_label
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
