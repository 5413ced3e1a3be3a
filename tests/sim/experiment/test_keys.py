"""The reference of keys is complete, says what the program does, and is the page in docs."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

import covering
import topk
from broker.transport import service_options
from coverlay import CoverlayError
from routing.overlay.graph import OVERLAYS, overlay_options
from routing.overlay.latency import LATENCIES
from sim.cli.main import main
from sim.experiment.config import Experiment, parse
from sim.experiment.config_base import OpenSection
from sim.experiment.dotted import MISSING, lookup
from sim.experiment.keys import OPTIONS, settings
from sim.experiment.reference import ABSENT, as_markdown, choose
from sim.workloads import WORKLOADS, workload_options
from sim.workloads.arrivals import ARRIVALS, arrival_options

PAGE = Path(__file__).parents[3] / "docs" / "keys.md"
ALL = settings()
DURATIONS = (
    "latency_floor",
    "jitter",
    "retransmit_after",
    "settle",
    "lifetime",
    "downtime",
    "value",
    "mean",
    "minimum",
)


def _model_keys(model, prefix=""):
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and hasattr(inner, "model_fields"):
            yield from _model_keys(inner, f"{prefix}{name}.")
        else:
            yield prefix + (field.alias or name), field


def test_the_page_in_docs_is_what_the_program_declares():
    assert PAGE.read_text(encoding="utf-8") == as_markdown(ALL), "write it again: coverlay keys --format markdown"


def test_every_key_of_the_model_is_there_with_one_line_of_meaning():
    assert {key for key, _ in _model_keys(Experiment)} <= {setting.key for setting in ALL}
    for setting in ALL:
        assert setting.meaning, f"{setting.key} has no Key with its type"
        assert "\n" not in setting.meaning
        assert setting.type != "any" or setting.key in ("matching.low", "matching.high"), setting.key


def test_durations_have_their_unit():
    times = [setting for setting in ALL if setting.key.rpartition(".")[2] in DURATIONS]
    assert len(times) >= len(DURATIONS)
    assert {setting.unit for setting in times} == {"ms"}
    assert {s.unit for s in ALL if s.key.endswith("_rate")} == {"per ms"}


def test_defaults_are_those_of_an_experiment_that_says_nothing():
    bare = parse({"name": "bare"}, "test").model_dump(by_alias=True)
    for key, _ in _model_keys(Experiment):
        (written,) = {s.default for s in ALL if s.key == key and not s.only_for}
        told = None if written == ABSENT else tomllib.loads(f"value = {written}")["value"]
        value = lookup(bare, key)
        assert value is not MISSING
        assert key == "name" or told == value


def _accepted():
    """(section, kind, option) for everything that an experiment file may hold beside the model's keys."""
    for kind in OVERLAYS:
        yield from (("overlay", kind, option) for option in overlay_options(kind))
    for kind, model in LATENCIES.items():
        yield from (("overlay.latency", kind, option) for option in model.__dataclass_fields__)
    for kind, names in service_options().items():
        yield from (("broker.service", kind, option) for option in names if option != "profile")
    for kind in WORKLOADS:
        yield from (("workload", kind, option) for option in workload_options(kind))
    for kind in ARRIVALS:
        yield from (("arrivals", kind, option) for option in arrival_options(kind))
    for method in covering.methods():
        yield from (("covering", method, option) for option in covering.options_of(method))
    for method in topk.methods():
        yield from (("matching", method, option) for option in topk.options_of(method))


def test_every_option_of_every_kind_is_there():
    listed = {(s.key, kind) for s in ALL for kind in (s.only_for or ("",))}
    missing = [
        (section, kind, option)
        for section, kind, option in _accepted()
        if not {(f"{section}.{option}", kind), (f"{section}.{option}", "")} & listed
    ]
    assert missing == []


def test_every_open_section_has_its_options_listed():
    def sections(model, prefix=""):
        for name, field in model.model_fields.items():
            inner = field.annotation
            if isinstance(inner, type) and hasattr(inner, "model_fields"):
                if issubclass(inner, OpenSection):
                    yield prefix + name
                yield from sections(inner, f"{prefix}{name}.")

    assert set(sections(Experiment)) <= {*OPTIONS, "matching"}


def test_a_section_or_a_key_is_chosen_and_a_misspelt_one_gets_a_hint():
    assert {s.key.partition(".")[0] for s in choose(ALL, "broker")} == {"broker"}
    assert [s.key for s in choose(ALL, "covering.epsilon")] == ["covering.epsilon"]
    with pytest.raises(CoverlayError, match=r"no section or key 'rooting'; sections are: .*did you mean 'routing'\?"):
        choose(ALL, "rooting")


def test_the_verb_prints_text_json_and_a_page(capsys):
    assert main(["keys", "faults"]) == 0
    assert "faults.downtime" in capsys.readouterr().out
    assert main(["keys", "faults", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {"key", "type", "default", "unit", "meaning", "only_for"} == set(rows[0])
    assert main(["keys", "--format", "markdown"]) == 0
    assert capsys.readouterr().out == PAGE.read_text(encoding="utf-8")
    assert main(["keys", "nothing"]) == 2
