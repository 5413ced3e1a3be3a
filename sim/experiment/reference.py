"""The reference of an experiment file's keys: one row each, chosen and shown (`coverlay keys`, docs/keys.md).

keys.py makes the rows and loads most of the product to do so; this module does not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from coverlay import CoverlayError, did_you_mean, quoted

TOP = "experiment"  # keys outside of sections are listed under this name
ABSENT = "–"  # no default, or no unit


@dataclass(frozen=True)
class Setting:
    """One row of the reference."""

    key: str
    type: str
    default: str
    unit: str
    meaning: str
    only_for: tuple[str, ...] = ()  # the kinds or methods that have this option; empty: all

    @property
    def section(self) -> str:
        return self.key.partition(".")[0] if "." in self.key else TOP

    @property
    def in_words(self) -> str:
        return f"{self.meaning} [{', '.join(self.only_for)}]" if self.only_for else self.meaning


def choose(found: Iterable[Setting], wanted: str | None) -> list[Setting]:
    """The rows of a section or of one key; all rows for None."""
    known = list(found)
    some = [s for s in known if wanted in (None, s.section, s.key) or s.key.startswith(f"{wanted}.")]
    if not some:
        sections = list(dict.fromkeys(s.section for s in known))
        hint = did_you_mean(wanted, [*sections, *(s.key for s in known)])
        raise CoverlayError(f"there is no section or key {quoted(wanted)}; sections are: {', '.join(sections)}{hint}")
    return some


def by_section(some: Iterable[Setting]) -> dict[str, list[Setting]]:
    sections: dict[str, list[Setting]] = {}
    for setting in some:
        sections.setdefault(setting.section, []).append(setting)
    return sections


PAGE = """# Keys of an experiment file

`coverlay keys --format markdown` writes this page from what the program itself declares; a test compares. Where not all
kinds or methods have a key, those that do are in brackets after its meaning. Every key can be used in a file and with
`--set key=value`. In `[sweep]` it has several values (`"covering.epsilon" = [0.0, 0.1]`), which are crossed with those
of other swept keys. `[[case]]` tables have settings that belong together.
"""


def as_markdown(some: Iterable[Setting]) -> str:
    """The reference page."""
    lines = [PAGE]
    for section, rows in by_section(some).items():
        lines += [f"## {section}", "", "| key | type | default | unit | meaning |", "|---|---|---|---|---|"]
        cells = ((f"`{s.key}`", s.type, _code(s.default), s.unit, s.in_words) for s in rows)
        lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in cells]
        lines.append("")
    return "\n".join(lines)


def _code(default: str) -> str:
    return default if default == ABSENT else f"`{default}`"
