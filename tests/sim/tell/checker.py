"""Takes the sentences of `explain` and of stories apart, and checks every claim against the trace and brute force.

Who, where, when and why: all is worked out again from the rows of the trace and the numbers of the workload, by plain
loops. No code of sim/tell is used but the reader of tables, and none of routing, matching or the oracle.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

from sim.experiment.build import workload_of
from sim.experiment.plan import PlannedRun
from sim.random_streams import streams
from sim.tell.run_trace import RunTrace

TABLES = (
    *("control", "decisions", "publications", "deliveries", "faults"),
    *("operations", "published", "ranked", "links", "versions"),
)
TIME = r" +([\d.]+) ms  "
LOST = {
    r"dropped: the queue of (?P<broker>\S+) was full": "queue-full",
    r"lost: the link to (?P<neighbour>\S+) was down": "link-down",
    r"lost: (?P<broker>\S+) crashed before it had served it": "crashed",
    r"lost: (?P<broker>\S+), the broker of its publisher, was down": "publisher-down",
}


def taken(pattern: str, sentence: str) -> re.Match[str]:
    """The parts of a sentence, which must begin like this."""
    found = re.match(pattern, sentence)
    assert found, sentence
    return found


class Claims:
    """One run, and what can be said about it."""

    def __init__(self, run: PlannedRun, out: Path) -> None:
        trace = RunTrace(out, run.run_id)
        self.rows: dict[str, list[Any]] = {name: trace.read(name).to_dict("records") for name in TABLES}
        self.numbers = {name: broker for broker, name in trace.names.items()}
        self.workload, self.run = workload_of(run.experiment, streams(run.seed)), run
        self.k, self.routing = run.experiment.matching.k, run.experiment.routing
        self.published = {row["event"]: row for row in self.rows["published"]}
        self.homes, self.since, self.left = {}, {}, {}
        for row in self.rows["operations"]:
            if row["kind"] in ("subscribe", "preload"):
                self.homes[row["subscription"]], self.since[row["subscription"]] = row["broker"], row["time"]
            if row["kind"] == "unsubscribe":
                self.left[row["subscription"]] = row["time"]
        self.members: dict[int, set[int]] = {}
        for row in self.rows["decisions"]:
            if row["outcome"] in ("merged", "retracted") and row["witness"] < -1:
                self.members.setdefault(row["witness"], set()).add(row["subscription"])
        messages = [*self.rows["control"], *self.rows["publications"]]
        lost_memory = run.experiment.faults.state == "lost"
        restarts = [row for row in self.rows["faults"] if row["kind"] == "restart" and lost_memory]
        self.wiped: dict[int, list[int]] = {}
        for row in restarts:
            after = [m["step"] for m in messages if m["target"] == row["broker"] and m["time"] >= row["time"]]
            self.wiped.setdefault(row["broker"], []).extend([min(after)] if after else [])
        self.hops = {(row["event"], row["target"]): row for row in self.rows["publications"]}
        self.lost: dict[int, list[Any]] = {row["event"]: [] for row in self.rows["faults"]}
        for row in self.rows["faults"]:
            self.lost[row["event"]].append(row)
        routed = [(row["broker"], row["neighbour"], row["latency"]) for row in self.rows["links"] if row["routed"]]
        self.graph = nx.Graph()
        self.graph.add_nodes_from(self.numbers.values())
        self.graph.add_weighted_edges_from(routed)

    # ── brute force ────────────────────────────────────────────────────────────────────────────────────

    @cache  # noqa: B019
    def box(self, entry: int) -> list[tuple[float, float]]:
        if entry >= 0:
            return list(zip(self.workload.lo[entry].tolist(), self.workload.hi[entry].tolist(), strict=True))
        parts = [self.box(member) for member in self.members[entry]]
        return [(min(low for low, _ in sides), max(high for _, high in sides)) for sides in zip(*parts, strict=True)]

    @cache  # noqa: B019
    def matches(self, event: int, entry: int) -> bool:
        values = self.workload.events[event].tolist()
        return all(low <= value <= high for value, (low, high) in zip(values, self.box(entry), strict=True))

    @cache  # noqa: B019
    def contains(self, wide: int, narrow: int) -> bool:
        return all(a <= c and d <= b for (a, b), (c, d) in zip(self.box(wide), self.box(narrow), strict=True))

    @cache  # noqa: B019
    def table(self, broker: int, source: int, tree: int, step: int, kind: str = "subscribe") -> frozenset[int]:
        """What a broker had from a neighbour (or client, −1) before a step."""
        found, wiped = set(), [begun for begun in self.wiped.get(broker, []) if begun <= step]
        for row in self.rows["control"]:
            if row["step"] >= step:
                break
            if row["target"] == broker and row["source"] == source and (source == -1 or row["tree"] == tree):
                if wiped and row["step"] < max(wiped):
                    continue
                if row["kind"] == kind:
                    found.add(row["subscription"])
                elif row["kind"] == f"un{kind}":
                    found.discard(row["subscription"])
        return frozenset(found)

    def life(self, subscription: int) -> tuple[float, float]:
        """The steps at which its broker first took a subscription in, and heard that it left."""
        came, left = np.inf, np.inf
        for row in self.rows["control"]:
            if row["source"] == -1 and row["subscription"] == subscription:
                if row["kind"] == "subscribe":
                    came = min(came, row["step"])
                elif row["kind"] == "unsubscribe":
                    left = row["step"]
        return came, left

    def in_force(self, subscription: int, step: int) -> bool:
        came, left = self.life(subscription)
        return came < step <= left

    def matching(self, event: int) -> set[int]:
        step = self.published[event]["step"]
        return {s for s in self.homes if self.matches(event, s) and self.in_force(s, step)}

    def asking(self, event: int) -> set[int]:
        """In force when it came to their broker or, if it did not, was published."""
        return {
            s for s in self.homes if self.matches(event, s) and self.in_force(s, self.arrival(event, self.homes[s]))
        }

    def arrival(self, event: int, broker: int) -> int:
        return int(self.hops.get((event, broker), self.published[event])["step"])

    def before(self, event: int, subscription: int) -> list[int]:
        """Who is served before a subscription at its broker."""
        scores = self.workload.scores
        home = self.homes[subscription]
        mine = [s for s in self.asking(event) if self.homes[s] == home]
        return [s for s in mine if (-scores[s], s) < (-scores[subscription], subscription)]

    def due(self, event: int) -> set[int]:
        if self.run.experiment.network_wide:
            ranked = sorted(self.matching(event), key=lambda s: (-self.workload.scores[s], s))
            return set(ranked[: self.k])
        return {s for s in self.asking(event) if self.k is None or len(self.before(event, s)) < self.k}

    def served(self, event: int) -> dict[int, dict[str, Any]]:
        return {row["subscription"]: row for row in self.rows["deliveries"] if row["event"] == event}

    # ── the tree that an event follows ─────────────────────────────────────────────────────────────────

    def source(self, event: int) -> int:
        return int(self.published[event]["broker"]) if self.routing.trees == "per-source" else -1

    def changes(self, event: int) -> list[list[dict[str, Any]]]:
        """The rows of each version up to the one that an event follows."""
        of_its_tree = [row for row in self.rows["versions"] if row["source"] == self.source(event)]
        found = [list(rows) for _, rows in groupby(of_its_tree, key=lambda row: row["tree"])]
        place = list(self.published).index(event)
        while found and not found[-1][0]["first"] <= place:  # not a number where it never served
            found.pop()
        return found

    @cache  # noqa: B019
    def tree(self, event: int) -> tuple[nx.Graph, dict[frozenset[int], int]]:
        """The tree that an event follows, and the version in which the tables of each of its links began."""
        source = self.source(event)
        ways = nx.single_source_dijkstra_path(self.graph, source).values() if source >= 0 else self.graph.edges
        tree = nx.Graph(link for way in ways for link in pairwise(way))
        tree.add_nodes_from(self.graph)
        names = dict.fromkeys(map(frozenset, tree.edges), source)
        for rows in self.changes(event):
            before, names_before = tree.copy(), names
            for row in rows:
                (tree.add_edge if row["joins"] else tree.remove_edge)(row["broker"], row["neighbour"])
            names = {}
            for link in tree.edges:
                kept = before.has_edge(*link) and self.beside(before, *link) == self.beside(tree, *link)
                names[frozenset(link)] = names_before[frozenset(link)] if kept else rows[0]["tree"]
        assert nx.is_tree(tree)
        return tree, names

    @staticmethod
    def beside(tree: nx.Graph, one: int, other: int) -> set[int]:
        """The brokers on one side of a link."""
        cut = tree.copy()
        cut.remove_edge(one, other)
        return set(nx.node_connected_component(cut, one))

    def begun(self, event: int, here: int, there: int) -> int:
        return self.tree(event)[1][frozenset((here, there))]

    def path(self, event: int, there: int) -> list[int]:
        return list(nx.shortest_path(self.tree(event)[0], self.published[event]["broker"], there))

    def check_trees(self, event: int, lines: list[str]) -> None:
        """Takes the lines about trees off; both say when, and at most four of the links that joined and left."""
        changes, lost = self.changes(event), bool(self.lost.get(event))
        every = [row for row in self.rows["versions"] if row["source"] == self.source(event)]
        later = [row for row in every if row["first"] > (changes[-1][0]["first"] if changes else 0)]
        for begins, rows in (
            ("  it follows", changes[-1] if changes else []),
            ("  too late for it was", [row for row in later if lost and row["tree"] == later[0]["tree"]]),
        ):
            assert lines[0].startswith(begins) == bool(rows), (lines[0], rows)
            if not rows:
                continue
            said = taken(begins + r" the tree that took over at ([\d.]+) ms: (.*) joined, (.*) left$", lines.pop(0))
            assert said[1] == f"{rows[0]['serves']:.3f}"
            for words, joins in ((said[2], True), (said[3], False)):
                links = [(row["broker"], row["neighbour"]) for row in rows if row["joins"] == joins]
                shown, more = re.subn(r" and \d+ more$", "", words)
                named = [tuple(self.numbers[name] for name in link.split("–")) for link in shown.split(", ")]
                assert named == links[:4]
                assert bool(more) == (len(links) > 4)

    # ── one event and one subscription ─────────────────────────────────────────────────────────────────

    def check_pair(self, event: int, subscription: int, lines: list[str]) -> None:
        """All lines of `explain --event --subscription` but the first, which names the run."""
        home, start = self.homes[subscription], self.published[event]
        first = re.fullmatch(r"subscription (\d+) lives at (\S+), since ([\d.]+) ms", lines[0])
        assert first, lines[0]
        assert (int(first[1]), self.numbers[first[2]]) == (subscription, home)
        assert first[3] == f"{self.since[subscription]:.3f}"
        rest = lines[1:]
        if subscription in self.left:
            assert rest.pop(0) == f"  it left at {self.left[subscription]:.3f} ms"
        said = re.fullmatch(r"event (\d+) was published at ([\d.]+) ms at (\S+)", rest.pop(0))
        assert said
        assert (int(said[1]), said[2]) == (event, f"{start['time']:.3f}")
        assert self.numbers[said[3]] == start["broker"]
        if self.run.experiment.network_wide:
            (verdict,) = rest
            self.check_verdict(event, subscription, verdict.strip())
            return
        self.check_trees(event, rest)
        here = start["broker"]
        for place, line in enumerate(rest):
            last = place == len(rest) - 1
            hop = re.fullmatch(TIME + r"(\S+) ([→✗]) (\S+): (.*)", line)
            if hop:
                assert self.numbers[hop[2]] == here, "hop after hop"
                there = self.numbers[hop[4]]
                (self.check_sent if hop[3] == "→" else self.check_stopped)(
                    event, subscription, here, there, hop[1], hop[5]
                )
                assert last == (hop[3] == "✗"), rest
                here = there
                continue
            end = re.fullmatch(TIME + r"(\S+): (.*)", line)
            assert end, line
            assert last
            assert self.numbers[end[2]] == here
            self.check_end(event, subscription, here, end[1], end[3])

    def check_sent(self, event: int, subscription: int, here: int, there: int, time: str, why: str) -> None:
        assert self.hops[event, there]["source"] == here
        hop = self.hops[event, here]
        assert time == f"{hop['time']:.3f}"
        held = self.table(here, there, self.begun(event, here, there), hop["step"])
        found = [entry for entry in held if self.matches(event, entry)]
        if why == "sent on, as every event is":
            assert self.routing.strategy == "flooding"
        elif why == "sent on, as every event is, towards the root":
            assert self.routing.strategy == "hierarchical"
            root = min(nx.center(self.graph))
            assert nx.shortest_path_length(self.graph, there, root) < nx.shortest_path_length(self.graph, here, root)
        elif why == "sent on, for the subscription itself":
            assert subscription in found
        else:
            said = re.fullmatch(
                r"sent on, for (merger )?(\d+)(, which covers it|, which matches too|; this one does not match)", why
            )
            assert said, why
            entry = -1 - int(said[2]) if said[1] else int(said[2])
            assert entry in found
            assert self.matches(event, subscription) == ("does not" not in said[3])
            if "covers" in said[3]:
                assert self.contains(entry, subscription)
                assert subscription not in found or self.routing.mode == "prune"
            if "too" in said[3]:
                assert subscription not in found
                assert not any(self.contains(entry, subscription) for entry in found)

    def check_stopped(self, event: int, subscription: int, here: int, there: int, time: str, why: str) -> None:
        assert (event, there) not in self.hops
        assert there in self.path(event, self.homes[subscription])
        if not why.startswith("not sent on, "):
            (fault,) = self.faults_named(event, time, why)
            if fault["kind"] == "link-down":
                assert (fault["broker"], fault["neighbour"]) == (here, there)
            else:
                assert fault["broker"] == here or (fault["broker"], fault["neighbour"]) == (there, here)
                assert fault["broker"] == there or fault["kind"] == "crashed"
            return
        hop = self.hops[event, here]
        step = hop["step"]
        assert time == f"{hop['time']:.3f}"
        held = self.table(here, there, self.begun(event, here, there), step)
        assert not any(self.matches(event, entry) for entry in held), "or it would have been sent"
        reason = why.removeprefix("not sent on, ")
        if not self.absent(event, subscription, step, reason):
            asleep = reason.startswith("nothing advertised ")
            sleeping = (
                r"nothing advertised behind the link (?P<near>\S+) → (?P<far>\S+) overlapped (merger )?(?P<who>\d+)$"
            )
            missing = r"(merger )?(?P<who>\d+) had not come from (?P<near>\S+) to (?P<far>\S+)$"
            said = taken(sleeping if asleep else missing, reason)
            entry = -1 - int(said["who"]) if "merger" in reason else int(said["who"])
            near, far = self.numbers[said["near"]], self.numbers[said["far"]]
            assert self.matches(event, entry), "it stands for the subscription"
            assert self.in_force(subscription, step)
            assert entry < -1 or self.knows(event, near, far, entry, step)
            tree = self.begun(event, near, far)
            assert entry not in self.table(far, near, tree, step)
            if asleep:
                adverts = self.table(near, far, tree, step, "advertise")
                assert not any(self.overlaps(advert, entry) for advert in adverts)

    def knows(self, event: int, here: int, there: int, entry: int, step: int) -> bool:
        """Had a broker heard of an entry from its clients, or from another neighbour in the tree of an event?"""
        others = [n for n in self.tree(event)[0][here] if n != there]
        return entry in self.table(here, -1, -1, step) or any(
            entry in self.table(here, other, self.begun(event, here, other), step) for other in others
        )

    def overlaps(self, advertiser: int, entry: int) -> bool:
        events = [row["event"] for row in self.rows["published"] if row["broker"] == advertiser]
        values = self.workload.events[events]
        sides = zip(values.min(axis=0).tolist(), values.max(axis=0).tolist(), self.box(entry), strict=True)
        return all(low <= high_ and low_ <= high for low, high, (low_, high_) in sides)

    def absent(self, event: int, subscription: int, step: int, reason: str) -> bool:
        """Is it a reason that needs no link, and true?"""
        came, left = self.life(subscription)
        home = self.homes[subscription]
        if reason == "it does not match the event":
            assert not self.matches(event, subscription)
            return True
        assert self.matches(event, subscription), reason
        if reason == "its broker had not taken it in yet":
            assert came >= step
        elif reason == "it had left":
            assert left < step
        elif reason == "its broker had lost its memory, and its client was not back":
            assert came < step <= left
            assert home in self.wiped
            assert subscription not in self.table(home, -1, -1, step)
        else:
            return False
        return True

    def check_end(self, event: int, subscription: int, here: int, time: str, why: str) -> None:
        row, home = self.served(event).get(subscription), self.homes[subscription]
        assert (row is not None) == why.startswith("delivered, ")
        if row is not None:
            assert here == home == row["broker"]
            assert (time, why) == (f"{row['time']:.3f}", f"delivered, rank {row['rank']}, score {row['score']:g}")
            return
        if not why.startswith("not delivered, "):
            assert here == self.published[event]["broker"]
            assert (event, here) not in self.hops
            assert self.faults_named(event, time, why)[0]["broker"] == here
            return
        assert here == home
        hop = self.hops[event, home]
        assert time == f"{hop['time']:.3f}"
        reason = why.removeprefix("not delivered, ")
        if self.absent(event, subscription, hop["step"], reason):
            return
        if reason == "its broker crashed before it had served it":
            assert any(fault["kind"] == "crashed" and fault["broker"] == home for fault in self.lost[event])
            return
        beaten = re.fullmatch(r"(\d+) others of its broker rank before it, and (\d+) are served", reason)
        assert beaten, reason
        assert int(beaten[1]) == len(self.before(event, subscription)) >= int(beaten[2]) == self.k

    def faults_named(self, event: int, time: str, words: str) -> list[dict[str, Any]]:
        """The rows of a fault that a sentence is about."""
        for pattern, kind in LOST.items():
            said = re.fullmatch(pattern, words)
            if said:
                named = {key: self.numbers[name] for key, name in said.groupdict().items()}
                mine = [row for row in self.lost.get(event, []) if row["kind"] == kind and time == f"{row['time']:.3f}"]
                found = [row for row in mine if all(row[key] == number for key, number in named.items())]
                assert found, words
                return found
        raise AssertionError(words)

    # ── one event ──────────────────────────────────────────────────────────────────────────────────────

    def check_event(self, event: int, lines: list[str]) -> None:
        """All lines of `explain --event` but the first, which names the run."""
        start = self.published[event]
        name = next(name for name, broker in self.numbers.items() if broker == start["broker"])
        assert lines.pop(0) == f"event {event} published at {name} at {start['time']:.3f} ms"
        self.check_trees(event, lines)
        served, counts = self.served(event), {"hops": 0, "faults": 0}
        asking, due, matching = self.asking(event), self.due(event), self.matching(event)
        missed: dict[int, int] = {}
        for line in lines:
            hop = re.fullmatch(
                TIME + r"(\S+) from (its publisher|\S+)(?: \((.*)\))?: delivered to (.*); sent on to (\d+) neighbours?",
                line,
            )
            if hop:
                row = self.hops[event, self.numbers[hop[2]]]
                assert hop[1] == f"{row['time']:.3f}"
                assert (-1 if hop[3] == "its publisher" else self.numbers[hop[3]]) == row["source"]
                parts = [f"waited {row['waited']:.3f} ms"] * bool(row["waited"])
                parts += [f"served in {row['service']:.3f} ms"] * bool(row["service"])
                assert (hop[4] or "") == ", ".join(parts)
                there = sorted((r for r in served.values() if r["broker"] == row["target"]), key=lambda r: r["rank"])
                to = [f"{r['subscription']} (rank {r['rank']}, score {r['score']:g})" for r in there]
                assert hop[5] == (", ".join(to) or "nobody")
                assert int(hop[6]) == row["forwarded"]
                counts["hops"] += 1
                continue
            fault = re.fullmatch(TIME + r"(\S+): (.*)", line)
            if fault:
                rows = self.faults_named(event, fault[1], fault[3])
                assert self.numbers[fault[2]] in {row["broker"] for row in rows}
                counts["faults"] += 1
                continue
            total = re.fullmatch(
                r"(\d+) subscriptions in force match it; served: (\d+) of them(?:, and (\d+) that came later)?", line
            )
            if total:
                found = [int(number or 0) for number in total.groups()]
                assert found == [len(matching), len(matching & served.keys()), len(served.keys() - matching)]
                continue
            lacking = re.fullmatch(r"  (\d+) (?:of (\d+) )?at (\S+) did not get it, (.*): ([\d, …]+)", line)
            if lacking:
                broker = self.numbers[lacking[3]]
                mine = sorted(s for s in asking - served.keys() if self.homes[s] == broker)
                missed[broker] = len([s for s in due - served.keys() if self.homes[s] == broker])
                assert (int(lacking[1]), int(lacking[2] or lacking[1])) == (missed[broker], len(mine))
                assert lacking[5] == ", ".join(map(str, mine[:10])) + ", …" * (len(mine) > 10)
                came = (event, broker) in self.hops
                crashed = any(f["kind"] == "crashed" and f["broker"] == broker for f in self.lost.get(event, []))
                assert (lacking[4] == "the event did not reach the broker") == (not came)
                assert (lacking[4] == "the broker crashed before it had served it") == (came and crashed)
                continue
            below = re.fullmatch(r"  ([\d,]+) rank below the (\d+) best of their broker", line)
            gone = re.fullmatch(r"  ([\d,]+) had left when it came: ([\d, …]+)", line)
            if below:
                assert (int(below[1]), int(below[2])) == (len(asking - due - served.keys()), self.k)
            elif gone:
                left = sorted(matching - asking - served.keys())
                assert (int(gone[1]), gone[2]) == (len(left), ", ".join(map(str, left[:10])) + ", …" * (len(left) > 10))
                assert all(self.life(s)[1] < self.arrival(event, self.homes[s]) for s in left)
            else:
                assert line == "  --subscription with one of these follows the event towards it", line
        assert counts["hops"] == sum(e == event for e, _ in self.hops)
        assert counts["faults"] == len(self.lost.get(event, []))
        assert sum(missed.values()) == len(due - served.keys())

    # ── the k best of the whole network ────────────────────────────────────────────────────────────────

    def check_verdict(self, event: int, subscription: int, said: str) -> None:
        row, scores, ranked = self.served(event).get(subscription), self.workload.scores, self.matching(event)
        if row is not None:
            at = f"at {row['time']:.3f} ms"
            assert said == f"it was served as number {row['rank']} of {self.k}, with score {row['score']:g}, {at}"
            return
        if not self.matches(event, subscription):
            assert said == "it does not match the event"
            return
        score = f"it matches the event with score {scores[subscription]:g}"
        if subscription not in ranked:
            assert said == f"{score}, and was not in force when the event was published"
            return
        place = sorted(ranked, key=lambda s: (-scores[s], s)).index(subscription) + 1
        assert said.startswith(f"{score}, number {place} of {len(ranked)} that match")
        if place <= (self.k or 0):
            assert said.endswith(f", and so among the {self.k} best; it was not served: "
                                 "a change, fault or full queue was in the way")  # fmt: skip
            return
        last = max(self.served(event).values(), key=lambda row: row["rank"], default=None)
        if last is not None:
            name = next(name for name, broker in self.numbers.items() if broker == last["broker"])
            assert f"; the last one served was {last['subscription']} at {name} ({last['score']:g})" in said
        why = said.rpartition("; ")[2]
        self.check_where(event, subscription, {
            "its broker was asked": "asked",
            "its broker got the event for a winner, and was not asked": "for a winner",
            "its broker was not asked: the best entry on the way to it does not beat that": "bounded",
            "its broker was not asked: the tables of the publisher's broker have the winners": "in tables",
            "the event did not reach its broker": "not reached",
            "its broker was not asked": "not asked",
        }[why])  # fmt: skip

    def check_where(self, event: int, subscription: int, where: str) -> None:
        home, said = self.homes[subscription], [row for row in self.rows["ranked"] if row["event"] == event]
        queries = {row["target"]: row["step"] for row in said if row["kind"] == "query"}
        assert (home in queries) == (where == "asked")
        if where == "for a winner":
            assert any(row["carries"] for row in said if row["target"] == home)
        elif where in ("in tables", "not reached"):
            assert self.routing.rank == {"in tables": "skyband", "not reached": "none"}[where]
            assert where == "in tables" or (event, home) not in self.hops
        elif where == "bounded":
            assert self.routing.rank == "cover"
            last = max(self.served(event).values(), key=lambda row: row["rank"])
            path, scores = self.path(event, home), self.workload.scores
            here = max(i for i, broker in enumerate(path) if broker in queries)
            assert all(broker in queries for broker in path[: here + 1])
            held = self.table(path[here], path[here + 1], self.source(event), queries[path[here]])
            keys = [(-scores[entry], entry) for entry in held if self.matches(event, entry)]
            assert keys
            assert min(keys) > (-last["score"], last["subscription"])

    # ── stories ────────────────────────────────────────────────────────────────────────────────────────

    def check_story(self, lines: list[str]) -> None:
        if lines == ["No event reached anybody in this run."]:
            assert not self.rows["deliveries"]
            return
        events = len(self.workload.events)
        counted = sum(line.startswith("Event ") for line in lines)
        many = f"{counted} of {events} events" if counted > 1 else "One event"
        assert lines[0].startswith(f"{many} in words (seed {self.run.seed}, {self.routing.strategy} routing")
        event, subscription = -1, -1
        for line in lines[1:]:
            named = re.search(r"(?:: |such as )subscription (\d+)(?: at (\S+))?, ", line)
            if named:
                subscription = int(named[1])
                assert not named[2] or self.numbers[named[2]] == self.homes[subscription]
            if line.startswith("Event "):
                said = taken(r"Event (\d+), published at (\S+): ", line)
                event = int(said[1])
                assert self.numbers[said[2]] == self.published[event]["broker"]
            elif line:
                self.check_sentence(event, subscription, line)

    def check_sentence(self, event: int, subscription: int, line: str) -> None:
        """One sentence of a story; `subscription` is the last one named."""
        served, matching, due = self.served(event), self.matching(event), self.due(event)
        missed = due - served.keys()
        network = self.run.experiment.network_wide
        behind = (matching if network else self.asking(event)) - due - served.keys()
        if " in force match, " in line:
            step = self.published[event]["step"]
            in_force = sum(self.in_force(s, step) for s in self.homes)
            later = len(served.keys() - matching)
            came = f" and {later} that came later" if later else ""
            mine = len(served) - later
            limit = (
                f"; the {self.k} best of the whole network are"
                if network
                else f"; each broker serves its {self.k} best"
            )
            saw = sum(e == event for e, _ in self.hops)
            assert line == (
                f"  {len(matching)} of {in_force} subscriptions in force match, {mine} of these "
                f"{'was' if mine == 1 else 'were'} served{came}{'' if self.k is None else limit}. "
                f"{saw} of {len(self.numbers)} brokers saw it."
            )
        elif line.startswith("  Served at "):
            row = served[subscription]
            said = taken(
                r"  Served at (\S+) as number (\d+), score (\S+), after (no|\d+) hops? and ([\d.]+) ms: ", line
            )
            assert self.numbers[said[1]] == row["broker"] == self.homes[subscription]
            assert (int(said[2]), said[3]) == (row["rank"], f"{row['score']:.4g}")
            assert (said[4], said[5]) == (str(row["hops"] or "no"), f"{row['latency']:.1f}")
        elif line.startswith("    held back on "):
            self.check_held_back(event, subscription, line)
        elif line.startswith("  Matched but beaten: "):
            assert int(line.split()[3].strip(",")) == len(behind) > 0
            assert subscription in behind
        elif line.startswith(("  Due and not served: ", f"  Among the {self.k} best and not served: ")):
            assert int(taken(r".*served: (\d+), such as", line)[1]) == len(missed) > 0
            assert subscription in missed
        elif line.startswith("  Skipped: "):
            said = taken(rf"  Skipped: (\d+) that match rank behind the {self.k} best: (.*)\.$", line)
            assert int(said[1]) == len(behind) > 0
            self.check_skipped(event, behind, said[2])
        elif line.startswith("  The best of them, with "):
            best = min(behind, key=lambda s: (-self.workload.scores[s], s))
            assert subscription == best
            assert line.startswith(f"  The best of them, with {self.workload.scores[best]:.4g}: ")
        elif line.startswith("  Then, best first: "):
            rows = sorted(served.values(), key=lambda row: row["rank"])
            found = re.findall(r"(\d+) at (\S+) \(([^)]+)\)", line)
            assert [(int(s), self.numbers[b], score) for s, b, score in found] == [
                (row["subscription"], row["broker"], f"{row['score']:.4g}") for row in rows[1:]
            ]
            assert line.endswith(f" The last was served after {max(row['latency'] for row in rows):.1f} ms.")
        elif line.startswith("  … and "):
            shown = len({row["broker"] for row in served.values()})
            assert int(line.split()[2]) == len(served) - min(3, shown)
        else:
            self.check_last_hop(event, subscription, line)

    def check_last_hop(self, event: int, subscription: int, line: str) -> None:
        """Where the way of an event to a subscription ended."""
        hop = re.fullmatch(r"    ([\d.]+) ms  (\S+)(?: ✗ (\S+))?: (.*)", line)
        assert hop, line
        here = self.numbers[hop[2]]
        if hop[3]:
            self.check_stopped(event, subscription, here, self.numbers[hop[3]], hop[1], hop[4])
        else:
            self.check_end(event, subscription, here, hop[1], hop[4])

    def check_skipped(self, event: int, behind: set[int], said: str) -> None:
        """Every subscription that lost lives where the sentence counts it."""
        words = {
            "at brokers that were asked": "asked",
            "at brokers that got it for a winner and were not asked": "for a winner",
            "behind links whose best entry does not beat that: nobody asked there": "bounded",
            "elsewhere: nobody is asked, the tables of the publisher's broker have the winners": "in tables",
            "at brokers that the event did not reach": "not reached",
            "at brokers that were not asked": "not asked",
        }
        counts = {words[part.partition(" ")[2]]: int(part.partition(" ")[0]) for part in said.split("; ")}
        assert sum(counts.values()) == len(behind)
        rows = [row for row in self.rows["ranked"] if row["event"] == event]
        asked = {row["target"] for row in rows if row["kind"] == "query"}
        carried = {row["target"] for row in rows if row["carries"]} - asked
        assert counts.get("asked", 0) == sum(self.homes[s] in asked for s in behind)
        assert counts.get("for a winner", 0) == sum(self.homes[s] in carried for s in behind)
        rest = [s for s in behind if self.homes[s] not in asked | carried]
        true = dict.fromkeys(("bounded", "in tables", "not reached", "not asked"), 0)
        for subscription in rest:
            for where in true:
                try:
                    self.check_where(event, subscription, where)
                    true[where] += 1
                except (AssertionError, ValueError):
                    continue
        assert all(counts.get(where, 0) <= number for where, number in true.items()), (counts, true)

    def check_held_back(self, event: int, subscription: int, line: str) -> None:
        said = taken(
            r"    held back on (?:(\d+) of the (\d+) links|the one link) it had come to, covered by (.*)$", line
        )
        hop = self.hops[event, self.homes[subscription]]
        step = hop["step"]
        last: dict[Any, dict[str, Any]] = {}
        before = (row for row in self.rows["control"] if row["step"] < step)
        causes = {(row["target"], row["time"], row["operation"]) for row in before}
        for row in self.rows["decisions"]:
            link = row["broker"], row["neighbour"], row["tree"]
            caused = (row["broker"], row["time"], row["operation"]) in causes
            if row["subscription"] == subscription and caused and row["outcome"] != "united":
                last[link] = row
        tree = self.tree(event)[0]
        known = {
            (here, there, name): row
            for (here, there, name), row in last.items()
            if tree.has_edge(here, there)
            and name == self.begun(event, here, there)
            and self.knows(event, here, there, subscription, step)
        }
        held = [row for row in known.values() if row["witness"] != -1]
        assert (int(said[1] or 1), int(said[2] or 1)) == (len(held), len(known))
        named = [int(number) for number in re.findall(r"subscription (\d+), ", said[3])]
        assert named or "a merger" in said[3]
        for coverer in named:
            assert self.life(coverer)[0] < step, "a cover that had come by then"
        if " together" not in said[3]:
            assert all(self.contains(coverer, subscription) for coverer in named)
        elif "a merger" not in said[3]:
            assert len(named) > 1
            (box,) = (self.box(subscription),)
            for value in np.linspace(*box[0], 50) if len(box) == 1 and np.isfinite(box[0]).all() else ():
                assert any(low <= value <= high for low, high in (self.box(c)[0] for c in named))
