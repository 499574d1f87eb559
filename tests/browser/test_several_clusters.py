"""Several clusters in one page, served by ``sluice ui``."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
import requests

from equipment.ports import own_port
from equipment.workers.page_worker import PageWorker

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from conftest import Watched

SINK = {"connector.class": "FileStreamSink", "file": "/tmp/o", "topics": "t"}


@pytest.fixture(scope="module")
def clusters(worker: PageWorker) -> Iterator[str]:
    """The address of the page of three clusters: one in every state, one with a connector at rest, one that is gone."""
    other = PageWorker(stopped={"resting-there": SINK})
    urls = {"shop": worker.url, "lab": other.url, "gone": f"http://127.0.0.1:{own_port()}"}
    options = [part for name, url in urls.items() for part in ("--cluster", f"{name}={url}")]
    command = [sys.executable, "-m", "worker.cli.main", "ui", *options, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1].removesuffix("/ui")
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    other.close()


def test_the_connectors_of_all_clusters_are_in_one_list(
    open_page: Callable[..., Page],
    clusters: str,
    worker: PageWorker,
    watched: Watched,
    violations: Callable[..., list[tuple[str, str]]],
) -> None:
    page = open_page("", at=clusters)
    cards = page.locator(".cards li")
    assert cards.locator("h2").all_inner_texts() == ["shop", "lab", "gone"]
    assert "No worker answers at" in cards.nth(2).inner_text()
    rows = page.locator("tbody tr")
    assert rows.first.locator("td").first.inner_text() == "shop"
    assert "is no number" in rows.first.locator(".reason").inner_text(), "what failed comes first, with its cause"
    assert violations(page) == []
    page.get_by_label("Cluster").select_option("lab")
    page.wait_for_url("**cluster=lab")
    assert rows.locator("th").all_inner_texts() == ["resting-there"]
    page.get_by_label("Cluster").select_option("")
    page.get_by_label("Search").fill("orders")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**q=orders**")
    assert rows.locator("th a").get_attribute("href") == f"{worker.url}/ui/connectors/orders-sink"
    page.set_viewport_size({"width": 390, "height": 844})
    box = rows.first.bounding_box()
    assert box is not None
    assert box["x"] + box["width"] <= 390
    assert watched.foreign == []


def test_it_is_served_under_this_machines_name_alone(clusters: str) -> None:
    assert requests.get(f"{clusters}/ui", timeout=30).status_code == 200
    assert requests.get(f"{clusters}/ui", headers={"Host": "evil.example"}, timeout=30).status_code == 403
