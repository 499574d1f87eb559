"""Levels of loggers by their names in Kafka Connect."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from connect.errors import NotFoundError
from worker.loggers import LoggerLevels, level_named


@pytest.fixture
def names() -> Iterator[tuple[str, str]]:
    """Two loggers, one below the other."""
    yield "loggers.test", "loggers.test.below"
    for name in ("loggers.test", "loggers.test.below"):
        logging.getLogger(name).setLevel(logging.NOTSET)


def test_a_level_holds_for_a_logger_and_all_below_it(names: tuple[str, str]) -> None:
    above, below = names
    logging.getLogger(below).setLevel(logging.ERROR)
    told: list[tuple[str, int]] = []
    levels = LoggerLevels(lambda name, level: told.append((name, level)))
    assert levels.set(above, level_named("debug")) == [above, below]
    assert levels.set(above, level_named("DEBUG")) == []
    shown = levels.all()
    assert shown[below]["level"] == "DEBUG"
    assert isinstance(shown[below]["last_modified"], int)
    assert levels.one(above) == shown[above]
    levels.set_for_cluster(above, "error")
    levels.set_for_cluster(above, "LOUD")
    assert levels.one(below)["level"] == "ERROR"
    assert told == [(above, logging.DEBUG)] * 2 + [(above, logging.ERROR)]


def test_unknown_names_are_not_found() -> None:
    with pytest.raises(NotFoundError, match=r"Logger no\.such not found"):
        LoggerLevels(lambda *_: None).one("no.such")
    with pytest.raises(NotFoundError, match="invalid log level 'LOUD'"):
        level_named("LOUD")
