"""The experiments that come with Coverlay, one TOML file each, and the graphs of real networks in `topologies`."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent


def shipped() -> dict[str, Path]:
    return {path.stem: path for path in sorted(FOLDER.glob("*.toml"))}


def from_shipped(name: str) -> Path | None:
    """The shipped graph called so, e.g. topologies/abilene.gml."""
    return next((path for path in FOLDER.glob("topologies/*") if name == path.relative_to(FOLDER).as_posix()), None)
