"""Whether the images of a request, or of a row, and its context agree."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from typing import Any

from steelyard.wire.violations import BODY, Violations

#: The largest image, in bytes once decoded.
MAX_IMAGE_BYTES = 10 * 1024 * 1024

_ANCHOR = re.compile(r"<image:(\d{1,9})>")


def check_ids(images: Sequence[dict[str, Any]], violations: Violations) -> None:
    """Note ids that repeat."""
    ids: set[int] = set()
    for index, image in enumerate(images):
        id_ = image["id"]
        if id_ in ids:
            path = (*BODY, "images", index, "id")
            violations.add(path, f"repeats {id_}; give each image its own.", "duplicate")
        ids.add(id_)


def check_images(images: Sequence[dict[str, Any]], context: Any, violations: Violations) -> None:
    """Note repeated ids, data that is not an image, and images or anchors without the other."""
    path = (*BODY, "images")
    if not isinstance(context, str):
        violations.add(
            path, "needs a context that is a text and shows each as <image:N>.", "refused"
        )
        return
    shown = {int(number) for number in _ANCHOR.findall(context)}
    check_ids(images, violations)
    for index, image in enumerate(images):
        id_ = image["id"]
        if id_ not in shown:
            violations.add(
                (*path, index, "id"),
                f"is {id_}, and the context has no <image:{id_}>; show the image or leave it out.",
                "not_shown",
            )
        _check_data(image["data"], index, violations)
    for number in sorted(shown - {image["id"] for image in images}):
        violations.add(
            (*BODY, "context"),
            f"shows <image:{number}>, and no image has the id {number}; send it.",
            "missing",
        )


def _check_data(data: str, index: int, violations: Violations) -> None:
    path = (*BODY, "images", index, "data")
    try:
        n_bytes = len(base64.b64decode(data, validate=True))
    except (binascii.Error, ValueError):
        violations.add(path, "is not padded standard base64; encode the file again.", "not_base64")
        return
    if n_bytes > MAX_IMAGE_BYTES:
        violations.add(
            path, f"decodes to {n_bytes} bytes; send at most {MAX_IMAGE_BYTES}.", "too_long"
        )
