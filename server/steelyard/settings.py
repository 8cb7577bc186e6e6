"""Settings as data: one table of names, defaults and meanings, and the only reader of the environment.

The fields of ``Settings`` are the rows of the table, and ``SETTINGS`` lists them: the source of the
defaults, of the command line's help and of the table in the documents. Nothing else in the package
looks at ``os.environ``.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_type_hints

#: Bounds a minute of a server that others call.
_RATES = ("requests_per_minute", "tokens_per_minute", "public_requests_per_minute")
_NO_BOUND = "0 sets no bound, which a server without accounts and proxies begins with"
_NOUNS = {str: "a text", int: "a whole number", float: "a number", Path: "a path"}


class InvalidSettingError(ValueError):
    """A setting's value cannot be used; the message names the setting and a valid value."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table."""

    name: str
    type: type
    default: Any
    help: str
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    is_secret: bool = False

    @property
    def variable(self) -> str:
        """Name of the environment variable, such as ``STEELYARD_PORT``."""
        return f"STEELYARD_{self.name.upper()}"

    def parse(self, value: Any) -> Any:
        """Return the value in this setting's type, or raise ``InvalidSettingError``."""
        if value is None and self.default is None:
            return None
        try:
            parsed: Any = Path(value).expanduser() if self.type is Path else self.type(value)
        except (TypeError, ValueError):
            raise self._refusal(value, _NOUNS[self.type]) from None
        if self.choices and parsed not in self.choices:
            raise self._refusal(value, f"one of {', '.join(self.choices)}")
        if self.minimum is not None and not parsed >= self.minimum:
            raise self._refusal(value, f"at least {self.minimum:g}")
        if self.maximum is not None and parsed > self.maximum:
            raise self._refusal(value, f"at most {self.maximum:g}")
        if isinstance(parsed, float) and not math.isfinite(parsed):
            raise self._refusal(value, "a finite number")
        return parsed

    def _refusal(self, value: Any, needed: str) -> InvalidSettingError:
        shown = "not usable" if self.is_secret else repr(value)
        return InvalidSettingError(
            f"The setting {self.name} ({self.variable}) is {shown}; give {needed}."
        )


def _setting(
    default: Any,
    help: str,  # noqa: A002
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    choices: tuple[str, ...] = (),
    is_secret: bool = False,
) -> Any:
    """Return a field of ``Settings`` that is a row of the table."""
    row = {"default": default, "help": help, "is_secret": is_secret}
    bounds = {"minimum": minimum, "maximum": maximum, "choices": choices}
    return field(repr=not is_secret, metadata={**row, **bounds})


@dataclass(frozen=True, slots=True)
class Settings:
    """Checked settings: each field is a row of the table, and its help explains it.

    >>> read_settings({"port": 9000}, environ={}).port
    9000
    """

    host: str = _setting(
        "127.0.0.1", "Address the server listens on; any but loopback needs `accounts` on."
    )
    port: int = _setting(8420, "Port to listen on; 0 takes a free one.", minimum=0, maximum=65535)
    hosts: str = _setting(
        "",
        "Further names under which the server is called, separated by commas, such as the name that "
        "a proxy passes on. On loopback no others are answered but `localhost` and loopback "
        "addresses.",
    )
    workbenches: str = _setting(
        "http://127.0.0.1:8421",
        "Workbenches on loopback, separated by commas, that an identity provider may lead back to "
        "besides those that run on this `home`.",
    )
    trusted_proxies: str = _setting(
        "",
        "Addresses and networks of proxies, separated by commas, that are believed whom they call "
        "for (`X-Forwarded-For`); nobody else is.",
    )
    webhook_hosts: str = _setting(
        "",
        "Hosts of webhooks, separated by commas, that may be on a private network and be called by "
        "`http://`; any other is called by `https://` at a public address.",
    )
    home: Path | None = _setting(  # noqa: RUF009  # it makes a field
        None,
        "Directory of this server's files: the state and, while it runs, `serve.json` with its "
        "address. Unset: `steelyard` in the user's data directory.",
    )
    backups: Path | None = _setting(  # noqa: RUF009  # it makes a field
        None,
        "Folder of backups of `home`, best on another disk. Unset: one beside `home`, named as it is "
        "with `.backups` added.",
    )
    state_url: str | None = _setting(
        None,
        "Database of the state: `sqlite:///PATH` or `postgresql+psycopg://…`. Unset: "
        "`state.sqlite` in `home`.",
        # It may hold a password.
        is_secret=True,
    )
    state_timeout_s: float = _setting(
        8.0,
        "Seconds that a statement of a PostgreSQL state may take; a host that does nothing for a quarter "
        "of it in its turn to write loses the turn.",
        minimum=2,
        maximum=600,
    )
    frames_url: str | None = _setting(
        None,
        "Where the rows of datasets are: a directory, or an object store such as "
        "`s3://BUCKET/PREFIX?region=eu-west-1`. Unset: `frames` in `home`.",
        # It may hold credentials.
        is_secret=True,
    )
    workers: int = _setting(
        1,
        "Processes that answer, each with an engine of its own, on one state.",
        minimum=1,
        maximum=64,
    )
    new_state: str = _setting(
        "off",
        "`on`: a state that is empty is made anew beside the files of another one, which stay and "
        "which nothing refers to. `off`: the server does not start then.",
        choices=("off", "on"),
    )
    jobs: str = _setting(
        "on",
        "`on`: the server starts a process of its own for evaluations and fine-tunes when there "
        "are any. `off`: `steelyard worker` runs them.",
        choices=("off", "on"),
    )
    job_queue: int = _setting(256, "Evaluations that may wait or run; more get 503.", minimum=1)
    job_queue_per_account: int = _setting(
        64, "Evaluations of one account that may wait or run; more are refused with 429.", minimum=1
    )
    fine_tune_queue: int = _setting(20, "Fine-tunes that may wait; more get 503.", minimum=1)
    fine_tune_queue_per_account: int = _setting(
        4, "Fine-tunes of one account that may wait; more are refused with 429.", minimum=1
    )
    fine_tune_price: int = _setting(
        0, "Price of a trained token of a fine-tune, in nano-dollars.", minimum=0, maximum=10**9
    )
    fine_tune_minimum: int = _setting(
        0, "Least price of a fine-tune, in nano-dollars.", minimum=0, maximum=10**12
    )
    max_decisions: int = _setting(
        64,
        "Decisions of a request to decide, or questions of one to `/v1/systemone`. Rows of datasets "
        "and named decisions have at most 64 whatever it says.",
        minimum=1,
        maximum=128,
    )
    live_limit: int = _setting(4, "Tuned models of one account that may answer calls.", minimum=1)
    idle_days: float = _setting(
        7.0,
        "Days without a call after which a family or a model switches itself off; 0 never.",
        minimum=0,
        maximum=36_500,
    )
    warm_models: int = _setting(1, "Tuned models of one account that may be kept warm.", minimum=0)
    keep_warm_price: int = _setting(
        0,
        "Price of an hour in which a tuned model is kept warm, in nano-dollars.",
        minimum=0,
        maximum=1_000_000_000_000,
    )
    loaded_models: int = _setting(
        8,
        "Tuned models that a process keeps loaded; the one unused for longest gives way.",
        minimum=1,
    )
    warm_wait_s: float = _setting(
        10.0,
        "Seconds that a call or a switch waits for a tuned model to load before 503.",
        minimum=0,
        maximum=300.0,
    )
    accounts: str = _setting(
        "off",
        "`on`: every call but the public ones needs an API key. `off`: one account, no keys, "
        "loopback only.",
        choices=("off", "on"),
    )
    payments: str = _setting(
        "manual",
        "Who takes payments for credit: `manual`, an operator who confirms bank transfers, or "
        "`stripe`.",
        choices=("manual", "stripe"),
    )
    stripe_key: str | None = _setting(None, "Secret key of Stripe's API.", is_secret=True)
    stripe_events_secret: str | None = _setting(
        None, "Secret with which Stripe signs its events.", is_secret=True
    )
    stripe_url: str | None = _setting(
        None, "Address of Stripe's API; unset: Stripe's own. Another one is for tests."
    )
    referral_usd: str = _setting(
        "0", "USD that both sides of a referral get with its first purchase; 0 gives none."
    )
    sign_up: str = _setting(
        "invited",
        "Who may sign in to the console for the first time, where accounts are on: `invited` "
        "(whom an owner or operator invited), `open` (anybody, with an account of its own), or "
        "`closed` (nobody).",
        choices=("open", "invited", "closed"),
    )
    sign_up_domains: str = _setting(
        "",
        "Domains of addresses, separated by commas, that an open `sign_up` takes; empty takes any.",
    )
    first_owner: str = _setting("", "Address of who signs in first: operator, and an owner.")
    operators: str = _setting(
        "",
        "Addresses, separated by commas, of users who are operators; `steelyard account operator` "
        "makes others.",
    )
    smtp_url: str | None = _setting(
        None,
        "Server that takes mail: `smtps://USER:PASSWORD@HOST:465`, or `smtp://…:587` for STARTTLS. "
        "Unset: a server on loopback writes codes to its terminal, and no other lets people sign in.",
        # It may hold a password.
        is_secret=True,
    )
    mail_from: str = _setting("", "Address that mail comes from; needed beside `smtp_url`.")
    oidc_issuer: str | None = _setting(
        None,
        "Address of an identity provider (OpenID Connect) that people sign in with too; unset: none. "
        "Needs `pip install 'steelyard[oidc]'`.",
    )
    oidc_client_id: str | None = _setting(None, "Name of this server at the identity provider.")
    oidc_client_secret: str | None = _setting(
        None, "Secret that the identity provider shares with this server.", is_secret=True
    )
    base_models: str = _setting(
        "",
        "More base models beside the default one: `NAME=FOLDER`, separated by commas; a folder as "
        "`python -m steelyard_base_recipe.export` of a checkout writes it, or `hashing`, the test double. "
        "Those that ship need no entry.",
    )
    prices: str = _setting(
        "",
        "Price of an input token by model in nano-dollars: `NAME=NUMBER`, separated by commas; "
        "free where left out, but that models which ship cost the same unless each is named.",
    )
    engine: str = _setting(
        "auto",
        "Engine and precision: `auto` (a server measures at its first start which suits the processor; "
        "else the model's own choice), `onnxruntime-float32`, "
        "`onnxruntime-int8`, or `hashing`, a test double whose answers mean nothing.",
        choices=("auto", "onnxruntime-float32", "onnxruntime-int8", "hashing"),
    )
    threads: int = _setting(0, "Threads of the engine; 0 leaves it to the engine.", minimum=0)
    question_cache_bytes: int = _setting(
        64 * 1024 * 1024,
        "Most bytes, in each process, for what base models trained with `--apart` made of questions "
        "and outcomes, which is then not computed again; 0 keeps nothing.",
        minimum=0,
    )
    context_cache_bytes: int = _setting(
        32 * 1024 * 1024,
        "The same for contexts that come again with other questions, of one account; 0: none.",
        minimum=0,
    )
    judge: Path | None = _setting(None, "GGUF file of a judge that runs here.")  # noqa: RUF009
    model_hub: str = _setting("https://huggingface.co", "Hub, or a mirror, of `model pull`.")
    judge_memory_bytes: int = _setting(0, "Most for judges; 0: what is free.", minimum=0)
    scorer: str = _setting(
        "",
        "Where passes of the models run: empty for this process; `triton://HOST:PORT`, or "
        "`tritons://…` for TLS, for a Triton server; `file:///PATH`, a file that holds one of "
        "these and is looked at every second.",
    )
    scorer_fallback: str = _setting(
        "in-process",
        "`in-process`: passes run in this process, with the same weights, while the server of "
        "`scorer` does not work. `none`: they are refused with 503.",
        choices=("in-process", "none"),
    )
    scorer_timeout_s: float = _setting(
        15.0,
        "Seconds that a pass may take in the server of `scorer`, tries included.",
        minimum=0.1,
        maximum=300.0,
    )
    scorer_roots: str = _setting(
        "",
        "File (PEM) of the authorities that a `tritons://` server's certificate is checked against; "
        "the system's where it is empty.",
    )
    scorer_certificate: str = _setting(
        "", "File (PEM) of the certificate that the service shows a `tritons://` server that asks."
    )
    scorer_key: str = _setting("", "File (PEM) of the private key of `scorer_certificate`.")
    body_bytes: int = _setting(
        1024 * 1024, "Largest request body, in bytes.", minimum=1024, maximum=64 * 1024 * 1024
    )
    upload_bytes: int = _setting(
        16 * 1024 * 1024,
        "Largest body of an upload, in bytes, after decompression.",
        minimum=1024,
        maximum=1024 * 1024 * 1024,
    )
    dataset_min_rows: int = _setting(2, "Fewest rows of a dataset.", minimum=1)
    dataset_rows: int = _setting(100_000, "Most rows of a dataset.", minimum=1, maximum=100_000_000)
    requests_per_minute: int = _setting(
        600, f"Requests that a caller may send in a minute; {_NO_BOUND}.", minimum=0
    )
    tokens_per_minute: int = _setting(
        2_000_000, f"Input tokens that a caller may send in a minute; {_NO_BOUND}.", minimum=0
    )
    public_requests_per_minute: int = _setting(
        120, f"Requests without a key that an address may send in a minute; {_NO_BOUND}.", minimum=0
    )
    retention_days: float = _setting(
        30.0, "Days that decisions are stored, for feedback.", minimum=0.001, maximum=36_500
    )
    text_days: float = _setting(
        0.0,
        "Days after which stored decisions lose their text; 0: never.",
        minimum=0,
        maximum=36_500,
    )
    archive_after_days: float = _setting(
        0.0,
        "Days after the end of a day (UTC) at which its stored decisions move from the state to files "
        "in `frames_url`; 0 keeps them in the state.",
        minimum=0,
        maximum=36_500,
    )
    store: str = _setting(
        "on", "Default of `store`; with `features` no text is.", choices=("off", "on", "features")
    )
    body_timeout_s: float = _setting(
        30.0, "Seconds in which a head must arrive, and again a body.", minimum=0.1, maximum=300.0
    )
    shutdown_s: float = _setting(
        15.0, "Seconds that requests in flight have at a stop.", minimum=0.0, maximum=300.0
    )
    leaving_s: float = _setting(
        0.0,
        "Seconds that a server which is told to stop goes on for, while its probes say 503, so that a "
        "proxy sends it no more requests before its port is closed.",
        minimum=0.0,
        maximum=300.0,
    )
    judges: str = _setting(
        "any",
        "Connected models whose labels may decide something: any, with a warning, or qualified ones.",
        choices=("any", "qualified"),
    )
    judge_floor: float = _setting(
        0.85, "Agreement with people from which a judge qualifies.", minimum=0.0, maximum=1.0
    )
    log_level: str = _setting(
        "info",
        "Least severe log lines written to the error stream.",
        choices=("debug", "info", "warning", "error"),
    )
    log_format: str = _setting(
        "auto",
        "How log lines are written: as JSON, or as text, which leaves reads that succeed out "
        "below `debug`. `auto` writes text to a terminal, and JSON elsewhere.",
        choices=("auto", "json", "text"),
    )
    deadline_s: float = _setting(
        90.0,
        "Seconds after which a request that has no answer yet ends with 504.",
        minimum=0.01,
        maximum=300.0,
    )
    max_queue: int = _setting(
        256,
        "Requests that may wait for the engine; more are refused with 503 and Retry-After.",
        minimum=1,
    )
    url: str = _setting("http://127.0.0.1:8420", "Server of clients; commands know that of `home`.")
    api_key: str | None = _setting(None, "API key that clients send.", is_secret=True)


def _rows() -> Iterator[Setting]:
    for name, hint in get_type_hints(Settings).items():
        kind = next(kind for kind in (*get_args(hint), hint) if kind is not NoneType)
        yield Setting(name, kind, **Settings.__dataclass_fields__[name].metadata)


SETTINGS = tuple(_rows())
_BY_NAME = {setting.name: setting for setting in SETTINGS}


def read_variable(name: str) -> str:
    """Return a variable of the environment that a setting or a file names; empty without it."""
    return os.environ.get(name, "")


def read_settings(
    overrides: Mapping[str, Any] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    defaults: Mapping[str, Any] | None = None,
) -> Settings:
    """Return the settings: an override wins over the environment, which wins over the default."""
    given = {name: value for name, value in (overrides or {}).items() if value is not None}
    unknown = sorted(given.keys() - _BY_NAME.keys())
    if unknown:
        raise InvalidSettingError(
            f"There is no setting {unknown[0]!r}; the settings are {', '.join(_BY_NAME)}."
        )
    source = os.environ if environ is None else environ
    own = defaults or {}
    values = {}
    for setting in SETTINGS:
        value = given.get(setting.name)
        if value is None:
            default = own.get(setting.name, setting.default)
            value = source.get(setting.variable, "").strip() or default
        values[setting.name] = setting.parse(value)
    return Settings(**values)


def read_server_settings(overrides: Mapping[str, Any]) -> Settings:
    """Return the settings of a server; one of its own machine alone begins without bounds a minute.

    There a script would only wait for the machine that it runs on.
    """
    settings = read_settings(overrides)
    if settings.accounts == "on" or settings.trusted_proxies:
        return settings
    return read_settings(overrides, defaults=dict.fromkeys(_RATES, 0))


def home_of(settings: Settings) -> Path:
    """Return the directory of the server's files; the user's data directory where none is set.

    >>> home_of(read_settings({"home": "/srv/steelyard"}, environ={}))
    PosixPath('/srv/steelyard')
    """
    if settings.home is not None:
        return settings.home
    from platformdirs import user_data_path  # noqa: PLC0415

    try:
        return user_data_path("steelyard", appauthor=False)
    except RuntimeError:  # an id without an entry among the users, as containers have
        message = "This user has no home directory: name one for the files with STEELYARD_HOME."
        raise InvalidSettingError(message) from None


def frames_url_of(settings: Settings) -> str:
    """Return where frames are; ``frames`` in ``home_of`` where nothing is set.

    >>> frames_url_of(read_settings({"home": "/srv/steelyard"}, environ={}))
    '/srv/steelyard/frames'
    """
    if settings.frames_url is not None:
        return settings.frames_url.rstrip("/")
    return str(home_of(settings).absolute() / "frames")


def child_environment(**variables: str) -> dict[str, str]:
    """Return this process's environment with some variables set, for a process that it starts."""
    return {**os.environ, **variables}


#: What OpenMP, beside this package, reads in the environment; ``steelyard doctor`` shows it.
OPENMP_VARIABLES = ("OMP_NUM_THREADS", "OMP_PROC_BIND", "OMP_WAIT_POLICY")


def openmp_variables() -> dict[str, str]:
    """Return those of ``OPENMP_VARIABLES`` that are set, with their values."""
    return {name: os.environ[name] for name in OPENMP_VARIABLES if name in os.environ}
