"""Which store of sorted keys a search can live in, as its class and its options say."""

from __future__ import annotations

import covering

DOMAIN = [[0.0, 1.0]]


def test_only_searches_on_sorted_keys_live_in_a_store_of_them() -> None:
    stores = {name: covering.create(name, DOMAIN).store for name in covering.methods()}
    where = {store: {name for name in stores if stores[name] == store} for store in ("yes or no", "next key")}
    assert where["yes or no"] == {"zorder-emulated"}
    assert where["next key"] == {"bigmin", "density", "quadtree", "zorder", "hilbert"}
    assert stores["kdtree"] is stores["packed"] is stores["auto"] is stores["budget"] is None


def test_the_greedy_search_asks_ranges_only_unless_it_finishes_by_jumps() -> None:
    assert covering.create("zorder", DOMAIN, 0.1).store == "yes or no"
    assert covering.create("zorder", DOMAIN, finish=False).store == "yes or no"


def test_a_search_says_the_cap_that_may_end_it() -> None:
    assert covering.create("zorder", DOMAIN, 0.1, probe_cap=7).cap == 7
    assert covering.create("zorder", DOMAIN, probe_cap=7).cap is None, "exact jumps finish it"
    assert covering.create("zorder-emulated", DOMAIN, 0.1).cap is None
    assert covering.create("zorder-emulated", DOMAIN, 0.1, probe_cap=7).cap == 7
    assert covering.create("kdtree", DOMAIN, 0.1, node_budget=7).cap == 7
