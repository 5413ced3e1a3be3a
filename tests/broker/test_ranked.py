"""The k best of the whole network: served are exactly those that brute force finds, whatever the mode, none twice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.messages import Publication
from broker.network import Network
from broker.settings import RankedRouting, Settings
from broker.trace.schema import CLIENT
from broker.work import MATCHER, load_profile
from covering.residue import EMPTY, Residue
from coverlay import CoverlayError
from routing.contract import RoutingOptions
from routing.filter import Filter
from routing.overlay.graph import build_overlay
from routing.rank import Rank
from sim.experiment.plan import plan
from sim.experiment.runner import simulate
from sim.random_streams import streams

DOMAIN = np.array([[0.0, 8.0], [0.0, 8.0], [0.0, 8.0]])
PLACE = (0, 1)
KINDS = [(kind, semantics) for kind in ("boxes", "predicates", "places") for semantics in ("exact", "relaxed")]
# Strategy, rank, visit, threshold, mode.
WAYS = [
    ("flooding", "none", "parallel", True, "lazy"),
    ("covering", "none", "parallel", True, "prune"),
    ("merging", "none", "parallel", True, "lazy"),
    ("simple", "cover", "parallel", True, "lazy"),
    ("covering", "cover", "parallel", False, "lazy"),
    ("covering", "cover", "parallel", True, "active"),
    ("covering", "cover", "best-first", True, "lazy"),
    ("covering", "cover", "waves", True, "active"),
    ("covering", "skyband", "parallel", True, "lazy"),
]


@st.composite
def filters(draw):
    low = np.array([draw(st.integers(0, 7)) for _ in range(3)], dtype=float)
    high = low + [draw(st.integers(0, 8)) for _ in range(3)]
    box = np.column_stack([low, high])
    box[draw(st.integers(0, 3)) :] = [-np.inf, np.inf]
    residue = Residue.of(excluded={0: (3.0,)}) if draw(st.integers(0, 5)) == 0 else EMPTY
    weights = np.array([draw(st.sampled_from([0.0, 1.0, 2.0, 3.0])) for _ in range(3)])
    made = Filter.of_box(box, residue, weights, score=float(draw(st.integers(0, 3))))
    if draw(st.booleans()):
        place = (float(draw(st.integers(0, 1))), 4.0, draw(st.sampled_from([0.0, 0.5])))
        made = Filter(made.box, made.residue, made.mentioned, made.weights, made.score, place)
    return made


def ranks_like(filter, other):
    """What the first asks for, ranked as the other one is."""
    weights = np.where(filter.mentioned, np.maximum(other.weights, 1.0), 0.0)
    return Filter(filter.box, filter.residue, filter.mentioned, weights, other.score, other.near)


def network_of(brokers, way, kind, k, known, method="auto", epsilon=0.0, kind_of_overlay="random-tree"):
    strategy, rank, visit, threshold, mode = way
    ranked = None
    if rank != "none":
        weights = np.array([*(f.weights for f in known), [0.0] * 3, [3.0] * 3])  # and what they may change to
        scores = np.array([*(f.score for f in known), 0.0, 3.0])
        ranked = Rank.of(scores, weights, kind == ("boxes", "exact"), kind[0] == "places")
    routing = RoutingOptions(
        DOMAIN,
        kind[1],
        method,
        epsilon,
        rank=ranked,
        skyband=k if rank == "skyband" else None,
    )
    chosen = Settings(
        routing=routing,
        strategy=strategy,
        mode=mode,
        kind=kind[0],
        matcher="auto" if kind[0] == "boxes" else "scan",
        place=PLACE if kind[0] == "places" else None,
        k=k,
        ranked=RankedRouting(k, rank, visit, threshold=threshold),
    )
    latency = {"kind": "constant", "value": 1.0}
    overlay = build_overlay(kind_of_overlay, brokers, streams(brokers)("overlay"), latency)
    return Network(overlay, chosen, streams(7))


def best_of(network, in_force, event, weights, k):
    """By brute force: rank, subscription and score of the k best."""
    score = network.settings.ranking.score
    found = [(score(filter, event, weights), s) for s, filter in in_force.items()]
    keys = sorted((-value, s) for value, s in found if value is not None)[:k]
    return [(rank, s, -key) for rank, (key, s) in enumerate(keys, 1)]


def served_by(network, event):
    rows = network.tables()["deliveries"].to_pylist()
    return sorted((row["rank"], row["subscription"], row["score"]) for row in rows if row["event"] == event)


@settings(max_examples=25)
@given(st.data())
@pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join(map(str, way)))
def test_served_are_the_k_best_of_all_brokers_at_every_quiet_moment(way, data):
    brokers, k = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 4))
    kind = data.draw(st.sampled_from(KINDS))
    known = data.draw(st.lists(filters(), min_size=1, max_size=14))
    method, epsilon = "auto", 0.0
    if way[:2] == ("covering", "cover"):
        method, epsilon = data.draw(st.sampled_from([("auto", 0.0), ("zorder-emulated", 0.2), ("kdtree", 0.4)]))
    network = network_of(brokers, way, kind, k, known, method, epsilon)
    at = st.integers(0, brokers - 1)
    in_force: dict[int, Filter] = {}
    waiting = dict(enumerate(known))
    for event in range(data.draw(st.integers(1, 5))):
        for subscription in data.draw(st.lists(st.sampled_from([*waiting, -1]), unique=True)):
            if subscription >= 0:
                in_force[subscription] = waiting.pop(subscription)
                network.subscribe(data.draw(at), subscription, in_force[subscription])
        if not event:
            network.run()
        for subscription in data.draw(st.lists(st.sampled_from([*in_force, -1]), unique=True)):
            if subscription >= 0 and event and data.draw(st.booleans()):
                del in_force[subscription]
                network.unsubscribe(subscription)
            elif subscription >= 0 and subscription in in_force:
                in_force[subscription] = ranks_like(in_force[subscription], data.draw(filters()))
                network.rerank(subscription, in_force[subscription])
        network.run()
        network.check()
        values = np.array([data.draw(st.sampled_from([*map(float, range(9)), np.nan])) for _ in range(3)])
        weights = np.array([1.0, 0.0, 2.0]) if kind[0] == "predicates" and data.draw(st.booleans()) else None
        network.publish(data.draw(at), event, values, weights)
        network.run()
        network.check()
        assert served_by(network, event) == best_of(network, in_force, values, weights, k)


@pytest.mark.parametrize("visit", ["parallel", "best-first"])
def test_a_winner_that_is_hidden_behind_another_is_found_and_nobody_is_served_twice(visit):
    """On a line: 0 publishes; at 3 live A, and B inside A; at 1 lives C, which matches and ranks third."""

    def box(low, high, score):
        return Filter.of_box(np.array([[low, high]] * 3), score=score)

    a, b, c = box(0.0, 6.0, 9.0), box(1.0, 5.0, 8.0), box(2.0, 8.0, 5.0)
    way = ("covering", "cover", visit, True, "lazy")
    network = network_of(4, way, ("boxes", "exact"), 2, [a, b, c], kind_of_overlay="line")
    for subscription, (broker, filter) in enumerate([(3, a), (3, b), (1, c)]):
        network.subscribe(broker, subscription, filter)
        network.run()
    network.publish(0, 0, np.full(3, 4.0))
    network.run()
    network.check()
    assert served_by(network, 0) == [(1, 0, 9.0), (2, 1, 8.0)]
    kinds = network.tables()["ranked"].to_pandas()["kind"].value_counts().to_dict()
    # Three queries with the award for A, three answers, three awards for B; the first query is the publication.
    assert kinds == {"query": 4, "answer": 3, "award": 3}


def test_a_neighbour_that_cannot_hide_a_winner_is_not_asked():
    """Both best are entries, and what they hide ranks below: awards go there, and nobody is asked."""
    filters = [Filter.of_box(np.array([[0.0, 6.0]] * 3), score=score) for score in (9.0, 8.0, 1.0)]
    network = network_of(3, WAYS[6], ("boxes", "exact"), 1, filters, kind_of_overlay="line")
    for subscription, filter in enumerate(filters):
        network.subscribe(2, subscription, filter)
    network.run()
    network.publish(0, 0, np.full(3, 4.0))
    network.run()
    assert served_by(network, 0) == [(1, 0, 9.0)]
    over_links = network.tables()["ranked"].to_pandas().query("source >= 0")
    assert over_links["kind"].tolist() == ["award", "award"]
    assert over_links["carries"].all()


def test_what_is_shed_is_what_can_win_least():
    """Worth is the best winner, or the best bound above the limit; an event that can win nothing is worth nothing."""
    filters = [Filter.of_box(np.array([[low, low + 2.0]] * 3), score=score) for low, score in ((0.0, 9.0), (4.0, 5.0))]
    network = network_of(3, WAYS[6], ("boxes", "exact"), 1, filters, kind_of_overlay="line")
    for subscription, filter in enumerate(filters):
        network.subscribe(2, subscription, filter)
    network.run()

    def worth(value, **said):
        message = Publication(0, np.full(3, value), 0.0, CLIENT, 0.0, 0, -1, -1, None, **said)
        return network.brokers[1].visits.worth(message)

    assert [worth(1.0), worth(5.0), worth(3.0)] == [9.0, 5.0, -np.inf]
    assert worth(5.0, limit=(-6.0, 7)) == -np.inf, "six is known already"
    assert worth(5.0, limit=(-6.0, 7), winners=((1, (-7.0, 3)),)) == 7.0
    assert worth(1.0, asks=False, winners=((1, (-7.0, 3)),)) == 7.0


def scored(low, high, score):
    return Filter.of_box(np.array([[low, high]] * 3), score=score)


@pytest.mark.parametrize("way", [WAYS[5], WAYS[6], WAYS[8]], ids=str)
def test_a_score_that_falls_exposes_who_was_held_back_before_the_news_goes_out(way):
    """On a line: at 2 live the wide one and the narrow one inside it, which ranks behind it until its score falls."""
    wide, narrow = scored(0.0, 8.0, 3.0), scored(2.0, 4.0, 2.0)
    network = network_of(3, way, ("boxes", "exact"), 1, [wide, narrow], kind_of_overlay="line")
    network.subscribe(2, 0, wide)
    network.subscribe(2, 1, narrow)
    network.run()
    assert list(network.brokers[0].parts[-1].tables[1].filters) == [0]
    network.rerank(0, scored(0.0, 8.0, 1.0))
    network.run()
    network.check()
    told = network.tables()["control"].to_pandas().query("source >= 0 and operation == 2")
    for _, link in told.groupby("target"):
        assert link[["kind", "subscription"]].to_numpy().tolist() == [["subscribe", 1], ["rerank", 0]]
    network.publish(0, 0, np.full(3, 3.0))
    network.run()
    assert served_by(network, 0) == [(1, 1, 2.0)]
    network.rerank(1, scored(2.0, 4.0, 0.0))
    network.publish(0, 1, np.full(3, 3.0))  # on its way while brokers differ
    network.run()
    network.check()
    assert [subscription for _, subscription, _ in served_by(network, 1)] in ([0], [1])
    network.publish(0, 2, np.full(3, 3.0))
    network.run()
    assert served_by(network, 2) == [(1, 0, 1.0)]


def test_nobody_is_served_twice_whose_score_changes_while_an_event_looks_for_it():
    """The publisher's table has the old score when the home of the subscription answers with the new one.

    It ranks second, so it is not sure until the answers are there whether somebody hidden comes before it.
    """
    best, second = scored(0.0, 4.0, 3.0), scored(1.0, 6.0, 2.0)
    network = network_of(4, WAYS[5], ("boxes", "exact"), 3, [best, second], kind_of_overlay="line")
    network.subscribe(3, 0, best)
    network.subscribe(3, 1, second)
    network.run()
    network.publish(0, 0, np.full(3, 3.0))
    network.run(network.env.now + 1.5)
    network.rerank(1, scored(1.0, 6.0, 1.0))
    network.run()
    network.check()
    assert sorted(subscription for _, subscription, _ in served_by(network, 0)) == [0, 1]


def test_what_a_client_asks_for_does_not_change_with_its_rank():
    network = network_of(1, WAYS[3], ("boxes", "exact"), 1, [scored(0.0, 5.0, 1.0)])
    with pytest.raises(CoverlayError, match="7 is not subscribed"):
        network.rerank(7, scored(0.0, 5.0, 1.0))
    network.subscribe(0, 7, scored(0.0, 5.0, 1.0))
    with pytest.raises(CoverlayError, match="not what it asks for"):
        network.rerank(7, scored(0.0, 6.0, 2.0))


@pytest.mark.parametrize(("rank", "method"), [("cover", "ir-tree"), ("skyband", "scan"), ("none", "ir-tree")])
def test_ranked_tables_take_what_the_matchers_take_that_they_are_asked_by(rank, method):
    data = {
        "name": "priced",
        "overlay": {"kind": "line", "brokers": 3},
        "workload": {"kind": "uniform", "attributes": 2, "subscriptions": 30, "events": 10},
        "broker": {"service": {"kind": "work"}},
        "matching": {"k": 2, "scope": "network", "method": method},
        "routing": {"rank": rank},
    }
    (run,) = plan(data).runs
    tables, _ = simulate(run)
    hops = tables["publications"].to_pandas()
    profile = load_profile()
    coefficients = profile.matching["boxes"][method] if rank != "none" else profile.flat
    query, entry = (coefficients[name] for name in (MATCHER[:2] if rank != "none" else ("table", "entry")))
    node = coefficients["node"] if rank != "none" else 0.0
    took = query * hops["tables_asked"] + entry * hops["compared"] + node * hops["blocks"]
    assert (hops["sliced"] == 0).all()
    assert took.max() > 0
    assert np.allclose(1000 * hops["on_tables"], took)


def test_what_a_crash_undid_while_an_award_was_served_was_neither_served_nor_sent():
    wide = Filter.of_box(np.array([[0.0, 8.0]] * 3), score=1.0)
    network = network_of(3, ("covering", "none", "parallel", True, "lazy"), ("boxes", "exact"), 1, [wide])
    slow = replace(network.settings, service={"kind": "constant", "value": 2.0})
    network = Network(network.overlay, slow, streams(7))
    tree = network.trees[network.tree_from(0)]
    end = next(b for b in range(3) if len(tree.neighbours(b)) == 1)
    other = next(b for b in range(3) if b != end and len(tree.neighbours(b)) == 1)
    network.subscribe(end, 0, wide)
    network.run()
    network.publish(other, 0, np.array([4.0, 4.0, 4.0]))
    while not any(row["kind"] == "award" and row["target"] == end for row in ranked_rows(network)):
        network.run(until=network.env.now + 1.0)
    network.outages.crash(end, True)
    network.run(until=network.env.now + 20.0)
    tables = network.tables()
    assert tables["deliveries"].num_rows == 0
    assert sum(tables["publications"].column("served").to_pylist()) == 0


def test_a_broker_that_crashes_does_not_serve_what_it_waited_for():
    filters = [scored(0.0, 6.0, 3.0), scored(1.0, 7.0, 2.0)]
    network = network_of(3, ("covering", "none", "parallel", True, "lazy"), ("boxes", "exact"), 1, filters)
    tree = network.trees[network.tree_from(0)]
    publisher, other = (b for b in range(3) if len(tree.neighbours(b)) == 1)
    network.subscribe(publisher, 0, filters[0])
    network.subscribe(other, 1, filters[1])
    network.run()
    network.publish(publisher, 0, np.full(3, 4.0))
    while not (waiting := [v for v in network.brokers[publisher].visits.open.values() if v.waiting]):
        network.run(until=network.env.now + 0.1)
    assert waiting
    network.outages.crash(publisher, True)
    network.run(until=network.env.now + 20.0)
    assert network.tables()["deliveries"].num_rows == 0
    assert not network._copies, "the event is over"


def test_an_award_whose_way_is_not_known_waits_for_nobody_behind_a_link_that_is_down():
    """The hub of a star is to find 9, which no table has: it asks both leaves that may hide it, one of them in vain."""
    filters = [scored(0.0, 6.0, 3.0), scored(1.0, 7.0, 2.0)]
    network = network_of(4, WAYS[6], ("boxes", "exact"), 3, filters, kind_of_overlay="star")
    hub = network.brokers[0]
    assert len(hub.parts[-1].neighbours) == 3
    for subscription, filter in enumerate(filters):
        network.subscribe(subscription + 1, subscription, filter)
    network.run()
    network.outages.crash(2, True)
    message = Publication(0, np.full(3, 4.0), 0.0, 3, 0.0, 1, 0, -1, None, winners=((1, (-1.0, 9)),))
    hub.visits.event(message)
    visit = hub.visits.open[0]
    assert (visit.told, visit.waiting, visit.ahead) == ({1, 2}, {1}, [])


def ranked_rows(network):
    tables = network.tables()
    return tables["ranked"].to_pylist() if "ranked" in tables else []
