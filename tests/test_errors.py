from __future__ import annotations

import pickle
import sys
from types import SimpleNamespace

import msgspec
import pytest

from steelyard import errors
from steelyard.errors import (
    InvalidRequestError,
    NotFoundError,
    SteelyardError,
    Violation,
    error_classes,
    error_from_body,
)
from steelyard.wire.errors import ErrorBody

CLASSES = list(error_classes().values())


def test_codes_are_unique_and_every_class_has_its_own() -> None:
    defined = [
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, SteelyardError)
    ]
    kinds = {cls for cls in SteelyardError.__subclasses__() if "code" not in vars(cls)}
    # One code may have another status where a route's contract says so.
    variants = {cls for cls in defined if cls.__bases__[0] in CLASSES}
    assert {*defined} == {*CLASSES, *kinds, *variants, SteelyardError}
    # Python 3.13 also says of a class where it is written.
    made = {"__module__", "__doc__", "__firstlineno__", "__static_attributes__"}
    assert all({*vars(cls)} - made <= {"status"} for cls in variants)
    assert {cls.code for cls in variants} == {"too_many_rows"}, (
        "docs/applications/errors.md says so"
    )
    assert all(cls.__bases__[0] in {*kinds, SteelyardError} for cls in CLASSES)
    assert len({kind.status for kind in kinds}) == len(kinds)
    for cls in CLASSES:
        assert "code" in vars(cls)


@pytest.mark.parametrize("cls", CLASSES)
def test_every_class_is_a_builtin_error_too(cls: type[SteelyardError]) -> None:
    bases = (*cls.__bases__, *cls.__bases__[0].__bases__)
    assert any(base.__module__ == "builtins" and base is not Exception for base in bases)


@pytest.mark.parametrize("cls", CLASSES)
def test_every_class_has_the_one_body_and_comes_back_from_it(cls: type[SteelyardError]) -> None:
    error = cls("Something is wrong; change it.", details=[{"a": 1}])
    body = msgspec.json.decode(msgspec.json.encode(error.body("req_1")), type=ErrorBody)
    assert body.error.code == cls.code
    assert (body.error.message, body.error.request_id) == (str(error), "req_1")
    assert (body.error.retryable, body.error.details) == (cls.retryable, [{"a": 1}])
    again = error_from_body(cls.status, msgspec.to_builtins(body), retry_after_s=2.5)
    assert type(again) is cls
    assert (again.message, again.details, again.retry_after_s) == (str(error), [{"a": 1}], 2.5)


@pytest.mark.parametrize("cls", CLASSES)
def test_every_class_survives_pickling(cls: type[SteelyardError]) -> None:
    error = cls("Something is wrong.", details=[{"a": 1}], retry_after_s=3)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is cls
    assert (str(again), again.details, again.retry_after_s) == (str(error), [{"a": 1}], 3)


@pytest.mark.parametrize("cls", CLASSES)
def test_refusals_that_must_say_when_to_come_back_do(cls: type[SteelyardError]) -> None:
    must = cls.status == 429 or (cls.status == 503 and cls.retryable)
    says = cls("x").retry_after_s is not None
    assert says or not must
    assert cls.retryable or not says


def test_details_are_null_when_there_are_none() -> None:
    assert NotFoundError("x").body()["error"]["details"] is None


@pytest.mark.parametrize("cls", [cls for cls in CLASSES if cls.status == 422])
def test_a_request_refused_as_a_whole_has_details_that_a_client_does_not_say_twice(cls):
    body = cls("Something is wrong.").body()
    assert body["error"]["details"] == [
        {"path": ["body"], "message": "Something is wrong.", "type": cls.code}
    ]
    assert error_from_body(422, body).details is None


def test_violations_make_details_and_a_message() -> None:
    first = Violation(("body", "a", 0), "a[0] is wrong; change it.", "one")
    second = Violation(("body", "b"), "b is wrong; change it.", "two")
    alone = InvalidRequestError(violations=[first])
    assert alone.message == "a[0] is wrong; change it."
    both = InvalidRequestError(violations=[first, second])
    assert both.message.startswith("a[0] is wrong; change it. In all, one more problem was found")
    assert both.details == [
        {"path": ["body", "a", 0], "message": "a[0] is wrong; change it.", "type": "one"},
        {"path": ["body", "b"], "message": "b is wrong; change it.", "type": "two"},
    ]


@pytest.mark.parametrize(
    "body", [None, "x", {}, {"error": None}, {"error": {}}, {"error": {"message": 3}}]
)
def test_a_foreign_body_is_recognised(body: object) -> None:
    error = error_from_body(502, body)
    assert type(error) is SteelyardError
    assert "502" in error.message


def test_details_that_are_not_ours_are_left_out() -> None:
    details = ["plain", {"path": ["body"]}, 3]
    error = error_from_body(500, {"error": {"message": "Broken.", "details": details}})
    assert error.details == [{"path": ["body"]}]


def test_an_unknown_code_keeps_its_message() -> None:
    error = error_from_body(409, {"error": {"code": "later", "message": "Not yet."}})
    assert (type(error), error.message) == (SteelyardError, "Not yet.")


@pytest.mark.parametrize("is_notebook", [True, False])
def test_a_notebook_shows_one_sentence_and_folds_the_frames(is_notebook, monkeypatch):
    """IPython takes the lines that an error shows of itself, by this name."""
    shell = SimpleNamespace(**({"kernel": object()} if is_notebook else {}))
    folded = []
    module = SimpleNamespace(get_ipython=lambda: shell)
    display = SimpleNamespace(HTML=str, display=folded.append)
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    with pytest.raises(errors.NoRowsError) as raised:
        raise errors.NoRowsError("Send rows.")
    lines = [raised.value._render_traceback_() for _ in ("to show", "to store")][-1]
    assert lines[-1].endswith("NoRowsError: Send rows.")
    assert (len(lines) == 1) is is_notebook
    assert len(folded) == is_notebook
    assert all("<details>" in html and "test_errors.py" in html for html in folded)
