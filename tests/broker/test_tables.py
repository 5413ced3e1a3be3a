"""The tables of a broker: bounds to the last bit, values that a residue leaves out, the k best and their order."""

from __future__ import annotations

import numpy as np
import pytest

from broker.language import compile_subscription, parse_subscription
from broker.language.schema import Schema
from broker.network import Network
from broker.settings import Settings
from broker.tables import LinkTable, LocalTable
from broker.trace.schema import CLIENT
from covering.residue import Residue
from routing.contract import RoutingOptions
from routing.filter import Filter
from routing.overlay.graph import build_overlay
from routing.overlay.trees import SHARED
from sim.random_streams import streams

DOMAIN = np.array([[0.0, 100.0]])


def interval(low: float, high: float, **options) -> Filter:
    return Filter.of_box(np.array([[low, high]]), **options)


def holding(filter: Filter, semantics: str = "exact") -> LinkTable:
    table = LinkTable(semantics, filter.box)
    table.add(1, filter)
    return table


@pytest.mark.parametrize("semantics", ["exact", "relaxed"])
def test_bounds_in_a_table_are_closed_and_exact(semantics):
    table = holding(interval(0.1, 0.3), semantics)
    assert table.matches(np.array([0.1]))[0]
    assert table.matches(np.array([0.3]))[0]
    assert not table.matches(np.array([np.nextafter(0.3, 1.0)]))[0]
    assert not table.matches(np.array([np.nextafter(0.1, 0.0)]))[0]


def test_an_open_bound_stays_open_in_a_table():
    schema = Schema.uniform(1, 0.0, 100.0)
    table = holding(compile_subscription(schema, parse_subscription("a0 > 5 and a0 < 10")))
    wanted = [(5.0, False), (np.nextafter(5.0, 6.0), True), (np.nextafter(10.0, 9.0), True), (10.0, False)]
    assert [(value, table.matches(np.array([value]))[0]) for value, _ in wanted] == wanted


def test_an_event_goes_to_all_who_want_it_but_not_back_to_where_it_came_from():
    stream = streams(1)
    overlay = build_overlay("line", 3, stream("overlay"))
    network = Network(overlay, Settings(RoutingOptions(DOMAIN), "simple"), stream)
    network.preload([0, 2], [interval(0.0, 50.0)] * 2)
    middle, value = network.brokers[1].parts[SHARED], np.array([20.0])
    assert sorted(middle.wants(CLIENT, value)[0]) == [0, 2]
    assert [middle.wants(end, value)[0] for end in (0, 2)] == [[2], [0]]


def test_an_empty_table_is_not_asked():
    stream = streams(1)
    network = Network(build_overlay("line", 3, stream("overlay")), Settings(RoutingOptions(DOMAIN), "simple"), stream)
    network.preload([0, 0], [interval(0.0, 50.0)] * 2)
    parts, value = [broker.parts[SHARED] for broker in network.brokers], np.array([60.0])
    assert [part.wants(CLIENT, value) for part in parts] == [([], (0, 0, 0)), ([], (1, 2, 0)), ([], (1, 2, 0))]


@pytest.mark.parametrize("semantics", ["exact", "relaxed"])
def test_a_value_that_is_left_out_matches_nothing_in_a_table(semantics):
    residue = Residue(excluded=((0, (4.0,)),), allowed=())
    table = holding(interval(0.0, 9.0, residue=residue), semantics)
    assert [table.matches(np.array([value]))[0] for value in (3.0, 4.0, 5.0)] == [True, False, True]


def test_the_k_best_of_a_broker_and_no_more_equal_scores_by_id():
    table = LocalTable(Settings(RoutingOptions(DOMAIN), matcher="scan").ranking)
    for subscription, score in ((9, 1.0), (5, 1.0), (7, 2.0), (3, 1.0)):
        table.add(subscription, interval(0.0, 50.0, score=score))
    ids, scores, entries, nodes = table.top(np.array([20.0]), 3)
    assert list(zip(ids.tolist(), scores.tolist(), strict=True)) == [(7, 2.0), (3, 1.0), (5, 1.0)]
    assert (entries, nodes) == (3, 0)
    assert len(table.top(np.array([20.0]), None)[0]) == 4
