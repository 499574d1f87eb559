"""Download of jars with the Ivy that pyspark ships, each by its own coordinates and without its dependencies."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import quoteattr

from connect.errors import ConnectError
from connect.jvm.java import Java
from connect.jvm.lock import Jar
from connect.jvm.repository import Repository, redact
from connect.jvm.trust import trust_flags

__all__ = ["find_ivy", "ivy_fetch", "ivy_module", "ivy_settings"]

_FETCH_SECONDS = 900.0
_PATTERN = "[organisation]_[artifact]-[revision](-[classifier]).[ext]"
_MOST_NAMED = 5
_MOST_LINES = 20
_CAUSE = re.compile(r"\((\S+(?:Exception|Error): .*)\)$", re.MULTILINE)
_PROBLEM = re.compile(r"not found|FAILED|WARN|ERROR|Exception|denied|refused|timed out", re.IGNORECASE)


def find_ivy() -> Path:
    """The Ivy jar of the installed pyspark, found without importing pyspark."""
    spec = importlib.util.find_spec("pyspark")
    folders = [] if spec is None else [Path(place) for place in spec.submodule_search_locations or ()]
    for folder in folders:
        for jar in sorted((folder / "jars").glob("ivy-*.jar")):
            return jar
    raise ConnectError(
        "Jars are fetched with the Ivy that pyspark ships, and pyspark is not installed. "
        "Install it with `pip install 'sluice[broker]'`."
    )


def ivy_settings(repository: Repository) -> str:
    """The Ivy settings that read a Maven repository without its poms and without its weaker checksums."""
    return (
        '<ivysettings><settings defaultResolver="jars"/><resolvers>'
        f'<ibiblio name="jars" m2compatible="true" usepoms="false" checksums="none" '
        f"root={quoteattr(repository.url)}/>"
        "</resolvers></ivysettings>\n"
    )


def ivy_module(jars: Sequence[Jar]) -> str:
    """The Ivy module that depends on exactly ``jars``."""
    lines = [
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">',
        '<info organisation="sluice" module="jars"/>',
        '<configurations><conf name="default"/></configurations>',
        "<dependencies>",
        *(_dependency(jar) for jar in jars),
        "</dependencies></ivy-module>",
    ]
    return "\n".join(lines) + "\n"


def ivy_fetch(
    jars: Sequence[Jar], repository: Repository, *, java: Java, folder: Path, environ: Mapping[str, str]
) -> None:
    """Fetch ``jars`` into ``folder`` under their file names; a ``ConnectError`` names those that cannot be fetched."""
    ivy = find_ivy()
    module = folder / "ivy.xml"
    module.write_text(ivy_module(jars), encoding="utf-8")
    settings = repository.settings
    command = [str(java.executable), "-Xmx256m", *trust_flags(java, folder, environ)]
    command += ["-jar", str(ivy), "-ivy", str(module)]
    if settings is None:
        settings = folder / "ivysettings.xml"
        settings.write_text(ivy_settings(repository), encoding="utf-8")
        # A cache of our own: what another tool left half-fetched in the user's is not our concern.
        cache = folder / "cache"
        cache.mkdir()
        command += ["-cache", str(cache)]
    command += ["-settings", str(settings), "-retrieve", str(folder / _PATTERN)]
    output = _run(command, repository, environ)
    missing = [jar for jar in jars if not (folder / jar.file_name).is_file()]
    if missing:
        raise ConnectError(_complaint(missing, repository, output))


def _dependency(jar: Jar) -> str:
    start = (
        f"<dependency org={quoteattr(jar.group)} name={quoteattr(jar.artifact)} rev={quoteattr(jar.version)} "
        'transitive="false" conf="default->*">'
    )
    classifier = f" m:classifier={quoteattr(jar.classifier)}" if jar.classifier else ""
    kind = quoteattr(jar.extension)
    return f"{start}<artifact name={quoteattr(jar.artifact)} type={kind} ext={kind}{classifier}/></dependency>"


def _run(command: list[str], repository: Repository, environ: Mapping[str, str]) -> str:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=dict(environ),
            timeout=_FETCH_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ConnectError(
            f"Fetching jars from {repository} took more than {_FETCH_SECONDS:.0f} s. {_remedy()}"
        ) from error
    return done.stdout


def _complaint(missing: Sequence[Jar], repository: Repository, output: str) -> str:
    telling = [line.strip() for line in output.splitlines() if _PROBLEM.search(line)]
    # Ivy brings none when it lacks one: name those that it complains about.
    lacking = [jar for jar in missing if any(_ivy_name(jar) in line for line in telling)] or missing
    names = ", ".join(jar.coordinates for jar in lacking[:_MOST_NAMED])
    if len(lacking) > _MOST_NAMED:
        names += f" and {len(lacking) - _MOST_NAMED} more"
    causes = list(dict.fromkeys(_CAUSE.findall(output))) or telling or output.splitlines()[-_MOST_LINES:]
    report = redact("\n".join(causes[:_MOST_LINES]))
    return f"Cannot fetch {names} from {repository}. {_remedy()}\nIvy said:\n{report}"


def _ivy_name(jar: Jar) -> str:
    return f"{jar.group}#{jar.artifact};{jar.version}"


def _remedy() -> str:
    return (
        "If this machine can reach another repository, name it: set SLUICE_MAVEN_REPOSITORY to its URL, or add "
        "a mirror of central to ~/.m2/settings.xml, or set SLUICE_IVY_SETTINGS to an Ivy settings file (for "
        "a repository that asks for a password)."
    )
