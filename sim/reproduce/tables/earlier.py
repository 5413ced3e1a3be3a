"""What runs of full size found whose points were not kept, on another day and a quieter machine.

Points of a share of the subscriptions ship for these claims, and verdicts follow from them. Sizes matter, so what was
found at full size is shown beside them until its points ship.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Earlier:
    """A claim as it was judged then."""

    ours: str
    verdict: str
    size: str
    seeds: int
    date: str

    @property
    def said(self) -> str:
        seeds = f"{self.seeds} seed{'s' * (self.seeds > 1)}"
        return f"full size on {self.date} ({seeds}, points not kept): {self.size}"


EARLIER: Mapping[str, Mapping[str, Earlier]] = {
    "vldb08": {
        "fig6-sopt": Earlier("0.862× (0.84× to 0.889×); fastest at 1: SOPT-R, 10: SOPT-R, 100: SOPT-R, 1,000: IR, 10,000: SOPT-R, 100,000: SOPT-R", "does not hold", "n = 1,000,000; 1 to 100,000 calls", 3, "2026-11-17"),
        "fig6-sopt-factor": Earlier("380× (269× to 446×)", "holds, by more than published", "n = 1,000,000; 1 to 100,000 calls", 3, "2026-11-17"),
        "fig6-interval": Earlier("0.486× (0.419× to 0.544×)", "does not hold", "n = 1,000,000; 1 to 100,000 calls", 3, "2026-11-17"),
        "fig6-interval-first": Earlier("380× (269× to 446×)", "holds", "n = 1,000,000; 1 to 100,000 calls", 3, "2026-11-17"),
        "fig6-holes": Earlier("1.83× (1.61× to 1.96×)", "holds", "n = 1,000,000; 1 to 100,000 calls", 3, "2026-11-17"),
        "fig6-close": Earlier("2.72× (2.66× to 2.93×)", "does not hold", "n = 1,000,000; 1 to 100,000 calls", 3, "2026-11-17"),
        "fig6-converge": Earlier("145× (117× to 155×)", "holds", "n = 1,000,000; 1 to 100,000 calls", 3, "2026-11-17"),
        "fig8-benefit-1": Earlier("19.1× (17.1× to 23.5×)", "holds", "n = 1,000,000, 1,000 queries", 3, "2026-11-17"),
        "fig8-benefit-4": Earlier("1.26× (1.24× to 1.27×)", "holds", "n = 1,000,000, 1,000 queries", 3, "2026-11-17"),
        "fig8-best": Earlier("0.83× (0.816× to 0.84×)", "does not hold", "n = 1,000,000, 1,000 queries", 3, "2026-11-17"),
        "fig7-converge": Earlier("16.2× (14.9× to 20.4×)", "holds", "n = 1,000,000, 1,000 queries", 3, "2026-11-17"),
        "fig8-ir": Earlier("1.41× (1.4× to 1.55×)", "holds", "n = 1,000,000, 1,000 queries", 3, "2026-11-17"),
        "fig9-faster": Earlier("1.71× (1.69× to 1.72×)", "does not hold", "n = 1,000,000, d = 4, 1,000 queries", 3, "2026-11-17"),
        "fig9-rtree": Earlier("2.08× (2.03× to 2.08×)", "holds", "n = 1,000,000, d = 4, 1,000 queries", 3, "2026-11-17"),
        "fig9-best": Earlier("0.805× (0.776× to 0.82×)", "does not hold", "n = 1,000,000, d = 4, 1,000 queries", 3, "2026-11-17"),
        "fig9-ir": Earlier("0.957× (0.951× to 0.99×)", "holds", "n = 1,000,000, d = 4, 1,000 queries", 3, "2026-11-17"),
        "theorem-3.1": Earlier("1.02× (1.02× to 1.02×)", "holds", "n = 1,000,000, b = 50", 3, "2026-11-17"),
        "theorem-3.2": Earlier("1.02×", "holds", "n = 1,000,000, b = 50", 3, "2026-11-17"),
        "theorem-3.3": Earlier("1.53× (1.44× to 1.68×)", "holds", "n = 100,000 and 1,000,000", 3, "2026-11-17"),
        "table2-ir-counted": Earlier("1.09× (1.09× to 1.09×)", "holds", "n = 1,000,000, b = 50", 3, "2026-11-17"),
        "build": Earlier("1.71 s (1.62 s to 1.79 s)", "holds", "n = 1,000,000, one dimension", 3, "2026-11-17"),
        "conventional-interval": Earlier("97.3× (63.9× to 100×)", "does not hold", "n = 1,000,000, first 20 results", 3, "2026-11-17"),
        "conventional-r": Earlier("222× (203× to 227×)", "holds", "n = 1,000,000, first 20 results", 3, "2026-11-17"),
        "fig1-ir": Earlier("2.15× (2.13× to 2.3×)", "does not hold", "n = 1,000,000, first 20 results", 3, "2026-11-17"),
        "fig1-sopt": Earlier("1.02× (1.02× to 1.02×)", "holds", "n = 1,000,000, first 20 results", 3, "2026-11-17"),
    },
}  # fmt: skip
