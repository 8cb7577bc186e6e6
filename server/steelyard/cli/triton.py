"""``steelyard triton``: a Triton server for the models' passes: its files, its process, a check."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from steelyard.cli.local_state import show_json, show_rows
from steelyard.cli.options import PORT_NUMBER, json_option, setting_options
from steelyard.cli.terminal import printable

if TYPE_CHECKING:
    from steelyard.settings import Settings
    from steelyard.triton.host import ServerTls, TritonHost
    from steelyard.triton.parity import ModelComparison
    from steelyard.triton.repository import ExportOptions, Source
    from steelyard.triton.sources import Exportable

_Command = TypeVar("_Command", bound=Callable[..., Any])

#: Triton's own ports.
PORT, HTTP_PORT, METRICS_PORT = 8001, 8000, 8002
#: Seconds between two looks for fine-tunes that came into use.
_FOLLOW_S = 10.0
_SHOWN_URL = 120
#: The GPU's graph has no int8 kernels.
_GPU_ENGINE = "onnxruntime-float32"

_FILE = click.Path(exists=True, dir_okay=False, resolve_path=True, path_type=Path)
_FOLDER = click.Path(file_okay=False, path_type=Path)

_EPILOG = """\b
Examples:
  steelyard triton up
  STEELYARD_SCORER=triton://127.0.0.1:8001 steelyard serve
  steelyard triton check triton://127.0.0.1:8001
  steelyard triton export ./models --target gpu
"""


def _port(name: str, default: int, what: str) -> Callable[[_Command], _Command]:
    return click.option(name, type=PORT_NUMBER, default=default, help=what)


_instances = click.option(
    "--instances",
    type=click.IntRange(1, 64),
    default=1,
    help="Passes of a model that run at a time, each with memory of its own.",
)


@click.group("triton", epilog=_EPILOG)
def command() -> None:
    """Run the models' passes in a Triton server.

    `up` builds and runs one on this machine's processors. For a GPU, `export` writes the models for
    the vendor's server.
    """


@command.command("export", epilog=_EPILOG)
@click.argument("folder", metavar="DIR", type=_FOLDER)
@click.option(
    "--target",
    type=click.Choice(["cpu", "gpu"]),
    default="cpu",
    help="cpu: Triton's Python backend with ONNX Runtime. gpu: its ONNX Runtime backend, float32.",
)
@click.option(
    "--backend",
    type=click.Choice(["onnxruntime", "tensorrt"]),
    help="On a GPU: ONNX Runtime alone (the default), or with TensorRT inside it.",
)
@click.option(
    "--model",
    "names",
    multiple=True,
    help="A base model, a reader, or a fine-tune by number or adapter; may be repeated. Default: base "
    "models and fine-tunes in use.",
)
@_instances
@click.option("--prune", is_flag=True, help="Remove exported models that are no longer in use.")
@setting_options("home", "state_url", "base_models", "engine", "threads")
def export(
    *,
    folder: Path,
    target: str,
    backend: str | None,
    names: tuple[str, ...],
    instances: int,
    prune: bool,
    **given: str | None,
) -> None:
    """Write a model repository: every base model, and every LoRA fine-tune in use.

    Existing unchanged models are left as they are. A fine-tune of heads alone has no model of
    its own: its passes are its base model's. Exit status 1 when a model that --model names was not
    written.
    """
    from steelyard.cli.failures import FAILED
    from steelyard.settings import read_settings
    from steelyard.triton.repository import ExportOptions
    from steelyard.triton.sources import find_sources

    if backend is not None and target == "cpu":
        raise click.UsageError("--backend is for --target gpu.")
    if prune and names:
        raise click.UsageError("--prune goes by all models in use; leave --model out.")
    settings = read_settings(given)
    engine = _GPU_ENGINE if target == "gpu" and settings.engine == "auto" else settings.engine
    options = ExportOptions(
        backend="python" if target == "cpu" else (backend or "onnxruntime"),  # type: ignore[arg-type]
        threads=settings.threads,
        instances=instances,
    )
    sources = find_sources(settings, names=names, engine=engine)
    _write(folder, sources.sources, options, click.echo)
    for name, reason in sorted(sources.left_out.items()):
        click.echo(f"{printable(name)}: left out. {printable(reason)}", err=True)
    if prune:
        _prune(folder, sources)
    if target == "gpu":
        click.echo(f"The service needs STEELYARD_ENGINE={engine} with these models.")
    if names and sources.left_out:
        click.get_current_context().exit(FAILED)


@command.command("up", epilog=_EPILOG)
@click.option(
    "--host",
    default="127.0.0.1",
    help="Address to listen on. Triton has no authentication: any but loopback lets everybody who "
    "reaches it use, load and unload models.",
)
@_port("--port", PORT, "Port of gRPC, which the service calls; 0 takes a free one.")
@_port("--http-port", HTTP_PORT, "Port of health: /v2/health/live and /v2/health/ready.")
@_port("--metrics-port", METRICS_PORT, "Port of /metrics.")
@click.option(
    "--repository",
    type=_FOLDER,
    help="Models; written where missing or out of date. Default: triton/models in the home.",
)
@click.option(
    "--environment",
    type=_FOLDER,
    help="Where environments are built and kept. Default: triton/environments in the home.",
)
@click.option(
    "--load",
    multiple=True,
    metavar="MODEL",
    help="A model to load at the start; may be repeated. Default: the base models.",
)
@_instances
@click.option(
    "--start-timeout",
    type=click.FloatRange(1, 3600),
    default=60.0,
    help="Seconds in which it must be ready; past that it is ended.",
)
@click.option(
    "--tls-certificate",
    type=_FILE,
    help="Certificate (PEM) to take gRPC over TLS with; HTTP and figures are on loopback then.",
)
@click.option("--tls-key", type=_FILE, help="Private key (PEM) of the certificate.")
@click.option(
    "--tls-clients",
    type=_FILE,
    help="Authorities (PEM): only who shows a certificate of theirs is answered.",
)
@setting_options("home", "state_url", "base_models", "engine", "threads")
def up(
    *,
    host: str,
    port: int,
    http_port: int,
    metrics_port: int,
    repository: Path | None,
    environment: Path | None,
    load: tuple[str, ...],
    instances: int,
    start_timeout: float,
    tls_certificate: Path | None,
    tls_key: Path | None,
    tls_clients: Path | None,
    **given: str | None,
) -> None:
    """Run a Triton server on this machine until Ctrl-C.

    Builds an environment for it (once), writes the models, starts the server, and starts it again
    when it ends. Fine-tunes that come into use meanwhile are written as they do.
    """
    from steelyard.settings import home_of, read_settings
    from steelyard.triton.environment import build_environment, check_machine
    from steelyard.triton.host import TritonHost
    from steelyard.triton.repository import ExportOptions

    settings = read_settings(given)
    home = home_of(settings).absolute() / "triton"
    folder = (repository or home / "models").absolute()
    environments = (environment or home / "environments").absolute()
    tls = _tls_of(host, tls_certificate, tls_key, tls_clients)
    check_machine()
    _check_plain(folder, "--repository")
    _check_plain(environments, "--environment")
    with _stopping() as stopping:
        built = build_environment(environments, _progress)
        options = ExportOptions(threads=settings.threads, instances=instances)
        follow = _Following(settings, folder, options)
        bases = follow.write()
        server = TritonHost(
            folder,
            built,
            load=load or bases,
            host=host,
            port=port,
            http_port=http_port,
            metrics_port=metrics_port,
            start_s=start_timeout,
            stop_s=settings.shutdown_s,
            on_line=_show_line,
            tls=tls,
        )
        if not stopping.is_set():
            with server:
                _serve(server, stopping, follow)


def _tls_of(
    host: str, certificate: Path | None, key: Path | None, clients: Path | None
) -> ServerTls | None:
    """Return the certificates of the options; warn of a host that anybody may reach."""
    from steelyard.triton.host import ServerTls
    from steelyard.wire.hosts import is_loopback

    if not is_loopback(host) and clients is None:
        click.echo(
            f"Triton has no authentication: all who reach {host} can use, load and unload its "
            "models. With --tls-clients it asks for their certificates.",
            err=True,
        )
    if certificate is not None and key is not None:
        return ServerTls(certificate, key, clients)
    if not (certificate is key is clients is None):
        raise click.UsageError("TLS needs both --tls-certificate and --tls-key.")
    return None


def _check_plain(path: Path, option: str) -> None:
    """Refuse a path that Triton's shell would take apart."""
    from steelyard.triton.environment import is_plain

    if not is_plain(path):
        raise click.UsageError(
            f"Triton hands {printable(str(path))} to a shell without quotes, which splits or "
            f"changes it; give a --home, or a {option}, without spaces and quotes and without "
            "any of | & ; ( ) < > \\ $ ` * ? { } [ ]."
        )


@command.command("check", epilog=_EPILOG)
@click.argument("url", metavar="URL")
@json_option
@setting_options("home", "state_url", "base_models", "engine")
def check(*, url: str, as_json: bool, **given: str | None) -> None:
    """Compare every model that a Triton server has loaded with this process's scorer.

    A fixed set of requests, of every kind, packed and read in stages, must have the same
    probabilities up to 0.001. Shown are the decisions compared (n), the largest difference of a
    probability and of an element of the vectors that heads read, and the median time of a short
    request. Exit status 1 when one differs, could not be compared, or none was.
    """
    from steelyard.cli.failures import FAILED
    from steelyard.errors import EngineUnavailableError
    from steelyard.scoring.remote.triton_address import parse_address, read_tls
    from steelyard.settings import InvalidSettingError, read_settings
    from steelyard.triton.sources import find_sources

    try:
        from steelyard.triton.parity import check_server, is_good
    except ImportError as error:
        message = "Triton's client is not installed; pip install 'steelyard[triton]'."
        raise EngineUnavailableError(message) from error
    url = url if "://" in url else f"triton://{url}"
    try:
        parse_address(url)
    except InvalidSettingError:  # it names the setting, which was not given
        raise click.BadParameter(
            f"{printable(url[:_SHOWN_URL])!r} is no Triton server; give triton://HOST:PORT, or "
            "tritons://HOST:PORT for TLS.",
            param_hint="URL",
        ) from None
    settings = read_settings(given)
    address = parse_address(url, read_tls(settings))
    if address is None:
        raise click.BadParameter("give triton://HOST:PORT.", param_hint="URL")
    sources = {source.name: source for source in find_sources(settings, with_readers=True).sources}
    comparisons = check_server(address, sources)
    if as_json:
        show_json({"url": address.url, "ok": is_good(comparisons), "models": comparisons})
    else:
        _show(comparisons)
    if not is_good(comparisons):
        click.get_current_context().exit(FAILED)


class _Following:
    """Writes the models in use, and fine-tunes that come into use, looking every few seconds."""

    def __init__(self, settings: Settings, folder: Path, options: ExportOptions) -> None:
        self._settings, self._folder, self._options = settings, folder, options
        self._known: frozenset[str] = frozenset()
        self._left_out: dict[str, str] = {}
        self._due = 0.0
        self._trouble = ""

    def write(self) -> list[str]:
        """Write the models in use, report skipped ones once, and return the base models' names."""
        from steelyard.triton.sources import find_sources

        # Read first: files that come into use while these are written are then seen by the next look.
        in_use = self._in_use()
        sources = find_sources(self._settings)
        for name, reason in sorted(sources.left_out.items() - self._left_out.items()):
            _progress(f"{name}: left out. {reason}")
        self._left_out = sources.left_out
        _write(self._folder, sources.sources, self._options, _progress)
        self._known = in_use
        return [source.name for source in sources.sources if source.adapter is None]

    def __call__(self) -> None:
        """Look for changes when it is time; trouble is reported once, and the server goes on."""
        import time

        from steelyard.errors import SteelyardError

        if time.monotonic() < self._due:
            return
        self._due = time.monotonic() + _FOLLOW_S
        try:
            in_use = self._in_use()
            if in_use - self._known:
                self.write()
            else:
                self._known = in_use
        except (SteelyardError, OSError) as error:
            if str(error) != self._trouble:
                _progress(f"Models that came into use could not be written: {error}")
            self._trouble = str(error)
        else:
            self._trouble = ""

    def _in_use(self) -> frozenset[str]:
        from steelyard.triton.sources import tuned_models

        return frozenset(model.adapter for model in tuned_models(self._settings))


def _serve(server: TritonHost, stopping: threading.Event, follow: Callable[[], None]) -> None:
    from steelyard.triton.keeper import keep_running

    click.echo(f"Triton answers on {server.url} (process {server.pid})")
    click.echo(f"Health on {server.http_url}/v2/health/ready, figures on {server.metrics_url}")
    click.echo(f"For the service: STEELYARD_SCORER={server.url}")
    keep_running(server, stopping, _progress, each_look=follow)
    click.echo("Stopping Triton.")


@contextmanager
def _stopping() -> Iterator[threading.Event]:
    """Yield an event that SIGINT and SIGTERM set; a second signal ends the process at once."""
    event = threading.Event()

    def hear(*_: object) -> None:
        if event.is_set():
            raise KeyboardInterrupt
        event.set()

    before = {number: signal.signal(number, hear) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield event
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _write(
    folder: Path,
    sources: Sequence[Source],
    options: ExportOptions,
    tell: Callable[[str], Any],
) -> None:
    from steelyard.errors import StorageUnavailableError
    from steelyard.triton.repository import write_model

    for source in sources:
        try:
            is_new = write_model(folder, source, options)
        except OSError as error:
            message = f"The model {source.name} cannot be written in {folder}: {error.strerror}."
            raise StorageUnavailableError(message) from error
        what = "written" if is_new else "unchanged"
        tell(f"{source.name}: {what} ({source.files.precision}, {source.sha256[:12]})")


def _prune(folder: Path, exportable: Exportable) -> None:
    from steelyard.triton.repository import exported, remove_model

    # What is left out is in use, and may be loaded in a server: only now it cannot be made again.
    in_use = {
        *exportable.left_out,
        *exportable.readers,
        *(source.name for source in exportable.sources),
    }
    for name in sorted(exported(folder).keys() - in_use):
        remove_model(folder, name)
        click.echo(f"{name}: removed")


def _progress(line: str) -> None:
    click.echo(printable(line), err=True)


def _show_line(line: str) -> None:
    # Its tables of options are wider than any terminal.
    if line.strip() and not line.startswith(("|", "+")):
        click.echo(f"triton: {printable(line)}", err=True)


def _show(comparisons: Sequence[ModelComparison]) -> None:
    def cell(field: str, form: str) -> Callable[[ModelComparison], str | None]:
        return lambda each: format(getattr(each, field), form) if each.n_decisions else None

    show_rows(
        comparisons,
        "MODEL:model, VERDICT:verdict, PRECISION:precision, N:n_decisions, DIFFERENCE:difference, "
        "VECTORS:vector_difference, HERE MS:here_ms, THERE MS:there_ms",
        n_decisions=cell("n_decisions", "d"),
        difference=cell("difference", ".2g"),
        vector_difference=cell("vector_difference", ".2g"),
        here_ms=cell("here_ms", ".1f"),
        there_ms=cell("there_ms", ".1f"),
    )
    for comparison in comparisons:
        if comparison.message:
            click.echo(printable(f"{comparison.model}: {comparison.message}"))
    if not comparisons:
        click.echo("The server has no models; load one.")
