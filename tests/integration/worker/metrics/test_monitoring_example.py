"""The example for Prometheus and Grafana: its files are right, and ask for metrics that there are."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from equipment.snapshots import SINK, scraped, snapshot
from worker.metrics.catalogue import TASK_METRICS
from worker.metrics.snapshot import BOUNDS

EXAMPLE = Path(__file__).parents[4] / "examples" / "monitoring"
PROMTOOL = os.environ.get("PROMTOOL") or shutil.which("promtool")
_NAME = re.compile(r"\b(?:kafka_connect|sluice|process)_[a-z_]+")
_LABELS = {"sluice"}


def dashboard() -> Any:
    return json.loads((EXAMPLE / "dashboard.json").read_text())


def expressions() -> Iterator[str]:
    for group in yaml.safe_load((EXAMPLE / "alerts.yml").read_text())["groups"]:
        yield from (rule["expr"] for rule in group["rules"])
    for panel in dashboard()["panels"]:
        yield from (target["expr"] for target in panel["targets"])
    yield from (variable["query"] for variable in dashboard()["templating"]["list"])


@pytest.mark.skipif(PROMTOOL is None, reason="promtool, of Debian's package prometheus, is not installed")
def test_promtool_finds_nothing_wrong(tmp_path: Path) -> None:
    assert PROMTOOL is not None
    # The expressions of the dashboard are checked as if they were rules.
    queries = [target["expr"] for panel in dashboard()["panels"] for target in panel["targets"]]
    rules = [
        {"record": f"panel:{number}", "expr": query.replace("$__rate_interval", "5m")}
        for number, query in enumerate(queries)
    ]
    groups = {"groups": [{"name": "dashboard", "rules": rules}]}
    (tmp_path / "dashboard.yml").write_text(yaml.safe_dump(groups))
    for arguments in (["config", str(EXAMPLE / "prometheus.yml")], ["rules", str(tmp_path / "dashboard.yml")]):
        done = subprocess.run([PROMTOOL, "check", *arguments], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_every_metric_that_is_asked_for_is_served() -> None:
    values = {**SINK.values, **dict.fromkeys((*TASK_METRICS, "load-row-total", "load-failure-total"), 1.0)}
    histograms = {name: (1.0, *[0.0] * (len(bounds) + 1)) for name, bounds in BOUNDS.items()}
    task = replace(SINK, values=values, histograms=histograms)
    served = {name for name, *_ in scraped(snapshot(seen=task)).series}
    asked = {name for expression in expressions() for name in _NAME.findall(expression)} - _LABELS
    assert asked - served == set()
    assert len(asked) > 20
