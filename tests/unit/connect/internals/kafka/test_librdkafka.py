"""A broker that is away is told of once a minute, however many clients try to reach it."""

from __future__ import annotations

import logging

from connect.internals.kafka.clients.librdkafka import UNREACHABLE, ConnectionFailures

REFUSED = "[thrd:a:1/bootstrap]: a:1/bootstrap: Connect to ipv4#10.0.0.1:1 failed: Connection refused (after 0ms)"
AGAIN = "[thrd:a:1/7]: a:1/bootstrap: Connect to ipv4#10.0.0.1:1 failed: Connection refused (after 3ms in CONNECT)"
OTHER = "[thrd:b:1/bootstrap]: b:1/bootstrap: Connect to ipv4#10.0.0.2:1 failed: Connection refused (after 0ms)"


def line(text: str, facility: str = "FAIL", client: str = "configs#consumer-1") -> logging.LogRecord:
    return logging.LogRecord("clients", logging.ERROR, "", 0, "%s [%s] %s", (facility, client, text), None)


def test_the_same_failure_is_told_once_a_minute() -> None:
    now = 0.0
    failures = ConnectionFailures(lambda: now)

    assert failures.filter(line(REFUSED))
    assert not failures.filter(line(REFUSED))
    assert not failures.filter(line(AGAIN, client="statuses#consumer-9"))
    now = 61.0
    assert failures.filter(line(REFUSED))


def test_one_broker_is_told_once_whichever_connection_it_was() -> None:
    failures = ConnectionFailures(lambda: 0.0)
    coordinator = REFUSED.replace("a:1/bootstrap: ", "GroupCoordinator: a:1: ")

    assert failures.filter(line(REFUSED))
    assert not failures.filter(line(coordinator))
    assert not failures.filter(line(REFUSED.replace("a:1/bootstrap: ", "a:1/1: ")))


def test_a_connection_that_is_lost_is_none_that_cannot_be_made() -> None:
    failures = ConnectionFailures(lambda: 0.0)
    lost = "[thrd:a:1/1]: a:1/1: Disconnected: connection closed by peer: receive 0 after POLLIN (after 7641ms in UP)"
    protocol = "[thrd:a:1/1]: a:1/1: Disconnected while requesting ApiVersion: might be caused by incorrect security."

    assert not failures.filter(line(lost))
    assert failures.filter(line(protocol))


def test_another_failure_and_every_other_line_are_told() -> None:
    failures = ConnectionFailures(lambda: 0.0)

    assert failures.filter(line(REFUSED))
    assert failures.filter(line(OTHER))
    assert all(failures.filter(line("it works", facility="SESSTMOUT")) for _ in range(2))
    assert all(failures.filter(logging.LogRecord("c", logging.ERROR, "", 0, "no client", None, None)) for _ in range(2))


def test_what_the_client_tries_again_by_itself_is_not_told() -> None:
    loading = "Failed to acquire idempotence PID from broker b:1/1: Broker: Coordinator load in progress: retrying"
    assert not ConnectionFailures(lambda: 0.0).filter(line(loading, facility="GETPID"))


def test_a_broker_that_is_away_is_a_warning_but_a_refused_login_is_an_error() -> None:
    away = line(REFUSED)
    login = line("[thrd:a:1]: a:1: SASL authentication error: Authentication failed (after 151ms in state AUTH_REQ)")

    assert all(ConnectionFailures().filter(record) for record in (away, login))
    assert (away.levelname, login.levelname) == ("WARNING", "ERROR")


def test_a_logger_of_level_error_does_not_get_failures_to_connect() -> None:
    quiet = logging.getLogger("clients.quiet")
    quiet.setLevel(logging.ERROR)
    record = line(REFUSED)
    record.name = quiet.name

    assert not ConnectionFailures().filter(record)


def test_what_a_client_reports_is_told_once_a_minute() -> None:
    now = 0.0
    failures = ConnectionFailures(lambda: now)

    def report(milliseconds: int) -> logging.LogRecord:
        text = f"a:1: SASL authentication error: Authentication failed (after {milliseconds}ms in state AUTH_REQ)"
        return logging.LogRecord("clients", logging.WARNING, "", 0, "Kafka client: %s", (text,), None)

    assert failures.filter(report(163))
    assert not failures.filter(report(151))
    now = 61.0
    assert failures.filter(report(200))


def test_a_client_that_reaches_no_broker_says_so_once_a_minute() -> None:
    now = 0.0
    failures = ConnectionFailures(lambda: now)
    record = logging.LogRecord("clients", logging.WARNING, "", 0, UNREACHABLE, None, None)

    assert failures.filter(line(REFUSED))
    assert failures.filter(record)
    assert not failures.filter(record)
    now = 61.0
    assert failures.filter(record)
