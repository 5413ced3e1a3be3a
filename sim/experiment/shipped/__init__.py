"""The experiments that come with Coverlay, one TOML file each."""

from __future__ import annotations

from pathlib import Path


def shipped() -> dict[str, Path]:
    return {path.stem: path for path in sorted(Path(__file__).parent.glob("*.toml"))}
