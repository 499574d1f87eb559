"""Values are projected from schema to schema as by Kafka Connect's ``SchemaProjector``."""

from __future__ import annotations

from typing import Any

import pytest

from connect.data.projection import project
from connect.errors import SchemaError
from equipment.vectors import canonical, cases, encoded, schema_of, value_of


@pytest.mark.parametrize("case", cases("schema_projector"), ids=lambda case: case["name"])
def test_projects(case: dict[str, Any]) -> None:
    source, target, expect = schema_of(case["source"]), schema_of(case["target"]), case["expect"]
    assert source is not None
    assert target is not None
    value = value_of(case["value"], source)
    if "error" not in expect:
        assert encoded(project(source, value, target), target) == canonical(expect["value"], target)
        return
    with pytest.raises(SchemaError) as caught:
        project(source, value, target)
    message = expect["error"]["message"].split(": Schema{")[0]
    assert str(caught.value).startswith(message)
