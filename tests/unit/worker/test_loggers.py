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


@pytest.fixture
def statements() -> Iterator[str]:
    """The logger of SQLAlchemy's statements, which are at INFO; it is quiet. All levels are as before afterwards."""
    known = logging.root.manager.loggerDict.values()
    every = [logging.root, *(each for each in known if isinstance(each, logging.Logger))]
    before = {each: each.level for each in every}
    logging.getLogger("sqlalchemy").setLevel(logging.WARNING)
    yield "sqlalchemy.engine.Engine"
    logging.getLogger("sqlalchemy.engine.Engine").setLevel(logging.NOTSET)
    for each, level in before.items():
        each.setLevel(level)


def test_a_library_that_is_quiet_by_itself_stays_so_until_it_is_named(statements: str) -> None:
    levels = LoggerLevels(lambda *_: None)
    logging.getLogger(statements)
    for level, shown in (("WARN", "WARN"), ("INFO", "WARN"), ("DEBUG", "WARN"), ("ERROR", "ERROR"), ("INFO", "WARN")):
        levels.set("root", level_named(level))
        assert levels.one(statements)["level"] == shown
    levels.set("sqlalchemy", level_named("INFO"))
    assert levels.one(statements)["level"] == "INFO"


def test_unknown_names_are_not_found() -> None:
    with pytest.raises(NotFoundError, match=r"Logger no\.such not found"):
        LoggerLevels(lambda *_: None).one("no.such")
    with pytest.raises(NotFoundError, match="invalid log level 'LOUD'"):
        level_named("LOUD")
