"""Java's plugins in a folder of ``plugin.path``: read from their jars, and listed with what stands for them."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from connect.errors import PluginError
from connect.internals.plugins import JavaPlugin, PluginKind, PluginRegistry, java_plugins
from equipment.class_files import ABSTRACT, PUBLIC, class_file
from equipment.growth import assert_grows_evenly
from worker.cli.main import main

SOURCE = "META-INF/services/org.apache.kafka.connect.source.SourceConnector"
TRANSFORMATION = "META-INF/services/org.apache.kafka.connect.transforms.Transformation"
MANIFEST = "META-INF/MANIFEST.MF"


def jar(path: Path, **files: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def listed(folder: Path) -> list[tuple[str, str | None]]:
    found, broken = java_plugins(folder)
    assert broken == []
    return [(plugin.class_name, plugin.version) for plugin in found]


def test_a_jar_lists_its_plugins(tmp_path: Path) -> None:
    path = jar(
        tmp_path / "acme" / "lib" / "acme-9.jar",
        **{
            SOURCE: "# ours\ncom.acme.OrderSource  # the old one\n\ncom.acme.OrderSource\n",
            TRANSFORMATION: "com.acme.Mask$Key\r\ncom.acme.Mask$Value\r\n",
            MANIFEST: "Manifest-Version: 1.0\r\nImplementation-Version: 1.2.3-of-a-\r\n long-name\r\n\r\n",
        },
    )
    version = "1.2.3-of-a-long-name"
    assert java_plugins(tmp_path) == (
        [
            JavaPlugin(PluginKind.CONNECTOR, "source", "com.acme.OrderSource", version, path),
            JavaPlugin(PluginKind.TRANSFORMATION, None, "com.acme.Mask$Key", version, path),
            JavaPlugin(PluginKind.TRANSFORMATION, None, "com.acme.Mask$Value", version, path),
        ],
        [],
    )


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("acme-3.2.0.Final.jar", "3.2.0.Final"),
        ("acme-connect-v1.0-SNAPSHOT.JAR", "1.0-SNAPSHOT"),
        ("acme-s3-4.1.jar", "4.1"),
        ("acme.jar", None),
    ],
)
def test_a_jar_whose_manifest_has_no_version_has_that_of_its_name(
    tmp_path: Path, name: str, version: str | None
) -> None:
    section = "Manifest-Version: 1.0\n\nName: com/other/\nImplementation-Version: 7\n"
    jar(tmp_path / name, **{SOURCE: "com.acme.A", MANIFEST: section})
    assert listed(tmp_path) == [("com.acme.A", version)]


def test_versions_of_a_plugin_are_listed_side_by_side(tmp_path: Path) -> None:
    for version in ("1.0", "2.0"):
        jar(tmp_path / version / f"acme-{version}.jar", **{SOURCE: "com.acme.A"})
    jar(tmp_path / "1.0" / "gson-2.1.jar", **{"META-INF/services/com.other.Service": "com.other.A"})
    assert listed(tmp_path) == [("com.acme.A", "1.0"), ("com.acme.A", "2.0")]


def test_a_damaged_jar_is_named_and_hides_no_other(tmp_path: Path) -> None:
    jar(tmp_path / "good.jar", **{SOURCE: "com.acme.A"})
    whole = jar(tmp_path / "long.jar", **{SOURCE: "a" * 1024 * 1024 + "\n"})
    (tmp_path / "half.jar").write_bytes(whole.read_bytes()[:200])
    jar(tmp_path / "latin.jar", **{SOURCE: "com.acme.Ä".encode("latin-1")})
    (tmp_path / "gone.jar").symlink_to(tmp_path / "nowhere")
    found, broken = java_plugins(tmp_path)
    assert [plugin.class_name for plugin in found] == ["com.acme.A"]
    assert [one.name for one in broken] == [f"Jar {tmp_path / name}.jar" for name in ("gone", "half", "latin", "long")]
    assert str(broken[0]).endswith("It cannot be read: No such file or directory")
    assert "longer than 1048576 bytes" in str(broken[3])


SOURCE_CONNECTOR = "org.apache.kafka.connect.source.SourceConnector"


def test_plugins_that_no_jar_lists_are_found_by_the_ancestors_of_their_classes(tmp_path: Path) -> None:
    common = {
        "com/acme/Base.class": class_file("com.acme.Base", SOURCE_CONNECTOR, flags=PUBLIC | ABSTRACT),
        "com/acme/Round.class": class_file("com.acme.Round", "com.acme.Round"),
        "com/acme/Short.class": class_file("com.acme.Short", SOURCE_CONNECTOR)[:-2],
        "org/apache/kafka/connect/Own.class": class_file("org.apache.kafka.connect.Own", SOURCE_CONNECTOR),
        "META-INF/versions/21/com/acme/New.class": class_file("com.acme.New", SOURCE_CONNECTOR),
        "com/acme/logo.class": b"no class",
    }
    jar(tmp_path / "acme" / "base-1.jar", **common)
    path = jar(
        tmp_path / "acme" / "orders-2.1.jar",
        **{
            "com/acme/Orders.class": class_file("com.acme.Orders", "com.acme.Base"),
            "com/acme/Hidden.class": class_file("com.acme.Hidden", "com.acme.Base", flags=0),
            "com/acme/Mask$Key.class": class_file(
                "com.acme.Mask$Key", "java.lang.Object", "org.apache.kafka.connect.transforms.Transformation"
            ),
            MANIFEST: "Implementation-Version: 2.1.7\n",
        },
    )
    assert java_plugins(tmp_path) == (
        [
            JavaPlugin(PluginKind.CONNECTOR, "source", "com.acme.Orders", "2.1.7", path, is_listed=False),
            JavaPlugin(PluginKind.TRANSFORMATION, None, "com.acme.Mask$Key", "2.1.7", path, is_listed=False),
        ],
        [],
    )
    assert PluginRegistry.discover([tmp_path]).find_connector("Orders", engine="java").java == path


def test_where_connectors_are_listed_no_class_is_looked_at(tmp_path: Path) -> None:
    unlisted = {"com/acme/Old.class": class_file("com.acme.Old", SOURCE_CONNECTOR)}
    jar(tmp_path / "acme" / "acme-1.jar", **{SOURCE: "com.acme.New"})
    jar(tmp_path / "acme" / "old-1.jar", **unlisted)
    assert listed(tmp_path) == [("com.acme.New", "1")]
    assert PluginRegistry.discover([tmp_path]).java_is_listed
    # A plugin of another folder hides nothing, and a list of other plugins neither.
    jar(tmp_path / "single-3.jar", **unlisted, **{TRANSFORMATION: "com.acme.Mask"})
    assert listed(tmp_path) == [("com.acme.New", "1"), ("com.acme.Mask", "3"), ("com.acme.Old", "3")]
    assert not PluginRegistry.discover([tmp_path]).java_is_listed


@pytest.mark.growth
@pytest.mark.parametrize("part", [" ", "\r\n ", "-1"])
def test_hostile_manifests_cost_no_more_than_their_length(tmp_path: Path, part: str) -> None:
    def write(size: int) -> Path:
        manifest = f"Implementation-Version: 1{part * size}2\n"
        return jar(tmp_path / str(size) / "acme.jar", **{SOURCE: "com.acme.A", MANIFEST: manifest}).parent

    assert_grows_evenly(java_plugins, write, 50_000)


def test_the_list_names_what_stands_for_a_java_plugin(tmp_path: Path) -> None:
    known = "org.apache.kafka.connect.file.FileStreamSourceConnector"
    path = jar(
        tmp_path / "file-4.3.1.jar", **{SOURCE: f"{known}\ncom.acme.OrderSource\n", TRANSFORMATION: "com.acme.T"}
    )
    (tmp_path / "bad.jar").write_text("no jar")
    run = CliRunner().invoke(main, ["plugins", "list", "--kind", "source", "--plugin-path", str(tmp_path)])
    assert run.exit_code == 0, run.output
    native = PluginRegistry.discover().find(PluginKind.CONNECTOR, known).class_name
    assert run.output.splitlines()[-3:] == [
        f"java              source com.acme.OrderSource 4.3.1: runs in a JVM; {path}",
        f"java              source {known} 4.3.1: {native} runs in its place, unless engine=java; {path}",
        f"broken            Jar {tmp_path / 'bad.jar'} is skipped: It is damaged, or no jar: File is not a zip file. "
        "Download it again",
    ]


def registry_of(folder: Path) -> PluginRegistry:
    jar(
        folder / "file" / "file-4.3.1.jar",
        **{SOURCE: f"{FILE_SOURCE}\ncom.acme.OrderSource\n", TRANSFORMATION: "com.acme.Mask$Key"},
    )
    return PluginRegistry.discover([folder])


FILE_SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"


@pytest.mark.parametrize("name", [FILE_SOURCE, "FileStreamSource", "connectors.file.FileStreamSourceConnector"])
def test_the_plugin_of_python_runs_unless_the_engine_is_java(tmp_path: Path, name: str) -> None:
    registry = registry_of(tmp_path)
    assert registry.find_connector(name).java is None
    assert registry.find_connector(name, engine="worker").java is None
    found = registry.find_connector(name, engine=" Java ")
    assert (found.class_name, found.version, found.java) == (FILE_SOURCE, "4.3.1", tmp_path / "file" / "file-4.3.1.jar")


@pytest.mark.parametrize("name", ["com.acme.OrderSource", "OrderSource"])
def test_a_java_class_without_a_plugin_of_python_needs_no_engine(tmp_path: Path, name: str) -> None:
    assert registry_of(tmp_path).find_connector(name).class_name == "com.acme.OrderSource"


def test_an_engine_of_java_needs_a_jar(tmp_path: Path) -> None:
    told = "engine=java needs a Java plugin, and no jar on plugin.path has a connector FileStreamSink"
    with pytest.raises(PluginError, match=told):
        registry_of(tmp_path).find_connector("FileStreamSink", engine="java")


def test_a_transformation_of_java_does_not_run_in_python(tmp_path: Path) -> None:
    told = r"com\.acme\.Mask\$Key is a Java transformation, .*name a transformation of Python, or .*engine=java"
    with pytest.raises(PluginError, match=told):
        registry_of(tmp_path).load(PluginKind.TRANSFORMATION, "com.acme.Mask$Key")


def test_the_description_of_a_plugin_names_the_java_class_that_it_runs_for(tmp_path: Path) -> None:
    registry_of(tmp_path)
    told = CliRunner().invoke(main, ["plugins", "describe", FILE_SOURCE, "--plugin-path", str(tmp_path)]).output
    assert f"It runs in place of {FILE_SOURCE} in {tmp_path / 'file' / 'file-4.3.1.jar'}, unless engine=java." in told
    told = CliRunner().invoke(main, ["plugins", "describe", "OrderSource", "--plugin-path", str(tmp_path)]).output
    assert told.startswith("com.acme.OrderSource (source) of Java\n")
