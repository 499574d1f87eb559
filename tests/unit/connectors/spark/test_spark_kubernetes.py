"""A driver of Spark in a pod of Kubernetes."""

from __future__ import annotations

import pytest

from connectors.spark.session import pod_settings

POD = {"KUBERNETES_SERVICE_HOST": "10.96.0.1"}
MASTER = "k8s://https://kubernetes.default.svc"


def test_executors_are_given_the_address_of_the_pod_of_their_driver() -> None:
    assert pod_settings(MASTER, POD, lambda: "10.244.0.7") == {"spark.driver.host": "10.244.0.7"}


@pytest.mark.parametrize(("master", "environ"), [(MASTER, {}), ("local[2]", POD), ("spark://master:7077", POD)])
def test_other_drivers_are_left_to_spark_and_its_user(master: str, environ: dict[str, str]) -> None:
    assert pod_settings(master, environ, lambda: "10.244.0.7") == {}


def test_a_pod_that_does_not_know_its_address_is_left_to_spark() -> None:
    def unknown() -> str:
        raise OSError

    assert pod_settings(MASTER, POD, unknown) == {}
