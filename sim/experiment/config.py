"""Experiment files: what they may contain, checked in full before anything runs.

Sections hold the settings that every kind shares plus the options of the chosen kind (`overlay.degree`,
`covering.probe_cap`, …). Options are checked against the kind itself, so a misspelt or foreign one is
reported with its path like any other mistake. All mistakes are listed in one message.

config_world.py has the sections of the world (overlay, links, brokers, workload, arrivals, faults), config_methods.py
those of the algorithms (routing, covering, matching). Each key states its meaning (`Key`; keys.py lists them all). A
key that other settings can leave without effect declares why (`NoEffect`, see effects.py and reasons.py). Defaults that
brokers have too are read from the brokers' settings.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from broker.ranking import at_work
from broker.settings import refuse_failover, searches_of
from broker.work import load_profile
from covering import METHODS
from covering.curve.resolution import GreedyBits
from coverlay import CoverlayError, Key, did_you_mean, quoted
from routing.strategies.skyband import EXACT_SCAN
from sim.experiment import reasons
from sim.experiment.config_base import Count, Section, Seed
from sim.experiment.config_methods import CoveringSection, MatchingSection, RoutingSection
from sim.experiment.config_world import (
    ArrivalsSection,
    BrokerSection,
    FaultsSection,
    LinksSection,
    OverlaySection,
    WorkloadSection,
)
from sim.experiment.effects import NoEffect


class RunSection(Section):
    engine: Annotated[
        Literal["auto", "simpy", "compiled", "prefer-compiled"],
        Key("auto: by predicted size; simpy: the reference; compiled: numba; prefer-compiled: numba where supported"),
    ] = "auto"
    samples: Annotated[Count, Key("how many times table sizes are recorded during a run")] = 20
    sample_decisions: Annotated[
        float, Field(ge=0, le=1), Key("share of the subscriptions whose decisions the trace keeps; totals stay exact")
    ] = 1.0
    sample_deliveries: Annotated[
        float, Field(ge=0, le=1), Key("share of the events whose deliveries the trace keeps; totals stay exact")
    ] = 1.0
    sample_oracle: Annotated[
        Annotated[float, Field(gt=0, le=1)] | None,
        Key("share of the events that the oracle judges; absent: all, or as many as it can judge in seconds"),
    ] = None
    limit_bytes: Annotated[
        float, Field(gt=0), Key("a run predicted to need more memory (SimPy: disk) is refused unless forced", "bytes")
    ] = 4e9
    force: Annotated[bool, Key("run it anyway")] = False


class Experiment(Section):
    """One point of a sweep, or a whole experiment before it is expanded."""

    name: Annotated[str, Field(min_length=1), Key("its name in reports; absent: the file's name")]
    question: Annotated[str, Key("the question to answer; the report repeats it")] = ""
    asks: Annotated[
        list[str], Key("metrics that answer it, by name; absent: those that usually matter for what is swept")
    ] = Field(default_factory=list)
    notes: Annotated[list[str], Key("what a reader of the results must know; printed first, and on the page")] = Field(
        default_factory=list
    )
    seeds: Annotated[
        list[Seed], Field(min_length=1), Key("every point is run once per seed; several give intervals")
    ] = Field(default_factory=lambda: [1])
    tell: Annotated[Count, Key("number of events that coverlay run describes in words")] = 0
    plugins: Annotated[
        list[str], Key("files and installed modules with methods of your own, which the other keys then know")
    ] = Field(default_factory=list)
    overlay: OverlaySection = Field(default_factory=OverlaySection)
    links: LinksSection = Field(default_factory=LinksSection)
    broker: BrokerSection = Field(default_factory=BrokerSection)
    workload: WorkloadSection = Field(default_factory=WorkloadSection)
    schema_: Annotated[
        dict[str, Any] | None,
        Field(alias="schema"),
        NoEffect(reasons.workload_generated),
        Key('attributes of your own files: { price = { kind = "continuous", low = 0, high = 100 } }'),
    ] = None
    arrivals: ArrivalsSection = Field(default_factory=ArrivalsSection)
    routing: RoutingSection = Field(default_factory=RoutingSection)
    covering: CoveringSection = Field(default_factory=CoveringSection)
    matching: MatchingSection = Field(default_factory=MatchingSection)
    faults: FaultsSection = Field(default_factory=FaultsSection)
    run: RunSection = Field(default_factory=RunSection)

    @property
    def network_wide(self) -> bool:
        """The k best of the whole network are served."""
        return self.matching.scope == "network" and self.matching.k is not None

    @model_validator(mode="after")
    def _priced(self) -> Experiment:
        """The profile must have coefficients for every search and matcher of this experiment."""
        if self.broker.service.profile is not None:
            load_profile(self.broker.service.profile).prices(*self.priced())
        return self

    def priced(self) -> tuple[list[str], str, str]:
        """What a profile has to price: the searches, the kind of matching, the matcher."""
        routing, kind = self.routing, self.matching.kind
        method = EXACT_SCAN if self.network_wide and routing.rank == "skyband" else self.covering.method
        methods = searches_of(routing.strategy, routing.mode, method, routing.advertisements)
        return methods, kind, at_work(kind, self.matching.method, self.matching.semantics)

    @model_validator(mode="after")
    def _fails_over(self) -> Experiment:
        routing, by_level = self.routing, bool(self.covering.epsilon_per_level)
        if routing.failover != "none":
            refuse_failover(routing.failover, routing.strategy, routing.advertisements, self.network_wide, by_level)
        return self

    @field_validator("seeds")
    @classmethod
    def _distinct(cls, seeds: list[int]) -> list[int]:
        if len(set(seeds)) != len(seeds):
            raise CoverlayError(f"seeds {quoted(seeds)} repeat; each seed is one run")
        return seeds

    def parameters(self) -> dict[str, Any]:
        """Everything but the seed that decides the outcome of a run, defaults included; the same for both engines."""
        about = ("seeds", "name", "question", "asks", "notes", "tell", "plugins")
        others: Any = dict.fromkeys(about, True)
        others["run"] = {"limit_bytes", "force", "engine"}
        return self.model_dump(by_alias=True, exclude=others, exclude_none=True)


def borrowed_prices(experiment: Experiment) -> list[str]:
    """Notes about methods whose work is priced as that of others."""
    profile = experiment.broker.service.profile
    if profile is None:
        return []
    borrowed = load_profile(profile).borrowed(*experiment.priced())
    cure = f"profile {profile} has no price of its own for it (coverlay calibrate --methods NAME measures one)"
    return [f"{method} is priced like {known}: {cure}" for method, known in borrowed.items()]


def bits_that_follow(experiments: Iterable[Experiment]) -> list[str]:
    """A note where ε is varied and searches choose their resolution by their entries, which differ with ε."""
    swept: dict[str, set[float]] = {}
    for experiment in experiments:
        covers = experiment.covering
        if issubclass(METHODS[covers.method], GreedyBits) and covers.options.get("bits") is None:
            swept.setdefault(covers.method, set()).add(covers.epsilon)
    return [
        f"covering.epsilon is varied, and {method} takes as many bits as its entries ask for: where more entries are "
        "kept, rows may differ in resolution too (metric bits); covering.bits gives all the same"
        for method, epsilons in swept.items()
        if len(epsilons) > 1
    ]


# pydantic's messages, reworded for people who write TOML.
_A_TABLE = "it should be a table of keys, { key = value, … }, or a section"
IN_WORDS = {
    "dict_type": _A_TABLE,
    "model_type": _A_TABLE,
    "list_type": "it should be a list, […]",
    "too_short": "it needs more values",
    "too_long": "it has too many values",
    "string_type": 'it should be text, "…"',
    "string_too_short": "it should not be empty",
    "bool_type": "it should be true or false",
    "int_type": "it should be a whole number",
    "int_from_float": "it should be a whole number",
    "float_type": "it should be a number",
}


def parse(data: dict[str, Any], where: str) -> Experiment:
    """`data` as an experiment, or one CoverlayError that lists every mistake with its path."""
    try:
        return Experiment.model_validate(data)
    except ValidationError as error:
        lines = [_sentence(item) for item in error.errors()]
        raise CoverlayError(f"{where}: " + "; ".join(lines)) from None


def _keys(path: Iterable[Any]) -> list[str]:
    """The keys of the section at this path."""
    section: Any = Experiment
    for name in path:
        section = section.model_fields[name].annotation
    return [field.alias or name for name, field in section.model_fields.items()]


def _sentence(item: Any) -> str:
    path = ".".join(str(part) for part in item["loc"])
    message = IN_WORDS.get(item["type"]) or str(item["msg"]).removeprefix("Value error, ")
    if item["type"] == "extra_forbidden":
        return f"{path}: there is no such key{did_you_mean(item['loc'][-1], _keys(item['loc'][:-1]))}"
    if item["type"] in ("value_error", "missing"):
        return f"{path}: {message}" if path else message
    return f"{path} = {quoted(item['input'])}: {message.replace('Input', 'it')}"
