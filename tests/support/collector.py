# SPDX-License-Identifier: Apache-2.0
"""An OpenTelemetry collector on loopback: takes traces by OTLP/HTTP in the JSON encoding, and checks
each request against the specification (https://opentelemetry.io/docs/specs/otlp/#otlphttp)."""

import base64
import json
import re
import threading

try:  # the definition itself (PyPI: opentelemetry-proto)
    from google.protobuf import json_format
    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
except ImportError:
    json_format = None

from . import served

SPAN = {"traceId": str, "spanId": str, "parentSpanId": str, "flags": int, "name": str, "kind": int,
        "startTimeUnixNano": str, "endTimeUnixNano": str, "attributes": list, "status": dict}
VALUES = {"stringValue": str, "intValue": str, "boolValue": bool}


def value_of(value):
    """The Python value of an AnyValue."""
    (kind, it), = value.items()
    assert type(it) is VALUES[kind], value
    if kind == "intValue":
        assert re.fullmatch("-?[0-9]+", it), value
        return int(it)
    return it


def attributes(pairs):
    """A list of KeyValue as a dict; a key occurs once."""
    found = {p["key"]: value_of(p["value"]) for p in pairs}
    assert len(found) == len(pairs), pairs
    return found


class Span:
    """One span, checked."""

    def __init__(self, raw, resource):
        assert set(raw) <= set(SPAN), raw
        assert all(type(v) is SPAN[k] for k, v in raw.items()), raw
        assert re.fullmatch("[0-9a-f]{32}", raw["traceId"]) and int(raw["traceId"], 16), raw
        assert re.fullmatch("[0-9a-f]{16}", raw["spanId"]) and int(raw["spanId"], 16), raw
        assert re.fullmatch("[0-9a-f]{16}", raw.get("parentSpanId", "0" * 16)), raw
        assert 1 <= raw["kind"] <= 5 and raw["name"], raw
        self.start, self.end = int(raw["startTimeUnixNano"]), int(raw["endTimeUnixNano"])
        assert 0 < self.start <= self.end, raw
        self.raw, self.resource = raw, resource
        self.trace, self.id, self.parent = raw["traceId"], raw["spanId"], raw.get("parentSpanId")
        self.name, self.kind = raw["name"], raw["kind"]
        self.attributes = attributes(raw["attributes"])
        self.status = raw.get("status", {})

    def __repr__(self):
        return json.dumps(self.raw)


def _parse_by_definition(text):
    """Fails unless the text is an ExportTraceServiceRequest.  Its IDs are hexadecimal in OTLP, and
    base64 in the JSON of Protocol Buffers."""
    body = json.loads(text)
    for part in body["resourceSpans"]:
        for scope in part["scopeSpans"]:
            for span in scope["spans"]:
                for key in {"traceId", "spanId", "parentSpanId"} & set(span):
                    span[key] = base64.b64encode(bytes.fromhex(span[key])).decode()
    json_format.Parse(json.dumps(body), trace_service_pb2.ExportTraceServiceRequest())


def parse(text):
    """The spans of a request."""
    spans = []
    if json_format:
        _parse_by_definition(text)
    body = json.loads(text)
    assert set(body) == {"resourceSpans"}, body
    for part in body["resourceSpans"]:
        assert set(part) == {"resource", "scopeSpans"}, part
        for scope in part["scopeSpans"]:
            assert set(scope) == {"scope", "spans"} and scope["scope"]["name"], scope
            spans += [Span(s, attributes(part["resource"]["attributes"])) for s in scope["spans"]]
    return spans


class Collector(served.Served):
    """Tests read `spans`, `bodies` (text), `headers` (one dict a request) and `problems`.

    `answer(number)` returns what to do with the request of that number, from 0: (status, headers,
    body), "hang" until the collector is closed, or "close" the connection; None: take it.
    `tls`: a folder with tls.crt and tls.key."""

    def __init__(self, answer=lambda number: None, tls=None):
        self.answer, self.lock, self.closed = answer, threading.Lock(), threading.Event()
        self.spans, self.bodies, self.headers, self.problems = [], [], [], []
        super().__init__(_Handler, pair=tls)

    def named(self, pattern, **found):
        """The spans whose name matches and whose attributes (with _ for .) have these values."""
        wanted = {k.replace("_", "."): v for k, v in found.items()}
        with self.lock:
            return [s for s in self.spans if re.search(pattern, s.name)
                    and all(s.attributes.get(k) == v for k, v in wanted.items())]

    def children(self, span):
        """The spans whose parent it is."""
        with self.lock:
            return [s for s in self.spans if (s.trace, s.parent) == (span.trace, span.id)]

    def everything(self):
        """All bodies as one text."""
        with self.lock:
            return "\n".join(self.bodies)

    def close(self):
        """Ends it, and requests that hang."""
        self.closed.set()
        super().close()


class _Handler(served.Handler):
    def do_POST(self):
        """An export request."""
        one = self.server
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        with one.lock:
            number = len(one.headers)
            one.headers.append({k.lower(): v for k, v in self.headers.items()})
            one.bodies.append(body)
        answer = one.answer(number)
        if answer == "hang":
            one.closed.wait(60)
        if answer in ("hang", "close"):
            self.close_connection = True
        elif answer:
            self.reply(*answer)
        else:
            self.take(body)

    def take(self, body):
        """Stores the spans, unless something is wrong with the request."""
        one = self.server
        try:
            assert self.path == "/v1/traces", self.path
            assert self.headers["Content-Type"] == "application/json"
            spans = parse(body)
        except Exception as error:
            with one.lock:
                one.problems.append(f"{type(error).__name__}: {error}")
            self.reply(400, {}, b"{}")
            return
        with one.lock:
            one.spans += spans
        self.reply(200, {"Content-Type": "application/json"}, b"{}")
