"""The shared memory of an engine: regions that wait for the next pass, and those let go of late.

A server may refuse to unmap a region that a pass uses, also one that was abandoned. It is asked again
until it has: else its mapping stays for as long as it runs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from tritonclient.utils import InferenceServerException

from steelyard.scoring.remote.shared_region import SharedRegion
from steelyard.scoring.remote.triton_failures import status_of

#: Bytes of a region that is kept for the next pass.
REUSED_REGION = 64 * 1024 * 1024
#: Regions that a server may still map after they were used; with as many it is given no others.
MAX_MAPPED = 16
#: Statuses of a server that does not answer: it is asked nothing more for now.
_SILENT = frozenset({"UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED"})


class RegionPool:
    """Regions that passes borrow and give back; thread-safe."""

    def __init__(
        self,
        register: Callable[[str, int], None],
        unregister: Callable[[str], None],
        *,
        may_share: bool,
    ) -> None:
        self._register = register
        self._unregister = unregister
        self.may_share = may_share
        self._shares = may_share
        self._waiting: list[SharedRegion] = []
        #: Names of regions that the server was to unmap and did not.
        self._held: list[str] = []
        self._closed = False
        self._lock = threading.Lock()

    @property
    def shares(self) -> bool:
        """Whether memory is shared with the server, as far as is known."""
        return self._shares

    def resume(self) -> None:
        """Try to share again, where that is allowed."""
        with self._lock:
            self._shares = self.may_share

    def stop(self) -> bool:
        """Share nothing until ``resume``; tell whether anything was until now."""
        with self._lock:
            shared, self._shares = self._shares, False
        return shared

    def borrow(self, size: int) -> SharedRegion | None:
        """Return a region of at least so many bytes; ``None`` where tensors are better sent."""
        with self._lock:
            for index, region in enumerate(self._waiting):
                if region.size >= size:
                    return self._waiting.pop(index)
            if len(self._held) >= MAX_MAPPED:
                return None
        try:
            return SharedRegion(size, self._register)
        except OSError:  # no room: this one is sent
            return None
        except (InferenceServerException, ValueError):
            # Another machine behind the address, another container, or another user.
            self.stop()
            return None

    def give_back(self, region: SharedRegion) -> None:
        """Take a region back from a pass that ended well."""
        with self._lock:
            is_reused = region.size <= REUSED_REGION and not self._closed
            if is_reused:
                self._waiting.append(region)
        if not is_reused:
            self.discard(region)

    def discard(self, region: SharedRegion) -> None:
        """Use a region no more, and have the server unmap it."""
        self._let_go([region.name])
        region.close()

    def forget(self) -> None:
        """Use none of the regions any more that wait for a pass."""
        with self._lock:
            regions, self._waiting = self._waiting, []
        self._let_go([region.name for region in regions])
        for region in regions:
            region.close()

    def ask_again(self, most: int = MAX_MAPPED) -> None:
        """Ask the server again to unmap regions that it kept when asked first."""
        if not self._held:
            return
        with self._lock:
            names, self._held = self._held[:most], self._held[most:]
        self._let_go(names)

    def close(self) -> None:
        """Release every region; passes that end later do not return theirs."""
        with self._lock:
            self._closed = True
        self.forget()
        self.ask_again()

    def _let_go(self, names: Sequence[str]) -> None:
        registered = list(names)
        for name in names:
            try:
                self._unregister(name)
            except (InferenceServerException, ValueError) as error:
                # With the latter gRPC says that the connection was closed.
                if isinstance(error, ValueError) or status_of(error) in _SILENT:
                    break
            else:
                registered.remove(name)
        if registered:
            with self._lock:
                self._held += registered
