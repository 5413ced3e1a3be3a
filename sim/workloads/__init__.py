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
from typing import Any

from coverlay import unknown_name
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

__all__ = ["WORKLOADS", "Workload", "generate", "load_workload", "validate", "workload_options"]

WORKLOADS: dict[str, Callable[..., Generator]] = {
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
}
PARAMETERS: dict[str, type] = {"begen": Begen, "located": Located}  # whose keyword-only fields are the options


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
    draw = WORKLOADS[kind](**checked("workload", PARAMETERS.get(kind, WORKLOADS[kind]), options))
    return draw(stream, *counts)


def validate(kind: str, attributes: int, options: Mapping[str, Any]) -> None:
    """Raise what `generate` would raise for these options, without generating anything."""
    generate(kind, streams(0), attributes=attributes, subscriptions=0, events=0, **options)
