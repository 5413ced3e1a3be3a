"""What the slides of ICDCS 2007 say. They prove and argue by counts; no time was published.

They compare approximate with exact search on one curve. Other structures, strings and unions are questions for later or
related work there; what we found about them is our extension.
"""

from analysis.report.claims import EXTENSION
from sim.reproduce.rules import ANSWERS, COUNTS, TIME, About, Above, AtLeast, AtMost, Below, Told, Yes, table

CLAIMS = table(
    # Subscriptions, covering, dominance.
    Told("event-example", "issue = Microsoft, price = 27, vol = 1000 is an event for issue = Microsoft, 25 < price < 30, "
         "vol > 500", "matches", Yes(), ANSWERS),
    Told("filtering-example", "Google, change 4.5 %, 2000 shares at 468.12 goes to Google, shares > 1000, price < 500 and "
         "to none of the other three subscribers", "one of four", Yes(), ANSWERS),
    Told("covering-example", "price ∈ [0,50], year ∈ [1990,2004] covers price ∈ [0,30], year ∈ [1998,2000]",
         "covered", Yes(), ANSWERS),
    Told("covering-example-2", "price ∈ [10,50], year ∈ [1990,2004] covers price ∈ [20,30], year ∈ [1998,2000]",
         "covered", Yes(), ANSWERS),
    Told("dominance", "rectangle containment reduces to point dominance", "equivalent", Yes(), ANSWERS),
    Told("dominance-both-ways", "and point dominance reduces to rectangle containment", "goes both ways", Yes(), ANSWERS),
    Told("benefit-forwarding", "covering reduces the number of subscriptions forwarded", "fewer", Below(1.0), COUNTS),
    Told("benefit-tables", "covering reduces the size of the routing tables", "smaller", Below(1.0), COUNTS),
    Told("benefit-filtering", "which makes event filtering faster: entries that an event is held against per broker",
         "faster", Below(1.0), COUNTS),
    Told("works-without", "covering can be ignored: the network still delivers the same", "it still works", Yes(), ANSWERS),
    # Curves, cubes, runs.
    Told("cube-keys", "the keys of the standard cubes of a 2 × 2 and a 4 × 4 grid", "00 … 11, 0000 … 1111 as drawn",
         Yes(), ANSWERS),
    Told("cube-is-a-run", "a standard cube is one run of the curve", "one run", Yes(), ANSWERS),
    Told("lucky-unlucky", "the number of runs of a region of about the same size may be small or large",
         "lucky and unlucky", Above(1.0), COUNTS),
    Told("worst-case-cost", "the worst-case cost of exact search is the least number of runs of the region", "equal",
         Yes(), COUNTS),
    Told("hilbert-surface", "Hilbert curve: the average number of runs is proportional to the surface (cited)",
         "proportional", AtMost(1.1), COUNTS, own_limit=True),
    Told("exponential", "the cost is exponential in the number of dimensions: runs per dimension more, sides of 5 bits",
         "exponential", AtLeast(2.0), COUNTS, own_limit=True),
    # The worked examples of approximate search.
    Told("385-runs", "257 × 257: exact search takes 385 runs, 99 % search a single one", "385 and 1", Yes(), COUNTS),
    Told("first-run-share", "257 × 257: what the single run searches", "at least 99 %", AtLeast(99.0, " %"), COUNTS),
    Told("gamma-sequence", "5 × 7, ε = 10 %: γ after the 4 × 4 cube, after each 2 × 2 cube, and at the end",
         "45.7, 57.1, 68.6, 91.4 %", Yes(), COUNTS),
    Told("decreasing-size", "the greedy search examines standard cubes in decreasing order of size", "decreasing",
         Yes(), ANSWERS),
    Told("searched-fraction", "for a given ε, 1 − ε of the search space is searched: least searched ÷ (1 − ε)", "at least 1",
         AtLeast(1.0), COUNTS),
    Told("cubes-1101-0110", "sides 1101 × 0110 have 0 standard cubes of 8 × 8, 3 of 4 × 4 and 6 of 2 × 2", "0, 3, 6",
         Yes(), COUNTS),
    Told("rounded-sides", "sides 111 × 101: cubes of 4 × 4 fill 100 × 100, with those of 2 × 2 they fill 110 × 100",
         "4 × 4, then 6 × 4", Yes(), COUNTS),
    Told("cubes-per-level", "rounding the sides gives the number of standard cubes of each size", "for every rectangle",
         Yes(), COUNTS),
    # Bounds.
    Told("upper-bound", "approximate search costs at most log(D/ε)·(2^(α+1)·D/ε)^(D−1), constant 1: cubes ÷ bound",
         "an upper bound", AtMost(1.0), COUNTS),
    Told("independent-of-length", "the upper bound does not depend on the sides: cubes at sides of 17 bits ÷ 12 bits, ε = 5 %",
         "no growth", AtMost(1.5), COUNTS, own_limit=True),
    Told("lower-bound", "exact search needs (2^(α−1)·l_min)^(D−1) runs on some rectangle of every D and α: runs ÷ bound",
         "a lower bound", AtLeast(1.0), COUNTS),
    Told("lower-bound-growth", "so exact search grows with the sides to the power D − 1: measured exponent ÷ (D − 1)",
         "1", About(1.0, 1.15), COUNTS),
    Told("key-pattern", "sides 100 × 011: four cubes with keys 11x0x1, whose predecessors 11x0x0 lie outside",
         "no two in a run", Yes(), ANSWERS),
    Told("face-of-cubes", "the constructed rectangles have Π 2^(b(l_j)−1) such cubes for every D and α, no two in a run",
         "runs = cubes = volume", Yes(), ANSWERS),
    Told("better-than-lower-bound", "approximate search costs less than the lower bound of exact search: bound ÷ cubes at "
         "α = 0, ε = 5 %, sides of 32 bits", "better", Above(1.0), COUNTS),
    Told("aspect-ratio", "approximate search is much cheaper for rectangles with a good aspect ratio, not for all: cubes at "
         "α = 4 ÷ α = 0", "not always", Above(1.0), COUNTS),
    Told("aspect-ratio-bound", "and its cost grows with the aspect ratio at most as the bound does: that growth ÷ 2^(α·(D−1))",
         "2^(α·(D−1))", AtMost(1.0), COUNTS),
    # What it is worth.
    Told("safety", "a subscription is never held back if it is not covered", "safe", Yes(), ANSWERS),
    Told("substantially-faster-counts", "even for small ε, approximate search is substantially cheaper than exact search on "
         "the curve (ε = 5 %, sides near 2^8): runs ÷ cubes", "385 against 1 for a square", Above(1.0), COUNTS),
    Told("substantially-faster-curve", "the same at work: the curve's exact search against ε = 5 %, one attribute, uncovered",
         "substantially faster", Above(1.0), COUNTS),
    Told("many-covers-found", "approximate covering provides many of the advantages: covers found at ε = 5 %, median of "
         "workloads", "many", AtLeast(50.0, " %"), COUNTS, own_limit=True),
    Told("many-advantages-kept", "the same in a network: share of exact covering's saved messages that ε = 5 % keeps",
         "many", AtLeast(50.0, " %"), COUNTS, own_limit=True),
    # Ours: the slides do not compare with other structures, ask the next two as future work, and name the last as related.
    Told("substantially-faster-exact", "and against exact search by other structures (k-d tree): its time ÷ the greedy's, "
         "ε = 10 %", "substantially faster", Above(1.0), TIME, EXTENSION),
    Told("open-kd-trees", "future work: does approximation help k-d trees? (ε = 10 %): share of probes saved ÷ share of "
         "covers lost; it helps if more than twice as much is saved", "open", Above(2.0), COUNTS, EXTENSION, own_limit=True),
    Told("open-strings", "future work: covering structures for string subscriptions: prefixes and equalities as boxes",
         "open", Yes(), ANSWERS, EXTENSION),
    Told("union", "covering by a union of subscriptions, Monte Carlo (related work): never denies a true cover",
         "probabilistic", Yes(), ANSWERS, EXTENSION),
)  # fmt: skip
