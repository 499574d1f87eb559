"""Servers of files on loopback: OpenSSH, asyncssh, pyftpdlib, and Samba."""

from __future__ import annotations

import asyncio
import getpass
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import asyncssh

from connect.errors import ConnectError
from equipment.ports import own_port
from equipment.servers.packages import unpacked
from equipment.waiting import wait_until
from worker.embedded.ports import HOST, is_free

__all__ = ["FileServer", "Samba", "SftpServer", "running_asyncssh", "running_ftp", "running_openssh", "running_samba"]

USER: Final = "sluice"
PASSWORD: Final = "t0p/s&cret"
_READY_SECONDS: Final = 30.0
_CONFIG: Final = """
Port {port}
ListenAddress {host}
HostKey {folder}/host_key
PidFile {folder}/pid
AuthorizedKeysFile {folder}/user_key.pub
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
Subsystem sftp internal-sftp
"""
_SAMBA: Final = """
[global]
server role = standalone server
smb ports = {port}
interfaces = {host}
bind interfaces only = yes
disable netbios = yes
load printers = no
private dir = {folder}
lock directory = {folder}
state directory = {folder}
cache directory = {folder}
pid directory = {folder}
ncalrpc dir = {folder}/rpc
log file = {folder}/log
passdb backend = tdbsam:{folder}/passwords.tdb
[files]
path = {files}
read only = no
"""


@dataclass(frozen=True, slots=True)
class FileServer:
    """A server, the local folder that it serves, and the URL and keys by which a connector reaches that."""

    folder: Path
    url: str
    props: dict[str, str]


@contextmanager
def running_openssh(folder: Path) -> Iterator[FileServer]:
    """OpenSSH's server, to which a key signs in. A ``ConnectError`` says why there is none."""
    program = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    root = None if program else unpacked("openssh-server")
    binary = program or str(next(iter(root.glob("usr/sbin/sshd")), "")) if root or program else ""
    if not binary:
        raise ConnectError("the package openssh-server has no sshd")
    keys, files = folder / "ssh", folder / "files"
    keys.mkdir()
    files.mkdir()
    for name in ("host_key", "user_key"):
        _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(keys / name))
    port = own_port()
    (keys / "config").write_text(_CONFIG.format(port=port, host=HOST, folder=keys))
    libraries = {} if root is None else {"LD_LIBRARY_PATH": ":".join(map(str, root.glob("usr/lib/*-linux-gnu")))}
    log = (keys / "log").open("wb")
    command = [*_as_root(keys), binary, "-D", "-e", "-f", str(keys / "config")]
    process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **libraries})
    try:
        wait_until("sshd listens", lambda: process.poll() is not None or not is_free(port), seconds=_READY_SECONDS)
        if process.poll() is not None:
            raise ConnectError(f"sshd has ended: {(keys / 'log').read_text(errors='replace')[-500:]}")
        key = (keys / "host_key.pub").read_text().split()[1]
        props = {
            "file.system.username": getpass.getuser(),
            "sftp.private.key.path": str(keys / "user_key"),
            "sftp.host.key": key,
        }
        yield FileServer(files, f"sftp://{HOST}:{port}{files}", props)
    finally:
        process.kill()
        process.wait()
        log.close()


class SftpServer:
    """asyncssh's server in a thread of this process, whose connections can be cut; a password signs in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.largest: int | None = None
        """How many bytes a file may have, as on a disk that is full beyond."""
        self.port = own_port()
        self.key = asyncssh.generate_private_key("ssh-ed25519")
        self._loop = asyncio.new_event_loop()
        self._connections: list[Any] = []
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(_READY_SECONDS)

    @property
    def server(self) -> FileServer:
        """The URL and keys by which a connector reaches it."""
        fingerprint = self.key.get_fingerprint()
        props = {"file.system.username": USER, "file.system.password": PASSWORD, "sftp.host.key": fingerprint}
        return FileServer(self.folder, f"sftp://{HOST}:{self.port}/", props)

    @property
    def confluent_props(self) -> dict[str, str]:
        """The same keys under the names of Confluent's connectors."""
        login = {"sftp.username": USER, "sftp.password": PASSWORD}
        return {"sftp.host": HOST, "sftp.port": str(self.port), "sftp.host.key": self.key.get_fingerprint(), **login}

    def cut(self) -> int:
        """Cut all connections; return how many there were."""

        async def abort() -> int:
            count = len(self._connections)
            for connection in self._connections:
                connection.abort()
            self._connections.clear()
            return count

        return asyncio.run_coroutine_threadsafe(abort(), self._loop).result(_READY_SECONDS)

    def close(self) -> None:
        """Stop the server."""
        self.cut()
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(_READY_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        self._acceptor.close()
        await self._acceptor.wait_closed()
        await asyncio.sleep(0)

    async def _listen(self) -> None:
        connections, folder, equipment = self._connections, self.folder, self

        class Login(asyncssh.SSHServer):
            def connection_made(self, connection: Any) -> None:
                connections.append(connection)

            def password_auth_supported(self) -> bool:
                return True

            def validate_password(self, username: str, password: str) -> bool:
                return (username, password) == (USER, PASSWORD)

        class Files(asyncssh.SFTPServer):
            def write(self, file_obj: Any, offset: int, data: bytes) -> Any:
                if equipment.largest is not None and offset < equipment.largest < offset + len(data):
                    raise asyncssh.SFTPFailure("No space left on device")
                return super().write(file_obj, offset, data)

        self._acceptor = await asyncssh.create_server(
            Login,
            HOST,
            self.port,
            server_host_keys=[self.key],
            sftp_factory=lambda channel: Files(channel, chroot=os.fsencode(folder)),
        )


@contextmanager
def running_asyncssh(folder: Path) -> Iterator[SftpServer]:
    """asyncssh's server of the files in a folder, while the ``with`` block runs."""
    server = SftpServer(folder)
    try:
        yield server
    finally:
        server.close()


@contextmanager
def running_ftp(folder: Path) -> Iterator[FileServer]:
    """An FTP server of the files in a folder, while the ``with`` block runs."""
    port = own_port()
    login = ("-u", USER, "-P", PASSWORD)
    command = [sys.executable, "-m", "pyftpdlib", "-i", HOST, "-p", str(port), "-d", str(folder), "-w", *login]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until("the server listens", lambda: not is_free(port), seconds=_READY_SECONDS)
        props = {"file.system.username": USER, "file.system.password": PASSWORD}
        yield FileServer(folder, f"ftp://{HOST}:{port}/", props)
    finally:
        process.kill()
        process.wait()


class Samba:
    """Samba's server, which can be killed and started again."""

    def __init__(self, command: list[str], port: int, files: Path, output: Path) -> None:
        props = {"file.system.username": getpass.getuser(), "file.system.password": PASSWORD}
        self.server = FileServer(files, f"smb://{HOST}:{port}/files", props)
        self._command = command
        self._port = port
        self._output = output

    def start(self) -> None:
        """Start it, and wait until it listens."""
        with self._output.open("wb") as output:
            # A session of its own: it has a process for each connection.
            process = subprocess.Popen(self._command, stdout=output, stderr=output, start_new_session=True)
        self._process = process
        wait_until("smbd listens", lambda: process.poll() is not None or not is_free(self._port), _READY_SECONDS)
        if process.poll() is not None:
            raise ConnectError(f"smbd has ended: {self._output.read_text(errors='replace')[-500:]}")

    def kill(self) -> None:
        """Kill it, with all connections."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


@contextmanager
def running_samba(folder: Path) -> Iterator[Samba]:
    """Samba's server, while the ``with`` block runs. A ``ConnectError`` says why there is none."""
    program = shutil.which("smbd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        raise ConnectError("the package samba is not installed")
    own, files = folder / "samba", folder / "files"
    own.mkdir()
    files.mkdir()
    port, config = own_port(), own / "smb.conf"
    config.write_text(_SAMBA.format(port=port, host=HOST, folder=own, files=files))
    given = f"{PASSWORD}\n{PASSWORD}\n"
    done = subprocess.run(
        ["smbpasswd", "-c", str(config), "-a", "-s", getpass.getuser()],
        input=given,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise ConnectError(f"smbpasswd failed: {done.stderr[-500:]}")
    samba = Samba([program, "-s", str(config), "--foreground", "--no-process-group"], port, files, own / "output")
    samba.start()
    try:
        yield samba
    finally:
        samba.kill()


def _as_root(folder: Path) -> list[str]:
    """What root runs before sshd: it needs a folder, and a user that is there in a view of its own alone."""
    if os.geteuid():
        return []
    Path("/run/sshd").mkdir(exist_ok=True)
    users = Path("/etc/passwd").read_text(encoding="utf-8")
    if "\nsshd:" in users:
        return []
    (folder / "passwd").write_text(f"{users}sshd:x:74:65534::/run/sshd:/usr/sbin/nologin\n", encoding="utf-8")
    script = f'mount --bind {folder / "passwd"} /etc/passwd && exec "$@"'
    return ["unshare", "-m", "sh", "-c", script, "sh"]


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ConnectError(f"{command[0]} failed: {done.stderr[-500:]}")
