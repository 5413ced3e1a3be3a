"""When events are published, at a mean rate that can be set: what `arrivals.publishing` may be.

`poisson`: independent publishers, exponential gaps. `bursty`: on and off. A burst lasts `burst_length` ms on average
(exponential) and publishes, as a Poisson process, `burst_factor` times as fast as the mean; the silence after it lasts
`burst_factor` − 1 times as long on average, so that the mean rate is the one asked for. The first event opens a burst.
`scaled`: the recorded times of the data, stretched or squeezed to the rate; gaps keep their proportions.

With `poisson` and `scaled`, a higher rate squeezes the same draw: runs of one seed share their random numbers.
"""

from __future__ import annotations

import numpy as np

from coverlay import CoverlayError
from sim.random_streams import Stream
from sim.workloads.contract import Floats

POISSON, BURSTY, SCALED = PUBLISHING = ("poisson", "bursty", "scaled")
PHASES = 64  # bursts that are drawn at once


def poisson(rng: np.random.Generator, count: int, rate: float) -> Floats:
    """The times of `count` arrivals from 0 on, `rate` per ms on average."""
    return np.cumsum(rng.standard_exponential(count)) / rate


def bursty(stream: Stream, count: int, rate: float, factor: float, length: float) -> Floats:
    """On and off: a Poisson process on a clock that runs only during bursts, with the silences put in between."""
    on = poisson(stream("arrivals.publish"), count, rate * factor)
    if not count:
        return on
    bursts, silences = stream("arrivals.publish.bursts"), stream("arrivals.publish.silences")
    ends, silent = np.empty(0), np.empty(0)  # when each burst ends, on that clock; the silence after it
    while not len(ends) or ends[-1] < on[-1]:
        begun = float(ends[-1]) if len(ends) else 0.0
        ends = np.concatenate([ends, begun + length * np.cumsum(bursts.standard_exponential(PHASES))])
        silent = np.concatenate([silent, length * (factor - 1) * silences.standard_exponential(PHASES)])
    waited: Floats = np.concatenate([[0.0], np.cumsum(silent)])[np.searchsorted(ends, on)]
    return on + waited


def squeeze(times: Floats | None, rate: float) -> float:
    """The factor by which recorded times are multiplied, so that `rate` events come per ms on average."""
    span = 0.0 if times is None or len(times) < 2 else float(times[-1] - times[0])
    if times is None or not span > 0.0:
        raise CoverlayError(
            f'arrivals.publishing = "{SCALED}" needs events at different times: a column time in workload.events_file'
        )
    return (len(times) - 1) / rate / span
