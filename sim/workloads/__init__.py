"""Workloads by name, and from files: `generate("zipf", streams(1), attributes=2, subscriptions=1000, events=200)`.

contract, options   what a workload is; how a generator declares which values its options may have
uniform, zipf, regional_zipf, mixture, anisotropic, adversarial   boxes (points_in_regions; zipf_law: of most)
begen, located, expressions                         expressions over many attributes; with places; both as boxes
stocks, ads, jobs, sensors                          scenarios in the subscription language (scenario)
files, tables       the user's own data
arrivals            who does what when (publishing: when events are published)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from typing import Any

from broker.language.schema import Schema
from coverlay import CoverlayError, Registry, place_of, quoted, unknown_name
from routing.options import accepted, reject_unknown, whole
from sim.random_streams import Stream, streams
from sim.workloads.ads import ads
from sim.workloads.adversarial import adversarial
from sim.workloads.anisotropic import anisotropic
from sim.workloads.begen import Begen
from sim.workloads.contract import Generator, Workload
from sim.workloads.expressions import begen_boxes, located_boxes
from sim.workloads.files import load_workload
from sim.workloads.jobs import jobs
from sim.workloads.located import Located
from sim.workloads.mixture import mixture
from sim.workloads.options import checked
from sim.workloads.regional_zipf import regional_zipf
from sim.workloads.sensors import sensors
from sim.workloads.stocks import stocks
from sim.workloads.uniform import uniform
from sim.workloads.zipf import zipf

__all__ = ["WORKLOADS", "Workload", "generate", "load_workload", "register", "validate", "workload_options"]

WORKLOADS: Registry[Callable[..., Generator]] = Registry(
    "workload kind",
    {
        "uniform": uniform,
        "zipf": zipf,
        "regional-zipf": regional_zipf,
        "mixture": mixture,
        "anisotropic": anisotropic,
        "adversarial": adversarial,
        "begen": begen_boxes,
        "located": located_boxes,
        "stocks": stocks,
        "ads": ads,
        "jobs": jobs,
        "sensors": sensors,
    },
)
PARAMETERS: dict[str, type] = {"begen": Begen, "located": Located}  # whose keyword-only fields are the options


def register(kind: Any = None, *, schema: Mapping[str, Any] | None = None) -> Any:
    """Add a workload of your own: f(stream, subscriptions, events, *, …) → two frames, or a `Workload`.

    `schema` describes the attributes of frames, as `[schema]` does; (low, high) is short for a continuous attribute,
    a range for an integer one, a list of texts for categories, `str` for text.
    """
    if kind is None:
        return lambda decorated: register(decorated, schema=schema)
    table = None if schema is None else {name: _attribute(entry) for name, entry in schema.items()}
    if table is not None:
        Schema.from_table(table)  # fail where it is written

    @wraps(kind)
    def generator(**options: Any) -> Generator:
        def draw(stream: Stream, attributes: int, subscriptions: int, events: int) -> Workload:
            made = kind(stream, subscriptions, events, **options)
            if isinstance(made, Workload):
                return made
            where = f"{place_of(kind)}: {kind.__name__}"
            if not (isinstance(made, tuple) and len(made) == 2):
                raise CoverlayError(f"{where} returned {quoted(made)}; it must be two frames, or a Workload")
            if table is None:
                raise CoverlayError(f"{where} returns frames, so it needs @register(schema={{…}})")
            return replace(load_workload(*made, table), warnings=())  # of what files lack: [arrivals] has it

        return draw

    WORKLOADS.add_function(kind, generator)
    return kind


def _attribute(given: Any) -> Any:
    """One entry of a schema, as files have it."""
    if given is str:
        return {"kind": "text"}
    if isinstance(given, range):
        return {"kind": "integer", "low": given.start, "high": given.stop - 1}
    if isinstance(given, tuple) and len(given) == 2:
        return {"kind": "continuous", "low": given[0], "high": given[1]}
    if isinstance(given, list):
        return {"kind": "categorical", "categories": given}
    return {"kind": given} if given in ("latitude", "longitude") else given


def workload_options(kind: str) -> tuple[str, ...]:
    """The options that `generate` takes for this kind."""
    if kind not in WORKLOADS:
        raise unknown_name("workload kind", kind, WORKLOADS)
    return accepted(PARAMETERS.get(kind, WORKLOADS[kind]))


def generate(
    kind: str, stream: Stream, *, attributes: int, subscriptions: int, events: int, **options: Any
) -> Workload:
    """Generate a workload; equal streams and options give equal columns."""
    counts = [whole("workload.attributes", attributes, 1)]
    counts += [whole("workload.subscriptions", subscriptions, 0), whole("workload.events", events, 0)]
    reject_unknown(f'workload kind "{kind}"', options, workload_options(kind))
    WORKLOADS.check_options("workload", kind, options)
    draw = WORKLOADS[kind](**checked("workload", PARAMETERS.get(kind, WORKLOADS[kind]), options))
    return draw(stream, *counts)


def validate(kind: str, attributes: int, options: Mapping[str, Any]) -> None:
    """Raise what `generate` would raise for these options, without generating anything."""
    generate(kind, streams(0), attributes=attributes, subscriptions=0, events=0, **options)
