"""Workers of a real cluster that are drained, and take work again, on the page of another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from equipment.waiting import wait_until
from equipment.workers.cluster import Cluster

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from conftest import Watched

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

PATIENCE = 90.0
TASKS = {"talk-0", "talk-1"}


@pytest.fixture
def pair(tmp_path: Path, bootstrap: str) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path / f"cluster-{uuid4().hex[:12]}", bootstrap, 2)
    yield cluster
    cluster.close()


def test_a_worker_is_drained_and_takes_work_again(
    open_page: Callable[..., Page], watched: Watched, pair: Cluster, tmp_path: Path
) -> None:
    file = tmp_path / "said"
    file.touch()
    pair.start().create("talk", "Talkative", tasks=2, talkative_file=str(file), topic=f"talk-{uuid4().hex[:12]}")
    pair.wait_until_balanced()
    leader, (follower,) = pair.leader(), pair.followers()
    page = open_page("cluster", at=leader.url().rstrip("/"))
    row = page.locator(f'tr[data-key="{follower.address}"]')
    row.get_by_text("follower").wait_for()

    row.get_by_role("button", name="Drain").click()
    dialog = page.get_by_role("dialog")
    assert dialog.get_by_role("heading").inner_text() == f"Drain {follower.address}?"
    assert "to the other workers, and takes no work until it is restarted" in dialog.locator("li").inner_text()
    dialog.get_by_role("button", name="Drain").click()
    dialog.get_by_text("Done.").wait_for()
    dialog.get_by_role("button", name="Close").click()
    wait_until("the leader runs everything", lambda: pair.placed() == {leader: TASKS, follower: set()}, PATIENCE)
    # The page follows by itself what the cluster does.
    row.get_by_text("Drained").wait_for()
    assert row.locator("td").all_inner_texts()[1:5] == ["0", "0", "0", "nothing"]

    row.get_by_role("button", name="End draining").click()
    assert dialog.get_by_role("heading").inner_text() == f"End draining of {follower.address}?"
    dialog.get_by_role("button", name="End draining").click()
    dialog.get_by_text("Done.").wait_for()
    dialog.get_by_role("button", name="Close").click()
    row.get_by_role("button", name="End draining").wait_for(state="detached")
    assert row.get_by_text("Drained").count() == 0
    pair.wait_until_balanced()
    wait_until("both run something", lambda: all(pair.placed().values()), PATIENCE)
    assert watched.said == []
    assert watched.foreign == []
