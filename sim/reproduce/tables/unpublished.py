"""What the documents leave out: constants that we had to choose, and data that we had to make.

A claim names the constants that it rests on. Where another value turns its verdict it is open, and the range is shown.
What other values change is read off the claims that were judged with them; `changes` says what else is known.
"""

from collections.abc import Mapping

from analysis.report.claims import Constant

_NOT_VARIED = "not varied"

CONSTANTS: tuple[Constant, ...] = (
    Constant(
        "length-steps", "vldb08", "Figure 9", "steps of the Zipf law that half-lengths are drawn from",
        "sim/workloads/points_in_regions.py, LENGTH_STEPS", "100", "as many as Table 1 has cells per dimension", "",
    ),
    Constant(
        "region-shape", "vldb08", "all", "sides of a region with a given volume, and the distance from its middle",
        "sim/workloads/points_in_regions.py, _SIDE_SPREAD, _PAIR_SPREAD", "near a cube; largest coordinate",
        "nothing in the paper prefers a dimension", _NOT_VARIED,
    ),
    Constant(
        "near-misses", "icde12", "Figures 6 to 9", "how expressions of BEGen are correlated with events: topics, their variants, "
        "and the share of expressions that belong to one", "sim/workloads/begen.py, _TOPICAL, _VARIANTS, _Topics",
        "half; 4; as many topics as make near misses as frequent as matches",
        "independent expressions would never match; no model of the correlation is published", "",
    ),
    Constant(
        "range-width", "icde12", "Figures 6 to 9", "how many values a predicate allows", "sim/workloads/begen.py, _WIDEST", "1 to 9",
        "k-index enumerates ranges, so they must be short", _NOT_VARIED,
    ),
    Constant(
        "attribute-skew", "icde12", "Figures 6 to 9", "skew of the Zipf law that attributes are chosen by",
        "sim/workloads/begen.py, Population.skew", "1", "the usual one", "",
    ),
    Constant(
        "rt-bound", "sstd15", "Figures 5 to 11", "the bound by which the R^t-tree is walked", "topk/places/rt_tree.py, bound",
        "text and place summed where the R^t-tree is judged; Equation 8 is shown beside it",
        "only with it is TAS between the R^I-tree and the R^t-tree where α is close to .5, as in Figure 11",
        "by Equation 8 the R^t-tree is ahead of the R^I-tree in Figures 7, 10 and 11; beside every claim that it is in",
    ),
    Constant(
        "correlation", "sstd15", "Figures 5 to 11", "how expressions of BEGen are correlated with events", "sim/workloads/located.py",
        "independent", "with correlation the number of matches would not fall with the cardinality, as the paper says it does",
        _NOT_VARIED,
    ),
    Constant(
        "located-ranges", "sstd15", "Figures 5 to 11", "how many values a predicate allows", "sim/workloads/located.py, widest_range",
        "1 to 19", "ten on average", _NOT_VARIED,
    ),
)  # fmt: skip

SUBSTITUTIONS: Mapping[str, str] = {
    "icde12": "BEGen, the generator of the paper's expressions, is not published in enough detail to repeat it: all expressions are "
    "of our own generator with the paper's parameters. The sets of DBLP authors and titles are synthetic: attributes are the first "
    "two letters of a word, values one of 26³ continuations, both by Zipf laws.",
    "sstd15": "The paper's places are of unpublished tweets in the USA: ours are of 60 cities with Zipf-distributed sizes, a tenth "
    "anywhere. Its expressions are BEGen's: ours are independent of the events.",
}  # fmt: skip
