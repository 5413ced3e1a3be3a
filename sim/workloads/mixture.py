"""A mixture of equality, one-sided, range and missing predicates, with a categorical topic.

The first attribute is a topic with Zipf popularity, the others are whole numbers 0..levels-1, so that
equalities do meet events. Each numeric attribute of a subscription is, by the given shares, an equality, a
one-sided bound, a range, or not mentioned. The topic is mentioned unless it falls into the share `unmentioned`;
a share `different` of these predicates is ≠, which no box can express. A subscription that would mention nothing
asks for its topic. Missing and one-sided predicates are the hard case of curve-based covering.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from broker.language.schema import Schema, categorical, integer
from covering.residue import Residue
from coverlay import CoverlayError, Key
from sim.random_streams import Stream
from sim.workloads.contract import Floats, Generator, Workload
from sim.workloads.options import NotNegative, Several, Share
from sim.workloads.zipf import rank
from sim.workloads.zipf_law import zipf_probabilities

EQUALITY, ONE_SIDED, RANGE, UNMENTIONED = range(4)


def mixture(
    *,
    equality: Annotated[NotNegative, Key("share of the predicates that are equalities")] = 0.2,
    one_sided: Annotated[NotNegative, Key("share of the predicates with one bound")] = 0.3,
    range: Annotated[NotNegative, Key("share of the predicates with two bounds")] = 0.3,
    unmentioned: Annotated[NotNegative, Key("share of the attributes that a subscription does not mention")] = 0.2,
    different: Annotated[Share, Key("share of the predicates on the topic that are ≠")] = 0.1,
    categories: Annotated[Several, Key("topics")] = 20,
    skew: Annotated[NotNegative, Key("Zipf parameter of the topics' popularity; 0: all alike")] = 1.0,
    levels: Annotated[Several, Key("whole values of each numeric attribute")] = 100,
) -> Generator:
    """Shares need not add up to 1: they are taken relative to their sum."""

    def draw(stream: Stream, attributes: int, subscriptions: int, events: int) -> Workload:
        if attributes < 2:
            raise CoverlayError(
                f'workload "mixture" has a topic and at least one number; attributes is {attributes}, give 2 or more'
            )
        popularity = np.cumsum(zipf_probabilities(categories, skew))
        shares = np.array([equality, one_sided, range, unmentioned])
        if not shares.sum() > 0:
            raise CoverlayError(
                "the workload shares equality, one_sided, range, unmentioned are all 0; at least one must be positive"
            )
        shares /= shares.sum()

        topics = categorical("topic", [f"t{i}" for i in np.arange(categories)])
        names = [integer(f"n{i}", 0, levels - 1) for i in np.arange(1, attributes)]
        lo = np.full((subscriptions, attributes), -np.inf)
        hi = np.full((subscriptions, attributes), np.inf)
        mentioned = np.zeros((subscriptions, attributes), dtype=np.bool_)
        _numbers(stream, shares, levels, lo[:, 1:], hi[:, 1:], mentioned[:, 1:])
        asked = stream("workload.topics.kind").random((subscriptions, 2))
        mentioned[:, 0] = (asked[:, 0] >= shares[UNMENTIONED]) | ~mentioned.any(axis=1)
        topic = rank(popularity, stream("workload.topics").random(subscriptions))
        unlike = mentioned[:, 0] & (asked[:, 1] < different)
        residues = _topics(topic, mentioned[:, 0], unlike, categories, lo, hi)

        topics_written = rank(popularity, stream("workload.events.topics").random(events))
        numbers_written = stream("workload.events").integers(0, levels, (events, attributes - 1))
        weights = np.where(mentioned, 1.0 - stream("workload.weights").random(lo.shape), 0.0)
        scores = 1.0 - stream("workload.scores").random(subscriptions)
        written = np.column_stack([topics_written, numbers_written]).astype(np.float64)
        schema = Schema((topics, *names))
        return Workload(schema, lo, hi, mentioned, scores, weights, written, residues)

    return draw


def _numbers(stream: Stream, shares: Floats, levels: int, lo: Floats, hi: Floats, mentioned: NDArray[np.bool_]) -> None:
    """Fill in the numeric attributes."""
    kind = rank(np.cumsum(shares), stream("workload.kinds").random(lo.shape))
    first = np.floor(stream("workload.centres").random(lo.shape) * levels)
    second = np.floor(stream("workload.widths").random(lo.shape) * levels)
    upwards = stream("workload.sides").random(lo.shape) < 0.5
    equal, one, both = kind == EQUALITY, kind == ONE_SIDED, kind == RANGE
    lo[equal] = hi[equal] = first[equal]
    lo[one & upwards] = first[one & upwards]
    hi[one & ~upwards] = first[one & ~upwards]
    lo[both] = np.minimum(first, second)[both]
    hi[both] = np.maximum(first, second)[both]
    mentioned[:] = kind != UNMENTIONED


def _topics(
    topic: NDArray[np.int64],
    asked: NDArray[np.bool_],
    unlike: NDArray[np.bool_],
    categories: int,
    lo: Floats,
    hi: Floats,
) -> dict[int, Residue]:
    """Fill in the topic in the compiler's canonical form: ≠ of the first or last one just moves a bound."""
    alike = asked & ~unlike
    lo[alike, 0] = hi[alike, 0] = topic[alike]
    lo[unlike, 0], hi[unlike, 0] = 0.0, categories - 1.0
    lo[unlike & (topic == 0), 0] = 1.0
    hi[unlike & (topic == categories - 1), 0] = categories - 2.0
    inner = unlike & (topic > 0) & (topic < categories - 1)
    made = {t: Residue.of(excluded={0: [float(t)]}) for t in np.unique(topic[inner]).tolist()}
    return {int(row): made[int(topic[row])] for row in np.flatnonzero(inner)}
