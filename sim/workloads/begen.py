"""Boolean expressions and events like BEGen's: every parameter of Table III of Sadoghi & Jacobsen (ICDE 2012).

BEGen is not published in enough detail to repeat it, so this is a model of our own, with the paper's parameters:

- attributes are chosen uniformly or by a Zipf law; a dimension has `cardinality` integer values; values scatter
  within `cluster_size` around one of `clusters` centres per dimension (0: anywhere);
- a predicate is BETWEEN over a handful of values, as in §VII-A;
- independent expressions over hundreds of attributes never match, so `match_probability` needs correlation. A *topic*
  is a set of about `event_size` attributes with a few *variants*, an anchor value per attribute. An event has all
  attributes of its topic, at a variant's anchors. A share of the expressions belongs to a topic and variant: they take
  a subset of its attributes and each predicate contains the anchor with probability q; the rest are independent.
  q is solved from E[q^size] so that the expected share of matches is `match_probability`.

The number of topics × variants is 1/√match_probability: an event then meets about as many near misses as matches,
instead of finding a group in which everything matches.

Weights follow both papers: inverse frequency ξ of the attribute, weight = max(ξ, N(0.8 ξ, 0.05 ξ)), for expressions
and events alike. ξ is scaled to 1 for the rarest attribute.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from coverlay import CoverlayError, Key, kernel
from sim.random_streams import Stream, streams
from sim.workloads.options import Count, NotNegative, Range
from sim.workloads.zipf_law import zipf_probabilities
from topk.sparse import Events, SparseCatalogue

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DISTRIBUTIONS = ("uniform", "zipf")  # of the attributes
Cardinality = Annotated[int, Range(2, 2**53), Key("whole values of each attribute")]
SubscriptionSize = Annotated[int, Key("attributes that a subscription names, on average")]
EventSize = Annotated[int, Key("attributes that an event has")]
_WIDEST = 9  # a range is 1 to this many values: k-index enumerates them
_VARIANTS = 4  # anchors per topic: near misses that differ by value, not by attribute
_TOPICAL = 0.5  # share of expressions that belong to a topic


@dataclass(frozen=True)
class Population:
    """How large a set is, and which attributes its rows name."""

    subscriptions: int = 100_000
    events: int = 100
    dimensions: int = 400
    seed: int = 1
    _: KW_ONLY
    distribution: Annotated[str, DISTRIBUTIONS, Key("how often an attribute is named")] = "uniform"
    skew: Annotated[NotNegative, Key('of the Zipf law, where distribution = "zipf"')] = 1.0

    @property
    def law(self) -> Floats:
        """How likely each attribute is named."""
        if self.distribution not in DISTRIBUTIONS:
            raise CoverlayError(f"distribution must be one of {', '.join(DISTRIBUTIONS)}, not {self.distribution!r}")
        return zipf_probabilities(self.dimensions, self.skew if self.distribution == "zipf" else 0.0)


@dataclass(frozen=True)
class Begen(Population):
    """One column of Table III."""

    _: KW_ONLY
    cardinality: Cardinality = 250_000_000
    clusters: Annotated[int, Range(0), Key("centres per attribute that values scatter around; 0: anywhere")] = 4
    cluster_size: Annotated[Count, Key("scatter around a centre", "values")] = 100
    subscription_size: SubscriptionSize = 8
    event_size: EventSize = 15
    match_probability: Annotated[
        float, Range(0, 0.25, above=True), Key("expected share of the subscriptions that an event matches")
    ] = 0.001


@dataclass(frozen=True)
class Expressions:
    """What a generator returns."""

    catalogue: SparseCatalogue
    events: Events


def begen(parameters: Begen, stream: Stream | None = None, *, topical: float | None = None) -> Expressions:
    """Expressions and events; equal parameters give equal arrays. A `stream` replaces the seed.

    `topical`: another share of the expressions that belong to a topic; the smaller, the fewer of them are near misses.
    """
    _check(parameters)
    share = _TOPICAL if topical is None else topical
    least = fewest_topical(parameters)
    if not least <= share <= 1.0:
        raise CoverlayError(f"topical {share:g} must be from {least:.3g}, where all of them match, to 1")
    stream = stream or streams(parameters.seed)
    law = parameters.law
    shape = (parameters.dimensions, parameters.clusters or 1)
    centres = stream("begen.centres").integers(0, parameters.cardinality, shape)
    topics = _Topics(parameters, stream, law, centres, share)
    catalogue = _expressions(parameters, stream, law, centres, topics)
    return Expressions(catalogue, _events(parameters, stream, law, centres, topics, catalogue))


def _check(p: Begen) -> None:
    if not 0.0 < p.match_probability <= 0.25:
        raise CoverlayError(f"match_probability must be above 0 and at most 0.25, not {p.match_probability}")
    if not 1 <= p.subscription_size <= p.event_size <= p.dimensions:
        raise CoverlayError(
            "subscription_size ≤ event_size ≤ dimensions is needed, "
            f"not {p.subscription_size}, {p.event_size} and {p.dimensions}"
        )


def _groups(p: Begen) -> tuple[int, int]:
    """How many topics there are, and variants of each."""
    groups = max(2, round(p.match_probability**-0.5))
    variants = min(_VARIANTS, groups)
    return max(1, round(groups / variants)), variants


def fewest_topical(p: Begen) -> float:
    """The least share of the expressions that a topic needs: then all of a variant match its events, none nearly."""
    topics, variants = _groups(p)
    return p.match_probability * topics * variants


class _Topics:
    """Attribute sets with anchors, and the probability q that gives the share of matches asked for."""

    def __init__(self, p: Begen, stream: Stream, law: Floats, centres: Ints, share: float) -> None:
        self.count, self.variants = _groups(p)
        self.share = share
        self.attributes = distinct(stream("begen.topics"), law, self.count, p.event_size)
        shape = (self.count, self.variants, p.event_size)
        named = np.broadcast_to(self.attributes[:, None, :], shape)
        self.anchors = _values(stream("begen.anchors"), p, centres, named)
        self.within = p.match_probability * self.count * self.variants / share

    def hold_probability(self, sizes: Ints) -> float:
        """q with mean(q ** sizes) = the share of a variant's expressions that its events must match."""
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2.0
            low, high = (middle, high) if float(np.mean(middle**sizes)) < self.within else (low, middle)
        return high


def distinct(random: np.random.Generator, law: Floats, rows: int, size: int) -> Ints:
    """`size` distinct attributes per row, drawn by the law without replacement, ascending."""
    chosen = np.empty((rows, size), dtype=np.int64)
    _draw_distinct(random, np.cumsum(law), chosen)
    chosen.sort(axis=1)
    return chosen


@kernel
def _draw_distinct(random: Any, cumulative: Any, chosen: Any) -> None:
    """Draw until enough are distinct: rejection is drawing without replacement."""
    taken = np.full(len(cumulative), -1, np.int64)
    for row in range(len(chosen)):
        count = 0
        while count < chosen.shape[1]:
            a = min(np.searchsorted(cumulative, random.random(), side="right"), len(cumulative) - 1)
            if taken[a] != row:
                taken[a] = row
                chosen[row, count] = a
                count += 1


def _values(random: np.random.Generator, p: Begen, centres: Ints, attributes: Ints) -> Ints:
    """A value per attribute: near one of its dimension's centres, or anywhere."""
    if not p.clusters:
        return random.integers(0, p.cardinality, attributes.shape)
    centre = centres[attributes, random.integers(0, p.clusters, attributes.shape)]
    scatter = random.integers(-p.cluster_size // 2, p.cluster_size // 2 + 1, attributes.shape)
    return np.clip(centre + scatter, 0, p.cardinality - 1)


def sizes_around(random: np.random.Generator, mean: int, largest: int, count: int) -> Ints:
    """Sizes from mean−half to mean+half, cut to what is possible, symmetric so that the mean is kept."""
    half = min(mean // 2, largest - mean, mean - 1)
    return random.integers(mean - half, mean + half + 1, count)


def _expressions(p: Begen, stream: Stream, law: Floats, centres: Ints, topics: _Topics) -> SparseCatalogue:
    n = p.subscriptions
    sizes = sizes_around(stream("begen.sizes"), p.subscription_size, p.event_size, n)
    topical = stream("begen.topical").random(n) < topics.share
    held = topics.hold_probability(sizes[topical]) if topical.any() else 1.0
    random = stream("begen.expressions")
    # All rows draw event_size attributes and use some of them.
    free = distinct(random, law, n, p.event_size)
    topic, variant = random.integers(0, topics.count, n), random.integers(0, topics.variants, n)
    named = np.where(topical[:, None], topics.attributes[topic], free)
    used = some_of(random, named.shape, sizes)
    width = random.integers(1, _WIDEST + 1, named.shape)
    anchor = topics.anchors[topic, variant]
    contains = topical[:, None] & (random.random(named.shape) < held)
    around = anchor - random.integers(0, _WIDEST, named.shape) % width
    lo = np.where(contains, around, _values(random, p, centres, named))
    # A near miss must miss: if it contains the anchor by accident, move it past.
    accident = topical[:, None] & ~contains & (lo <= anchor) & (anchor < lo + width)
    lo = np.clip(np.where(accident, anchor + 1, lo), 0, p.cardinality - 1)
    hi = np.minimum(lo + width - 1, p.cardinality - 1)
    return catalogue_of(stream("begen.weights"), p.dimensions, sizes, named[used], lo[used], hi[used])


def some_of(random: np.random.Generator, shape: tuple[int, ...], sizes: Ints) -> NDArray[np.bool_]:
    """Choose sizes[i] cells of each row i at random, for all rows at once."""
    return np.argsort(np.argsort(random.random(shape), axis=1), axis=1) < sizes[:, None]


def catalogue_of(
    random: np.random.Generator, dimensions: int, sizes: Ints, named: Ints, lo: Any, hi: Any
) -> SparseCatalogue:
    """Expressions of these sizes from the columns of their predicates, weighted by inverse frequency."""
    offsets, attributes = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), named.astype(np.int32)
    weights = inverse_frequency_weights(random, attributes, attributes, dimensions)
    low, high = lo.astype(np.float64), hi.astype(np.float64)
    return SparseCatalogue(dimensions, np.arange(len(sizes)), offsets, attributes, low, high, weights)


def _events(
    p: Begen, stream: Stream, law: Floats, centres: Ints, topics: _Topics, catalogue: SparseCatalogue
) -> Events:
    """Events have their topic's attributes; the topics take turns, so that a few events are enough to measure."""
    m = p.events
    group = stream("begen.events").permutation(np.arange(m) % (topics.count * topics.variants))
    topic, variant = group % topics.count, group // topics.count
    attributes = topics.attributes[topic].astype(np.int32).ravel()
    values = topics.anchors[topic, variant].astype(np.float64).ravel()
    offsets = np.arange(m + 1, dtype=np.int64) * p.event_size
    weights = inverse_frequency_weights(stream("begen.event-weights"), attributes, catalogue.attributes, p.dimensions)
    return Events(offsets, attributes, values, values.copy(), weights)


def inverse_frequency_weights(
    random: np.random.Generator, attributes: NDArray[np.int32], population: NDArray[np.int32], dimensions: int
) -> Floats:
    """max(ξ, N(0.8 ξ, 0.05 ξ)) per predicate, ξ = 1 for the rarest attribute of the population."""
    counts = np.maximum(np.bincount(population, minlength=dimensions), 1).astype(np.float64)
    rarity = (counts[np.unique(population)].min() if len(population) else 1.0) / counts
    own = rarity[attributes]
    return np.maximum(own, random.normal(0.8 * own, 0.05 * own))


# ---- like DBLP -------------------------------------------------------------------------------------------

_PREFIXES = 677  # two letters, and one for everything else
_WORDS = 26**3
_DBLP_SIZE = {"author": 8, "title": 35}  # predicates on average, Table III
_WORD_SKEW = 1.2
_ELSEWHERE = 7919.0  # further than any cluster is wide


def dblp_like(kind: str, subscriptions: int, events: int, seed: int = 1) -> Expressions:
    """Like the paper's DBLP sets: an attribute is a word's first two letters, its value one of 26³ continuations.

    Few prefixes and words are popular (Zipf both), so lists are long and overlap is dense. An event is one of the
    expressions, word for word, as a new paper by known authors would be.
    """
    if kind not in _DBLP_SIZE:
        raise CoverlayError(f"kind must be one of {', '.join(_DBLP_SIZE)}, not {kind!r}")
    stream = streams(seed)
    law = zipf_probabilities(_PREFIXES, 1.0)
    mean = _DBLP_SIZE[kind]
    widest = mean + mean // 2
    sizes = sizes_around(stream("dblp.sizes"), mean, widest, subscriptions)
    random = stream("dblp.expressions")
    named = distinct(random, law, subscriptions, widest)
    used = some_of(random, named.shape, sizes)
    words = np.cumsum(zipf_probabilities(_WORDS, _WORD_SKEW))
    values = np.searchsorted(words, random.random(int(sizes.sum()))).astype(np.float64)
    catalogue = catalogue_of(stream("dblp.weights"), _PREFIXES, sizes, named[used], values, values)
    offsets, attributes = catalogue.offsets, catalogue.attributes
    chosen = stream("dblp.events").integers(0, max(subscriptions, 1), events)
    at = np.concatenate([np.arange(offsets[i], offsets[i + 1]) for i in chosen] or [np.empty(0, np.int64)])
    event_offsets = np.concatenate([[0], np.cumsum(sizes[chosen])]).astype(np.int64)
    own = inverse_frequency_weights(stream("dblp.event-weights"), attributes[at], attributes, _PREFIXES)
    return Expressions(catalogue, Events(event_offsets, attributes[at], values[at], values[at].copy(), own))


def unmatched(workload: Expressions, seed: int = 1) -> Events:
    """The same events with about half of their values moved elsewhere: they match nothing, or nearly."""
    events, random = workload.events, streams(seed)("begen.unmatched")
    lo = events.lo.copy()
    for i in range(len(events)):
        span = slice(events.offsets[i], events.offsets[i + 1])
        moved = random.random(len(lo[span])) < 0.5
        lo[span] = np.where(moved, lo[span] + _ELSEWHERE, lo[span])
    return Events(events.offsets, events.attributes, lo, lo.copy(), events.weights)
