"""Errors of datasets and their rows."""

from __future__ import annotations

from steelyard.errors.kinds import ConflictError, GoneError, TooLargeError, UnprocessableError


class TaskMismatchError(UnprocessableError):
    """Rows that ask other decisions than their dataset, or word them otherwise."""

    code = "task_mismatch"


class SupervisionMismatchError(UnprocessableError):
    """Rows with targets where rewards are needed, or the other way round."""

    code = "supervision_mismatch"


class SideConflictError(UnprocessableError):
    """A context sent for a side that it is not on."""

    code = "side_conflict"


class EvaluationOnlyError(UnprocessableError):
    """Training rows for a dataset that has none."""

    code = "evaluation_only"


class NoRowsError(UnprocessableError):
    """A dataset or an addition without rows."""

    code = "no_rows"


class NoNewRowsError(UnprocessableError):
    """An addition of rows that the dataset has already."""

    code = "no_new_rows"


class InvalidExampleError(UnprocessableError):
    """Rows with something wrong in them; ``details`` has the first hundred, line by line."""

    code = "invalid_example"


class InvalidCsvError(UnprocessableError):
    """A CSV file that cannot be read as rows."""

    code = "invalid_csv"


class TooFewRowsError(UnprocessableError):
    """Fewer rows than the work needs."""

    code = "too_few_rows"


class DatasetArchivedError(ConflictError):
    """New work on an archived dataset."""

    code = "dataset_archived"


class DatasetChangedError(ConflictError):
    """A dataset that got a version while another was made."""

    code = "dataset_changed"


class StorageAllowanceError(ConflictError):
    """No room to store the result."""

    code = "storage_allowance"


class VersionInUseError(ConflictError):
    """A deletion of data that running work still reads."""

    code = "version_in_use"


class DatasetDeletedError(GoneError):
    """A dataset that was deleted for good."""

    code = "dataset_deleted"


class TooManyLinesError(TooLargeError):
    """An upload of more lines than rows may be sent."""

    code = "too_many_lines"


class TooManyRowsError(TooLargeError):
    """More rows than a dataset may have."""

    code = "too_many_rows"
