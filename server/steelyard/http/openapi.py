"""The OpenAPI document, made from the routes and the structs.

``python -m steelyard.app.openapi`` prints that of every route.
"""

from __future__ import annotations

import inspect
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_type_hints

import msgspec

from steelyard.errors import (
    AccountsOffError,
    ConfirmSignInError,
    ConsoleOnlyError,
    CrossSiteError,
    DataDamagedError,
    DeadlineExceededError,
    EngineUnavailableError,
    InternalError,
    InvalidApiKeyError,
    InvalidRequestError,
    KeyScopeError,
    MalformedRequestError,
    MisdirectedRequestError,
    MissingApiKeyError,
    NotFoundError,
    NotSignedInError,
    PayloadTooLargeError,
    QueueFullError,
    RateLimitedError,
    RequestTimeoutError,
    RoleForbiddenError,
    SteelyardError,
    StorageUnavailableError,
    UnsupportedEncodingError,
    UnsupportedMediaTypeError,
)
from steelyard.http.access import OPERATIONS
from steelyard.http.bodies import JSON
from steelyard.http.browsers import ACCOUNT_HEADER, CONSOLE_HEADER, COOKIE
from steelyard.http.cors import EXPOSED_HEADERS
from steelyard.http.logs import TYPESAFE_REQUEST_ID_HEADER, is_typesafe
from steelyard.http.routing import Access, Route
from steelyard.wire.errors import ErrorBody
from steelyard.wire.schemas import portable

OPENAPI_VERSION = "3.1.0"
#: Of the wire, which programs go by, and not of the package: docs/operators/versions.md.
API_VERSION = "0.1.0"

_REF = "#/components/schemas/{name}"
_PARAMETER = re.compile(r"\{(\w+)\}")

_DESCRIPTION = (
    "Decisions with calibrated probabilities: a context and questions in, probabilities and an "
    "action out. Every failed call has one body, and every answer the header `X-Request-ID` and "
    "those that tell browsers not to guess its type, frame it or say whence they come. "
    "HEAD answers where GET does; a parameter that the document does not name is refused. "
    "Times are Unix seconds; amounts named `…_usd` are exact decimal strings."
)

_HEADERS: dict[str, dict[str, Any]] = {
    "X-Request-ID": {
        "description": "The request's id, minted by the server; also in an error's body.",
        "required": True,
        "schema": {"type": "string", "pattern": "^req_[0-9a-z]+$"},
    },
    TYPESAFE_REQUEST_ID_HEADER: {
        "description": "The same id, under the name that TypeSafe's clients read.",
        "required": True,
        "schema": {"type": "string", "pattern": "^req_[0-9a-z]+$"},
    },
    "Retry-After": {
        "description": "Seconds after which to try again, as a decimal number.",
        "schema": {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?$"},
    },
    "retry-after-ms": {
        "description": "The same in milliseconds.",
        "schema": {"type": "string", "pattern": "^[0-9]+$"},
    },
    "Idempotency-Status": {
        "description": "Whether the accepted operation still runs or ended without an answer.",
        "schema": {"type": "string", "enum": ["pending", "terminal"]},
    },
    "X-Operation-ID": {
        "description": "The accepted operation.",
        "schema": {"type": "string", "minLength": 1},
    },
    "Idempotency-Replayed": {
        "description": "`true` when an earlier request with the same key was answered so.",
        "schema": {"type": "string", "const": "true"},
    },
    "WWW-Authenticate": {
        "description": "How to authenticate.",
        "required": True,
        "schema": {"type": "string", "const": "Bearer"},
    },
    "Set-Cookie": {
        "description": "The session's token to keep, or to forget.",
        "schema": {"type": "string", "minLength": 1},
    },
    "Cache-Control": {
        "description": "Beside a token.",
        "schema": {"type": "string", "const": "no-store"},
    },
    "Access-Control-Allow-Origin": {
        "description": "Pages of every origin may read the answer.",
        "schema": {"type": "string", "const": "*"},
    },
    "Access-Control-Expose-Headers": {
        "description": "Headers that such a page may read.",
        "schema": {"type": "string", "const": ", ".join(EXPOSED_HEADERS)},
    },
}

_IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "Names this write: repeated with the same body, it is done once.",
    "schema": {"type": "string", "pattern": "^[!-~]+$", "minLength": 1, "maxLength": 255},
}
_CONTENT_ENCODING = {
    "name": "Content-Encoding",
    "in": "header",
    "description": "How the body is compressed.",
    "schema": {"type": "string", "enum": ["identity", "gzip", "zstd"]},
}

_CONSOLE = {
    "name": CONSOLE_HEADER,
    "in": "header",
    "description": "`1`: the call comes from a page or program of the console's own.",
    "schema": {"type": "string", "const": "1"},
}
_ACCOUNT = {
    "name": ACCOUNT_HEADER,
    "in": "header",
    "description": "The account that the call is for; the one that was joined first by default.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 64},
}


def build_document(routes: Iterable[Route]) -> dict[str, Any]:
    """Return the OpenAPI document of the routes."""
    table = tuple(routes)
    structs: dict[type[msgspec.Struct], None] = {ErrorBody: None}
    for route in table:
        used = (route.request, *route.also_takes, route.response)
        structs.update(dict.fromkeys(struct for struct in used if struct is not None))
    references, schemas = msgspec.json.schema_components(tuple(structs), ref_template=_REF)
    schemas = portable(schemas)
    for schema in schemas.values():
        if "description" in schema:
            # A docstring, which Python 3.13 keeps without its indentation and others with it.
            schema["description"] = inspect.cleandoc(schema["description"])
    refs = dict(zip(structs, references, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    refusals = _Refusals(refs[ErrorBody])
    for route in table:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, refs, refusals)
    tags = dict.fromkeys(tag for route in table for tag in route.tags)
    return {
        "openapi": OPENAPI_VERSION,
        "info": {
            "title": "Steelyard",
            "version": API_VERSION,
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "The server that sent this document."}],
        "tags": [{"name": tag} for tag in tags],
        "paths": paths,
        "components": {
            "schemas": {name: schemas[name] for name in sorted(schemas)},
            "responses": refusals.components,
            "headers": {_component(name): header for name, header in _HEADERS.items()},
            "parameters": {
                "IdempotencyKey": _IDEMPOTENCY_KEY,
                "ContentEncoding": _CONTENT_ENCODING,
            },
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An API key of an account. With accounts off any or none will do.",
                },
                "session": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": COOKIE,
                    "description": "A user's session, of `POST /v1/auth/email/verify`.",
                },
            },
        },
    }


def errors_of(route: Route) -> tuple[type[SteelyardError], ...]:
    """Return every refusal that a route may answer, its own and those of its kind."""
    errors: dict[type[SteelyardError], None] = dict.fromkeys(
        (
            MalformedRequestError,
            RequestTimeoutError,
            PayloadTooLargeError,
            MisdirectedRequestError,
            InvalidRequestError,
        )
    )
    if route.access in {Access.KEYED, Access.OPERATOR}:
        errors.update(dict.fromkeys((MissingApiKeyError, InvalidApiKeyError, KeyScopeError)))
        if route.session_roles:
            session = (NotSignedInError, CrossSiteError, RoleForbiddenError, NotFoundError)
            errors.update(dict.fromkeys(session))
    elif route.access is not Access.PUBLIC:
        errors[AccountsOffError] = None
    if route.access is Access.CONSOLE:
        errors.update(dict.fromkeys((NotSignedInError, MissingApiKeyError, InvalidApiKeyError)))
        errors[NotFoundError] = None
        errors.update(dict.fromkeys((CrossSiteError, RoleForbiddenError)))
        errors[KeyScopeError if route.takes_keys else ConsoleOnlyError] = None
    if route.confirms:
        errors[ConfirmSignInError] = None
    if route.access is not Access.PUBLIC and route.is_write:
        errors[CrossSiteError] = None
    if route.request is not None or route.is_write:
        errors.update(dict.fromkeys((UnsupportedMediaTypeError, UnsupportedEncodingError)))
    errors.update(dict.fromkeys(route.errors))
    if OPERATIONS not in route.tags or route.access is not Access.PUBLIC:
        errors[RateLimitedError] = None
    errors.update(dict.fromkeys((InternalError, DataDamagedError)))
    errors.update(dict.fromkeys((EngineUnavailableError, StorageUnavailableError)))
    if route.is_write or route.handler is not None:
        errors[QueueFullError] = None
    errors[DeadlineExceededError] = None
    return tuple(errors)


class _Refusals:
    """The refusals of all operations, each that several have in common described once."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        self.components: dict[str, dict[str, Any]] = {}
        self._body = body
        self._counts: Counter[int] = Counter()

    def refer(self, route: Route, status: int, errors: Sequence[type[SteelyardError]]) -> Any:
        """Return a reference to the refusals of a route with a status."""
        codes = ", ".join(f"`{error.code}`" for error in errors)
        refusal = {
            "description": f"Refused: {codes}.",
            "headers": _headers(route, errors, status),
            "content": {JSON: {"schema": self._body}},
        }
        name = next(
            (name for name, component in self.components.items() if component == refusal), None
        )
        if name is None:
            self._counts[status] += 1
            name = f"Refused{status}-{self._counts[status]}"
            self.components[name] = refusal
        return {"$ref": f"#/components/responses/{name}"}


def _operation(
    route: Route, refs: Mapping[type[msgspec.Struct], Any], refusals: _Refusals
) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        "description": _access_text(route),
        "tags": list(route.tags),
        "security": _security(route),
    }
    parameters = _parameters(route)
    if parameters:
        operation["parameters"] = parameters
    content: dict[str, Any] = {}
    if route.request is not None:
        shapes = [refs[shape] for shape in (route.request, *route.also_takes)]
        content[JSON] = {"schema": shapes[0] if len(shapes) == 1 else {"anyOf": shapes}}
    content.update((form.media_type, {"schema": dict(form.schema)}) for form in route.forms)
    if content:
        operation["requestBody"] = {"required": True, "content": content}
    schema = {"type": "object"} if route.media_type == JSON else {"type": "string"}
    if route.response is not None:
        schema = refs[route.response]
    responses: dict[str, Any] = {
        str(route.status): {
            "description": "Done.",
            "headers": _headers(route, (), route.status),
            "content": {
                route.media_type: {"schema": schema},
                **{kind: {"schema": {"type": "string"}} for kind in route.also_answers},
            },
        }
    }
    by_status: dict[int, list[type[SteelyardError]]] = {}
    for error in errors_of(route):
        by_status.setdefault(error.status, []).append(error)
    for status, errors in sorted(by_status.items()):
        responses[str(status)] = refusals.refer(route, status, errors)
    operation["responses"] = responses
    return operation


def _access_text(route: Route) -> str:
    if route.access is Access.PUBLIC:
        return "Needs no key; a bearer is ignored."
    if route.access is Access.OPERATOR:
        return (
            "For whoever runs the server: from a loopback address, or with a key of scope `full` of "
            "the account `local`."
        )
    if route.access is Access.SIGN_IN:
        return "Needs no session; where accounts are on."
    if route.access is Access.CONSOLE:
        return _console_text(route)
    scopes = ["`full`"]
    if route.is_inference:
        scopes.append("`inference`")
    if route.method == "GET":
        scopes.append("`read`")
    roles = " or ".join(f"`{role}`" for role in route.session_roles)
    if route.for_operators:
        scopes = ["`full` of the account `local`"]
        roles = f"an operator with the role {roles}"
    text = f"Needs a key of scope {' or '.join(scopes)} where accounts are on."
    text += f" The session of {roles} will do too, with the header `{CONSOLE_HEADER}: 1`."
    if route.confirms:
        text += " Its code must have been given within the last 15 minutes."
    return text


def _console_text(route: Route) -> str:
    roles = [f"`{role}`" for role in route.roles if role is not None]
    who = (
        "an operator"
        if route.for_operators
        else "any user"
        if None in route.roles
        else f"the role {' or '.join(roles)}"
    )
    text = f"Needs the session of {who}, and the header `{CONSOLE_HEADER}: 1`."
    if route.confirms:
        text += " A code must have been given within the last 15 minutes."
    if route.takes_keys:
        text += " An API key of scope `full` or `read` will do too."
    return text


def _security(route: Route) -> list[dict[str, list[str]]]:
    if route.access in {Access.PUBLIC, Access.SIGN_IN}:
        return []
    if route.access is Access.CONSOLE:
        return [{"session": []}, {"bearer": []}] if route.takes_keys else [{"session": []}]
    if route.access is Access.KEYED:
        return [{"bearer": []}, {"session": []}]
    return [{}, {"bearer": []}]


def _parameters(route: Route) -> list[dict[str, Any]]:
    parameters: list[dict[str, Any]] = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": "One segment of the path, percent-encoded.",
            "schema": {"type": "string", "minLength": 1},
        }
        for name in _PARAMETER.findall(route.path)
    ]
    if route.query is not None:
        parameters.extend(_query_parameters(route.query))
    if route.is_write:
        parameters.append({"$ref": "#/components/parameters/IdempotencyKey"})
    if route.access is Access.CONSOLE:
        parameters += [_CONSOLE, _ACCOUNT]
    parameters.extend(dict(header) for header in route.headers)
    if route.request is not None or route.forms:
        parameters.append({"$ref": "#/components/parameters/ContentEncoding"})
    return parameters


def _query_parameters(query: type[msgspec.Struct]) -> list[dict[str, Any]]:
    hints = get_type_hints(query, include_extras=True)
    parameters = []
    for field in msgspec.structs.fields(query):
        schema = portable(msgspec.json.schema(hints[field.name]))
        # In an address nothing is null: a parameter is there or left out.
        options = [option for option in schema.pop("anyOf", ()) if option != {"type": "null"}]
        if len(options) == 1:
            schema = {**options[0], **schema}
        elif options:
            schema["anyOf"] = options
        if field.default not in {msgspec.NODEFAULT, None}:
            schema["default"] = field.default
        description = schema.pop("description", None)
        parameter: dict[str, Any] = {
            "name": field.encode_name,
            "in": "query",
            "required": field.required,
        }
        if description is not None:
            parameter["description"] = description
        parameters.append({**parameter, "schema": schema})
    return parameters


def _headers(route: Route, errors: Sequence[type[SteelyardError]], status: int) -> dict[str, Any]:
    names = ["X-Request-ID"]
    if is_typesafe(route.path):
        names.append(TYPESAFE_REQUEST_ID_HEADER)
    if status in {409, 429, 503}:
        names.append("Retry-After")
        if is_typesafe(route.path):
            names.append("retry-after-ms")
    if status == 401:
        names.append("WWW-Authenticate")
    if route.is_write and (status == route.status or errors):
        names.append("X-Operation-ID")
        names.append("Idempotency-Replayed" if status == route.status else "Idempotency-Status")
    if route.access in {Access.SIGN_IN, Access.CONSOLE}:
        names += ["Set-Cookie", "Cache-Control"]
    if route.access is Access.PUBLIC:
        names += ["Access-Control-Allow-Origin", "Access-Control-Expose-Headers"]
    return {name: {"$ref": f"#/components/headers/{_component(name)}"} for name in names}


def _component(header: str) -> str:
    return "".join(word.capitalize() for word in header.split("-"))


#: Levels of the document that are opened: an operation and a shape have a line each.
_OPENED = 3


def to_text(document: Mapping[str, Any]) -> str:
    """Write the document in the form of the committed copy, so that a diff shows the change."""
    return _opened(document, 1) + "\n"


def _opened(value: Any, level: int) -> str:
    if level > _OPENED or not isinstance(value, Mapping) or not value:
        return json.dumps(value, ensure_ascii=False)
    entries = (f"{json.dumps(key)}: {_opened(part, level + 1)}" for key, part in value.items())
    indent = "\n" + "  " * level
    return "{" + indent + f",{indent}".join(entries) + indent[:-2] + "}"
