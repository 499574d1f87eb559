"""Java's ``MirrorClient``, run by the JDK's source launcher."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from equipment.workers.java_connect import JavaConnectJars

__all__ = ["java_mirror_client"]

_SOURCE: Final = """
import java.time.Duration;
import java.util.ArrayList;
import java.util.Map;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.kafka.connect.mirror.MirrorClient;

public class Answers {
    static String quoted(Object text) {
        return '"' + text.toString() + '"';
    }

    static String list(Iterable<?> items) {
        var parts = new ArrayList<String>();
        for (Object item : items) parts.add(quoted(item));
        return "[" + String.join(",", parts) + "]";
    }

    public static void main(String[] args) throws Exception {
        Map<String, Object> props = Map.of("bootstrap.servers", args[0]);
        try (MirrorClient client = new MirrorClient(props)) {
            var offsets = client.remoteConsumerOffsets(args[2], args[1], Duration.ofSeconds(30));
            String translated = offsets.entrySet().stream()
                .map(entry -> quoted(entry.getKey()) + ":" + entry.getValue().offset())
                .collect(Collectors.joining(","));
            System.out.println("{\\"offsets\\":{" + translated + "},\\"remote\\":"
                + list(new TreeSet<>(client.remoteTopics(args[1]))) + ",\\"upstream\\":"
                + list(new TreeSet<>(client.upstreamClusters()))
                + ",\\"hops\\":" + client.replicationHops(args[1]) + "}");
        }
    }
}
"""


def java_mirror_client(jars: JavaConnectJars, folder: Path, bootstrap: str, alias: str, group: str) -> dict[str, Any]:
    """Ask a cluster what was mirrored from ``alias``, and where a group continues; skips the test without a
    compiler."""
    modules = subprocess.run([jars.java.executable, "--list-modules"], capture_output=True, text=True, check=True)
    if "jdk.compiler@" not in modules.stdout:
        pytest.skip("this Java has no compiler")
    source = folder / "Answers.java"
    source.write_text(_SOURCE)
    class_path = os.pathsep.join(map(str, (*jars.class_path, *jars.plugin)))
    command = [str(jars.java.executable), "-Xmx128m", "-cp", class_path, str(source), bootstrap, alias, group]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    answers: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answers
