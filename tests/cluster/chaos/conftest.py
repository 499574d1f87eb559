"""What the chaos suite shares."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from equipment.brokers.proxied_broker import ProxiedBroker


@pytest.fixture
def mortal(tmp_path: Path, broker_jars: tuple[Path, ...]) -> Iterator[ProxiedBroker]:
    """A broker that may be killed."""
    with ProxiedBroker.running(tmp_path / "broker", broker_jars, 0) as broker:
        yield broker
