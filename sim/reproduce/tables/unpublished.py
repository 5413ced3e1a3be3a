"""What the documents leave out: constants that we had to choose, and data that we had to make.

A claim names the constants that it rests on. Where another value turns its verdict it is open, and the range is shown.
"""

from collections.abc import Mapping

from analysis.report.claims import Constant

_NOT_SWEPT = "not swept"

CONSTANTS: tuple[Constant, ...] = (
    Constant(
        "length-steps", "vldb08", "steps of the Zipf law that half-lengths are drawn from",
        "sim/workloads/points_in_regions.py, LENGTH_STEPS", "100", "as many as Table 1 has cells per dimension",
        _NOT_SWEPT,
    ),
    Constant(
        "region-shape", "vldb08", "sides of a region with a given volume, and the distance from its middle",
        "sim/workloads/points_in_regions.py, _SIDE_SPREAD, _PAIR_SPREAD", "near a cube; largest coordinate",
        "nothing in the paper prefers a dimension", _NOT_SWEPT,
    ),
    Constant(
        "near-misses", "icde12", "how expressions of BEGen are correlated with events: topics, their variants, and the share of "
        "expressions that belong to one", "sim/workloads/begen.py, _TOPICAL, _VARIANTS, _Topics",
        "half; 4; as many topics as make near misses as frequent as matches",
        "independent expressions would never match; no model of the correlation is published", _NOT_SWEPT,
    ),
    Constant(
        "range-width", "icde12", "how many values a predicate allows", "sim/workloads/begen.py, _WIDEST", "1 to 9",
        "k-index enumerates ranges, so they must be short", _NOT_SWEPT,
    ),
    Constant(
        "attribute-skew", "icde12", "skew of the Zipf law that attributes are chosen by", "sim/workloads/begen.py, Population.skew",
        "1", "the usual one", _NOT_SWEPT,
    ),
    Constant(
        "rt-bound", "sstd15", "the bound by which the R^t-tree is walked", "topk/places/rt_tree.py, bound",
        "text and place summed", "only with it is TAS between the R^I-tree and the R^t-tree where α is close to .5, as in Figure 11",
        _NOT_SWEPT,
    ),
    Constant(
        "correlation", "sstd15", "how expressions of BEGen are correlated with events", "sim/workloads/located.py",
        "independent", "with correlation the number of matches would not fall with the cardinality, as the paper says it does",
        _NOT_SWEPT,
    ),
    Constant(
        "located-ranges", "sstd15", "how many values a predicate allows", "sim/workloads/located.py, widest_range", "1 to 19",
        "ten on average", _NOT_SWEPT,
    ),
)  # fmt: skip

SUBSTITUTIONS: Mapping[str, str] = {
    "icde12": "BEGen, the generator of the paper's expressions, is not published in enough detail to repeat it: all expressions are "
    "of our own generator with the paper's parameters. The sets of DBLP authors and titles are synthetic: attributes are the first "
    "two letters of a word, values one of 26³ continuations, both by Zipf laws.",
    "sstd15": "The paper's places are of unpublished tweets in the USA: ours are of 60 cities with Zipf-distributed sizes, a tenth "
    "anywhere. Its expressions are BEGen's: ours are independent of the events.",
}  # fmt: skip
