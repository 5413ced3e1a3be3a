"""The ledger: what ships is what the code declares, points are kept, verdicts rest on the right column and say why."""

from __future__ import annotations

import gc
import shutil
import time
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis.report.claims import (
    EXTENSION,
    FAILS,
    HOLDS,
    LEDGER,
    NOT_RUN,
    Ledger,
    changes,
    read_ledger,
    write_ledger,
)
from coverlay import CoverlayError
from sim.cli.main import main
from sim.reproduce import DOCUMENTS, ledger, measure, page, points, sheet, tables
from sim.reproduce.measure import Bout
from sim.reproduce.rules import COUNTS, SAID, TIME, UNMEASURED, Above, AtMost, Factor, Told, Yes, table
from sim.reproduce.series import Swept
from sim.reproduce.sheet import Cause, Sheet, Steps

DOCS = Path(__file__).parents[3] / "docs"
TOLD = table(
    Told("faster", "a is faster than b", "4×", Factor(4.0), TIME),
    Told("cheaper", "a looks at less", "less", Above(1.0), COUNTS),
    Told("right", "the answer is 7", "7", Yes(), COUNTS),
)
WHY = Cause("it looks at more", {"nodes": 12.0})


def quiet(message: str) -> None:
    """Progress that nobody reads."""


@pytest.fixture
def made_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sheet:
    monkeypatch.setattr(sheet, "declared", lambda document: TOLD)
    monkeypatch.setattr(gc, "collect", lambda: 0)  # half a second where a process has imported everything
    return Sheet("vldb08", tmp_path / "vldb08", quiet)


# ---- what ships -----------------------------------------------------------------------------------------


def test_the_ledger_that_ships_has_exactly_the_declared_claims() -> None:
    shipped = read_ledger(DOCS / LEDGER)
    ids = {(claim.document, claim.id) for claim in shipped.claims}
    declared = {(document, id) for document in DOCUMENTS for id in tables.declared(document)}
    assert ids - declared == set(), "claims that no table declares any more: ship the ledger again"
    assert declared - ids == set(), "declared claims that are not in docs/claims.json: ship the ledger again"
    assert len(ids) >= 120
    assert (tuple(shipped.constants), shipped.substitutions) == (tables.CONSTANTS, tables.SUBSTITUTIONS)
    for claim in shipped.claims:
        told = tables.declared(claim.document)[claim.id]
        for name in (*SAID, *UNMEASURED):
            assert getattr(claim, name) == getattr(told, name), (claim.id, name)
        assert claim.verdict == NOT_RUN or (claim.size and claim.document in shipped.made)
        assert claim.verdict == NOT_RUN or all("--quick" not in run.command for run in shipped.made[claim.document])


def test_the_pages_that_ship_are_written_from_the_ledger(tmp_path: Path) -> None:
    pages = [Path(page.INDEX), *(Path(page.PAGES, f"{document}.md") for document in DOCUMENTS)]
    shutil.copytree(DOCS / page.PAGES, tmp_path / page.PAGES)
    shutil.copy(DOCS / page.INDEX, tmp_path)
    (tmp_path / page.FOLDER).symlink_to(DOCS / page.FOLDER)
    ledger.ship(read_ledger(DOCS / LEDGER), tmp_path)
    for name in (*pages, LEDGER):
        assert (tmp_path / name).read_text(encoding="utf-8") == (DOCS / name).read_text(encoding="utf-8"), name
    (tmp_path / page.PAGES / "ibm04.md").unlink()
    ledger.ship(read_ledger(DOCS / LEDGER), tmp_path)
    assert "## Figure 5\n" in (tmp_path / page.PAGES / "ibm04.md").read_text(encoding="utf-8")
    for name in pages[:2]:
        (tmp_path / name).write_text("no such line")
        with pytest.raises(CoverlayError, match=f"{name} has no lines"):
            ledger.ship(read_ledger(DOCS / LEDGER), tmp_path)
        shutil.copy(DOCS / name, tmp_path / name)


def test_shipping_keeps_what_was_measured_before_unless_the_claim_changed(tmp_path: Path, made_up: Sheet) -> None:
    shutil.copy(DOCS / page.INDEX, tmp_path)
    measured = made_up.judge("cheaper", [2.0], WHY, size="n = 1")
    ledger.ship(Ledger({}, [measured]), tmp_path)
    ledger.ship(Ledger({}, [TOLD["cheaper"].not_run("vldb08")]), tmp_path)
    assert list(read_ledger(tmp_path / LEDGER).claims) == [measured]
    ours = replace(TOLD["cheaper"], kind=EXTENSION)
    ledger.ship(Ledger({}, [ours.not_run("vldb08")]), tmp_path)
    assert list(read_ledger(tmp_path / LEDGER).claims) == [replace(measured, kind=EXTENSION)], "measured all the same"
    ledger.ship(Ledger({}, [replace(TOLD["cheaper"], claim="a looks at more").not_run("vldb08")]), tmp_path)
    assert [claim.verdict for claim in read_ledger(tmp_path / LEDGER).claims] == [NOT_RUN]


def test_every_document_has_a_table() -> None:
    assert all(tables.declared(document) for document in DOCUMENTS)


# ---- verdicts -------------------------------------------------------------------------------------------


def test_a_verdict_rests_on_what_the_document_measured_and_shows_the_other(made_up: Sheet) -> None:
    both = {TIME: [3.9, 4.0, 4.2], COUNTS: [0.5, 0.5, 0.5]}
    claim = made_up.judge("faster", both, WHY, size="n = 1", overhead={"a": 1.5})
    assert (claim.verdict, claim.ours, claim.seeds) == (HOLDS, "4× (3.9× to 4.2×)", 3)
    assert claim.beside[COUNTS].verdict == FAILS
    assert claim.disagrees == [COUNTS]
    assert claim.overhead == "a 1.5 µs"
    assert (claim.reason, claim.evidence) == ("", {})
    other = made_up.judge("cheaper", both, WHY, size="n = 1")
    assert (other.verdict, other.reason, other.evidence) == (FAILS, "it looks at more", {"nodes": 12.0})
    assert other.disagrees == [TIME]


def test_counts_have_no_noise_and_times_have(made_up: Sheet) -> None:
    claim = made_up.judge("cheaper", {TIME: [1.1], COUNTS: [1.1]}, WHY, size="n = 1")
    assert (claim.verdict, claim.beside[TIME].verdict) == (HOLDS, FAILS)


def test_a_reason_is_looked_for_only_where_it_is_needed_and_must_be_measured(made_up: Sheet) -> None:
    def never() -> Cause:
        raise AssertionError("the claim holds")

    assert made_up.judge("cheaper", [2.0], never, size="n = 1").verdict == HOLDS
    assert made_up.judge("right", [0.0], lambda: WHY, size="n = 1", detail="8").reason == "it looks at more"
    with pytest.raises(CoverlayError, match="names nothing that was measured"):
        Cause("a guess", {})


def test_bad_verdicts_are_refused(made_up: Sheet) -> None:
    with pytest.raises(CoverlayError, match="unknown claim of vldb08 'fig-1'"):
        made_up.judge("fig-1", [1.0], WHY, size="n = 1")
    with pytest.raises(CoverlayError, match="rests on time, which was not measured"):
        made_up.judge("faster", {COUNTS: [1.0]}, WHY, size="n = 1")
    made_up.judge("cheaper", [2.0], WHY, size="n = 1")
    with pytest.raises(CoverlayError, match="judged twice"):
        made_up.judge("cheaper", [2.0], WHY, size="n = 1")
    made_up.untestable("faster", "n = 1", "n must be 2")
    with pytest.raises(CoverlayError, match="no verdict on right"):
        made_up.finish()
    made_up.judge("right", [1.0], WHY, size="n = 1")
    assert [claim.id for claim in made_up.finish()] == ["faster", "cheaper", "right"]


# ---- points ---------------------------------------------------------------------------------------------


def test_the_indexes_of_a_point_are_gone_before_the_next_is_measured(
    made_up: Sheet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # garbage is collected

    class Index:
        def __init__(self) -> None:
            self.parts = [self]  # refer to each other

    built = [Index()]
    left = weakref.ref(built[0])
    gc.disable()
    try:
        made_up.kept("large", built.clear)
        assert made_up.kept("larger", lambda: left() is None)
    finally:
        gc.enable()


def test_a_point_is_measured_once_unless_the_machine_was_busy(made_up: Sheet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sheet.os, "getloadavg", lambda: (3.0, 0.0, 0.0))
    asked: list[int] = []

    def measured() -> dict[int, dict[str, int]]:
        asked.append(1)
        return {7: {TIME: len(asked)}}

    def of(count: int) -> dict[str, dict[str, int]]:
        return {"7": {TIME: count}}

    assert made_up.kept("p", measured) == of(1) == made_up.kept("p", measured)
    assert made_up.judge("right", [1.0], WHY, size="n = 1").load == 3.0
    again = Sheet("vldb08", made_up.out, quiet, most_load=4.0)
    assert again.kept("p", measured) == of(1)
    again = Sheet("vldb08", made_up.out, quiet, most_load=2.0)
    first, second = (again.kept("counts", lambda n=n: {COUNTS: n}, timed=False) for n in (1, 2))
    assert first == second, "counts stay"
    assert again.kept("p", measured) == of(2)
    small = Sheet("vldb08", made_up.out, quiet, quick=True)
    assert small.kept("p", measured) == of(3), "sizes are not mixed"
    assert len(small.seeds) == 1 < len(again.seeds)
    took = small.seconds
    small.kept("p", measured)
    assert small.seconds == took > 0.0, "a point that figures share counts once"


def test_a_run_that_is_judged_again_was_measured_when_its_points_were(
    made_up: Sheet, monkeypatch: pytest.MonkeyPatch
) -> None:
    for now in ("2026-01-01T10:00+00:00", "2026-01-02T10:00+00:00"):
        monkeypatch.setattr(sheet, "_now", lambda now=now: now)
        again = Sheet("vldb08", made_up.out, quiet)
        assert again.until == now
        again.kept("p", lambda: 1)
        assert again.until == "2026-01-01T10:00+00:00"


def test_points_ship_with_the_ledger_and_are_resumed_from_there(
    tmp_path: Path, made_up: Sheet, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_up.kept("times", lambda: {TIME: 1})
    made_up.kept("counts", lambda: {COUNTS: 1}, timed=False)
    for _ in range(2):  # a second time changes nothing
        points.ship_points("vldb08", made_up.out, tmp_path / "docs")
    shipped = points.shipped_file(tmp_path / "docs", "vldb08")
    assert shipped.read_text() == points.points_file(made_up.out, quick=False).read_text()

    def resumed(**given: Any) -> tuple[Any, Any]:
        fresh = Sheet("vldb08", tmp_path / f"out{given}", quiet, **given)
        times = fresh.kept("times", lambda: {TIME: 2})
        return times[TIME], fresh.kept("counts", lambda: {COUNTS: 2}, timed=False)[COUNTS]

    assert resumed(shipped=shipped) == (1, 1)
    assert resumed(shipped=shipped, again=True) == (2, 2)
    assert resumed(shipped=shipped, quick=True) == (2, 2), "sizes are not mixed"
    monkeypatch.setattr(sheet, "machine", lambda: "another")
    assert resumed(shipped=shipped, most_load=1e9) == (2, 1), "times of another machine are taken again, counts stay"
    shipped.write_text("{}\n")
    with pytest.raises(CoverlayError, match="is not a file of measured points"):
        resumed(shipped=shipped)


def test_times_are_net_of_the_same_call_on_an_empty_index(monkeypatch: pytest.MonkeyPatch) -> None:
    def fixed(tasks: Any, events: Any, *_: Any, **__: Any) -> dict[str, float]:
        return {name: 5e-6 if task == found.append else 2e-6 for name, task in tasks.items()}

    found: list[int] = []
    monkeypatch.setattr(measure, "mean_least", fixed)
    bout = Bout({"a": found.append, "b": found.append}, [1, 2, 3], (), {"a": print}, {"a": lambda: 2.0 * len(found)})
    point = measure.measure(bout)
    assert point[TIME] == pytest.approx({"a": 3e-6, "b": 5e-6})
    assert point["overhead"] == {"a": 2e-6}
    assert point[COUNTS] == {"a": 2.0}
    assert point["asked"] == {"a": 3.0, "b": 3.0}


def test_what_is_left_of_a_time_is_never_less_than_can_be_seen_beside_its_call() -> None:
    point = {TIME: {"a": 3e-6, "b": -1e-6, "c": 2e-6}, "overhead": {"a": 2e-6, "b": 4e-6}}
    assert measure.net(point) == pytest.approx({"a": 3e-6, "b": 2e-7, "c": 2e-6})


def test_slow_methods_answer_the_same_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "PATIENCE", 0.03)
    timed: dict[str, int] = {}

    def counted(tasks: Any, events: Any, *_: Any, **__: Any) -> dict[str, float]:
        timed.update(dict.fromkeys(tasks, len(events)))
        return dict.fromkeys(tasks, 1e-6)

    monkeypatch.setattr(measure, "mean_least", counted)
    slow = {f"slow {ms}": lambda event, ms=ms: time.sleep(1e-9) or sum(range(20_000 * ms)) for ms in (1, 3)}
    measure.measure(Bout({"quick": abs, **slow}, list(range(200))))
    assert timed["quick"] == 200
    assert timed["slow 1"] == timed["slow 3"] < 200


def test_a_slow_method_answers_fewer_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "PATIENCE", 0.0)
    asked: list[int] = []
    assert measure.measure(Bout({"a": asked.append}, list(range(100))))["asked"] == {"a": float(measure.LEAST)}


def test_a_sweep_keeps_every_seed_apart(made_up: Sheet) -> None:
    def bout(seed: int) -> Bout:
        work = [0.0]
        return Bout({"a": lambda event: work.__setitem__(0, work[0] + seed)}, [1, 2], (), {}, {"a": lambda: work[0]})

    swept = made_up.sweep("fig-1", "A figure", "n", [(1.0, bout), (2.0, bout)])
    assert swept.each(lambda series: series["a"][1.0])[COUNTS] == [1.0, 2.0, 3.0]
    assert swept.mean(COUNTS) == {"a": {1.0: 2.0, 2.0: 2.0}}
    assert (made_up.out / "fig-1.png").exists()
    assert (made_up.out / "fig-1.csv").read_text().count("\n") == 1 + 2 * 2 * 3


def test_the_mean_is_over_the_seeds_that_measured_a_method() -> None:
    swept = Swept({COUNTS: [{"judged": {1.0: 1.0}, "drawn": {1.0: 5.0}}, {"judged": {1.0: 3.0}}]})
    assert swept.mean(COUNTS) == {"judged": {1.0: 2.0}, "drawn": {1.0: 5.0}}


# ---- runs -----------------------------------------------------------------------------------------------


class Document:
    """A reproduction that measures one point, and may be interrupted before its second claim."""

    def __init__(self, interrupted: bool, factor: float) -> None:
        self.interrupted, self.factor = interrupted, factor

    def steps(self, made_up: Sheet) -> Steps:
        def cheaper() -> None:
            made_up.judge("cheaper", [made_up.kept("p", lambda: self.factor)], WHY, size="n = 1")
            if self.interrupted:
                raise KeyboardInterrupt

        def others() -> None:
            made_up.judge("faster", [4.0], WHY, size="n = 1")
            made_up.judge("right", [1.0], WHY, size="n = 1")

        return {"fig-1": cheaper, "fig-2": others}


def test_an_interrupted_run_keeps_what_was_judged_and_the_rest_as_it_was(
    tmp_path: Path, made_up: Sheet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "declared", lambda document: TOLD)

    def run(interrupted: bool, factor: float, resume: bool) -> Ledger:
        monkeypatch.setattr(ledger, "import_module", lambda name: Document(interrupted, factor))
        try:
            ledger.reproduce("vldb08", tmp_path, quiet, resume=resume)
        except KeyboardInterrupt:
            assert interrupted
        return ledger.collected(tmp_path, ["vldb08"])

    def verdicts(found: Ledger) -> list[str]:
        return [claim.verdict for claim in found.claims]

    first = run(True, 2.0, resume=False)
    assert verdicts(first) == [NOT_RUN, HOLDS, NOT_RUN]
    whole = run(False, 0.5, resume=True)
    assert verdicts(whole) == [HOLDS, HOLDS, HOLDS], "the point was measured before"
    again = run(True, 0.5, resume=True)
    assert verdicts(again) == [HOLDS, HOLDS, HOLDS], "the others stay as they were"
    assert [run.command for run in again.made["vldb08"]] == ["coverlay reproduce vldb08"]
    afresh = run(False, 0.5, resume=False)
    assert verdicts(afresh) == [HOLDS, FAILS, HOLDS]
    assert changes(whole, afresh) == [("vldb08", "cheaper", "holds (2×)", "does not hold (0.5×)")]
    elsewhere = replace(whole.claims[0], document="ibm04")
    assert changes(Ledger({}, [*whole.claims, elsewhere]), whole) == [], "no word about documents that were not run"
    assert changes(whole, first) == [], "nor about claims that were not run"
    assert changes(Ledger({}, []), Ledger({}, [whole.claims[0]])) == [
        ("vldb08", "faster", "no such claim", "holds (4×)")
    ]


def test_some_figures_can_be_measured_and_the_claims_of_others_stay(
    tmp_path: Path, made_up: Sheet, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ledger, "declared", lambda document: TOLD)

    def run(factor: float, *more: str) -> int:
        monkeypatch.setattr(ledger, "import_module", lambda name: Document(False, factor))
        return main(["reproduce", "vldb08", "--out", str(tmp_path), *more])

    def found() -> Ledger:
        return ledger.collected(tmp_path, ["vldb08"])

    assert run(2.0, "--figures", "fig-2") == 0
    assert [claim.verdict for claim in found().claims] == [HOLDS, NOT_RUN, HOLDS]
    others = [found().claims[i] for i in (0, 2)]
    assert run(2.0, "--figures", "fig-1") == 0
    assert [claim.verdict for claim in found().claims] == [HOLDS, HOLDS, HOLDS]
    assert [found().claims[i] for i in (0, 2)] == others
    command = "coverlay reproduce vldb08 --figures"
    assert [made.command for made in found().made["vldb08"]] == [f"{command} fig-2", f"{command} fig-1"]
    assert run(0.5, "--figures", "fig-1", "--resume") == 0
    assert found().claims[1].verdict == HOLDS, "its point was measured before"
    assert run(0.5, "--figures", "fig-1") == 0
    assert found().claims[1].verdict == FAILS, "it is measured again"
    assert [found().claims[i] for i in (0, 2)] == others
    assert len(found().made["vldb08"]) == 2, "the same run, made again"
    capsys.readouterr()
    for wrong, said in (("fig-3", "unknown figure of vldb08 'fig-3'; there are: fig-1, fig-2"), ("", "''")):
        assert run(2.0, "--figures", wrong) == 2
        assert said in capsys.readouterr().err
    assert main(["reproduce", "all", "--out", str(tmp_path), "--figures", "fig-1"]) == 2
    assert "--figures is about one document" in capsys.readouterr().err


def test_data_sets_begin_where_they_are_asked_to_and_the_command_and_the_points_say_so(
    tmp_path: Path, made_up: Sheet, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Seeded(Document):
        def steps(self, made_up: Sheet) -> Steps:
            for seed in made_up.seeds:
                made_up.kept(f"p-{seed}", lambda seed=seed: seed)
            return super().steps(made_up)

    monkeypatch.setattr(ledger, "declared", lambda document: TOLD)
    monkeypatch.setattr(ledger, "import_module", lambda name: Seeded(False, 2.0))
    assert main(["reproduce", "vldb08", "--seed", "7", "--out", str(tmp_path)]) == 0
    assert [made.command for made in ledger.collected(tmp_path, ["vldb08"]).made["vldb08"]] == [
        "coverlay reproduce vldb08 --seed 7"
    ]
    assert points.Points(points.points_file(tmp_path / "vldb08", quick=False)).names() == {"p", "p-7", "p-8", "p-9"}


def test_other_values_of_a_constant_are_judged_by_each_way_of_measuring(made_up: Sheet) -> None:
    claim = made_up.judge("cheaper", [2.0], WHY, size="n = 1", swept={"7 steps": {TIME: [1.1], COUNTS: [1.1]}})
    found = {value: (reading.ours, reading.verdict) for value, reading in claim.swept.items()}
    assert found == {"7 steps, time": ("1.1×", FAILS), "7 steps, counts": ("1.1×", HOLDS)}, "noise is that of times"


def test_a_sheet_that_only_judges_measures_and_draws_nothing(tmp_path: Path, made_up: Sheet) -> None:
    made_up.kept("p", lambda: 1)
    points.ship_points("vldb08", made_up.out, tmp_path / "docs")
    judging = Sheet(
        "vldb08", tmp_path / "judging", quiet, shipped=points.shipped_file(tmp_path / "docs", "vldb08"), only_judge=True
    )
    assert judging.kept("p", lambda: 2) == 1
    with pytest.raises(sheet.NotMeasured, match="q"):
        judging.kept("q", lambda: 2)
    judging.table("table", [{"a": 1}])
    judging.plot("plot", {"a": {"b": {1.0: 1.0}}}, title="", x="")
    assert list(judging.out.iterdir()) == []


def test_a_share_of_the_subscriptions_is_recorded_and_the_largest_whole_one_is_judged(
    tmp_path: Path, made_up: Sheet, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Two:
        """Two figures: the first has all its points with a hundredth and a tenth, the second with a hundredth only."""

        @staticmethod
        def steps(sheet: Sheet) -> Steps:
            n = sheet.many(10, 1000)
            size = f"n = {n:,}"

            def first() -> None:
                sheet.judge("cheaper", [sheet.kept(f"p-{s}", lambda: float(n)) for s in sheet.seeds], WHY, size=size)

            def second() -> None:
                sheet.judge("right", [sheet.kept(f"q-{s}", lambda: 1.0) for s in sheet.seeds], WHY, size=size)

            return {"fig-1": first, "fig-2": second}

    monkeypatch.setattr(ledger, "declared", lambda document: TOLD)
    monkeypatch.setattr(ledger, "import_module", lambda name: Two)

    def run(share: str, figures: str, document: str = "vldb08") -> int:
        more = ["--seeds", "2", "--resume", "--figures", figures, "--out", str(tmp_path)]
        return main(["reproduce", document, "--share", share, *more])

    assert [run("0.01", "fig-1,fig-2"), run("0.1", "fig-1")] == [0, 0]
    file = points.points_file(tmp_path / "vldb08", quick=False)
    assert points.shares(file) == [0.1, 0.01]
    assert points.Points(file).names() >= {"p-1 at 0.1", "p-2 at 0.01", "q-1 at 0.01"}
    assert ledger.collected(tmp_path, ["vldb08"]).made["vldb08"][-1].command.endswith("--share 0.1 --figures fig-1")
    points.ship_points("vldb08", tmp_path / "vldb08", tmp_path / "docs")
    found = ledger.judged("vldb08", tmp_path / "docs", tmp_path / "judged")
    assert [(c.id, c.size, c.seeds) for c in found.claims if c.verdict != NOT_RUN] == [
        ("cheaper", "n = 100", 2),
        ("right", "n = 10", 2),
    ]
    assert [(t.step, t.share, t.seeds, t.points) for t in found.taken] == [("fig-1", 0.1, 2, 2), ("fig-2", 0.01, 2, 2)]
    assert [run("0", "fig-1"), run("0.1", "fig-1", "ibm04")] == [2, 2]


def test_what_is_worked_out_at_once_has_a_date_and_neither_load_nor_seconds(made_up: Sheet) -> None:
    claim = made_up.judge("right", [1.0], WHY, size="n = 1")
    assert claim.date
    assert (claim.load, claim.seconds) == (None, None)


def test_an_upper_bound_shows_its_unit() -> None:
    assert AtMost(10.0, " µs").show(7.25) == "7.25 µs"


# ---- the command ----------------------------------------------------------------------------------------


def test_the_command_compares_with_an_earlier_ledger(
    tmp_path: Path, made_up: Sheet, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ledger, "declared", lambda document: TOLD)
    monkeypatch.setattr(ledger, "import_module", lambda name: Document(False, 0.5))
    was = made_up.judge("cheaper", [2.0], WHY, size="n = 1")
    write_ledger(Ledger({}, [was, made_up.judge("right", [1.0], WHY, size="n = 1")]), tmp_path / "old.json")
    out = ["--out", str(tmp_path / "out")]
    assert main(["reproduce", "vldb08", *out, "--compare", str(tmp_path / "old.json")]) == 0
    printed = capsys.readouterr()
    assert "3 claims, full size" in printed.err
    assert "claims.html" in printed.out
    assert "2 verdicts differ from" in printed.out  # one is new, one changed
    assert main(["reproduce", *out, "--compare", str(tmp_path / "old.json")]) == 0, "without measuring again"
    again = capsys.readouterr().out
    assert "holds (2×)" in again
    assert "does not hold (0.5×)" in again
    assert main(["reproduce", *out]) == 2
    assert "name a document" in capsys.readouterr().err
    assert main(["reproduce", *out, "--compare", str(tmp_path / "none.json")]) == 2
    assert "cannot be read" in capsys.readouterr().err
