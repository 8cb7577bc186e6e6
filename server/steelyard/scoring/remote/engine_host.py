"""Where the engines of a process run: here, or in the server that the setting ``scorer`` names.

A host makes an engine for each set of weights. Where the setting is a file, it looks at it every
second, and every engine changes over when it names another server.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from steelyard.errors import EngineUnavailableError, SteelyardError
from steelyard.scoring.engine import PassEngine
from steelyard.scoring.protocol import EngineStatus
from steelyard.scoring.remote.routed import RemoteEngine, RoutedEngine
from steelyard.scoring.remote.triton_address import ScorerSource, TritonAddress
from steelyard.settings import InvalidSettingError

_log = logging.getLogger(__name__)

#: Seconds between two looks at the file.
WATCH_S = 1.0


class RemoteHost:
    """Makes engines that run where the setting ``scorer`` says, and keeps them there."""

    def __init__(
        self, source: ScorerSource, *, falls_back: bool, timeout_s: float, probes: bool = True
    ) -> None:
        self._source = source
        self._falls_back = falls_back
        self._timeout_s = timeout_s
        self._probes = probes
        self._lock = threading.Lock()
        self._engines: dict[RoutedEngine, Callable[[TritonAddress], RemoteEngine]] = {}
        #: Engines that are still to change over, and why they did not.
        self._behind: dict[RoutedEngine, str] = {}
        self._address = source.read()
        self._trouble: str | None = None
        self._closing = threading.Event()
        self._watcher: threading.Thread | None = None
        if self._address is not None:
            _check_client()
        if probes and source.file is not None:
            self._watcher = threading.Thread(
                target=self._watch, name="steelyard-scorer-file", daemon=True
            )
            self._watcher.start()

    def engine(
        self,
        model: str,
        *,
        sha256: str,
        precision: str,
        load_local: Callable[[], PassEngine],
        unloads: bool = False,
    ) -> RoutedEngine:
        """Return an engine of some weights, tried once.

        A server that does not answer is no error: its passes run here, or are refused, until it
        does.
        """

        def connect(address: TritonAddress) -> RemoteEngine:
            # Only who has a server pays for its client.
            from steelyard.scoring.remote.triton_engine import TritonEngine  # noqa: PLC0415

            return TritonEngine(
                address,
                model,
                sha256=sha256,
                precision=precision,
                timeout_s=self._timeout_s,
                unloads=unloads,
            )

        address = self._address
        engine = RoutedEngine(
            model,
            load_local,
            None if address is None else connect(address),
            falls_back=self._falls_back,
            on_close=self._forget,
        )
        with self._lock:
            self._engines[engine] = connect
            now = self._address
        if now != address:  # the file changed in between
            engine.attach(None if now is None else connect(now))
        engine.step()
        if self._probes:
            engine.start()
        return engine

    def statuses(self) -> dict[str, EngineStatus]:
        """Return where passes go, by model."""
        with self._lock:
            engines = list(self._engines)
        return {engine.model: engine.status for engine in engines}

    def look(self) -> None:
        """Read the setting's file again, and change over when it names another server.

        An engine that cannot be changed over is tried again at every look.
        """
        self._read_again()
        with self._lock:
            address = self._address
            behind = [(engine, self._engines[engine], why) for engine, why in self._behind.items()]
        for engine, connect, before in behind:
            try:
                engine.attach(None if address is None else connect(address))
            except Exception as error:  # noqa: BLE001  the other engines change over all the same
                is_foreseen = isinstance(error, (InvalidSettingError, SteelyardError))
                why = str(error) if is_foreseen else f"{type(error).__name__}: {error}"
                if why != before:
                    _log.error(
                        "%s stays where it is, and is tried again: %s",
                        engine.model,
                        why,
                        exc_info=None if is_foreseen else error,
                    )
                with self._lock:
                    if engine in self._behind:
                        self._behind[engine] = why
            else:
                with self._lock:
                    self._behind.pop(engine, None)

    def _read_again(self) -> None:
        try:
            address = self._source.read()
            if address is not None:
                _check_client()
        except (InvalidSettingError, EngineUnavailableError) as error:
            if str(error) != self._trouble:
                _log.error("%s The scorer stays where it is.", error)
            self._trouble = str(error)
            return
        self._trouble = None
        with self._lock:
            if address == self._address:
                return
            self._address = address
            self._behind = dict.fromkeys(self._engines, "")
        _log.info("The scorer is to be %s now.", "this process" if address is None else address.url)

    def close(self) -> None:
        """Stop watching the file; engines are closed by their users."""
        self._closing.set()
        if self._watcher is not None:
            self._watcher.join()

    def _watch(self) -> None:
        while not self._closing.wait(WATCH_S):
            try:
                self.look()
            except Exception:  # noqa: BLE001  it is looked at again
                _log.exception("The scorer's file could not be looked at.")

    def _forget(self, engine: RoutedEngine) -> None:
        with self._lock:
            self._engines.pop(engine, None)
            self._behind.pop(engine, None)


def _check_client() -> None:
    try:
        import steelyard.scoring.remote.triton_engine  # noqa: F401, PLC0415
    except ImportError as error:
        raise EngineUnavailableError(
            "The setting scorer (STEELYARD_SCORER) names a Triton server, and its client is not "
            f"installed ({error}): pip install 'steelyard[triton]'."
        ) from error
