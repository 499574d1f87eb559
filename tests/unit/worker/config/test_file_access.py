"""Which files a worker needs for itself."""

from __future__ import annotations

from pathlib import Path

from worker.config.file_access import WORKER_FILE, own_files


def test_they_are_its_file_and_what_that_names(tmp_path: Path) -> None:
    jaas = 'com.sun.security.auth.module.Krb5LoginModule required keyTab="/etc/krb/worker.keytab" principal="w";'
    worker = {
        WORKER_FILE: "/etc/sluice/worker.properties",
        "offset.storage.file.filename": "data/offsets",
        "listeners.https.ssl.keystore.location": "/etc/sluice/store.p12",
        "producer.sasl.jaas.config": jaas,
        "sasl.oauthbearer.jwks.endpoint.url": "file:///etc/keys",
        "config.providers.vault.param.token": "/run/token",
        "plugin.path": str(tmp_path),
        "ssl.key.password": "${file:/etc/secrets/shared.properties:password}",
        "listeners": "http://:8083/path",
        "bootstrap.servers": "one:1,two:2",
    }
    assert own_files(worker) == tuple(
        Path(path)
        for path in (
            "/etc/sluice/worker.properties",
            "data/offsets",
            "/etc/sluice/store.p12",
            "/etc/krb/worker.keytab",
            "/run/token",
        )
    )


def test_the_file_of_users_is_one_of_them(tmp_path: Path) -> None:
    jaas = tmp_path / "jaas.conf"
    module = "org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule"
    jaas.write_text(f'KafkaConnect {{ {module} required file="{tmp_path / "users"}"; }};')
    worker = {"rest.extension.classes": "X", "java.security.auth.login.config": str(jaas)}
    assert own_files(worker) == (jaas, tmp_path / "users")
    assert own_files({**worker, "java.security.auth.login.config": str(tmp_path / "none")}) == (tmp_path / "none",)
