"""Builds the stages of a Containerfile without a container engine: in folders, with ``chroot``, as root.

A stage from Debian begins with what ``debootstrap`` makes of the same release, of which Debian's images are made.
"""

from __future__ import annotations

import os
import re
import shutil
import ssl
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import certifi
from dockerfile_parse import DockerfileParser

__all__ = ["Image", "build_image"]

_DEBIAN: Final = re.compile(r"debian:(\w+)-slim")
_STEP_SECONDS: Final = 900
_AUTHORITIES: Final = "etc/authorities-of-the-machine.crt"
_ON_THE_WAY_OUT: Final = (
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "PIP_INDEX_URL",
)
_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(slots=True)
class Image:
    """A built stage: its folder, and what its instructions say of the process that runs in it."""

    root: Path
    variables: dict[str, str] = field(default_factory=lambda: {"PATH": _PATH})
    folder: str = "/"
    user: str = "0"
    entrypoint: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    health: list[str] = field(default_factory=list)

    def start(self, writable: Path, variables: Mapping[str, str], log: Path) -> subprocess.Popen[bytes]:
        """Start the entry point as the image's user, where only ``/tmp`` and the working folder can be written to.

        The working folder is ``writable``. The process leads a group of its own, and shares the machine's
        network.
        """
        mounts = (
            f"mount --bind {self.root} {self.root}",
            f"mount -t proc proc {self.root}/proc",
            f"mount -t tmpfs tmpfs {self.root}/dev/shm",
            f"mount -t tmpfs tmpfs {self.root}/tmp",
            f"chmod 1777 {self.root}/tmp {self.root}/dev/shm",
            f"mount --bind {writable} {self.root}{self.folder}",
            f"mount -o remount,ro,bind {self.root} {self.root}",
            f'exec chroot --userspec={self.user}:0 {self.root} "$@"',
        )
        # The command follows "sh -c SCRIPT sh", and changes to its folder by itself.
        inside = ["sh", "-c", f'cd {self.folder} && exec "$@"', "sh", *self.entrypoint, *self.command]
        command = ["unshare", "--mount", "--", "sh", "-ec", "\n".join(mounts), "sh", *inside]
        with log.open("ab") as output:
            return subprocess.Popen(
                command, env={**self.variables, **variables}, stdout=output, stderr=output, start_new_session=True
            )

    def run(self, command: list[str]) -> int:
        """Run a command in the folder as the image's user; return its exit status."""
        chroot = ["chroot", f"--userspec={self.user}:0", str(self.root), *command]
        return subprocess.run(chroot, env=self.variables, check=False, timeout=_STEP_SECONDS).returncode


def build_image(file: Path, context: Path, target: str, folder: Path) -> Image:
    """Build a stage and those that it needs, from the files in ``context``, below ``folder``."""
    with file.open("rb") as content:
        stages = dict(_stages(DockerfileParser(fileobj=content)))
    return _Build(stages, context, folder).stage(target)


@dataclass(slots=True)
class _Build:
    stages: Mapping[str, list[tuple[str, str]]]
    context: Path
    folder: Path
    built: dict[str, Image] = field(default_factory=dict)

    def stage(self, name: str) -> Image:
        """The stage of this name, or the image of a release."""
        if name not in self.built:
            self.built[name] = self._make(name) if name in self.stages else self._debian(name)
        return self.built[name]

    def _debian(self, name: str) -> Image:
        match = _DEBIAN.fullmatch(name)
        assert match, name
        root = self.folder / match[1]
        _run("debootstrap", "--variant=minbase", match[1], str(root))
        # A machine may reach the registries through a proxy that signs in their place.
        shutil.copy(ssl.get_default_verify_paths().cafile or certifi.where(), root / _AUTHORITIES)
        return Image(root)

    def _make(self, name: str) -> Image:
        (_, base), *steps = self.stages[name]
        below = self.stage(base)
        root = self.folder / name
        _run("cp", "--archive", str(below.root), str(root))
        image = Image(root, dict(below.variables), below.folder, below.user)
        image.entrypoint, image.command, image.health = below.entrypoint, below.command, below.health
        for instruction, value in steps:
            self._step(image, instruction, value)
        return image

    def _step(self, image: Image, instruction: str, value: str) -> None:
        match instruction:
            case "RUN":
                step = ["chroot", str(image.root), "sh", "-ec", f"cd {image.folder}\n{value}"]
                ways = {name: os.environ[name] for name in _ON_THE_WAY_OUT if name in os.environ}
                build = {"DEBIAN_FRONTEND": "noninteractive", "PIP_CERT": f"/{_AUTHORITIES}"}
                _run(*step, variables=image.variables | build | ways)
            case "COPY":
                self._copy(image, *value.split())
            case "ENV":
                pairs = [word.partition("=") for word in value.split()]
                image.variables |= {key: text.replace("$PATH", image.variables["PATH"]) for key, _, text in pairs}
            case "ARG":
                key, _, text = value.partition("=")
                image.variables[key] = text
            case "WORKDIR":
                image.folder = value
                (image.root / value.lstrip("/")).mkdir(parents=True, exist_ok=True)
            case "USER":
                image.user = value
            case "ENTRYPOINT":
                image.entrypoint = _words(value)
            case "CMD":
                image.command = _words(value)
            case "HEALTHCHECK":
                image.health = _words(value.partition("CMD")[2])
            case _:
                assert instruction in {"EXPOSE", "COMMENT"}, instruction

    def _copy(self, image: Image, *words: str) -> None:
        if words[0].startswith("--from="):
            _, source, target = words
            found = self.stage(words[0].removeprefix("--from=")).root / source.lstrip("/")
            shutil.copytree(found, image.root / target.lstrip("/"), symlinks=True)
        else:
            assert words == (".", "."), words
            _copy_context(self.context, image.root / image.folder.lstrip("/"))


def _copy_context(context: Path, target: Path) -> None:
    """Copy what the ignore file leaves: it ignores all, and takes names back."""
    taken = [line[1:] for line in (context / ".containerignore").read_text().splitlines() if line.startswith("!")]
    for name in taken:
        source = context / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target / name)


def _stages(parser: DockerfileParser) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    steps: list[tuple[str, str]] = []
    for step in parser.structure:
        instruction, value = step["instruction"], step["value"]
        if instruction == "FROM":
            base, _, name = value.partition(" AS ")
            steps = [("FROM", base)]
            yield name, steps
        else:
            steps.append((instruction, value))


def _words(value: str) -> list[str]:
    assert value.strip().startswith("["), f"not the exec form: {value}"
    return [word.strip().strip('"') for word in re.findall(r'"[^"]*"', value)]


def _run(*command: str, variables: Mapping[str, str] | None = None) -> None:
    done = subprocess.run(
        command, env=variables, capture_output=True, text=True, errors="replace", timeout=_STEP_SECONDS, check=False
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
