"""The configuration of the sink for SFTP servers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from connect.config import HIGH, LOW, MEDIUM, ConfigRuleError, non_empty, option
from connect.config.unsupported_keys import UnsupportedKey, without_effect
from connect.errors import ConfigError
from connect.hosts import HostDeniedError, HostsConfig
from connect.kits.files.systems.address import Address
from connect.kits.files.systems.sftp_options import SftpServerOptions
from connect.kits.objects.sftp import SftpFiles
from connect.kits.objects.store import store_problem
from connectors.objects.sink_config import ObjectSinkConfig

__all__ = ["SftpSinkConfig"]

_STORE: Final = "Store"
_LICENCE: Final = UnsupportedKey("it belongs to a licence that is not needed here")
_WITHOUT_EFFECT: Final = {
    "tls.public.key": UnsupportedKey("the private key has it"),
    "confluent.license": _LICENCE,
    "confluent.topic": _LICENCE,
    "confluent.topic.bootstrap.servers": _LICENCE,
    "confluent.topic.replication.factor": _LICENCE,
}


class _SftpSinkOptions(SftpServerOptions, HostsConfig):
    """What the sink adds to the options of a server."""

    sftp_working_dir: str = option(
        importance=HIGH,
        validator=non_empty,
        group=_STORE,
        doc="The folder on the server that has that of topics.dir. ~ is the home of the user, where relative paths "
        "begin, too.",
    )
    sftp_known_hosts: str | None = option(
        default=None,
        importance=MEDIUM,
        validator=non_empty,
        group=_STORE,
        doc="File with the public keys of servers, in the format of OpenSSH's known_hosts.",
    )
    sftp_host_key: str | None = option(
        default=None,
        importance=MEDIUM,
        validator=non_empty,
        group=_STORE,
        doc="The key of the server, instead of sftp.known.hosts: its fingerprint, such as SHA256:..., or the "
        "key itself in base64. Without either, any server is trusted, with a warning that shows the fingerprint.",
    )
    storage_class: str | None = option(
        default=None, importance=LOW, group=_STORE, doc="Accepted for compatibility, without effect."
    )


class SftpSinkConfig(_SftpSinkOptions, ObjectSinkConfig):
    """The options of the sink for SFTP servers, under the names of Confluent's."""

    passed_keys = (*ObjectSinkConfig.passed_keys, *_WITHOUT_EFFECT)
    place_key = "sftp.host"

    def warnings(self) -> Iterable[str]:
        """Warn about keys without effect."""
        yield from super().warnings()
        yield from without_effect(_WITHOUT_EFFECT, self.originals)

    def store_mistakes(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule about the server."""
        yield from self.sftp_mistakes()
        try:
            self.host_rules.check_name(self.sftp_host)
        except HostDeniedError as error:
            yield ConfigRuleError(f"sftp.host: {error}", "sftp.host")
        if self.tls_pemfile and self.tls_private_key is not None:
            yield ConfigRuleError("Set tls.private.key or tls.pemfile, not both", "tls.pemfile")
        if self.sftp_username is None:
            yield ConfigError("sftp.username", None, "It says who signs in: set it.")
        if self.directory_delim != "/":
            reason = "Folders are divided by a slash: remove the key."
            yield ConfigError("directory.delim", self.directory_delim, reason)
        if self.originals.get("engine") == "spark":
            reason = "Spark writes to no SFTP server: remove the key, or write to a bucket with SparkSink."
            yield ConfigError("engine", "spark", reason)

    def check_system(self) -> Iterable[ConfigError]:
        """Sign in and look into the folder, and yield why it cannot be used."""
        store = self.open_store()
        try:
            if problem := store_problem(store, self.topics_dir, writes=True):
                yield ConfigRuleError(problem, self.place_key)
        finally:
            store.close()

    def open_store(self) -> SftpFiles:
        """Open the folder; the server is connected to when it is needed."""
        address = Address("sftp", self._folder, self.sftp_host, self.sftp_port)
        return SftpFiles(address, self.sftp_account(self.sftp_known_hosts, self.sftp_host_key), self.host_rules)

    @property
    def _folder(self) -> str:
        """The folder as the server understands it: relative paths begin at the home of the user."""
        folder = self.sftp_working_dir
        if folder == "~" or folder.startswith("~/"):
            folder = folder[2:]
        return folder if folder.startswith("/") else f"./{folder}".rstrip("/")
