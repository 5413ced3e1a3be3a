"""What the sections of an experiment file share: strict models, options of the chosen kind, usual types."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from routing.options import reject_unknown
from sim.experiment.effects import INPUT_FILE, NoEffect

LARGEST = 2**31 - 1  # of counts: traces number brokers with 32 bits, and no machine holds more of anything
Positive = Annotated[int, Field(ge=1, le=LARGEST)]
Count = Annotated[int, Field(ge=0, le=LARGEST)]
Share = Annotated[float, Field(ge=0, lt=1)]
Seed = Annotated[int, Field(ge=0, le=2**63 - 1)]  # as traces keep it
File = Annotated[str | None, INPUT_FILE]


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, strict=True)


class OpenSection(Section):
    """A section that also holds the options of the kind or method it names."""

    model_config = ConfigDict(extra="allow", allow_inf_nan=False, strict=True)

    option_effects: ClassVar[dict[str, NoEffect | None]] = {}  # by name; "" is for options not listed

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.model_extra or {})

    def option_metadata(self, name: str) -> tuple[NoEffect, ...]:
        effect = self.option_effects.get(name, self.option_effects.get(""))
        return (effect,) if effect else ()

    def reject_unknown(self, what: str, known: tuple[str, ...]) -> None:
        reject_unknown(what, self.options, known, beside=type(self).model_fields)
