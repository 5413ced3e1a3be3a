"""The command line explains itself: help, examples, lists with a sentence per name, hints at misspelt names."""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tomllib

import pytest

from coverlay import SYSTEMS, unknown_name
from sim.cli import lists
from sim.cli.lists import LISTS
from sim.cli.main import main, parser
from sim.experiment.plan import load, shipped


def verbs():
    actions = [a for a in parser()._actions if isinstance(a, argparse._SubParsersAction)]
    return actions[0].choices


def test_without_arguments_it_says_where_to_start(capsys):
    assert main([]) == 0
    said = capsys.readouterr().out
    assert "start here:" in said
    assert all(name in said for name in verbs())


@pytest.mark.parametrize("name", sorted(verbs()))
def test_every_verb_has_help_for_every_argument_and_examples_that_parse(name, capsys):
    command = verbs()[name]
    assert all(action.help for action in command._actions)
    with pytest.raises(SystemExit) as done:
        main([name, "--help"])
    assert done.value.code == 0
    lines = capsys.readouterr().out.split("examples:\n")[1].splitlines()
    examples = [line.strip() for line in lines if line.strip()]
    assert examples
    for example in examples:
        options = parser().parse_args(shlex.split(example.removeprefix("coverlay ")))
        assert options.verb == name
        if name == "run" and options.experiment in shipped():
            load(options.experiment, options.settings)  # every key in an example exists


LOADED = """
import sys
sys.argv = ["coverlay", *{words}]
from sim.cli.main import main
try:
    main()
except SystemExit:
    pass
print("loaded:", *(name for name in ("numba", "numpy", "pyspark", "pandas") if name in sys.modules))
"""


def loaded(words, cache):
    """What a process has imported after a verb."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", LOADED.format(words=words)], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()[-1].split()[1:]


def test_help_loads_nothing_and_what_was_listed_before_is_listed_without_loading_anything(tmp_path):
    assert loaded(["--help"], tmp_path) == []
    for verb in (["list", "strategies"], ["keys", "overlay"]):
        loaded(verb, tmp_path)
        assert loaded(verb, tmp_path) == []


ON_WINDOWS = """
import sys, multiprocessing, numba, pandas, rich.console, rich.progress  # they know Windows, but not a pretended one
sys.platform, sys.modules["fcntl"] = "win32", None
from coverlay import CoverlayError
from sim.cli.main import main
print([main([word]) for word in ("list", "demo")])
for library in ("covering", "topk", "sim.notebook"):
    try:
        __import__(library)
    except CoverlayError as error:
        print(error, file=sys.stderr)
main(["--help"])
"""
REFUSED = "Coverlay runs on Linux and macOS, not on 'win32'; on Windows, use it in WSL\n"


def test_a_system_that_is_not_supported_gets_help_and_a_sentence():
    done = subprocess.run([sys.executable, "-c", ON_WINDOWS], capture_output=True, text=True)
    assert done.stderr == 2 * f"coverlay: {REFUSED}" + 3 * REFUSED
    assert done.stdout.startswith("[2, 2]\n")
    assert "start here:" in done.stdout


def test_the_metadata_name_the_systems_that_are_supported():
    named = tomllib.loads((lists.ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    systems = [name.split(" :: ")[-1].lower() for name in named if name.startswith("Operating System")]
    assert systems == [name.lower() for name in SYSTEMS.values()]


def test_a_kept_list_is_made_again_when_a_source_changed(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(lists, "_state_of_sources", lambda root: "before")
    monkeypatch.setitem(LISTS, "strategies", lambda: [("old", "a sentence")])
    assert lists.listed("strategies") == [("old", "a sentence")]
    monkeypatch.setitem(LISTS, "strategies", lambda: [("new", "a sentence")])
    assert lists.listed("strategies") == [("old", "a sentence")]
    monkeypatch.setattr(lists, "_state_of_sources", lambda root: "after")
    assert lists.listed("strategies") == [("new", "a sentence")]
    assert len(list((tmp_path / "coverlay" / "lists").iterdir())) == 1
    monkeypatch.setattr(lists, "ROOT", tmp_path)  # another clone of the same user
    assert lists.listed("strategies") == [("new", "a sentence")]
    assert len(list((tmp_path / "coverlay" / "lists").iterdir())) == 2, "which makes nobody else load everything again"


@pytest.mark.parametrize("what", sorted(LISTS))
def test_every_name_in_a_list_comes_with_a_sentence(what):
    rows = LISTS[what]()
    assert len(rows) > 3
    for name, text in rows:
        assert len(text) > 10, name


def test_slower_modes_are_marked():
    published = {name: text for name, text in LISTS["matchers"]() if name.endswith("-paper")}
    assert len(published) == 4
    for name, text in published.items():
        assert "as published" in text, name
        assert "slower" in text, name


def test_misspelt_names_get_a_hint(capsys):
    assert main(["run", "stoks"]) == 2
    assert "did you mean 'stocks'?" in capsys.readouterr().err
    assert "did you mean 'covering'?" in str(unknown_name("strategy", "coverin", ["simple", "covering"]))
    assert "did you mean" not in str(unknown_name("strategy", "telepathy", ["simple", "covering"]))
