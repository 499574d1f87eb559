"""What Kubernetes and Compose are given: valid resources, whose workers have a configuration without a mistake."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from worker.app.worker import WorkerProperties, parsed, warn_of_unknown_keys
from worker.config.environment import take_worker_variables
from worker.config.worker import DistributedConfig

ROOT = Path(__file__).parents[3]
KUBERNETES = ROOT / "examples" / "kubernetes"
VERSION = "1.34"
_FOREIGN = ("monitoring.coreos.com/", "kustomize.config.k8s.io/")


def resources(folder: str) -> Iterator[dict[str, Any]]:
    for file in sorted((KUBERNETES / folder).glob("*.yaml")):
        yield from yaml.safe_load_all(file.read_text())


def rendered(folder: str) -> list[dict[str, Any]]:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    command = ["kubectl", "kustomize", str(KUBERNETES / folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return list(yaml.safe_load_all(done.stdout))


def check(found: list[dict[str, Any]]) -> None:
    """Validate all that is Kubernetes' own against its schemas, in which unknown members are errors."""
    own = [resource for resource in found if not resource["apiVersion"].startswith(_FOREIGN)]
    assert own
    for resource in own:
        kubernetes_validate.validate(resource, VERSION, strict=True)


def only(found: list[dict[str, Any]], kind: str, name: str = "sluice") -> dict[str, Any]:
    (resource,) = (one for one in found if one["kind"] == kind and one["metadata"]["name"] == name)
    return resource


def config_of(variables: Mapping[str, str], caplog: pytest.LogCaptureFixture) -> DistributedConfig:
    config = parsed(DistributedConfig, WorkerProperties.read(None, take_worker_variables(dict(variables))))
    warn_of_unknown_keys(config)
    assert not caplog.messages
    return config


def test_the_resources_are_valid() -> None:
    check(list(resources("base")))


def test_they_are_rendered() -> None:
    check(rendered("base"))


def test_with_spark_the_worker_has_its_image_and_may_make_pods() -> None:
    found = rendered("spark")
    check(found)
    pod = only(found, "StatefulSet")["spec"]["template"]["spec"]
    assert pod["containers"][0]["image"] == "registry.example/sluice-spark:1"
    assert pod["serviceAccountName"] == only(found, "ServiceAccount")["metadata"]["name"]
    assert pod["automountServiceAccountToken"]
    assert "pods" in only(found, "Role")["rules"][0]["resources"]


def test_the_worker_is_configured_without_a_mistake(caplog: pytest.LogCaptureFixture) -> None:
    stateful = only(list(resources("base")), "StatefulSet")
    (worker,) = stateful["spec"]["template"]["spec"]["containers"]
    variables = {one["name"]: one.get("value", "").replace("$(POD_NAME)", "sluice-0") for one in worker["env"]}
    # The folder is the pod's.
    variables["CONNECT_CONFIG_PROVIDERS_FILE_PARAM_ALLOWED_PATHS"] = "/etc"
    config = config_of({name: value for name, value in variables.items() if name != "POD_NAME"}, caplog)
    assert config.group_instance_id == "sluice-0"
    assert config.rest_advertised_host_name == f"sluice-0.{stateful['spec']['serviceName']}"
    assert [port["containerPort"] for port in worker["ports"]] == [8083]


def test_whoever_looks_for_the_workers_finds_them() -> None:
    found = list(resources("base"))
    labels = only(found, "StatefulSet")["spec"]["template"]["metadata"]["labels"]
    workers, clients = only(found, "Service", "sluice-workers"), only(found, "Service")
    for selector in (workers["spec"]["selector"], clients["spec"]["selector"]):
        assert selector.items() <= labels.items()
    assert only(found, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"].items() <= labels.items()
    monitor = only(found, "ServiceMonitor")["spec"]
    assert monitor["selector"]["matchLabels"].items() <= clients["metadata"]["labels"].items()
    assert "sluice/metrics" not in workers["metadata"]["labels"]
    assert [end["port"] for end in monitor["endpoints"]] == [port["name"] for port in clients["spec"]["ports"]]


def test_the_worker_of_compose_is_configured_without_a_mistake(caplog: pytest.LogCaptureFixture) -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    config = config_of({name: str(value) for name, value in services["worker"]["environment"].items()}, caplog)
    assert config.group_id == "sluice"
    assert services.keys() == {"broker", "registry", "worker"}
