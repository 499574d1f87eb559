"""The page of one dead letter, on which it is edited and delivered again."""

from __future__ import annotations

from flask import Blueprint, Response

from rest.access.caller import caller
from rest.http.waiting import Patience
from rest.ui.connector import ConnectorPages
from rest.ui.record_text import record_text
from worker.herder.dead_letter_repairs import read_place
from worker.herder.herder import Herder
from worker.security.permissions import Right

__all__ = ["repairing"]


def repairing(blueprint: Blueprint, herder: Herder, pages: ConnectorPages, patience: Patience) -> None:
    """Put the page on the blueprint."""

    @blueprint.get("/connectors/<name:name>/dlq/<name:record>")
    def letter(name: str, record: str) -> Response:
        caller().require(Right.DEAD_LETTERS, name)
        found = patience.wait(herder.dead_letters.one(name, read_place(record)))
        return pages.shown(name, "letter.html", "dlq", letter=found, record=record, text=record_text)
