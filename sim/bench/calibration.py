"""Does a profile predict? Every search and matcher is calibrated now and compared with another, measured workload."""

from __future__ import annotations

from sim.bench import Progress, Row, verdict
from sim.calibrate import calibrate, in_words

WITHIN = 0.25  # of the measured time


def calibration(quick: bool, progress: Progress) -> list[Row]:
    """A row per method; `quick` leaves the slower matchers out."""
    found = calibrate("scan,packed,kdtree,bigmin,auto,pivot" if quick else None, progress)
    return [
        {
            "case": "calibration",
            "engine": item.name,
            "costs": in_words(item).split(": ", 1)[1],
            "fit_error": round(item.error, 3),
            "predicted_by_measured": round(item.held_out, 3),
        }
        for item in found
        if item.held_out == item.held_out  # messages have no workload
    ]


def verdicts(rows: list[Row]) -> list[Row]:
    ratios = {row["engine"]: row["predicted_by_measured"] for row in rows if row["case"] == "calibration"}
    target = f"a held-out workload is predicted within {WITHIN:.0%}"
    return [
        verdict(f"{name}: {target}", f"{ratio:.2f} of its time", abs(ratio - 1.0) <= WITHIN)
        for name, ratio in ratios.items()
    ]
