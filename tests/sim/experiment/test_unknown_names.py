"""Facts instead of names: a strategy and a covering method under names that the package does not know.

Each is a subclass that changes nothing but its name. Whatever reads a name where it should read a fact treats it
differently from the original: the oracle, both engines, the report.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import covering
from analysis.aggregate import analyze
from analysis.report.summary import Summary
from broker.trace.schema import MUST_BE_ZERO
from coverlay import CoverlayError
from routing.strategies import STRATEGIES
from sim.experiment.compiled_support import unsupported
from sim.experiment.plan import PlannedRun, plan
from sim.experiment.runner import simulate
from sim.experiment.sweep import run_sweep
from sim.tell.explain import explain

OWN = "my-"
# Recorded, not simulated: which search was asked for is in the record, so names differ there.
SMALL = {
    "name": "unknown names",
    "overlay": {"kind": "random-tree", "brokers": 6},
    "workload": {"kind": "zipf", "attributes": 2, "subscriptions": 40, "events": 20},
    "arrivals": {"kind": "churn", "lifetime": 300.0},
    "matching": {"k": 3},
}


def _renamed(known: type) -> type:
    return type(f"My{known.__name__}", (known,), {"name": f"{OWN}{known.name}", "__doc__": known.__doc__})


@pytest.fixture(scope="module", autouse=True)
def own_names():
    """The registries, with a renamed subclass of everything in them."""
    with pytest.MonkeyPatch.context() as patch:
        for registry in (STRATEGIES, covering.METHODS):
            for cls in list(registry.values()):
                own = _renamed(cls)
                patch.setitem(registry, own.name, own)
        yield


def planned(routing: dict[str, Any], search: dict[str, Any], **sections: Any) -> PlannedRun:
    return plan({**SMALL, "routing": routing, "covering": search, **sections}).runs[0]


@st.composite
def settings_of_both(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    name = draw(st.sampled_from(sorted(n for n in STRATEGIES if not n.startswith(OWN))))
    method = draw(st.sampled_from(sorted(n for n in covering.METHODS if not n.startswith(OWN))))
    strategy, routing, search = STRATEGIES[name], {"strategy": name}, {}
    if strategy.searches:
        routing["mode"] = draw(st.sampled_from(strategy.modes))
        search["method"] = method
        if covering.METHODS[method].takes_epsilon:
            search["epsilon"] = draw(st.sampled_from([0.0, 0.2]))
    return routing, search


@given(settings_of_both(), st.sampled_from(["broker", "network"]))
@settings(max_examples=25)
def test_another_name_changes_nothing_but_the_name(chosen, scope):
    routing, search = chosen
    matching = {"matching": {"k": 3, "scope": scope}}
    own = {**routing, "strategy": OWN + routing["strategy"]}, {**search}
    if "method" in search:
        own[1]["method"] = OWN + search["method"]
    known, renamed = (simulate(planned(*both, **matching))[0] for both in (chosen, own))
    for name in known:
        if name != "run":
            assert known[name].equals(renamed[name]), name
    record = renamed["run"].to_pylist()[0]
    assert {name: record[name] for name in MUST_BE_ZERO if record[name]} == {}


@pytest.mark.parametrize(
    ("routing", "search", "named"),
    [
        ({"strategy": "my-covering"}, {}, "routing.strategy = 'my-covering'"),
        ({"strategy": "my-flooding"}, {}, "routing.strategy = 'my-flooding'"),
        ({"strategy": "covering"}, {"method": "my-kdtree"}, "covering.method = 'my-kdtree'"),
    ],
)
def test_the_compiled_engine_has_only_what_says_so_itself(routing, search, named):
    assert unsupported(planned(routing, search).experiment) == named


def test_a_profile_prices_only_what_it_names():
    service = {"broker": {"service": {"kind": "work", "profile": "xeon-vm-2026-11"}}}
    with pytest.raises(CoverlayError, match="no coefficients for covering method 'my-kdtree'"):
        planned({"strategy": "covering"}, {"method": "my-kdtree"}, **service)
    with pytest.raises(CoverlayError, match="no coefficients for covering method 'my-scan'"):
        planned({"strategy": "covering", "mode": "prune"}, {"method": "my-scan"}, **service)


@pytest.mark.spark
def test_the_whole_path_tells_the_same_of_both(tmp_path, spark):
    """Run, oracle, explain, aggregation and the words of the report."""
    sweep = {
        "routing.strategy": ["flooding", "simple", "covering", "hierarchical"],
        "covering.epsilon": [0.0, 0.3],
    }
    told = {}
    for prefix in ("", OWN):
        strategies = [prefix + name for name in sweep["routing.strategy"]]
        data = {
            **SMALL,
            "seeds": [1, 2],
            "routing": {"strategy": prefix + "covering"},
            "covering": {"method": prefix + "zorder-emulated"},
            "sweep": {**sweep, "routing.strategy": strategies},
        }
        out = tmp_path / (prefix or "known")
        planned = plan(data)
        run_sweep(planned, out)
        walks = []
        for run in planned.runs:
            lines = (line for event in range(2) for line in explain(out, event, None, run.run_id))
            walks += [line.replace(run.run_id, "this run") for line in lines]
        # In lower case: a name may begin a sentence.
        told[prefix] = [text.lower().replace(OWN, "") for text in (*words(analyze(out)), *walks)]
    assert told[OWN] == told[""]


def words(summary: Summary) -> list[str]:
    from analysis.report.page import begin
    from analysis.report.table import answering, table
    from analysis.report.words import cards

    begun = begin(summary)
    effects, metrics = begun.effects, begun.answer.metrics
    titles = [effects.title(point) for point in summary.order]
    points = [json.dumps(json.loads(point)) for point in summary.order]
    figures = [f"{card['figure']} {card['text']}" for card in cards(effects, metrics)]
    rows = map(str, table(effects, answering(effects, metrics)).rows)
    return [*titles, *points, *map(str, begun.sentences), *figures, *rows]
