"""Several versions of a plugin: where each version comes from, and which one a configuration gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from connect.errors import PluginError
from connect.internals.plugins import PluginKind, PluginRegistry, PluginVersionError, load_class

pytestmark = pytest.mark.usefixtures("import_path")

CLASS = """
from connect.config import Config
from connect.transformation import Predicate, Transformation


class Mine(Predicate[Config]):
    {version}

    def test(self, record):
        return True


class Its(Transformation[Config]):
    pass
"""
LISTED = '[[predicate]]\nclass = "several.Mine"\n[[transformation]]\nclass = "several.Its"\n'


def folder(path: Path, listed: str = LISTED, version: str = "") -> Path:
    path.mkdir(parents=True)
    (path / "several.py").write_text(CLASS.format(version=version))
    (path / "plugins.toml").write_text(listed)
    return path


def installed(path: Path, version: str) -> None:
    """What pip leaves of a distribution in a folder."""
    metadata = path / f"several-{version}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: several\nVersion: {version}\n")


@pytest.fixture
def three(tmp_path: Path) -> PluginRegistry:
    for version in ("1.0", "1.10", "1.9"):
        folder(tmp_path / f"v{version}", f'version = "{version}"\n{LISTED}')
    return PluginRegistry.discover([tmp_path])


def test_the_newest_version_is_taken_unless_another_is_asked_for(three: PluginRegistry) -> None:
    def found(version: str | None) -> str | None:
        return three.find(PluginKind.PREDICATE, "Mine", version).version

    asked = (None, "latest", "1.9", "[1.0,1.10)", "(,1.5]", "[1.0,2.0)")
    assert [found(version) for version in asked] == ["1.10", "1.10", "1.9", "1.9", "1.0", "1.10"]
    entry = three.find(PluginKind.PREDICATE, "several.Mine")
    assert three.versions(entry) == ["1.0", "1.9", "1.10"]
    shown = [entry.version for entry in three.entries(PluginKind.PREDICATE) if entry.class_name == "several.Mine"]
    assert shown == ["1.0", "1.9", "1.10"]


def test_a_version_that_there_is_not_is_refused_with_those_there_are(three: PluginRegistry) -> None:
    with pytest.raises(PluginVersionError) as refused:
        three.find(PluginKind.PREDICATE, "Mine", "[2.0,)")
    assert str(refused.value) == (
        "Plugin several.Mine not found that matches the version range [2.0,), available versions: [1.0, 1.9, 1.10]"
    )


def test_what_comes_with_the_connector_goes_before_newer_versions(three: PluginRegistry) -> None:
    beside = three.beside(three.find(PluginKind.PREDICATE, "Mine", "1.0"))
    assert beside.find(PluginKind.TRANSFORMATION, "Its").version == "1.0"
    assert beside.find(PluginKind.TRANSFORMATION, "Its", "[1.5,)").version == "1.10"
    assert three.find(PluginKind.TRANSFORMATION, "Its").version == "1.10"


def test_a_class_is_loaded_from_the_folder_of_its_version(three: PluginRegistry, tmp_path: Path) -> None:
    loaded = three.load(PluginKind.PREDICATE, "Mine", "1.9")
    entry = three.find(PluginKind.PREDICATE, "Mine", "1.9")
    assert entry.folder == tmp_path / "v1.9"
    assert load_class(entry) is loaded
    with pytest.raises(PluginError, match=r"Class several.Its of .*v1.0 is hidden by .*v1.9.*Choose versions from"):
        three.load(PluginKind.TRANSFORMATION, "Its", "1.0")


@pytest.mark.parametrize(
    ("listed", "in_class", "in_metadata", "version"),
    [
        (LISTED, "", None, None),
        (LISTED, 'version = "3.1"', None, "3.1"),
        (LISTED, 'version: ClassVar[str] = "3.1"', "2.0", "3.1"),
        (LISTED, "", "2.0", "2.0"),
        (LISTED, "version = made()", "2.0", "2.0"),
        (f'version = "4.0"\n{LISTED}', 'version = "3.1"', "2.0", "4.0"),
        (f'version = "4.0"\n{LISTED}'.replace("Mine", 'Mine"\nversion = "5'), "", None, "5"),
    ],
)
def test_a_version_comes_from_the_file_the_class_or_the_package(
    tmp_path: Path, listed: str, in_class: str, in_metadata: str | None, version: str | None
) -> None:
    path = folder(tmp_path / "one", listed, in_class)
    if in_metadata is not None:
        installed(path, in_metadata)
    assert PluginRegistry.discover([tmp_path]).find(PluginKind.PREDICATE, "Mine").version == version


def test_an_inherited_version_counts(tmp_path: Path) -> None:
    path = folder(tmp_path / "one", LISTED.replace("Mine", "Heir"), 'version = "3.1"')
    (path / "several.py").write_text(CLASS.format(version='version = "3.1"') + "\n\nclass Heir(Mine):\n    pass\n")
    assert PluginRegistry.discover([tmp_path]).find(PluginKind.PREDICATE, "Heir").version == "3.1"


@pytest.mark.parametrize("listed", ["version = 1.0\n" + LISTED, LISTED.replace('Mine"', 'Mine"\nversion = 1.0')])
def test_a_version_that_is_no_text_is_told(tmp_path: Path, listed: str) -> None:
    folder(tmp_path / "one", listed)
    (broken,) = PluginRegistry.discover([tmp_path]).broken
    assert 'write version = "1.0"' in broken.error


def test_plugins_of_sluice_have_its_version() -> None:
    registry = PluginRegistry.discover()
    assert {entry.version for entry in registry.entries()} == {registry.find(PluginKind.CONNECTOR, "Datagen").version}
