"""Plug-ins: the guide's examples, copies of ours, loading in other processes, and the sentences for mistakes."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import invalidate_caches
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest

import covering
import topk
from broker.trace.schema import MUST_BE_ZERO
from covering.conformance import CHECKS
from coverlay import CoverlayError
from routing.conformance import contract
from routing.strategies import STRATEGIES
from sim import plugins
from sim.checks import plugin_checks, registers, results
from sim.cli.lists import GROUPS, listed, settings
from sim.experiment.plan import load, plan
from sim.experiment.runner import simulate
from sim.experiment.sweep import SweepOptions, run_sweep
from topk.conformance import CHECKS as OF_MATCHERS

GUIDE = Path(__file__).parents[2] / "docs" / "plugins.md"
SMALL = {
    "overlay": {"kind": "random-tree", "brokers": 5},
    "workload": {"kind": "zipf", "subscriptions": 40, "events": 15},
    "arrivals": {"kind": "churn"},
}
COPY = """
import covering, routing
from covering.scan import ScanIndex
from routing.strategies.covering import Covering
@covering.register
class Mine(ScanIndex):
    name = "my-scan"
@routing.register
class Same(Covering):
    name, sends_to, keeps_ranks = "my-covering", "all", True
"""
OTHERS = """
from typing import Annotated
import networkx as nx
import numpy as np
import broker, routing.overlay, topk
from coverlay import Key
@topk.register
class ByScore(topk.TopKIndex):
    name, semantics, priced_like = "by-score", ("exact",), "scan"
    def build(self, c):
        self.rows = np.lexsort((c.ids, -c.scores))
    def search(self, low, high, k):
        c, best = self.catalogue, []
        for row in self.rows:
            self.stats.entries += 1
            if (((c.lo[row] <= high) & (low <= c.hi[row])) | ~c.mentioned[row]).all():
                best.append(row)
            if len(best) == k:
                break
        return c.ids[best], c.scores[best]
@routing.overlay.register
def two_sites(brokers, rng, *, wan: Annotated[float, Key("latency between the sites", "ms")] = 20.0):
    graph = nx.path_graph(brokers)
    nx.set_edge_attributes(graph, {link: wan if link[1] == brokers // 2 else 1.0 for link in graph.edges}, "latency")
    return graph
@broker.register_service
def two_speed(rng, *, event: Annotated[float, Key("an event", "ms")], request: float = 1.0):
    return lambda work: event if work.kind == "event" else request
"""


@pytest.fixture
def guide(tmp_path) -> Path:
    """The guide's examples as files: mine.py and mine.toml."""
    blocks = re.findall(r"```(py|toml)\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    code = [text for kind, text in blocks if kind == "py"]
    assert len(code) == 3
    assert all(len(text.splitlines()) < 60 for text in code)
    (tmp_path / "mine.py").write_text("\n".join(code))
    (tmp_path / "mine.toml").write_text(next(text for kind, text in blocks if kind == "toml"))
    return tmp_path


def written(folder: Path, text: str, name: str = "mine.py") -> Path:
    (folder / name).write_text(text)
    return folder / name


def test_the_guide_runs_as_it_is_written(guide, tmp_path):
    made = load(str(guide / "mine.toml"), {"workload.subscriptions": 40, "workload.events": 15, "overlay.brokers": 5})
    assert [run.point["routing.strategy"] for run in made.runs] == ["covering", "recent"]
    out = tmp_path / "out"
    swept = run_sweep(made, out, SweepOptions(jobs=2))
    assert not swept.failures
    assert not swept.wrong
    assert [plugin.name for plugin in made.plugins] == ["mine.py"]
    copy = out / made.plugins[0].copy
    assert copy.read_text() == (guide / "mine.py").read_text()
    again = load(str(out / "experiment.toml"))
    assert [run.run_id for run in again.runs] == [run.run_id for run in made.runs]
    assert run_sweep(again, out, SweepOptions(resume=True)).kept == 2
    rows = dict(listed("covering", [str(copy)]))
    assert rows["widest-first"] == "yours, mine.py: Looks at the widest boxes first"
    assert next(s for s in settings([str(copy)]) if s.key == "routing.memory").meaning == "subscriptions compared"
    assert "widest-first" not in dict(listed("covering"))  # what is kept for the next command is ours alone


def test_a_copy_of_ours_gives_equal_results_and_is_left_to_simpy(tmp_path):
    file = written(tmp_path, COPY)
    base = {"name": "copies", **SMALL, "plugins": [str(file)], "run": {"engine": "prefer-compiled"}}
    both = [
        {"routing": {"strategy": s}, "covering": {"method": m}}
        for s, m in (("covering", "scan"), ("my-covering", "my-scan"))
    ]
    ours, mine = (simulate(plan({**base, **sections}).runs[0])[0] for sections in both)
    known, record = (tables["run"].to_pylist()[0] for tables in (ours, mine))
    assert known["trace_hash"] == record["trace_hash"]
    assert (known["engine"], record["engine"]) == ("compiled", "simpy")
    assert record["engine_reason"] == "the compiled engine does not support routing.strategy = 'my-covering'"


def test_other_kinds_in_one_network(tmp_path):
    file = written(tmp_path, OTHERS)
    data = {
        **SMALL,
        "name": "others",
        "plugins": [str(file)],
        "overlay": {"kind": "two-sites", "brokers": 6, "wan": 30.0},
        "matching": {"method": "by-score", "k": 2},
        "broker": {"service": {"kind": "two-speed", "event": 0.5}},
    }
    tables, _ = simulate(plan(data).runs[0])
    record = tables["run"].to_pylist()[0]
    assert {name: record[name] for name in MUST_BE_ZERO if record[name]} == {}
    assert set(tables["publications"].column("service").to_pylist()) == {0.5}
    scan, _ = simulate(plan({**data, "matching": {"method": "scan", "k": 2}}).runs[0])
    assert tables["deliveries"].equals(scan["deliveries"])
    with pytest.raises(CoverlayError, match=r"overlay.wan is 'far'; it must be a number"):
        plan({**data, "overlay": {"kind": "two-sites", "wan": "far"}})
    with pytest.raises(CoverlayError, match="by-score answers semantics exact, not relaxed"):
        plan({**data, "matching": {"method": "by-score", "semantics": "relaxed", "k": 2}})


def test_another_process_imports_the_copy(tmp_path):
    file = written(tmp_path, COPY)
    plugin = plugins.load(str(file))
    plugins.keep([plugin], tmp_path / "out")
    file.unlink()
    for registry in (covering.METHODS, plugins.STRATEGIES):  # as in a process that starts anew
        for name in list(registry.written):
            del registry[name], registry.written[name]
    sys.modules.pop(plugin.module)
    plugins.ensure([plugin], tmp_path / "out")
    assert covering.create("my-scan", (0, 1)).name == "my-scan"


def test_the_content_is_part_of_the_id_of_the_runs_that_use_it(tmp_path):
    file = written(tmp_path, COPY)
    data = {**SMALL, "name": "ids", "plugins": [str(file)], "sweep": {"covering.method": ["scan", "my-scan"]}}
    before = [run.run_id for run in plan(data).runs]
    written(tmp_path, COPY + "# another comment\n")
    after = [run.run_id for run in plan(data).runs]
    assert before[0] == after[0]
    assert before[1] != after[1]


def test_what_a_session_registers_runs_in_this_process_only():
    from covering.scan import ScanIndex

    @covering.register
    class Here(ScanIndex):
        name = "here"

    made = plan({**SMALL, "name": "here", "covering": {"method": "here"}})
    assert made.runs[0].local == ("here",)
    assert made.notes == ("registered in this session only, so runs are made in this process: here",)
    with pytest.raises(CoverlayError, match="'here' is registered in this process only; put it into a file"):
        run_sweep(made, Path("nowhere"), SweepOptions(spark_master="spark://nowhere:7077"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = (", r"mine.py, line 1: '\(' was never closed"),
        ("x = 1", "plug-in mine.py registers nothing; docs/plugins.md shows how"),
        ("import covering\nx = 1 / 0", "mine.py, line 2, in <module>: ZeroDivisionError: division by zero"),
        (
            "import covering\n@covering.register\nclass A(covering.CoveringIndex):\n    name = 'a'",
            "mine.py, line 2: A does not say its 'touches'; it is one of: boxes, words, nodes, keys",
        ),
        (
            "import covering\n@covering.register\nclass A(covering.CoveringIndex):\n name, touches = 'scan', 'boxes'",
            "mine.py, line 2: there is a covering method 'scan' already, in covering/scan.py, line ",
        ),
        (
            "import routing\n@routing.register\nclass A(routing.LinkStrategy):\n name, sends_to = 'a', 'some'",
            "mine.py, line 2: A says sends_to = 'some'; it is one of: all, root, nobody",
        ),
        (
            "import topk\n@topk.register\nclass A:\n name = 'a'",
            "mine.py, line 2: a matcher is a subclass of TopKIndex",
        ),
    ],
)
def test_mistakes_in_a_plug_in_are_told_with_their_place(tmp_path, text, said):
    file = written(tmp_path, text)
    with pytest.raises(CoverlayError, match=said):
        plugins.load(str(file))


def test_an_exception_during_a_run_is_told_with_its_place(guide, tmp_path):
    text = (guide / "mine.py").read_text().replace("return self.found(slot, probes=probes)", "return slot / 0")
    line = next(n for n, row in enumerate(text.splitlines(), 1) if "slot / 0" in row)
    file = written(tmp_path, text)
    data = {**SMALL, "name": "fails", "plugins": [str(file)], "covering": {"method": "widest-first"}}
    swept = run_sweep(plan(data), tmp_path / "out")
    failure = swept.failures[0]
    assert failure.message == f"mine.py, line {line}, in search: ZeroDivisionError: division by zero"
    assert failure.is_input


def test_a_wrong_method_fails_with_the_smallest_example(guide, tmp_path):
    text = (guide / "mine.py").read_text().replace(">= query).all()", ">= query - 1e-9).all()")
    file = written(tmp_path, text)
    extremes = next(c for c in plugin_checks(file) if str(c) == "widest-first-extremes")
    found = extremes.run()
    assert not found.holds
    assert "whose box does not contain the query; expected None" in found.message
    assert len(found.example) == 3  # an index, one box, one question
    assert [r.failed for r in results(file, "extremes", found.failed)] == [found.failed]


def test_a_wrong_workload_and_a_wrong_service_fail(tmp_path):
    text = """
import broker, numpy as np, pandas as pd, sim.workloads
@sim.workloads.register(schema={"price": (0, 1)})
def careless(stream, subscriptions, events):
    at = stream("all").uniform(0, 1, subscriptions + events)
    return pd.DataFrame({"price_lo": at[:subscriptions]}), pd.DataFrame({"price": at[subscriptions:]})
@broker.register_service
def negative(rng):
    return lambda work: -1.0
"""
    checks = {str(check): check for check in plugin_checks(written(tmp_path, text))}
    assert "more rows change earlier events" in checks["careless-rows"].run().message
    assert "a service takes -1.0" in checks["negative-times"].run().message


METRIC = """
import analysis
@analysis.register_metric(title="far deliveries", unit="share", definition="After more than three hops.",
                          formula="count(hops > 3) ÷ count", reads=["deliveries"])
def far(trace):
    from pyspark.sql import functions as F
    return trace("deliveries").groupBy("run").agg(F.avg((F.col("hops") > 3).cast("double")).alias("far"))
"""


def test_a_file_with_a_metric_alone_is_a_plug_in(tmp_path):
    file = written(tmp_path, METRIC)
    made = plan({**SMALL, "name": "far", "plugins": [str(file)], "asks": ["far"]})
    assert [plugin.name for plugin in made.plugins] == ["mine.py"]
    plain = plan({**SMALL, "name": "far"})
    assert [run.run_id for run in made.runs] == [run.run_id for run in plain.runs]  # no run depends on a metric
    assert dict(listed("metrics", [str(file)]))["far"] == "yours, mine.py: After more than three hops. [share]"
    assert "far" not in dict(listed("metrics"))
    assert registers(file) == ["metric far"]
    assert [str(check) for check in plugin_checks(file)] == ["far-values"]
    plugins.keep(made.plugins, tmp_path / "out")
    (tmp_path / "out" / "experiment.toml").write_text(f'plugins = ["{made.plugins[0].copy}"]')
    assert plugins.load_of_folder(tmp_path / "out") == list(made.plugins)
    with pytest.raises(CoverlayError, match=r"mine.py, line 3: there is a metric 'entries' already, in Coverlay"):
        plugins.load(str(written(tmp_path, METRIC.replace("def far", "def entries"))))
    other = written(tmp_path, METRIC + "# another", "other.py")
    with pytest.raises(CoverlayError, match=r"other.py, line 3: there is a metric 'far' already, in mine.py, line 3"):
        plugins.load(str(other))


@pytest.mark.spark
@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("-F.avg('hops')", "does not say signed = True"),
        ("F.max('part')", "depends on how Spark divides tables"),
    ],
)
def test_a_wrong_metric_fails(tmp_path, value, said):
    start = METRIC[: METRIC.index("    return")]
    rows = "trace('deliveries').withColumn('part', F.spark_partition_id())"
    file = written(tmp_path, f"{start}    return {rows}.groupBy('run').agg(({value}).alias('far'))\n")
    (check,) = plugin_checks(file)
    assert said in check.run().message


def test_an_installed_package_is_part_of_the_ids_and_known_to_workers_each_time(tmp_path, monkeypatch):
    package = tmp_path / "packaged_methods"
    package.mkdir()
    (package / "__init__.py").write_text("from packaged_methods import scans\n")
    (package / "scans.py").write_text(COPY)
    monkeypatch.syspath_prepend(tmp_path)
    points = {"my-scan": EntryPoint("my-scan", "packaged_methods", "coverlay.covering")}
    broken = {"broken": EntryPoint("broken", "packaged_broken", "coverlay.covering")}
    monkeypatch.setattr(plugins, "announced", lambda group: {**points, **broken} if group == "covering" else {})
    data = {**SMALL, "name": "packaged", "covering": {"method": "my-scan"}}
    first, second = plan(data), plan(data)
    assert first.runs[0].run_id == second.runs[0].run_id
    for made in (first, second):
        assert [plugin.name for plugin in made.runs[0].plugins] == ["packaged_methods"]
        assert made.runs[0].local == ()
    for text, said in (
        ("import covering\nx = 1 / 0", r"packaged_broken': packaged_broken.py, line 2, in <module>: ZeroDivisionError"),
        ("x = (", r"packaged_broken': packaged_broken.py, line 1: '\(' was never closed"),
        ("import nowhere_at_all", "packaged_broken': there is no module 'nowhere_at_all'"),
    ):
        written(tmp_path, text, "packaged_broken.py")
        invalidate_caches()
        with pytest.raises(CoverlayError, match=said):
            plan({**data, "covering": {"method": "broken"}})


def test_every_kind_has_a_list():
    assert {*plugins.REGISTRIES} == {*GROUPS.values()}
    assert dict(listed("services"))["constant"] == "The same time for every message [value]"


@pytest.mark.parametrize("name", STRATEGIES)
def test_our_strategies_pass_the_contract_of_links(name):
    for case in range(25):
        contract(name, case)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("next(iter(self.sent), None)", "the neighbour would keep the event|do not contain"),
        ("99", "the neighbour would keep the event"),
    ],
)
def test_a_strategy_that_keeps_events_from_clients_fails_with_the_smallest_example(tmp_path, answer, said):
    text = f"""
import routing
@routing.register
class Careless(routing.LinkStrategy):
    name, sends_to, searches, priced_like = "careless", "all", False, "scan"
    def __init__(self, options):
        super().__init__(options)
        self.sent = {{}}
    def add(self, subscription, filter):
        self.sent[subscription] = filter
    def remove(self, subscription, filter):
        del self.sent[subscription]
    def find_cover(self, subscription, filter):
        return routing.Search({answer}, probes=1)
"""
    checks = {str(check): check for check in plugin_checks(written(tmp_path, text))}
    found = checks["careless-contract"].run()
    assert re.search(said, found.message)
    assert len(found.example) <= 3  # a ledger and at most two subscriptions


@pytest.mark.slow
@pytest.mark.spark
def test_a_service_model_is_compared_with_that_of_another_process(tmp_path):
    text = """
import os, broker
@broker.register_service
def by_process(rng):
    return lambda work: os.getpid() % 1000 / 1000
"""
    checks = {str(check): check for check in plugin_checks(written(tmp_path, text))}
    assert "traces differ" in checks["by-process-workers"].run().message


def test_a_method_without_a_price_says_how_it_gets_one(tmp_path):
    file = written(tmp_path, COPY)
    data = {**SMALL, "name": "priceless", "plugins": [str(file)], "covering": {"method": "my-scan"}}
    with pytest.raises(CoverlayError, match=r"A plug-in says whose it takes, as priced_like = .scan.; `cov"):
        plan({**data, "broker": {"service": {"kind": "work"}}})
    profile = written(tmp_path, 'base = "xeon-vm-2026-11"\n[covering.nobodys]\ncheck = 1.0\n', "other.toml")
    with pytest.raises(CoverlayError, match=r"unknown covering method 'nobodys'.*a plug-in's name needs the plug-in"):
        plan({**SMALL, "name": "other", "broker": {"service": {"kind": "work", "profile": str(profile)}}})


@pytest.mark.parametrize("name", ["analysis", "routing"])
def test_a_script_beside_a_file_of_our_name_is_told_in_a_sentence(tmp_path, name):
    mine = written(tmp_path, "x = 1", f"{name}.py")
    script = written(tmp_path, "import sim\nsim.load('demo')", "script.py")
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    last = ran.stderr.splitlines()
    assert last[-1].startswith(f"ImportError: rename {mine}: Coverlay has a package of its own called '{name}'")
    assert len(last) < 10


def test_a_method_without_a_price_takes_that_of_another_and_says_so(guide):
    data = {
        **SMALL,
        "name": "priced",
        "plugins": [str(guide / "mine.py")],
        "broker": {"service": {"kind": "work"}},
        "sweep": {"routing.strategy": ["covering", "recent"]},
        "covering": {"method": "widest-first"},
    }
    made = plan(data)
    assert [note.split(":")[0] for note in made.notes] == [
        "covering.method has no effect in 1 of 2 points",
        "widest-first is priced like scan",
        "recent is priced like scan",
    ]
    for run in made.runs:
        assert np.sum(simulate(run)[0]["control"].column("service").to_numpy()) > 0


@pytest.mark.parametrize("check", [name for name, (cases, _) in CHECKS.items() if cases > 1])
@pytest.mark.parametrize("method", covering.methods())
def test_our_covering_methods_pass_the_checks(method, check):
    cases, function = CHECKS[check]
    for case in range(min(cases, 2 if check == "library" else 25)):
        function(method, case)


@pytest.mark.parametrize("check", OF_MATCHERS["boxes"])
@pytest.mark.parametrize("method", ["scan", "slices", "auto"])
def test_our_matchers_pass_the_checks(method, check):
    cases, function = OF_MATCHERS["boxes"][check]
    for case in range(min(cases, 15)):
        function(method, case)


@pytest.mark.slow
@pytest.mark.parametrize("kind", topk.KINDS)
def test_all_our_matchers_pass_the_checks(kind):
    for cases, function in OF_MATCHERS[kind].values():
        for method in topk.methods(kind):
            for case in range(min(cases, 40)):
                function(method, case)


@pytest.mark.slow
@pytest.mark.spark
def test_the_guide_passes_all_checks(guide):
    failed = [result for result in results(guide / "mine.py") if not result.holds]
    assert failed == []
