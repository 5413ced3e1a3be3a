"""Looking for Java: versions, places, and the sentence for a machine without one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from analysis.spark import java
from analysis.spark.session import on_this_machine
from coverlay import CoverlayError
from sim.cli.main import main


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ("command not found", None),
    ],
)
def test_versions(text: str, version: int | None) -> None:
    assert java.parse_version(text) == version


@pytest.fixture
def bare_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A machine without any Java; the folder returned may be given one."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(java, "_KNOWN_FOLDERS", ())
    java.find_java.cache_clear()
    yield tmp_path
    java.find_java.cache_clear()


def _install(home: Path, version: str) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)
    return home


def test_a_missing_java_is_one_sentence_with_a_remedy(bare_machine: Path) -> None:
    with pytest.raises(CoverlayError, match=r"needs Java 17 or newer and we found none: install it with") as error:
        java.find_java()
    assert "\n" not in str(error.value)


def test_without_java_nothing_is_simulated_in_vain(bare_machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    experiment = bare_machine / "tiny.toml"
    experiment.write_text('[overlay]\nkind = "line"\nbrokers = 2\n[workload]\nsubscriptions = 1\nevents = 1\n')
    assert main(["run", str(experiment), "--out", str(bare_machine / "out")]) == 2
    assert "Spark needs Java 17 or newer and we found none" in capsys.readouterr().err
    assert not (bare_machine / "out").exists()


def test_an_old_java_is_named(bare_machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(_install(bare_machine / "old", "1.8.0_402")))
    with pytest.raises(CoverlayError, match=r"found only Java 8 at .*old/bin/java"):
        java.find_java()


def test_an_old_java_home_does_not_hide_a_good_java(bare_machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = _install(bare_machine / "good", "21.0.1")
    monkeypatch.setenv("JAVA_HOME", str(_install(bare_machine / "old", "11.0.2")))
    monkeypatch.setenv("PATH", str(good / "bin"))
    assert java.find_java() == good


@pytest.mark.parametrize(
    ("master", "here"),
    [
        ("local[*]", True),
        ("local", True),
        ("spark://127.0.0.1:7077", True),
        ("spark://localhost:7077", True),
        ("spark://cluster.example:7077", False),
        ("yarn", False),
    ],
)
def test_only_masters_on_this_machine_bind_to_loopback(master: str, here: bool) -> None:
    assert on_this_machine(master) is here
