"""Errors of maps of datasets."""

from steelyard.errors.kinds import ConflictError, UnavailableError


class MapNotReadyError(ConflictError):
    """The points of a map that has none yet."""


class VectorsUnavailableError(UnavailableError):
    """A map by a model whose engine gives no vectors of texts."""

    retryable = False
