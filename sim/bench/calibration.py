"""Does a profile predict? Every search and matcher is calibrated here and now, then held against another workload."""

from __future__ import annotations

from sim.bench import Progress, Row
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
    return [
        {
            "target": f"{row['engine']}: a held-out workload is predicted within {WITHIN:.0%}",
            "measured": f"{row['predicted_by_measured']:.2f} of its time",
            "met": abs(row["predicted_by_measured"] - 1.0) <= WITHIN,
        }
        for row in rows
        if row["case"] == "calibration"
    ]
