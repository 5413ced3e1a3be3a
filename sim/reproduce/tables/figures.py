"""The figures and tables of the documents, in their order: what each shows, what measures it, which claims are under it.

A claim belongs to the first figure of its document whose expression its id begins with; a test asks that each has one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from analysis.report.claims import Figure

X, Y, AT = "at x", "at y", "at x and y"


@dataclass(frozen=True)
class Mark:
    """A published number that lies on the axes of a picture: a line across it or up it, or a ring."""

    kind: str  # X, Y or AT
    place: tuple[float, ...]
    label: str
    quantity: str = ""  # in the name of a panel: only there


_BOTH = ("uniform", "zipf")


def _located(number: int, shows: str) -> Figure:
    """A figure of SSTD 2015: for uniform and for Zipf attributes."""
    return Figure(f"Figure {number}", shows, tuple(f"fig-{number}-{d}" for d in _BOTH), rf"fig-{number}-")


FIGURES: Mapping[str, Sequence[Figure]] = {
    "ibm04": (
        Figure("Figure 5", "Storage against the longest construct interval L.", ("fig5",), "fig5"),
        Figure(
            "Figure 6", "Time of a search against the number of predicates n, for R = 5,000 and 250,000.", ("fig6-7", "fig6-sizes"),
            "fig6|summary-search",
            "what the paper timed for the construct intervals is finding the lists, for IS-lists returning the matches.",
        ),
        Figure("Figure 7", "Storage against n, for R = 5,000 and 250,000.", ("fig6-7",), "fig7|summary-storage"),
        Figure("Text", "Events that are not integers, and updates.", ("fig6-7",), "footnote|updates"),
    ),
    "icdcs07": (
        Figure(
            "Covering", "Subscriptions, covering, and covering as point dominance.", ("examples",),
            "event-|filtering-|covering-example|dominance",
        ),
        Figure(
            "Curves", "Keys, standard cubes and runs of a space-filling curve.", ("examples", "bounds"),
            "cube-|lucky|worst-case|hilbert|exponential",
        ),
        Figure(
            "Approximate search", "The slides' worked examples of the greedy search.", ("examples",),
            "385|first-run|gamma|decreasing|searched-|cubes-|rounded",
        ),
        Figure(
            "Bounds", "The upper bound of approximate search and the lower bound of exact search.", ("bounds",),
            "upper|independent|lower|key-pattern|face|better|aspect|substantially-faster-counts",
        ),
        Figure(
            "Worth", "What covering saves in a network, what approximation keeps of it, and open questions.",
            ("covers", "network", "searches", "questions"), "benefit|works|safety|substantially-faster-(curve|exact)|many|open|union",
        ),
    ),
    "icde12": (
        Figure("Table II(a)", "The best capacity of an l-node by match probability.", ("capacity",), "capacity"),
        Figure("Table II(b)", "Seconds to build a BE*-Tree by insertion.", ("construction",), "construction"),
        Figure(
            "Figure 6", "All matches, by cardinality and by dimensions.", ("fig-6-7-uniform", "fig-6-7-zipf"),
            "average|cardinality",
        ),
        Figure(
            "Figure 7", "All matches, by number and size of clusters.", ("clusters",), "cluster|unclustered|fig-7",
            "how expressions are correlated with events is ours, and decides how much k-index suffers from clusters.",
        ),
        Figure("Figure 8", "The best one and five, by number of expressions.", ("fig-8",), "top-"),
        Figure("Figure 9", "The best one and five, by match probability.", ("fig-9",), "fig-9"),
        Figure(
            "Text", "What §§ IV to VII say beside the figures: memory, search space, the constants that were chosen.",
            ("ablations",), "memory|search-space|chosen",
        ),
    ),
    "sstd15": (
        _located(5, "By number of subscriptions."),
        _located(6, "By dimensions."),
        _located(7, "By cardinality."),
        _located(8, "By length of a subscription."),
        _located(9, "By length of an event."),
        _located(10, "By k."),
        _located(11, "By the distribution of α, the weight of the place."),
        Figure("Section 5.1", "Space.", tuple(f"space-{d}" for d in _BOTH), "space"),
        Figure(
            "Section 6.1", "The bound by which the R^t-tree is walked.", tuple(f"bound-{d}" for d in _BOTH), "bound",
        ),
    ),
    "vldb08": (
        Figure("Table 2", "Bytes of every index against n.", ("table2", "beside"), "table2"),
        Figure("Figure 6", "Time against the number of results that are taken in one dimension.", ("fig6",), "fig6"),
        Figure(
            "Figures 7 and 8", "Relaxed top-20 by dimensions, absolute and relative to the SOPT-R-tree.", ("fig7-8",),
            "fig[78]-",
        ),
        Figure(
            "Figure 9", "Relaxed top-20 in four dimensions by the skew of interval lengths.", ("fig9",), "fig9-",
            "the Zipf law of half-lengths has 100 steps in the figure and 1,000 to 100,000 beside it.",
        ),
        Figure(
            "Theorems and text", "Theorems 3.1 to 3.3, Figure 1, building, conventional trees.", ("beside",),
            "theorem|build|conventional|fig1-",
        ),
    ),
}  # fmt: skip

# Document and figure → the drawings it is made of, as regular expressions, in this order.
DRAWINGS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "ibm04": {
        "Figure 5": ("figure5",),
        "Figure 6": ("figure[ab]-(locate|stabbed)",),
        "Figure 7": ("figure[ab]-bytes",),
    },
    "icdcs07": {
        "Curves": ("runs_z",),
        "Approximate search": ("slides",),
        "Bounds": ("cubes_over", "lower_bound"),
        "Worth": ("recall", "curve", "exact"),
    },
    "icde12": {
        "Table II(a)": ("table-2a",),
        **{f"Figure {n}": (f"fig-{n}-",) for n in range(6, 10)},
        "Text": ("ablation-(alpha|beta|splitting)",),
    },
    "sstd15": {f"Figure {n}": (f"fig-{n}-[a-z]+$", f"fig-{n}-[a-z]+-few$") for n in range(5, 12)},
    "vldb08": {
        "Table 2": ("table2",),
        "Figure 6": ("figure6",),
        "Figures 7 and 8": ("figure7", "figure8"),
        "Figure 9": ("figure9",),
    },
}

# Document and drawing → what the document's text states about it.
MARKS: Mapping[str, Mapping[str, Sequence[Mark]]] = {
    "ibm04": {
        "figure5": (Mark(X, (128.0,), "published: SCI-BC passes LCI"),),
        "figurea-locate": (Mark(Y, (10.0,), "published: LCI and LCI-BC below 10 µs"),),
        "figurea-stabbed": (Mark(AT, (4000.0, 100.0), "published: IS-lists above 100 µs"),),
        "figurea-bytes": (
            Mark(X, (32_000.0,), "published: Dlist passes LCI"),
            Mark(X, (128_000.0,), "published: IS-lists pass LCI"),
        ),
    },
    "vldb08": {
        "figure8": (
            Mark(AT, (1.0, 16.0), "published: slowest 16×", "time"),
            Mark(AT, (4.0, 1.5), "published: slowest 1.5×", "time"),
        ),
    },
}
