"""The options of an SFTP server under the names of Confluent's connectors."""

from __future__ import annotations

from collections.abc import Iterable

from connect.config import HIGH, LOW, MEDIUM, Config, ConfigRuleError, Password, non_empty, option
from connect.errors import ConfigError
from connect.internals.extras import missing_extra
from connect.kits.files.systems.sftp import SftpAccount

__all__ = ["SftpServerOptions"]


class SftpServerOptions(Config):
    """The server, and who signs in there."""

    sftp_host: str = option(default="localhost", importance=HIGH, validator=non_empty, doc="Host of the SFTP server.")
    sftp_port: int = option(default=22, importance=MEDIUM, doc="Port of the SFTP server.")
    sftp_username: str | None = option(default=None, importance=HIGH, doc="User to sign in as.")
    sftp_password: Password | None = option(default=None, importance=HIGH, doc="Password of the user.")
    tls_pemfile: str | None = option(default=None, importance=MEDIUM, doc="File with the private key to sign in with.")
    tls_private_key: Password | None = option(
        default=None, importance=MEDIUM, doc="The private key itself, instead of tls.pemfile."
    )
    tls_passphrase: Password | None = option(default=None, importance=MEDIUM, doc="Passphrase of the private key.")
    sftp_proxy_url: str | None = option(default=None, importance=LOW, doc="Must be absent: proxies are not supported.")
    kerberos_keytab_path: str | None = option(default=None, importance=LOW, doc="Must be absent.")
    kerberos_user_principal: str | None = option(default=None, importance=LOW, doc="Must be absent.")

    def sftp_mistakes(self) -> Iterable[ConfigError]:
        """Yield an error for each of these options that is not supported, or needs what is not there."""
        if self.sftp_proxy_url:
            yield ConfigError("sftp.proxy.url", "[hidden]", "Proxies are not supported: remove the key.")
        for key, value in (
            ("kerberos.keytab.path", self.kerberos_keytab_path),
            ("kerberos.user.principal", self.kerberos_user_principal),
        ):
            if value:
                yield ConfigError(key, value, "Kerberos is not supported: sign in with tls.pemfile or a password.")
        if reason := missing_extra("sftp", "paramiko"):
            yield ConfigRuleError(f"SFTP servers cannot be reached from here. {reason}", "connector.class")

    def sftp_account(self, known_hosts: str | None, host_key: str | None) -> SftpAccount:
        """Return who signs in. As with Confluent's, a server is not checked unless its key is given."""
        password, key, phrase = self.sftp_password, self.tls_private_key, self.tls_passphrase
        return SftpAccount(
            self.sftp_username,
            (None if password is None else password.value) or None,
            None if key is None else key.value,
            self.tls_pemfile,
            None if phrase is None else phrase.value,
            known_hosts,
            host_key,
            any_host_key=known_hosts is None and host_key is None,
        )
