"""The push of metrics, received by a server that reads what it is sent."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import SimpleQueue
from threading import Thread
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from equipment.snapshots import HERE, snapshot
from worker.metrics.otlp import OtlpPush, OtlpSettings, parse_headers

SECRET = "Bearer s3cret"


class Collector:
    """A collector that keeps what it is sent, and refuses as many pushes as it is told to."""

    def __init__(self) -> None:
        self.received: SimpleQueue[tuple[dict[str, str], ExportMetricsServiceRequest]] = SimpleQueue()
        self.refuses = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1/metrics"
        Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                is_refused, collector.refuses = collector.refuses > 0, max(0, collector.refuses - 1)
                self.send_response(400 if is_refused else 200)
                self.send_header("Content-Length", "0")
                self.end_headers()
                if not is_refused:
                    collector.received.put(
                        (
                            {name.lower(): value for name, value in self.headers.items()},
                            ExportMetricsServiceRequest.FromString(body),
                        )
                    )

            def log_message(self, *_: Any) -> None:
                """Nobody reads it."""

        return Handler


@pytest.fixture
def collector() -> Iterator[Collector]:
    collector = Collector()
    yield collector
    collector.close()


@pytest.fixture
def push(collector: Collector) -> Iterator[OtlpPush]:
    headers = parse_headers(f"Authorization={SECRET}, x-scope = a=b")
    push = OtlpPush(OtlpSettings(collector.url, 0.05, headers), snapshot, "0.1")
    yield push
    push.close()


def test_a_collector_gets_what_a_scrape_shows(collector: Collector, push: OtlpPush) -> None:
    push.start()
    headers, request = collector.received.get(timeout=30)
    assert (headers["authorization"], headers["x-scope"]) == (SECRET, "a=b")
    (resource,) = request.resource_metrics
    attributes = {item.key: item.value.string_value for item in resource.resource.attributes}
    assert (attributes["service.name"], attributes["service.instance.id"]) == ("sluice", HERE)
    metrics = {metric.name: metric for metric in resource.scope_metrics[0].metrics}
    (total,) = metrics["kafka_connect_sink_task_sink_record_read_total"].sum.data_points
    assert metrics["kafka_connect_sink_task_sink_record_read_total"].sum.is_monotonic
    assert (total.as_double, {item.key: item.value.string_value for item in total.attributes}) == (
        10.0,
        {"connector": "a", "task": "0"},
    )
    (lag,) = metrics["sluice_sink_record_lag"].gauge.data_points
    assert lag.as_double == 3.0
    (put,) = metrics["sluice_put_seconds"].histogram.data_points
    assert (put.count, put.sum, list(put.bucket_counts)) == (7, 1.25, [1, 2, 3, 0, 0, 1])


def test_a_push_that_fails_is_told_once_and_made_again(
    collector: Collector, push: OtlpPush, caplog: pytest.LogCaptureFixture
) -> None:
    collector.refuses = 3
    caplog.set_level("INFO", "worker.metrics.otlp")
    push.start()
    for _ in range(2):
        collector.received.get(timeout=30)
    assert [text.partition(collector.url)[0] for text in caplog.messages] == [
        "Metrics could not be pushed to ",
        "Metrics are pushed to ",
    ]
    assert SECRET not in caplog.text


@pytest.mark.parametrize("text", ["a", "=x", "a=1,b"])
def test_headers_without_a_name_or_value_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="NAME=VALUE"):
        parse_headers(text)
    assert parse_headers("") == {}
