"""Errors of datasets and their rows."""

from steelyard.errors.kinds import ConflictError, GoneError, TooLargeError, UnprocessableError


class TaskMismatchError(UnprocessableError):
    """Rows that ask other decisions than their dataset, or word them otherwise."""


class SupervisionMismatchError(UnprocessableError):
    """Rows with targets where rewards are needed, or the other way round."""


class SideConflictError(UnprocessableError):
    """A context sent for a side that it is not on."""


class EvaluationOnlyError(UnprocessableError):
    """Training rows for a dataset that has none."""


class NoRowsError(UnprocessableError):
    """A dataset or an addition without rows."""


class NoNewRowsError(UnprocessableError):
    """An addition of rows that the dataset has already."""

    #: Stored decisions that would make rows if their texts were stored.
    n_without_text = 0


class InvalidExampleError(UnprocessableError):
    """Rows with something wrong in them; ``details`` has the first hundred, line by line."""


class InvalidCsvError(UnprocessableError):
    """A CSV file that cannot be read as rows."""


class TooFewRowsError(UnprocessableError):
    """Fewer rows than the work needs."""


class DatasetArchivedError(ConflictError):
    """New work on an archived dataset."""


class DatasetChangedError(ConflictError):
    """A dataset that got a version while another was made."""


class StorageAllowanceError(ConflictError):
    """No room to store the result."""


class VersionInUseError(ConflictError):
    """A deletion of data that running work still reads."""


class DatasetDeletedError(GoneError):
    """A dataset that was deleted for good."""


class TooManyLinesError(TooLargeError):
    """An upload of more lines than rows may be sent."""


class TooManyRowsError(TooLargeError):
    """More rows than a dataset may have."""
