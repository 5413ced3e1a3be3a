"""What approximate covering is worth: covers found, messages saved in a network, and time against exact search."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np

import covering
from broker.language.text_code import StringAttribute
from sim.experiment.plan import plan
from sim.experiment.runner import simulate
from sim.reproduce import box_union
from sim.reproduce import icdcs07_figures as figures
from sim.reproduce.icdcs07_measure import Recall, recall_study
from sim.reproduce.sheet import Cause, Sheet

_ENOUGH = 20  # covered checks that a case needs to say something about recall


def covers(sheet: Sheet) -> None:
    """Covers that approximation finds."""
    studied = [recall_study(sheet, seed) for seed in sheet.seeds]
    sheet.table("recall", [asdict(row) | {"recall": row.recall} for row in studied[0]])
    picture = figures.recalls(studied[0], sheet.out)
    _found(sheet, studied, picture)
    _kd_trees(sheet, studied, picture)


def questions(sheet: Sheet) -> None:
    """What the slides leave open or name as related: strings, and covering by several."""
    sheet.progress("strings and unions")
    _strings(sheet)
    _unions(sheet)


def _cases(rows: Sequence[Recall], method: str, epsilon: float) -> list[Recall]:
    return [r for r in rows if r.method == method and r.epsilon == epsilon and r.covered >= _ENOUGH]


def _found(sheet: Sheet, studied: Sequence[Sequence[Recall]], picture: str) -> None:
    rows = studied[0]
    size = f"{len({(r.workload, r.attributes) for r in rows})} workloads × {rows[0].checks:,} checks"
    wrong = sum(row.wrong for seed in studied for row in seed)
    checks = sum(row.checks for seed in studied for row in seed)
    sheet.judge(
        "safety",
        [float(not any(r.wrong for r in seed)) for seed in studied],
        Cause("a hit was not verified", {"wrong": wrong}),
        size=size,
        detail=f"{wrong} wrong answers in {checks:,} checks over all ε",
        figure=picture,
    )
    cases = [_cases(seed, "zorder-emulated", 0.05) for seed in studied]
    shares = [100.0 * statistics.median(r.recall for r in seed) for seed in cases]
    best, worst = (choose(cases[0], key=lambda r: r.recall) for choose in (max, min))
    good = sum(r.recall >= 0.9 for r in cases[0])
    sheet.judge(
        "many-covers-found",
        shares,
        Cause(
            "the search starts with the widest subscriptions, while covers of narrow queries lie at the query's corner",
            {"volume searched": worst.volume, "share found there": worst.recall},
        ),
        size=size,
        figure=picture,
        detail=f"≥ 90 % in {good} of {len(cases[0])}; best {best.recall:.0%} ({best.workload}, d = {best.attributes}), "
        f"worst {worst.recall:.0%} ({worst.workload}, d = {worst.attributes})",
    )


def _kd_trees(sheet: Sheet, studied: Sequence[Sequence[Recall]], picture: str) -> None:
    helped, details = [], []
    for rows in studied:
        exact = {(r.workload, r.attributes): r for r in _cases(rows, "kdtree", 0.0)}
        pairs = [(r, exact[r.workload, r.attributes]) for r in _cases(rows, "kdtree", 0.1)]
        saved = statistics.median(1 - r.probes / full.probes for r, full in pairs)
        lost = statistics.median(1 - r.recall for r, _ in pairs)
        helped.append(saved / max(lost, 1e-9))
        details.append((saved, lost, len(pairs), statistics.median(full.probes for _, full in pairs)))
    saved, lost, count, probes = details[0]
    sheet.judge(
        "open-kd-trees",
        helped,
        Cause(
            "the exact search looks at few entries already; what ε lets it skip lies at the query's corner, where the "
            "covers are",
            {"entries an exact search looks at": probes, "share saved": saved, "share lost": lost},
        ),
        size=f"{count} workloads",
        detail=f"saves {saved:.0%} of the probes, loses {lost:.0%} of the covers (medians)",
        figure=picture,
    )


# ---- in a network ---------------------------------------------------------------------------------------

_CASES: dict[str, dict[str, Any]] = {
    "without": {"routing": {"strategy": "simple"}},
    "exact": {"routing": {"strategy": "covering"}, "covering": {"method": "kdtree"}},
    "epsilon": {"routing": {"strategy": "covering"}, "covering": {"method": "zorder-emulated", "epsilon": 0.05}},
}


def network(sheet: Sheet) -> None:
    brokers, subscriptions, events = sheet.sized(20, 50), sheet.many(1000, 20_000), sheet.sized(100, 300)

    def counts(seed: int, case: dict[str, Any]) -> dict[str, float]:
        data = {
            "name": "worth",
            "seeds": [seed],
            "overlay": {"kind": "random-tree", "brokers": brokers},
            "workload": {"kind": "zipf", "attributes": 2, "subscriptions": subscriptions, "events": events},
            **case,
        }
        tables, _ = simulate(plan(data).runs[0])
        record = tables["run"].to_pylist()[0]
        final, hops = (tables[name].to_pandas() for name in ("tables", "publications"))
        links = final[final["final"] & (final["neighbour"] >= 0)]
        return {
            "messages": float(record["control_messages"]),
            "entries": float(links["entries"].sum()),
            "compared": float(hops["compared"].sum()) / len(hops),
            "deliveries": float(record["deliveries"]),
            "missed": float(record["missed"]),
        }

    found = [
        {
            name: sheet.kept(f"network-{name}-{seed}", partial(counts, seed, case), timed=False)
            for name, case in _CASES.items()
        }
        for seed in sheet.seeds
    ]
    size = f"{brokers} brokers, {subscriptions:,} subscriptions (Zipf, two attributes), {events} events"
    for id, what in (
        ("benefit-forwarding", "messages"),
        ("benefit-tables", "entries"),
        ("benefit-filtering", "compared"),
    ):
        without, exact = found[0]["without"][what], found[0]["exact"][what]
        sheet.judge(
            id,
            [seed["exact"][what] / seed["without"][what] for seed in found],
            Cause("covering does not pay in this network", {"without": without, "exact": exact}),
            size=size,
            detail=f"{exact:,.3g} of {without:,.3g} {what}",
        )
    same = [
        len({case["deliveries"] for case in seed.values()}) == 1 and not any(case["missed"] for case in seed.values())
        for seed in found
    ]
    sheet.judge(
        "works-without",
        [float(s) for s in same],
        Cause("deliveries differ", {"missed": found[0]["exact"]["missed"]}),
        size=size,
        detail=f"{found[0]['without']['deliveries']:,.0f} deliveries with, without and with approximate covering",
    )
    kept = [
        100.0
        * (s["without"]["messages"] - s["epsilon"]["messages"])
        / (s["without"]["messages"] - s["exact"]["messages"])
        for s in found
    ]
    messages = {name: case["messages"] for name, case in found[0].items()}
    sheet.judge(
        "many-advantages-kept",
        kept,
        Cause("covers that are missed are sent on", messages),
        size=size,
        detail=", ".join(f"{name} {n:,.0f}" for name, n in messages.items()) + " messages",
    )


# ---- open questions -------------------------------------------------------------------------------------


def _strings(sheet: Sheet) -> None:
    rng = np.random.default_rng(4)
    words = ["".join(rng.choice(list("abc"), rng.integers(0, 9))) for _ in range(300)]
    attribute = StringAttribute(2)
    index = covering.create("kdtree", attribute.domain)
    for i, word in enumerate(words):
        index.add(i, attribute.prefix(word))
    differing = 0
    for word in words:
        for box in (attribute.prefix(word), attribute.equals(word)):
            found = index.find_cover(box)
            differing += found is None or not word.startswith(words[found])
    strict = [w for w in words if w and not any(w[:-1].startswith(p) for p in words)]
    differing += sum(index.find_cover(attribute.prefix(w[:-1])) is not None for w in strict)
    sheet.judge(
        "open-strings",
        [float(differing == 0)],
        Cause("prefix intervals do not nest", {"wrong": differing}),
        size=f"{len(words)} prefixes as boxes over base-257 chunks",
        detail=f"{differing} wrong answers",
    )


def _unions(sheet: Sheet) -> None:
    denials, details = [], []
    for number in sheet.seeds:
        rng = np.random.default_rng([5, number])
        covered = agreed = denied = 0
        for seed in range(200):
            others = np.sort(rng.random((12, 2, 2)), axis=2)
            box = np.sort(0.3 + 0.4 * rng.random((2, 2)), axis=1)
            exact = box_union.exactly_covered_by_union(box, others).covered
            sampled = box_union.covered_by_union(box, others, error=1e-3, seed=seed).covered
            covered += exact
            agreed += exact == sampled
            denied += exact and not sampled
        denials.append(denied)
        details.append((agreed, covered))
    agreed, covered = details[0]
    sheet.judge(
        "union",
        [float(not d) for d in denials],
        Cause("true covers are denied", {"denied": sum(denials)}),
        size="200 boxes, 12 others",
        detail=f"agrees with the exact test on {agreed} of 200 ({covered} covered), denies "
        f"a true cover {denials[0]} times",
    )
