"""The options that say how a file system is reached, and who signs in there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from connect.config import LOW, MEDIUM, ConfigRuleError, Password, non_empty, option
from connect.errors import ConfigError
from connect.hosts import HostDeniedError
from connect.internals.extras import missing_extra
from connect.kits.files.systems.address import Address, parse_address
from connect.kits.files.systems.local import LocalSystem
from connect.kits.files.systems.objects import ObjectSystem
from connect.kits.files.systems.remote import RemoteAccount, RemoteSystem
from connect.kits.files.systems.sftp import SftpAccount, SftpSystem
from connect.kits.files.systems.system import FileSystem
from connect.kits.objects.location import parse_location
from connect.kits.objects.options import ObjectOptions

__all__ = ["FileSystemOptions"]

_SERVER: Final = "Server"
_LIBRARIES: Final = {
    "sftp": ("sftp", ("paramiko",)),
    "ftp": ("files", ("fsspec",)),
    "ftps": ("files", ("fsspec",)),
    "smb": ("files", ("fsspec", "smbprotocol")),
    "http": ("files", ("fsspec", "aiohttp")),
    "https": ("files", ("fsspec", "aiohttp")),
}


class FileSystemOptions(ObjectOptions):
    """The options of file systems other than the local one."""

    file_system_username: str | None = option(
        default=None, importance=MEDIUM, group=_SERVER, doc="User to sign in as, if the URL does not name one."
    )
    file_system_password: Password | None = option(
        default=None, importance=MEDIUM, group=_SERVER, doc="Password of the user."
    )
    sftp_private_key: Password | None = option(
        default=None,
        importance=MEDIUM,
        group=_SERVER,
        doc="Private key to sign in with at an SFTP server, in OpenSSH's or PEM format; line ends may be \\n.",
    )
    sftp_private_key_path: str | None = option(
        default=None,
        importance=MEDIUM,
        validator=non_empty,
        group=_SERVER,
        doc="File with the private key, instead of sftp.private.key.",
    )
    sftp_passphrase: Password | None = option(
        default=None, importance=LOW, group=_SERVER, doc="Passphrase of the private key."
    )
    sftp_known_hosts: str | None = option(
        default=None,
        importance=MEDIUM,
        validator=non_empty,
        group=_SERVER,
        doc="File with the public keys of SFTP servers, in the format of OpenSSH's known_hosts; by default "
        "~/.ssh/known_hosts. A server whose key is not known is refused.",
    )
    sftp_host_key: str | None = option(
        default=None,
        importance=MEDIUM,
        validator=non_empty,
        group=_SERVER,
        doc="The key of the SFTP server, instead of sftp.known.hosts: its fingerprint, such as SHA256:..., or the key "
        "itself in base64.",
    )
    sftp_host_key_check: bool = option(
        default=True,
        importance=LOW,
        group=_SERVER,
        doc="Whether the key of the SFTP server is checked. If not, whoever can redirect the connection can read "
        "the password and answer in the server's place.",
    )

    def system_at(self, address: Address) -> FileSystem:
        """Return the file system that has an address. It connects when it is used."""
        if address.is_local:
            return LocalSystem()
        if address.is_object_store:
            return ObjectSystem(address, self)
        user = address.user or self.file_system_username
        if address.scheme == "sftp":
            return SftpSystem(address, self._sftp_account(user), self.host_rules)
        password = None if self.file_system_password is None else self.file_system_password.value
        return RemoteSystem(address, RemoteAccount(user, password), self.host_rules)

    def _sftp_account(self, user: str | None) -> SftpAccount:
        password, key, phrase = self.file_system_password, self.sftp_private_key, self.sftp_passphrase
        return SftpAccount(
            user,
            None if password is None else password.value,
            None if key is None else key.value,
            self.sftp_private_key_path,
            None if phrase is None else phrase.value,
            self.sftp_known_hosts,
            self.sftp_host_key,
            not self.sftp_host_key_check,
        )

    def system_mistakes(self, key: str, text: str) -> Iterable[ConfigError]:
        """Yield an error for each violated rule about a folder, which ``key`` names, and the server that has it."""
        try:
            address = parse_address(key, text)
            if address.is_object_store:
                yield from self.object_mistakes(parse_location(text, key=key), text, key)
            elif not address.is_local:
                self.host_rules.check_name(address.host)
        except ConfigError as error:
            yield error
            return
        except HostDeniedError as error:
            yield ConfigRuleError(f"{key}: {error}", key)
            return
        extra, modules = _LIBRARIES.get(address.scheme, ("", ()))
        if modules and (reason := missing_extra(extra, *modules)):
            yield ConfigRuleError(f"{address.scheme}:// cannot be reached from here. {reason}", key)
        if self.sftp_private_key is not None and self.sftp_private_key_path is not None:
            yield ConfigRuleError("Set sftp.private.key or sftp.private.key.path, not both", "sftp.private.key.path")
