"""Traces: the parts of work are reported, and none of its texts."""

from __future__ import annotations

import gzip
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from steelyard import tracing
from steelyard.app.job_runtime import open_worker
from steelyard.client import Client, ClientOptions
from steelyard.serving.connected.declared import ConnectedModel, write_models
from steelyard.tracing.spans import Spans
from support.datasets.dataset_rows import make_rows
from support.models.remote_models import remote_model
from support.servers.live_server import live_server
from support.waiting import wait_until

#: A word of every part of a request; none may be in a trace.
SAID = ("Xylophone", "Marigold", "Quokka", "Zeppelin", "Gherkin", "Obsidian")
BODY = {
    "context": f"{SAID[0]} was paid twice.",
    "decisions": [
        {"id": "route", "question": f"Where does the {SAID[1]} go?", "outcomes": SAID[2:4]},
        {"id": "paid", "kind": "binary", "question": f"Is {SAID[4]} right?"},
    ],
    "metadata": {"note": SAID[5]},
}
CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def traced():
    """Keep every span of this process."""
    kept = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(kept))
    with tracing.recording(Spans(provider.get_tracer("test"))):
        yield kept


@contextmanager
def collector():
    """Run a collector; yield the spans sent to it."""
    received: list[ExportTraceServiceRequest] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            received.append(ExportTraceServiceRequest.FromString(body))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", received
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_traces_of_requests_models_and_jobs_hold_no_texts(traced, tmp_path):
    with remote_model() as far:
        write_models(tmp_path, {"far": ConnectedModel(wire="chat", url=far.url)})
        with (
            live_server(home=str(tmp_path), jobs="off") as server,
            httpx.Client(base_url=server.url, headers={"traceparent": CALLER}) as caller,
        ):
            for model in ("hashing", "far"):
                asked = {**BODY, "model": model, "fallback": "none"}
                assert caller.post("/v1/decide", json=asked).status_code == 200
            wrong = {**BODY, "decisions": [{"id": SAID[0], "question": SAID[1], "outcomes": []}]}
            assert caller.post("/v1/decide", json=wrong).status_code == 422
            assert caller.get(f"/v1/datasets/{SAID[2]}").status_code == 404
            with (
                open_worker(server.services.settings),
                Client(ClientOptions(url=server.url)) as client,
            ):
                dataset = client.datasets.create("rows", make_rows(20))
                [made] = client.evaluations.create(dataset.id, ["hashing"]).data
                client.evaluations.wait(made)
        assert far.headers[0]["traceparent"].split("-")[1] == CALLER.split("-")[1]

    spans = traced.get_finished_spans()
    told = "".join(span.to_json() for span in spans)
    assert [word for word in SAID if word in told] == []

    by_id = {span.context.span_id: span for span in spans}

    def around(span):
        parent = by_id.get(span.parent.span_id) if span.parent else None
        return None if parent is None else parent.name

    own = [span for span in spans if f"{span.context.trace_id:032x}" == CALLER.split("-")[1]]
    places = [(span.name, around(span)) for span in own]
    assert places.count(("POST /v1/decide", None)) == 3
    assert places.count(("decide", "POST /v1/decide")) == 2
    assert places.count(("pass", "decide")) == 1
    assert places.count(("POST", "decide")) == 2  # a question each
    assert places.count(("GET /v1/datasets/{dataset}", None)) == 1

    answered = next(span for span in own if span.name == "decide")
    assert answered.attributes["openinference.span.kind"] == "DECISION"
    assert answered.attributes["gen_ai.operation.name"] == "decision"
    assert answered.attributes["decision.request.model_name"] == "hashing"
    assert answered.attributes["decision.model_name"] == "hashing"
    assert answered.attributes["decision.token_count.input"] > 0
    assert answered.attributes["steelyard.decision.kinds"] == ("single", "binary")
    assert answered.attributes["steelyard.decision.outcomes"] == (2, 2)
    statuses = [span.attributes.get("http.response.status_code") for span in own]
    assert sorted(code for code in statuses if code) == [200, 200, 404, 422]
    [job] = {span.name for span in spans if span.name.startswith("job ")}
    assert job == "job evaluation"


def test_requests_that_share_a_pass_are_linked_to_it(traced):
    with tracing.span("first"):
        first = tracing.origin()
    with tracing.span("second"):
        second = tracing.origin()
    with tracing.span("pass", origins=[None, first, second]):
        pass
    shared = traced.get_finished_spans()[-1]
    assert shared.parent.span_id == first.span_id
    assert [link.context.span_id for link in shared.links] == [second.span_id]


def test_an_answer_names_the_shape_that_was_asked_in(traced):
    with live_server(jobs="off") as server, httpx.Client(base_url=server.url) as caller:
        question = {"type": "noul", "instructions": "Is it?"}
        body = {"model": "jev-latest", "state": "Paid twice.", "questions": {"paid": question}}
        assert caller.post("/v1/systemone", json=body).status_code == 200
        question = {"type": "predicate", "instructions": "Is it?"}
        body = {"model": "hashing", "input": "Paid twice.", "questions": [question]}
        assert caller.post("/v1/decisions", json=body).status_code == 200
        assert caller.post("/v1/decide", json={**BODY, "model": "hashing"}).status_code == 200
    systems = [span.attributes.get("decision.system") for span in traced.get_finished_spans()]
    assert [system for system in systems if system] == ["typesafe", "openai", "steelyard"]


def test_a_failure_is_traced_by_its_code_alone(traced):
    with pytest.raises(ValueError, match=SAID[0]), tracing.span("part"):
        raise ValueError(SAID[0])
    [failed] = traced.get_finished_spans()
    assert failed.attributes["error.type"] == "ValueError"
    assert failed.status.description is None
    assert failed.events == ()


def test_a_collector_gets_the_spans_of_a_process(monkeypatch):
    with collector() as (url, received):
        monkeypatch.setenv(tracing.ENDPOINT, url)
        monkeypatch.setenv("OTEL_SERVICE_NAME", "scale")
        with tracing.exporting(), tracing.span("part", {"steelyard.job.attempt": 1}):
            pass
        wait_until(lambda: bool(received))
    [resource] = received[0].resource_spans
    named = {one.key: one.value.string_value for one in resource.resource.attributes}
    assert named["service.name"] == "scale"
    assert [span.name for scope in resource.scope_spans for span in scope.spans] == ["part"]
    assert tracing.origin() is None


def test_an_unreachable_collector_blocks_no_caller(monkeypatch):
    monkeypatch.setenv(tracing.ENDPOINT, "http://127.0.0.1:9")
    monkeypatch.setattr(tracing, "_FLUSH_S", 0.1)
    with tracing.exporting(), tracing.span("part"):
        pass
    assert tracing.origin() is None  # it came back, whatever the exporter still tries


def test_without_an_endpoint_nothing_is_recorded(monkeypatch):
    monkeypatch.delenv(tracing.ENDPOINT, raising=False)
    with tracing.exporting(), tracing.span("part") as span:
        assert span is None
        assert tracing.outgoing_headers() == {}
        assert tracing.recorder is None
