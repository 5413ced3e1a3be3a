"""What the IBM report says about search times: Figure 6, and what its summary makes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from sim.reproduce.rules import TIME
from sim.reproduce.series import Series, Swept, growth
from sim.reproduce.sheet import Cause, Sheet


def _over_lci(name: str, n: float, series: Series) -> float:
    return series[name][n] / series["LCI"][n]


def search_claims(
    sheet: Sheet, near: dict[str, Swept], wide: dict[str, Swept], sizes: Sequence[float], words: Mapping[str, float]
) -> None:
    first, last = sizes[0], sizes[-1]
    located, listed = near["locate"], near["stabbed"]
    size = f"R = 5,000, n = {first:,.0f} to {last:,.0f}"
    micros = {f"µs to locate at {last:,.0f}, {label}": at[max(at)] for label, at in located.mean(TIME).items()}
    matches = {
        f"µs for all at {last:,.0f}, {label}": points[max(points)] for label, points in listed.mean(TIME).items()
    }

    def judge(
        id: str,
        swept: Swept,
        value: Callable[[Series], float],
        why: str,
        figure: str = "figurea-locate",
        measured: Mapping[str, float] = micros,
        detail: str = "",
    ) -> None:
        cause = Cause(why, measured)
        sheet.judge(id, swept.each(value), cause, size=size, figure=figure, overhead=swept.overhead, detail=detail)

    if last < 1_024_000:
        for id in ("fig6-flat", "fig6-levelled"):
            sheet.untestable(id, size, f"published for n = 1,024,000; this run ends at {last:,.0f}")
    else:
        judge("fig6-flat", located, lambda s: max(s["LCI"][last], s["LCI-BC"][last]), "scanning a vector takes longer")
        judge(
            "fig6-levelled",
            located,
            lambda s: max(s[x][last] / s[x][last / 16] for x in ("LCI", "LCI-BC")),
            "more construct intervals are activated by more predicates",
        )
    judge(
        "fig6-islists",
        listed,
        lambda s: (s["IS-lists"][last] / s["IS-lists"][first]) / (s["LCI"][last] / s["LCI"][first]),
        "the paper compares finding lists (LCI) with returning matches (IS-lists); like with like, both grow with the "
        "answer",
        "figurea-stabbed",
        matches,
        ", ".join(f"{name} grow {growth(listed.mean(TIME), name):,.0f}-fold" for name in ("IS-lists", "LCI")),
    )
    walked = "all bits of a vector, R·(log2 L+1), or those of a covering segment, L·(log2 L+1)+1: words per search"
    for id, other in (("fig6-bc", "LCI-BC"), ("fig6-bv", "LCI-BV")):
        judge(id, located, partial(_over_lci, other, last), walked, measured=words)
    beyond = min(n for n in sizes if n > 4000)
    judge(
        "fig6-islists-100",
        listed,
        lambda s: s["IS-lists"][beyond],
        "a search returns its matches in less time on this machine",
        "figurea-stabbed",
        {f"µs, at {n:,.0f}": micros for n, micros in listed.mean(TIME)["IS-lists"].items()},
    )
    judge("fig6-table", located, lambda s: s["LCI-BV"][last] / s["LCI-BV(DT)"][last], "divisions cost little")
    judge(
        "fig6-dt", located, lambda s: s["LCI"][last] / s["LCI-BV(DT)"][last], "scanning bits is faster than additions"
    )
    judge(
        "fig6-dlist",
        located,
        lambda s: min(min(s[x][n] for x in s if x != "Dlist" and n in s[x]) / us for n, us in s["Dlist"].items()),
        "another index locates faster",
    )
    both = [
        (far["IS-lists"][last], close["IS-lists"][last])
        for far, close in zip(wide["stabbed"].by[TIME], listed.by[TIME], strict=True)
    ]
    sheet.judge(
        "fig6b-islists",
        [far / close for far, close in both],
        Cause("as many predicates cover a value", matches),
        size=size,
        figure="figureb-stabbed",
        overhead=listed.overhead,
    )

    def against(what: str) -> list[float]:
        """IS-lists returning the matches ÷ LCI-BV(DT), at the largest n and the R where this is less."""
        return [
            min(
                part["stabbed"].by[TIME][i]["IS-lists"][last] / part[what].by[TIME][i]["LCI-BV(DT)"][last]
                for part in (near, wide)
            )
            for i in range(len(listed.by[TIME]))
        ]

    for id, what in (("summary-search", "locate"), ("summary-search-alike", "stabbed")):
        sheet.judge(
            id,
            against(what),
            Cause("reading the lists takes nearly all of the time, and it is the same work for both", matches),
            size=f"n = {last:,.0f}, R = 5,000 and 250,000",
            figure="figurea-stabbed",
            overhead=listed.overhead,
        )
