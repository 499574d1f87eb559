"""What tests of objects have in common: the stores, and sources that are stopped at the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from connect.errors import ConnectError
from equipment.stores.object_sources import Source
from equipment.stores.object_targets import ObjectTarget, object_target


@pytest.fixture
def sources() -> Iterator[list[Source]]:
    made: list[Source] = []
    yield made
    for source in made:
        source.close()


@pytest.fixture(params=["s3", *(pytest.param(kind, marks=pytest.mark.thorough) for kind in ("gcs", "azure"))])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ObjectTarget]:
    with ExitStack() as stack:
        try:
            yield stack.enter_context(object_target(request.param, tmp_path))
        except ConnectError as error:
            pytest.skip(f"no {request.param} here: {error}")
