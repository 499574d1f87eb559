"""The list of the workers of a cluster."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner

from equipment.fakes.http_api import Answer, serving_api
from worker.cli.main import main

WORKERS: list[dict[str, Any]] = [
    {
        "worker_id": f"{name}:8083",
        "url": url,
        "leads": name == "one",
        "draining": False,
        "connectors": ["told"],
        "tasks": [],
        "failed": 0,
    }
    for name, url in (("one", "http://one:8083/"), ("two", "http://two:8083/"), ("three", None))
]


@pytest.mark.parametrize(
    ("mode", "complete", "parts"),
    [
        ("distributed", True, ["leads", "follows", "gone"]),
        ("distributed", False, ["leads", "follows", "follows"]),
        ("standalone", True, ["standalone"] * 3),
    ],
)
def test_a_worker_that_the_leader_does_not_see_is_gone(mode: str, complete: bool, parts: list[str]) -> None:
    with serving_api() as api:
        api.routes["/cluster"] = lambda _: Answer(
            body={"mode": mode, "complete": complete, "workers": WORKERS},
            headers={"Content-Type": "application/json"},
        )
        done = CliRunner().invoke(main, ["workers", "list", "--url", api.url])
    assert [line.split()[1] for line in done.output.splitlines()[1:]] == parts
