"""Decisions about a Dask frame: each partition is answered by the process that holds it.

Dask and not Ray: its partitions are pandas frames, which ``decide_frame`` takes as they are, and it
adds a few megabytes where Ray adds a runtime of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from steelyard.batch.scoring import Questions, decide_rows
from steelyard.bulk.columns import check_columns, schema_of


def is_dask(frame: Any) -> bool:
    """Whether a frame is one of Dask's; loads nothing."""
    dask = sys.modules.get("dask.dataframe")
    return dask is not None and isinstance(frame, dask.DataFrame)


def decide_partitions(frame: Any, questions: Questions, *, context: str | Sequence[str]) -> Any:
    """Return a lazy frame with the columns that decisions add; computing it answers them.

    A worker loads the model once and answers its partitions one after the other or beside each
    other. A partition whose worker dies is answered again by another, as Dask does with any work.
    The frame is partitioned as before. Raise ``ValueError`` when a column is missing or would be
    there twice, or a server is to answer, and ``InvalidRequestError`` when the decisions cannot be
    asked.
    """
    if questions.client is not None:
        raise ValueError(
            "A Dask frame is answered by its workers' own models; leave client out, or compute the "
            "frame first."
        )
    added = schema_of(questions.checked())
    columns = [context] if isinstance(context, str) else list(context)
    check_columns(list(map(str, frame.columns)), columns, list(added))
    # One type for a column in every partition, also where it is null in all rows of one.
    dtypes = {
        name: "float64" if dtype.is_float() else "string[pyarrow]" for name, dtype in added.items()
    }
    # ``_meta`` is what Dask knows of its partitions: no rows, the columns' types.
    meta = frame._meta.assign(**dict.fromkeys(added, None)).astype(dtypes)
    return frame.map_partitions(
        _decide_partition, questions, columns, dtypes, meta=meta, enforce_metadata=False
    )


def _decide_partition(
    rows: Any, questions: Questions, columns: Sequence[str], dtypes: dict[str, Any]
) -> Any:
    return decide_rows(rows, questions, context=list(columns)).astype(dtypes)
