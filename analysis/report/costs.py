"""What searches for covers cost, by point and seed: under every profile, in probes and in lookups.

Profiles and the slides' bounds are in a file that the simulator writes beside the traces: `analysis` may import neither
the profiles nor the theory.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.report.places import IN_PROBES, LOOKUPS, Price
from analysis.report.summary import SIMPLE_ENTRIES, Summary
from coverlay import CoverlayError, quoted

BOUNDS_FILE = "bounds.json"  # written by sim/tell/study_bounds.py
REWRITE = "delete it and run `coverlay report {out}`, which writes it again"
SERVICE, PROFILE = "broker.service", "broker.service.profile"
IN_TIME = {"in time": Price()}  # if the folder has no prices

Floats = NDArray[np.float64]  # a number per seed; NaN: unknown


def charged_by(point: str, prices: Mapping[str, Price], out: Path) -> Price:
    """What the runs of a point were charged: by the profile that the point sets, else by the first."""
    values = json.loads(point)
    name = values.get(PROFILE) or (values.get(SERVICE) or {}).get("profile") or next(iter(prices))
    if name not in prices:
        raise CoverlayError(
            f"{out / BOUNDS_FILE} has no prices of the profile {quoted(name)}; {REWRITE.format(out=out)}"
        )
    return prices[name]


def read_bounds(out: Path) -> tuple[dict[str, Mapping[str, Any]], Mapping[str, Price]]:
    """What the sweep wrote to its folder: bounds by family and given bits; prices, those of the runs first."""
    try:
        found = _read(out)
        prices = {name: Price(**price) for name, price in found.get("profiles", {}).items()}
        theory = {entry["family"]: entry["bounds"] for entry in found.get("families", ())}
        return theory, prices or IN_TIME
    except (KeyError, TypeError, AttributeError) as error:
        raise _damaged(out, error) from None


def read_slides(out: Path) -> str:
    """The slides' own figures beside ours, as the sweep computed them; empty if it did not."""
    return str(_read(out).get("slides", ""))


def _read(out: Path) -> dict[str, Any]:
    file = out / BOUNDS_FILE
    if not file.is_file():
        return {}
    try:
        return dict(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise _damaged(out, error) from None


def _damaged(out: Path, error: Exception) -> CoverlayError:
    return CoverlayError(f"{out / BOUNDS_FILE} cannot be read: {quoted(error)}; {REWRITE.format(out=out)}")


def costs_by_seed(
    summary: Summary, charged: Mapping[str, Price], prices: Mapping[str, Price]
) -> dict[str, dict[str, Floats]]:
    """By point, a number per seed: messages, those of simple routing, the share of entries saved, costs by column.

    `charged`: by point, what its runs were charged.
    """
    runs = summary.runs[summary.runs["point"].isin(set(charged))]
    checks = runs["checks"] / runs["subscribe_requests"].where(lambda came: came > 0)
    columns = {
        "messages": runs["control_messages"],
        "reduction": runs["reduction"],
        "none": runs[SIMPLE_ENTRIES].where(runs["unsubscribe_messages"] == 0),
        "time": runs["check_time"],
        **{name: cost * checks for name, cost in costs_of_a_check(runs, charged, prices).items()},
    }
    seeds = pd.MultiIndex.from_arrays([runs["point"], runs["seed"]])
    found: dict[str, dict[str, Floats]] = {point: {} for point in charged}
    for name, column in columns.items():
        wide = column.reindex(runs.index).astype(float).set_axis(seeds).unstack("seed")
        for point, values in zip(wide.index, wide.to_numpy(), strict=True):
            found[str(point)][name] = values
    return found


def costs_of_a_check(
    runs: pd.DataFrame, charged: Mapping[str, Price], prices: Mapping[str, Price]
) -> dict[str, pd.Series[float]]:
    """By column of costs (`Place.column`), the mean cost of a check in each run; NaN where nothing takes time."""
    found = {IN_PROBES: runs["probes_per_check"], LOOKUPS: runs["round_trips_per_check"]}
    timed = runs[runs["check_time"].notna()]
    for name, price in prices.items():
        times = [
            price.instead_of(charged[str(point)], str(method), some)
            for (point, method), some in timed.groupby(["point", "charged_as"])
        ]
        found[name] = pd.concat(times).reindex(runs.index) if times else runs["check_time"]
    return found


def in_time(numbers: Mapping[str, Floats]) -> bool:
    """Whether the searches of a point took time with every seed."""
    return bool(np.array_equal(np.isnan(numbers["time"]), np.isnan(numbers["messages"])))
