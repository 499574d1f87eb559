"""The contract kit: test classes for plugin authors to inherit, and tools to run plugins in tests.

``SourceConnectorTests``, ``SinkConnectorTests``, ``ConverterTests``, ``HeaderConverterTests``, ``TransformationTests``
and ``PredicateTests`` test a plugin from a class attribute and a fixture or two. ``run_source`` and ``run_sink`` run a
connector and its tasks; a test that creates a task itself passes it one of the contexts. The tests need pytest: install
``sluice-connect[testing]``.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any, Final

from connect.internals.extras import how_to_install

if TYPE_CHECKING:
    from connect.testing.contexts import (
        ConnectorTestContext,
        ErrantRecords,
        SinkTaskTestContext,
        SourceTaskTestContext,
        TransactionEnds,
    )
    from connect.testing.converter_contract import ConverterTests, HeaderConverterTests
    from connect.testing.offsets import StoredOffsets
    from connect.testing.plugin_contract import PluginTests
    from connect.testing.samples import sample_sink_records, sample_source_records, sample_values, sink_records
    from connect.testing.sink_contract import SinkConnectorTests
    from connect.testing.sink_run import SinkTaskRun, TopicLog, run_sink
    from connect.testing.source_contract import SourceConnectorTests
    from connect.testing.source_run import SourceTaskRun, run_source, running_source
    from connect.testing.transformation_contract import PredicateTests, TransformationTests

__all__ = [
    "ConnectorTestContext",
    "ConverterTests",
    "ErrantRecords",
    "HeaderConverterTests",
    "PluginTests",
    "PredicateTests",
    "SinkConnectorTests",
    "SinkTaskRun",
    "SinkTaskTestContext",
    "SourceConnectorTests",
    "SourceTaskRun",
    "SourceTaskTestContext",
    "StoredOffsets",
    "TopicLog",
    "TransactionEnds",
    "TransformationTests",
    "run_sink",
    "run_source",
    "running_source",
    "sample_sink_records",
    "sample_source_records",
    "sample_values",
    "sink_records",
]

_EQUIPMENT: Final = ("contexts", "offsets", "samples", "sink_run", "source_run")
_CONTRACTS: Final = (
    "plugin_contract",
    "source_contract",
    "sink_contract",
    "converter_contract",
    "transformation_contract",
)


def __getattr__(name: str) -> Any:
    """Import a name on first use: only the contracts need pytest, which must rewrite their assertions first."""
    if name not in __all__:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    for module in _EQUIPMENT:
        equipment = importlib.import_module(f"{__name__}.{module}")
        if name in equipment.__all__:
            return getattr(equipment, name)
    try:
        import pytest  # noqa: PLC0415 - as above
    except ImportError as error:
        raise ImportError(f"{name} needs pytest: {how_to_install('testing')}") from error
    # Lets pytest show the values in the kit's assertions, as it does in test modules.
    modules = [f"{__name__}.{module}" for module in _CONTRACTS]
    pytest.register_assert_rewrite(*(module for module in modules if module not in sys.modules))
    contracts = map(importlib.import_module, modules)
    return next(getattr(contract, name) for contract in contracts if name in contract.__all__)
