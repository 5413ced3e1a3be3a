"""What "Scalable Ranked Publish/Subscribe" (VLDB 2008) says. Its experiments are timed; Table 2 is measured heap space."""

from sim.reproduce.rules import ALLOCATED, TIME, Above, AtLeast, AtMost, Below, Factor, Told, table

CLAIMS = table(
    Told("table2-segment", "the segment tree takes more than an order of magnitude more space than the next largest index",
         "26×", Factor(26.0), ALLOCATED),
    Told("table2-segment-most", "and than the smallest", "52×", Factor(51.7), ALLOCATED),
    Told("table2-ir", "the IR-tree is at most twice as large as the interval tree", "2.0×", AtMost(2.0), ALLOCATED),
    Told("fig6-sopt", "SOPT-R is always the most efficient: the best other ÷ SOPT-R, at worst", "always", AtLeast(1.0), TIME),
    Told("fig6-sopt-factor", "SOPT-R is faster than the others by up to", "2×", Factor(2.0), TIME),
    Told("fig6-interval", "the interval tree is the least efficient up to 1,000 calls: it ÷ the slowest other, at worst",
         "slowest", AtLeast(1.0), TIME),
    Told("fig6-interval-first", "because of its high initial cost: interval tree ÷ SOPT-R for the first result", "high",
         Above(1.0), TIME),
    Told("fig6-holes", "the scored R-tree degrades as calls increase: R ÷ SOPT-R at its worst ÷ at one call", "grows",
         Above(1.0), TIME),
    Told("fig6-close", "segment tree and IR-tree perform about the same: the larger ÷ the smaller, at worst", "about 1×",
         AtMost(2.0), TIME),
    Told("fig6-converge", "the difference decreases with the calls: slowest ÷ SOPT-R at the fewest ÷ at the most", "converges",
         Above(1.0), TIME),
    Told("fig8-benefit-1", "one dimension: SOPT-R over the slowest other", "16×", Factor(16.0), TIME),
    Told("fig8-benefit-4", "four dimensions: SOPT-R over the slowest other", "1.5×", Factor(1.5), TIME),
    Told("fig8-best", "1 to 4 dimensions: no other is faster than SOPT-R: the best other ÷ SOPT-R, at worst", "always",
         AtLeast(1.0), TIME),
    Told("fig7-converge", "with the dimensions all converge: slowest ÷ SOPT-R at d = 1 ÷ at d = 8", "converges", Above(1.0),
         TIME),
    Told("fig8-ir", "the IR-tree offers roughly similar benefits: IR ÷ SOPT-R at worst, d = 1 to 4", "similar", AtMost(1.5),
         TIME),
    Told("fig7-memory", "the segment tree runs out of memory at 8 dimensions", "more than 4 GB", AtLeast(4.0, " GB"),
         ALLOCATED),
    Told("fig9-faster", "with less overlap all indexes but scored R-trees become faster: time at the largest ÷ smallest skew, "
         "slowest of them", "faster", Below(1.0), TIME),
    Told("fig9-rtree", "scored R-trees degrade: time at the largest ÷ smallest skew", "slower", Above(1.0), TIME),
    Told("fig9-best", "SOPT-R is the best across the board at d = 4: the best other ÷ SOPT-R, at worst", "best", AtLeast(1.0),
         TIME),
    Told("fig9-ir", "the IR-tree comes a close second: IR ÷ SOPT-R at worst", "close", AtMost(1.5), TIME),
)  # fmt: skip
