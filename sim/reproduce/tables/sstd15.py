"""What "Efficient Top-k Subscription Matching for Location-Aware Publish/Subscribe" (SSTD 2015) says. All of it is timed."""

from sim.reproduce.rules import TIME, Above, Below, Factor, Told, table

DISTRIBUTIONS = ("uniform", "zipf")

# Figure → the swept parameter, and the published factors over the next best (uniform, Zipf).
FACTORS = {
    "fig-5": ("subscriptions", (4.8, 4.3)),
    "fig-6": ("dimensions", (3.7, 4.4)),
    "fig-7": ("cardinality", (4.8, 4.2)),
    "fig-8": ("subscription length", (4.3, 4.6)),
    "fig-9": ("event length", (4.0, 4.4)),
}
OVER = {"uniform": {"r^t-tree": 3.0, "tas": 6.0, "scan": 30.0}, "zipf": {"r^t-tree": 4.0, "tas": 39.0, "scan": 57.0}}
_ALPHA = {"uniform": 21.0, "zipf": 133.0}

CLAIMS = table(
    (Told(f"{figure}-{d}", f"{d}: R^I-tree is faster than the next best over {x}, mean", f"{published}×", Factor(published),
          TIME) for figure, (x, factors) in FACTORS.items() for d, published in zip(DISTRIBUTIONS, factors, strict=True)),
    (Told(f"fig-5-smooth-{d}", f"{d}: R^I-tree grows slower with the subscriptions than all others: its growth ÷ the least "
          "other", "smooth", Below(1.0), TIME) for d in DISTRIBUTIONS),
    (Told(f"fig-10-{name}-{d}", f"{d}: at k = 9, R^I-tree is faster than {name}", f"{factor:g}×", Factor(factor), TIME)
     for d in DISTRIBUTIONS for name, factor in OVER[d].items()),
    (Told(f"fig-11-{d}", f"{d}: R^I-tree is faster than the next best at α from N(.5, .05)", f"{factor:g}×", Factor(factor),
          TIME) for d, factor in _ALPHA.items()),
    (Told(f"fig-11-normal-{d}", f"{d}: R^I-tree is faster at N(.5, .05) than at U(0, 1)", "faster", Above(1.0), TIME)
     for d in DISTRIBUTIONS),
)  # fmt: skip
