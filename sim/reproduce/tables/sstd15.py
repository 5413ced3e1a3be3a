"""What "Efficient Top-k Subscription Matching for Location-Aware Publish/Subscribe" (SSTD 2015) says. All of it is timed."""

from analysis.report.claims import EXTENSION
from sim.reproduce.rules import ALLOCATED, TIME, Above, AtMost, Below, Factor, Told, table

DISTRIBUTIONS = ("uniform", "zipf")

# Figure → the swept parameter, and the published factors (uniform, Zipf) over the next best; for Figure 7 over the R^t-tree.
FACTORS = {
    "fig-5": ("subscriptions", (4.8, 4.3)),
    "fig-6": ("dimensions", (3.7, 4.4)),
    "fig-7": ("cardinality", (4.8, 4.2)),
    "fig-8": ("subscription length", (4.3, 4.6)),
    "fig-9": ("event length", (4.0, 4.4)),
}
OVER = {"uniform": {"r^t-tree": 3.0, "tas": 6.0, "scan": 30.0}, "zipf": {"r^t-tree": 4.0, "tas": 39.0, "scan": 57.0}}
OTHER_ALPHAS = (0.1, 0.9)  # means of the normal distributions beside .5
_ALPHA = {"uniform": 21.0, "zipf": 133.0}

_PLACES = "places of generated cities instead of tweets, expressions of our generator instead of BEGen's"

CLAIMS = table(
    (Told(f"{figure}-{d}", f"{d}: R^I-tree is faster than the {'R^t-tree' if figure == 'fig-7' else 'next best'} over {x}, mean",
          f"{published}×", Factor(published), TIME, constants=("rt-bound",)) for figure, (x, factors) in FACTORS.items() for d, published in zip(DISTRIBUTIONS, factors, strict=True)),
    (Told(f"fig-5-smooth-{d}", f"{d}: R^I-tree grows slower with the subscriptions than all others: its growth ÷ the least "
          "other", "smooth", Below(1.0), TIME, constants=("rt-bound",)) for d in DISTRIBUTIONS),
    (Told(f"fig-10-{name}-{d}", f"{d}: at k = 9, R^I-tree is faster than {name}", f"{factor:g}×", Factor(factor), TIME, constants=("rt-bound",) if name == "r^t-tree" else ())
     for d in DISTRIBUTIONS for name, factor in OVER[d].items()),
    (Told(f"fig-11-{d}", f"{d}: R^I-tree is faster than the next best at α from N(.5, .05)", f"{factor:g}×", Factor(factor),
          TIME, constants=("rt-bound",)) for d, factor in _ALPHA.items()),
    (Told(f"fig-11-normal-{d}", f"{d}: R^I-tree is faster at N(.5, .05) than at U(0, 1)", "faster", Above(1.0), TIME)
     for d in DISTRIBUTIONS),
    Told("fig-6-tas-uniform", "uniform: TAS is faster with more dimensions: time at the fewest ÷ most", "faster", Above(1.0), TIME),
    Told("fig-6-tas-zipf", "zipf: TAS is not slower with more dimensions: time at the most ÷ fewest", "not slower",
         AtMost(1.15), TIME, own_limit=True),
    (Told(f"fig-6-flat-{d}", f"{d}: SCAN, R^t-tree and R^I-tree hardly change with dimensions: longest time ÷ shortest",
          "almost unchanged", AtMost(1.5), TIME, own_limit=True, constants=("rt-bound",)) for d in DISTRIBUTIONS),
    (Told(f"fig-7-slower-{d}", f"{d}: R^t-tree and R^I-tree slow down with the cardinality, as fewer subscriptions match: time at the "
          "largest ÷ smallest, at least", "slower", Above(1.0), TIME, constants=("rt-bound",)) for d in DISTRIBUTIONS),
    (Told(f"fig-8-slower-{d}", f"{d}: all slow down with the subscription length: time at the longest ÷ shortest, at least",
          "slower", Above(1.0), TIME, constants=("rt-bound",)) for d in DISTRIBUTIONS),
    (Told(f"fig-9-flat-{d}", f"{d}: all are insensitive to the event length: longest time ÷ shortest, at most",
          "insensitive", AtMost(1.5), TIME, own_limit=True, constants=("rt-bound",)) for d in DISTRIBUTIONS),
    (Told(f"fig-9-slower-{d}", f"{d}: R^t-tree and R^I-tree slow down with the event length: time at the longest ÷ shortest, "
          "at least", "slower", Above(1.0), TIME, constants=("rt-bound",)) for d in DISTRIBUTIONS),
    (Told(f"fig-10-k-{d}", f"{d}: R^t-tree and R^I-tree slow down marginally with k: time at 9 ÷ 1, at most", "marginally",
          AtMost(1.5), TIME, own_limit=True, constants=("rt-bound",)) for d in DISTRIBUTIONS),
    (Told(f"fig-11-{a:g}-{d}", f"{d}: R^I-tree is faster than the next best at α from N({a:g}, .05)", "much better", Above(1.0),
          TIME, constants=("rt-bound",)) for a in OTHER_ALPHAS for d in DISTRIBUTIONS),
    (Told(f"fig-11-normal-{a:g}-{d}", f"{d}: R^I-tree is faster at N({a:g}, .05) than at U(0, 1)", "faster", Above(1.0), TIME)
     for a in OTHER_ALPHAS for d in DISTRIBUTIONS),
    (Told(f"space-{d}", f"{d}: the whole R^I-tree takes space in proportion to its subscriptions (the paper says O(n) of the "
          "interval tree of a node): bytes each of all ÷ of a quarter", "not stated of the tree", AtMost(1.2), ALLOCATED, EXTENSION,
          own_limit=True) for d in DISTRIBUTIONS),
    (Told(f"bound-{d}", f"{d}: the R^t-tree with text and place summed is slower than TAS, so that leaving it out does not change the "
          "next best: R^t-tree ÷ TAS at Table 4's bold values", "not stated", Above(1.0), TIME, EXTENSION, constants=("rt-bound",)) for d in DISTRIBUTIONS),
    substitution=_PLACES,
)  # fmt: skip
