"""What "Efficient Interval Indexing for Content-Based Subscription" (IBM 2004) says. Storage is its own accounting."""

from analysis.report.claims import EXTENSION
from sim.reproduce.rules import ACCOUNTED, COUNTS, TIME, About, Above, AtLeast, AtMost, Below, Factor, Told, Yes, table

CLAIMS = table(
    Told("fig5-clipping", "bitmap clipping is critically important in lowering storage: full ÷ clipped, median over L",
         "critically important", AtLeast(2.0), ACCOUNTED, own_limit=True),
    Told("fig5-lci", "LCI generally needs less storage than SCI: share of L", "generally", AtLeast(75.0, " %"), ACCOUNTED, own_limit=True),
    Told("fig5-crossing", "SCI-BC needs less storage than LCI up to L of about", "128", About(128.0, 2.0, ""), ACCOUNTED),
    Told("fig5-equal", "for a moderate R, LCI-BC and LCI-BV are hardly distinguishable in the figure: their difference as a share of "
         "the largest storage shown, at worst", "hardly", AtMost(1.0, " %"), ACCOUNTED, own_limit=True),
    Told("fig5-best", "and both are the best: share of L", "all", AtLeast(100.0, " %"), ACCOUNTED),
    Told("fig6-flat", "LCI and LCI-BC stay under 10 µs at n = 1,024,000", "< 10 µs", AtMost(10.0, " µs"), TIME),
    Told("fig6-levelled", "they do not grow with n: time at the largest n ÷ at a sixteenth of it", "flat", AtMost(1.5), TIME, own_limit=True),
    Told("fig6-islists", "IS-lists degrade quickly with n, LCI does not: growth of IS-lists ÷ growth of LCI, both with all "
         "matches", "much", AtLeast(4.0), TIME, own_limit=True),
    Told("fig6-bc", "LCI-BC takes only a little longer than LCI", "slightly more", About(1.2, 1.25), TIME, own_limit=True),
    Told("fig6-bc-segment", "and so it does where LCI looks at the words of the covering segment only", "slightly more",
         About(1.2, 1.25), TIME, own_limit=True),
    Told("fig6-bc-words", "for R·(log2 L+1) bits of a vector the covering segment has L·(log2 L+1)+1: words of all ÷ of the segment",
         "39× by its formulas, not stated", Factor(39.0), COUNTS, EXTENSION),
    Told("footnote-3", "a search for a non-integer takes less than for an integer, because its tables are shorter: LCI-BV(DT)",
         "smaller", Below(1.0), COUNTS),
    Told("footnote-3-sci", "and with SCI-BV(DT)", "smaller", Below(1.0), COUNTS),
    Told("updates-insert", "no adjustment is needed to insert, IS-lists need one: IS-lists ÷ LCI-BV(DT)", "faster", Above(1.0), TIME),
    Told("updates-delete", "nor to delete: IS-lists ÷ LCI-BV(DT)", "faster", Above(1.0), TIME),
    Told("fig6-bv", "LCI-BV can take much longer than LCI: LCI-BV ÷ LCI at the largest n", "much higher", Above(1.0), TIME),
    Told("fig6-bv-segment", "and so it can where LCI looks at the words of the covering segment only: at most over n", "can be much "
         "higher", Above(1.0), TIME),
    Told("fig6-islists-100", "IS-lists take more than 100 µs when there are more than 4,000 predicates: µs at the next size",
         "> 100 µs", AtLeast(100.0, " µs"), TIME),
    Told("fig6-table", "LCI-BV is slowed down by its divisions, the distance table removes that: LCI-BV ÷ LCI-BV(DT)", "much",
         Above(1.0), TIME),
    Told("fig6-dt", "LCI-BV(DT) is even faster than LCI: LCI ÷ LCI-BV(DT)", "faster", Above(1.0), TIME),
    Told("fig6-dlist", "Dlist is the best in matching time: the best other ÷ Dlist, at worst", "best", AtLeast(1.0), TIME),
    Told("fig6b-islists", "at R = 250,000 IS-lists degrade more slowly: time at the largest n ÷ that at R = 5,000", "lower rate",
         Below(1.0), TIME),
    Told("fig7-dlist", "Dlist's storage passes LCI's at an n of about", "32,000", About(32_000.0, 2.0, ""), ACCOUNTED),
    Told("fig7-islists", "IS-lists' storage passes LCI's at an n of about", "128,000", About(128_000.0, 2.0, ""), ACCOUNTED),
    Told("fig7-moderate", "for a moderate R, LCI-BC and LCI-BV(DT) need less than IS-lists even for a small n: share of sizes",
         "always", AtLeast(100.0, " %"), ACCOUNTED),
    Told("summary-search", "for many predicates, and for a large R too, LCI-BV(DT) searches faster than IS-lists, as published: matches "
         "of IS-lists ÷ lists of LCI-BV(DT)", "much better", Above(1.0), TIME),
    Told("summary-search-alike", "the same, like with like: all matches of IS-lists ÷ of LCI-BV(DT)", "much better", Above(1.0), TIME),
    Told("summary-storage", "and needs less storage: IS-lists ÷ LCI-BV(DT)", "better", Above(1.0), ACCOUNTED),
    Told("fig7-large", "for a large R, IS-lists need less for a small n and cross over as n increases", "crosses", Yes(),
         ACCOUNTED),
)  # fmt: skip
