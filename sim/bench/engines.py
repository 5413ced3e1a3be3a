"""`coverlay bench engine`: transport, whether a profile predicts, first use, the two engines, events at full scale."""

from __future__ import annotations

from sim.bench import Progress, Row, engine_speed, events, first_use, transport, verdict
from sim.calibrate import calibrate, in_words

WITHIN = 0.25  # of the measured time


def run(quick: bool, progress: Progress) -> list[Row]:
    parts = (
        transport.transport,
        calibration,
        first_use.first_use,
        engine_speed.engines,
        engine_speed.bulk,
        engine_speed.sweep,
        events.traffic,
        events.full_scale,
    )
    return [row for part in parts for row in part(quick, progress)]


def calibration(quick: bool, progress: Progress) -> list[Row]:
    """Does a profile predict? Every search and matcher is calibrated, then compared with another measured workload.

    `quick` leaves out the slower matchers.
    """
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
        if item.held_out == item.held_out  # NaN: messages have no workload
    ]


def verdicts(rows: list[Row]) -> list[Row]:
    judged = transport.verdicts(rows)
    for row in rows:
        if row["case"] == "calibration":
            ratio, target = row["predicted_by_measured"], f"a held-out workload is predicted within {WITHIN:.0%}"
            judged.append(verdict(f"{row['engine']}: {target}", f"{ratio:.2f} of its time", abs(ratio - 1.0) <= WITHIN))
    return judged + [found for part in (first_use, engine_speed, events) for found in part.verdicts(rows)]
