"""Random trees, random interleavings of subscribe, unsubscribe and publish, every strategy: nothing is ever lost.

Requests are made while earlier ones are still travelling. Whenever the network is quiet, each event published
then is delivered to exactly the subscriptions that brute force says, and all ledgers and tables agree.
"""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.network import Network
from broker.settings import Settings
from broker.transport import LinkModel
from covering.residue import EMPTY, Residue
from routing.contract import RoutingOptions
from routing.filter import Filter
from routing.overlay.graph import build_overlay
from routing.strategies import STRATEGIES
from sim.random_streams import streams

DOMAIN = np.array([[0.0, 8.0], [0.0, 8.0]])
CHOICES = [
    *((name, "scan", 0.0) for name in STRATEGIES),
    *(("covering", "zorder", epsilon) for epsilon in (0.0, 0.1, 0.5)),
    ("covering", "budget", 0.0),
]

side = st.one_of(
    st.tuples(st.integers(0, 8), st.integers(0, 8)).map(lambda pair: (min(pair), max(pair))),
    st.integers(0, 8).map(lambda point: (point, point)),
    st.integers(0, 8).map(lambda low: (low, np.inf)),
    st.just((-np.inf, np.inf)),
)
residues = st.sampled_from([EMPTY, EMPTY, EMPTY, Residue(excluded=((0, (4.0,)),), allowed=())])
filters = st.builds(
    lambda sides, residue, score: Filter.of_box(np.array(sides, dtype=float), residue, None, score),
    st.tuples(side, side),
    residues,
    st.integers(0, 3),
)
event_value = st.one_of(st.integers(0, 8).map(float), st.just(float("nan")))
# Frequent ones are there several times: a story without several subscriptions and a quiet moment tests nothing.
# Each time anew, for Hypothesis counts the same object once.
steps = st.lists(
    st.one_of(
        *(st.tuples(st.just("subscribe"), st.integers(0, 99), filters) for _ in range(8)),
        *(st.tuples(st.just("quiet"), st.integers(0, 99), st.tuples(event_value, event_value)) for _ in range(3)),
        st.tuples(st.just("unsubscribe"), st.integers(0, 99), st.none()),
        st.tuples(st.just("change"), st.integers(0, 99), filters),  # leave, and come back under the same id
        st.tuples(st.just("advertise"), st.integers(0, 99), filters),
        st.tuples(st.just("unadvertise"), st.integers(0, 99), st.none()),
        st.tuples(st.just("publish"), st.integers(0, 99), st.tuples(event_value, event_value)),
        st.tuples(st.just("wait"), st.integers(1, 12), st.none()),
        st.tuples(st.just("crash"), st.integers(0, 99), st.booleans()),
        st.tuples(st.just("restart"), st.integers(0, 99), st.none()),
        st.tuples(st.just("cut"), st.integers(0, 99), st.none()),
        st.tuples(st.just("heal"), st.integers(0, 99), st.none()),
    ),
    min_size=8,
    max_size=40,
)


def expected(alive: dict[int, tuple[int, Filter]], event: np.ndarray, semantics: str, k: int | None) -> set:
    """(subscription, score) of the k best at every broker, by the reference semantics of Filter."""
    found: dict[int, list[tuple[float, int]]] = {}
    for subscription, (broker, filter) in alive.items():
        score = filter.relaxed_score(event) if semantics == "relaxed" else filter.score
        if (semantics == "relaxed" and score is None) or (semantics == "exact" and not filter.matches(event)):
            continue
        found.setdefault(broker, []).append((-score, subscription))
    return {(s, -score) for ranked in found.values() for score, s in sorted(ranked)[:k]}


networks = st.fixed_dictionaries(
    {
        "brokers": st.integers(1, 7),
        "cyclic": st.booleans(),
        # With equal latencies messages arrive at the same moment; the least jitter then puts links in random order.
        "latency": st.sampled_from([{"kind": "uniform", "low": 0.0, "high": 4.0}, {"kind": "constant", "value": 1.0}]),
        "jitter": st.sampled_from([0.0, 1e-9, 5.0]),
        "mode": st.sampled_from(["lazy", "active", "prune"]),
        "cover": st.sampled_from(["single", "union"]),
        "semantics": st.sampled_from(["exact", "relaxed"]),
        "k": st.sampled_from([None, 1, 2]),
        "merge_waste": st.sampled_from([0.0, 0.5]),
        "capacity": st.sampled_from([None, 1]),
        "advertisements": st.sampled_from(["none", "simple", "covering"]),
        "service": st.sampled_from([{"kind": "none"}, {"kind": "exponential", "mean": 0.5}]),
        "seed": st.integers(0, 1000),
    }
)


def build(strategy, method, epsilon, drawn) -> Network:
    stream = streams(drawn["seed"])
    kind = "watts-strogatz" if drawn["cyclic"] else "random-tree"
    overlay = build_overlay(kind, drawn["brokers"], stream("overlay"), drawn["latency"])
    per_source = drawn["cyclic"] and strategy != "hierarchical"
    covers = strategy in ("covering", "hierarchical")
    cover, options = drawn["cover"] if covers else "single", {"budget": 3} if method == "budget" else {}
    return Network(
        overlay,
        Settings(
            RoutingOptions(
                DOMAIN, drawn["semantics"], method, epsilon, options, cover=cover, merge_waste=drawn["merge_waste"]
            ),
            strategy,
            drawn["mode"] if covers or drawn["mode"] != "prune" else "lazy",
            matcher="scan",
            k=drawn["k"],
            links=LinkModel(jitter=drawn["jitter"]),
            service=drawn["service"],
            advertisements=drawn["advertisements"],
            queue_capacity=drawn["capacity"],
            overflow="hold",
            trees="per-source" if per_source else "spanning",
        ),
        stream,
    )


def taken_out(known: dict[int, tuple[int, Filter]], choice: int) -> int:
    """One of those known, which is forgotten."""
    chosen = sorted(known)[choice % len(known)]
    del known[chosen]
    return chosen


def play(network: Network, story) -> None:
    """Do what the story says; whenever it asks for quiet, everything must be right."""
    brokers, announces = len(network.brokers), network.settings.advertisements != "none"
    alive: dict[int, tuple[int, Filter]] = {}
    adverts: dict[int, tuple[int, Filter]] = {}
    events = 0
    for number, (what, choice, argument) in enumerate(story):
        place = choice % brokers
        if what == "subscribe":
            alive[number] = (place, argument)
            network.subscribe(place, number, argument)
        elif what == "unsubscribe" and alive:
            network.unsubscribe(taken_out(alive, choice))
        elif what == "change" and alive:
            changed = sorted(alive)[choice % len(alive)]
            alive[changed] = (alive[changed][0], argument)
            network.unsubscribe(changed)
            network.subscribe(alive[changed][0], changed, argument)
        elif what == "advertise" and announces:
            adverts[number] = (place, argument)
            network.advertise(place, number, argument)
        elif what == "unadvertise" and adverts:
            network.unadvertise(taken_out(adverts, choice))
        elif what == "publish":
            network.publish(place, events, np.array(argument))
            events += 1
        elif what == "wait":
            network.run(until=network.env.now + choice / 3)
        elif what in ("crash", "restart", "cut", "heal"):
            break_or_mend(network, what, choice, argument)
        elif what == "quiet":
            repair_everything(network)
            network.check()
            assert_tables_as_if_rebuilt(network, alive, np.array(argument))
            if announces and not any(at == place and f.matches(np.array(argument)) for at, f in adverts.values()):
                continue  # nobody promised to deliver what was not announced
            assert_quiet_and_right(network, alive, place, events, np.array(argument))
            events += 1
    repair_everything(network)
    for gone in sorted(alive):
        network.unsubscribe(gone)
    for over in sorted(adverts):
        network.unadvertise(over)
    assert_quiet_and_right(network, {}, 0, events, np.array([4.0, 4.0]))
    assert sum(broker.entries() for broker in network.brokers) == 0, "something leaked after everyone left"
    parts = [part for broker in network.brokers for part in broker.parts.values()]
    assert not any(ledger.known or ledger.sent for part in parts for ledger in part.ledgers.values())


@pytest.mark.parametrize(("strategy", "method", "epsilon"), CHOICES)
@settings(max_examples=30)
@given(drawn=networks, story=steps)
def test_nothing_is_ever_lost(strategy, method, epsilon, drawn, story):
    play(build(strategy, method, epsilon, drawn), story)


@pytest.mark.slow
@pytest.mark.parametrize(("strategy", "method", "epsilon"), CHOICES)
@settings(max_examples=2000)
@given(drawn=networks, story=steps)
def test_nothing_is_ever_lost_at_length(strategy, method, epsilon, drawn, story):
    play(build(strategy, method, epsilon, drawn), story)


def assert_tables_as_if_rebuilt(network, alive, values):
    """Towards every neighbour an event is wanted iff somebody behind it wants it, whatever happened before."""
    may_promise_more = network.settings.strategy == "merging"
    may_sleep = network.settings.advertisements != "none"
    for broker in network.brokers:
        for part in broker.parts.values():
            for neighbour, table in part.tables.items():
                if broker.number not in part.at(neighbour).ledgers:
                    continue  # that neighbour never tells us anything
                rest = part.tree.graph.copy()
                rest.remove_edge(broker.number, neighbour)
                behind = nx.node_connected_component(rest, neighbour)
                there = {s: (home, f) for s, (home, f) in alive.items() if home in behind}
                wanted = bool(expected(there, values, network.settings.routing.semantics, None))
                assert table.matches(values)[0] or not wanted or may_sleep
                assert wanted or not table.matches(values)[0] or may_promise_more


def assert_quiet_and_right(network, alive, broker, event, values):
    network.run()
    network.check()
    network.publish(broker, event, values)
    network.run()
    rows = network.tables()["deliveries"].to_pylist()
    delivered = [(row["subscription"], row["score"]) for row in rows if row["event"] == event]
    assert len(delivered) == len(set(delivered)), "delivered twice"
    assert set(delivered) == expected(alive, values, network.settings.routing.semantics, network.settings.k)


def break_or_mend(network, what, choice, keep_state):
    """Do one of the faults or repairs that are possible now, if any."""
    outages, links = network.outages, network.links
    crashed, cuts = sorted(outages.crashed), sorted(outages.cuts)
    up = [b for b in range(len(network.brokers)) if b not in crashed]
    whole = [link for link in links if link not in cuts]
    if what == "crash" and up:
        outages.crash(up[choice % len(up)], keep_state)
    elif what == "restart" and crashed:
        outages.restart(crashed[choice % len(crashed)])
    elif what == "cut" and whole:
        outages.cut(*whole[choice % len(whole)])
    elif what == "heal" and cuts:
        outages.heal(*cuts[choice % len(cuts)])


def repair_everything(network):
    for broker in sorted(network.outages.crashed):
        network.outages.restart(broker)
    for link in sorted(network.outages.cuts):
        network.outages.heal(*link)
    network.run()
    broke = [row[1] for row in network.recorder.rows["faults"] if row[1] in ("crash", "cut", "converged")]
    assert not broke or broke[-1] == "converged", "the network never noticed that it is whole again"
