"""The page: self-contained, hostile names harmless, every claim in it taken from the results."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from contextlib import suppress
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from threading import Timer
from typing import Any

import matplotlib.image
import numpy as np
import pytest

from analysis.report.assets import asset
from analysis.report.page import Asked, _unbroken, embed, write_report
from analysis.report.summary import Summary

pytestmark = pytest.mark.spark

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine (apt-get install chromium)")


class Page(HTMLParser):
    """Which elements and attributes a browser would see, and the JSON in the page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.json: dict[str, Any] = {}
        self.text: list[str] = []
        self._inside: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        known = dict(attrs)
        self._inside = known.get("id") if known.get("type") == "application/json" else tag

    def handle_data(self, data: str) -> None:
        if self._inside in {"report-data", "report-specs"}:
            self.json[self._inside] = json.loads(data)
            self._inside = None
        elif self._inside not in {"script", "style"}:
            self.text.append(data)


@pytest.fixture(scope="module")
def path(analysed: Summary) -> Path:
    return write_report(analysed.out, Asked(contents=lambda _: "{} {} in words".format))


@pytest.fixture(scope="module")
def page(path: Path) -> Page:
    return Page(path.read_text(encoding="utf-8"))


def test_no_line_ends_inside_a_number_with_its_unit_or_key() -> None:
    assert _unbroken("d = 4, n = 60,000: 95.7 % ± 0.3 of 3 µs = 4") == (
        "d\u00a0=\u00a04, n\u00a0=\u00a060,000: 95.7\u00a0%\u00a0±\u00a00.3 of 3\u00a0µs\u00a0=\u00a04"
    )
    assert _unbroken("active = prune") == "active = prune"


def test_json_inside_a_script_cannot_leave_it() -> None:
    value = {"name": "</script><!-- & \u2028", "n": float("nan"), "list": (1, 2.5)}
    text = str(embed(value))
    assert not re.search(r"[<>&\u2028]", text)
    assert json.loads(text) == {"name": "</script><!-- & \u2028", "n": None, "list": [1, 2.5]}


def test_names_from_files_make_no_elements(page: Page) -> None:
    assert not [tag for tag, _ in page.tags if tag == "img"]
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    assert any("<img src=x" in text for text in page.text), "the hostile name is shown, as text"


def test_the_page_loads_nothing(page: Page, path: Path) -> None:
    for tag, attributes in page.tags:
        for name in ("src", "href"):
            target = attributes.get(name) or ""
            assert target.startswith(("#", "data:")) or not target, (tag, target)
    policy = next(a["content"] for t, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert "connect-src" not in policy  # so that default-src forbids every request
    assert path.stat().st_size < 3_000_000


def test_specifications_hold_no_text_from_files(page: Page) -> None:
    assert "img src" not in json.dumps(page.json["report-specs"])


def test_the_data_are_those_of_the_results(page: Page, analysed: Summary) -> None:
    data = page.json["report-data"]
    assert [d["name"] for d in data["dimensions"]] == ["routing"]
    shown = {p["title"]: p["values"]["entries"]["mean"] for p in data["points"]}
    assert shown == {"simple routing": 16.5, "exact covering": 4.5, "covering, ε = 0.1 of the volume": 8.5}
    assert len(data["overlays"]) == 3
    net = data["overlays"][0]
    assert [broker["entries"] for broker in net["brokers"]] == [4, 8, 4]
    assert net["times"] == [1.0, 9.0]
    assert net["samples"][1] == [4, 8, 4]
    assert len(net["links"]) == 2


def test_no_ring_of_the_coast_jumps_around_the_globe() -> None:
    """One that crosses longitude 180 would be drawn as a band across the map; all are drawn closed."""
    for ring in json.loads(asset("coast.json"))["rings"]:
        longitudes = np.cumsum(ring[::2]) / 10
        steps = np.abs(np.diff(longitudes, append=longitudes[:1]))
        assert longitudes.min() >= -180
        assert longitudes.max() <= 180
        assert steps.max() <= 90


def test_question_parameters_and_repetition_are_there(page: Page) -> None:
    text = " ".join(page.text)
    for part in (
        "Why </script>?",
        "coverlay run experiment.toml",
        '"strategy"',
        "All correct",
        "only 2 seeds",
    ):
        assert part in text, part


def test_a_report_needs_no_traces(analysed: Summary, tmp_path: Path) -> None:
    shutil.copytree(analysed.out / "results", tmp_path / "results")
    page = Page(write_report(tmp_path).read_text(encoding="utf-8"))
    assert page.json["report-data"]["overlays"] == []
    assert any("no picture of the overlay" in text for text in page.text)


# Does what a reader does, waits for the picture to be drawn again, and notes what changed.
VISITOR = """
<script>
window.problems = [];
window.addEventListener("error", (e) => window.problems.push(e.message));
for (const kind of ["error", "warn"]) {
  const say = console[kind];
  console[kind] = (...words) => { window.problems.push(words.join(" ")); say(...words); };
}
</script>
"""
VISIT = r"""
<script>
(async () => {
  const wait = async (test) => {
    for (let i = 0; i < 2400 && !test(); i++) await new Promise((r) => setTimeout(r, 25));
  };
  const at = (id) => document.getElementById(id);
  const change = async (id, chart, value) => {
    const before = at(chart).innerHTML, drawn = at(chart).dataset.drawn;
    at(id).value = value;
    at(id).dispatchEvent(new Event(at(id).type === "range" ? "input" : "change"));
    await wait(() => at(chart).dataset.drawn !== drawn);
    return at(chart).innerHTML !== before;
  };
  await wait(() => document.documentElement.dataset.ready);
  const seen = { ready: document.documentElement.dataset.ready, theme: document.documentElement.dataset.theme };
  seen.svgs = document.querySelectorAll(".chart svg").length;
  seen.charts = [...document.querySelectorAll(".chart")].filter((e) => e.checkVisibility()).length;
  seen.metric = await change("explore-metric", "explore", "control_messages");
  seen.log = await change("explore-scale-kind", "explore", "log");
  seen.ticks = at("explore").querySelectorAll('[aria-label^="X-axis"] .role-axis-label text').length;
  await change("explore-scale-kind", "explore", "auto");
  seen.measure = await change("overlay-measure", "overlay", "1");
  seen.back = await change("overlay-measure", "overlay", "0");
  seen.point = await change("overlay-point", "overlay", "2");
  seen.time = await change("overlay-time", "overlay", "0");
  seen.rows = at("answer-0-data").querySelectorAll("tbody tr").length;
  seen.scale = await change("explore-scale-kind", "explore", "fit");

  // With a mouse: wheel, hover.
  const axis = () => at("explore").querySelector(".role-axis").parentElement.textContent;
  const scale = axis(), box = at("explore").querySelector("svg").getBoundingClientRect();
  const middle = { bubbles: true, cancelable: true, clientX: box.x + box.width / 2, clientY: box.y + box.height / 2 };
  at("explore").querySelector("svg .background").dispatchEvent(new WheelEvent("wheel", { ...middle, deltaY: -500 }));
  await wait(() => axis() !== scale);
  seen.zoom = axis() !== scale;
  const mark = at("explore").querySelector(".mark-symbol.role-mark path");
  const spot = mark.getBoundingClientRect();
  for (const kind of ["pointerover", "pointermove", "mouseover", "mousemove"])
    mark.dispatchEvent(new PointerEvent(kind, { bubbles: true, clientX: spot.x + 2, clientY: spot.y + 2 }));
  await wait(() => document.querySelector("#vg-tooltip-element.visible"));
  seen.hover = document.querySelector("#vg-tooltip-element")?.textContent || "";

  // The overlay: closer, a name under the pointer, a replay in steps.
  const press = async (id, chart) => {
    const before = at(chart).innerHTML, drawn = at(chart).dataset.drawn;
    at(id).click();
    await wait(() => at(chart).dataset.drawn !== drawn);
    return at(chart).innerHTML !== before;
  };
  seen.nearer = await press("overlay-nearer", "overlay");
  seen.whole = await press("overlay-whole", "overlay");
  seen.names = [...at("overlay").querySelectorAll("text.name")].map((e) => e.textContent);
  const dot = at("overlay").querySelector("circle.broker");
  dot.dispatchEvent(new PointerEvent("pointerenter", { clientX: 5, clientY: 5 }));
  seen.tip = document.querySelector(".tip").textContent;
  at("replay-what").dispatchEvent(new Event("change"));
  seen.start = at("replay-words").textContent;
  seen.stepped = await press("replay-on", "replay");
  seen.first = at("replay-words").textContent;
  at("replay-play").click();
  seen.playing = at("replay-play").textContent;
  await wait(() => at("replay-step").value === at("replay-step").max && at("replay-play").textContent === "Play");
  seen.end = at("replay-words").textContent;
  seen.trail = at("replay").querySelectorAll("line.step").length;
  seen.content = at("replay-content").textContent;
  await change("replay-beside", "replay-other", "0");
  const brokers = (id) => at(id).querySelectorAll("circle.broker").length;
  seen.beside = [at("replay-beside").selectedOptions[0].textContent, at("replay-other-title").textContent,
    brokers("replay") === brokers("replay-other")];

  // Nothing is wider than the screen, and a table that is says so.
  seen.wide = [...document.querySelectorAll("main select, main svg, main button, main figure, main pre, h1, .card")]
    .filter((e) => e.checkVisibility() && !e.closest(".scroll") && e.getBoundingClientRect().right > innerWidth + 1)
    .map((e) => e.outerHTML.slice(0, 80));
  const big = document.querySelector("#summary .scroll");
  seen.sideways = (big.scrollWidth > big.clientWidth + 1) !== document.querySelector(".sideways").hidden;

  // The table: sorted, filtered, more columns; two settings that are ticked are the only ones drawn, and side by side.
  const rows = () => [...at("table").tBodies[0].rows].filter((row) => !row.hidden);
  const order = () => rows().map((row) => row.dataset.number).join();
  const sort = document.querySelectorAll("#table .sort")[1];
  const unsorted = order();
  sort.click();
  seen.sorted = order() !== unsorted && sort.parentElement.ariaSort === "descending";
  sort.click();
  at("table-filter").value = "covering";
  at("table-filter").dispatchEvent(new Event("input"));
  seen.filtered = rows().length;
  const columns = () => [...at("table").tHead.rows[0].cells].filter((cell) => cell.checkVisibility()).length;
  const few = columns();
  at("table-more").click();
  seen.more = columns() > few;
  at("table-more").click();
  const dots = () => at("answer-0").querySelectorAll(".mark-symbol.role-mark path").length;
  seen.dots = [dots()];
  for (const tick of rows().map((row) => row.querySelector(".pick"))) {
    const drawn = at("answer-0").dataset.drawn;
    tick.click();
    await wait(() => at("answer-0").dataset.drawn !== drawn);
  }
  seen.dots.push(dots());
  seen.pair = [...at("pair").querySelectorAll("th")].map((cell) => cell.textContent);
  at("table-all").click();
  await wait(() => at("pair").hidden && dots() === seen.dots[0]);
  seen.dots.push(dots());

  // The file behind a picture.
  let file = null;
  URL.createObjectURL = (blob) => { file = blob; return "data:,"; };
  HTMLAnchorElement.prototype.click = function () {};
  const saved = async (id, kind) => {
    file = null;
    at(id + "-data").querySelector(`[data-save=${kind}]`).click();
    await wait(() => file);
    return file;
  };
  seen.csv = await (await saved("answer-0", "csv")).text();
  seen.svg = (await (await saved("answer-0", "svg")).text()).slice(0, 4);
  seen.net = (await (await saved("overlay", "svg")).text()).slice(0, 4);
  seen.png = (await saved("answer-0", "png")).size;

  // Without eyes or mouse: names for everything, one landmark each, an order that tabs follow, a visible focus.
  const all = (what) => [...document.querySelectorAll(what)];
  seen.unnamed = all("select, input").filter((e) => !e.labels.length).map((e) => e.id);
  seen.unspoken = all(".chart").filter((e) => e.role !== "img" || !/\d/.test(e.ariaLabel)).map((e) => e.id);
  seen.uncaptioned = all("main table").filter((e) => !e.caption).length;
  seen.landmarks = ["body > header", "nav[aria-label]", "main", "body > footer"].map((what) => all(what).length);
  seen.sections = all("main section").filter((e) => !document.getElementById(e.getAttribute("aria-labelledby"))).length;
  seen.levels = all("h1, h2, h3").map((e) => Number(e.tagName[1]));
  seen.buttons = all("main button, main summary").map((e) => e.textContent.trim());
  seen.links = all("nav a").filter((e) => !document.querySelector(e.hash)).length;
  seen.tabindex = all("[tabindex]").filter((e) => e.tabIndex > 0).length;
  seen.focus = all("select, input:enabled, button, summary, nav a").filter((e) => {
    e.focus();
    return e.checkVisibility() && (document.activeElement !== e || getComputedStyle(e).outlineStyle === "none");
  }).map((e) => e.outerHTML);
  seen.slider = at("overlay-time").getAttribute("aria-valuetext");
  seen.language = document.documentElement.lang;
  seen.loaded = performance.getEntriesByType("resource").map((e) => e.name).filter((n) => !n.startsWith("data:"));
  const drawn = at("overlay").dataset.drawn;
  at("theme").click();
  await wait(() => at("overlay").dataset.drawn !== drawn);
  seen.other = document.documentElement.dataset.theme;
  seen.title = document.title === "owned";
  seen.problems = window.problems;
  console.log("seen " + JSON.stringify(seen));
})().catch((error) => console.log("seen " + JSON.stringify({ problems: [error.stack, ...window.problems] })));
</script>
"""


def browser(tmp_path: Path, *arguments: str) -> list[str]:
    """A command that starts Chromium without a window."""
    quiet = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
    quiet += ["--disable-background-networking", "--disable-component-update", "--hide-scrollbars"]
    return [str(BROWSER), *quiet, f"--user-data-dir={tmp_path / 'profile'}", *arguments]


def depict(tmp_path: Path, *arguments: str) -> None:
    """Let Chromium make a picture or a print of a page."""
    command = browser(tmp_path, "--virtual-time-budget=30000", *arguments)
    subprocess.run(command, capture_output=True, timeout=120, check=True)


def visit(tmp_path: Path, *arguments: str) -> dict[str, Any]:
    """Open a page and return what its script says in the end.

    In real time: virtual time runs out while the page waits for another process of the browser.
    """
    command = browser(tmp_path, "--enable-logging=stderr", *arguments)
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        end = Timer(180, os.killpg, (process.pid, signal.SIGKILL))
        end.start()
        try:
            lines = []
            for line in process.stderr or ():
                lines.append(line)
                if said := re.search(r'CONSOLE.*?"seen (\{.*\})", source: ', line):
                    return dict(json.loads(said[1]))
            raise AssertionError("the visit did not end:\n" + "".join(lines[-20:]))
        finally:
            end.cancel()
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


@needs_browser
@pytest.mark.parametrize("width", [1280, 390])
def test_a_visit_in_a_real_browser(path: Path, tmp_path: Path, width: int) -> None:
    visited = tmp_path / "visited.html"
    page = path.read_text(encoding="utf-8")
    # The last one: the drawing library has the words in its own texts.
    body, _, rest = page.rpartition("</body>")
    body = re.sub(r'"low":[\d.e+-]+', '"low":0.0', body)  # what a logarithmic axis has to cut off
    visited.write_text(body.replace("<style>", VISITOR + "<style>", 1) + VISIT + "</body>" + rest)
    seen = visit(tmp_path, f"--window-size={width},900", visited.as_uri())
    assert seen["problems"] == []
    assert seen["ready"] == "yes"
    assert seen["svgs"] == seen["charts"] == 6, "one of the answer, two that differ, explorer, overlay, replay"
    assert seen["theme"] != seen["other"]
    assert not seen["title"], "a hostile name was executed"
    assert seen["rows"] == 3
    names = ("metric", "measure", "time", "point", "log", "scale", "zoom", "nearer", "whole", "stepped", "sideways")
    names += ("sorted", "more")
    assert {name: seen[name] for name in names} == dict.fromkeys(names, True)
    assert seen["ticks"] > 1
    assert seen["wide"] == []
    assert len(seen["names"]) >= (2 if width > 640 else 1), "names are whole, or not there"
    assert seen["tip"].startswith("b0 </script>")
    assert seen["start"].endswith("Before the first step.")
    assert seen["first"].startswith("Step 1 of 2.")
    assert seen["playing"] == "Pause"
    assert seen["end"].startswith("Step 2 of 2.")
    assert seen["trail"] == 2
    assert re.fullmatch(r"event \d+ in words", seen["content"])
    setting, title, alike = seen["beside"]
    assert title.startswith(f"{setting}. Event ")
    assert alike
    assert seen["filtered"] == 2
    assert seen["dots"] == [3, 2, 3]
    assert seen["pair"] == ["metric", "exact covering", "covering, ε = 0.1 of the volume", "difference of the means"]
    assert seen["svg"] == seen["net"] == "<svg"
    assert seen["png"] > 1000
    assert "mean ± 95 %" in seen["hover"]
    assert seen["csv"].splitlines()[0] == "setting,mean,95 % low,95 % high,seeds"
    assert len(seen["csv"].splitlines()) == 1 + seen["rows"]
    assert seen["loaded"] == []
    assert_usable_by_everybody(seen)


def assert_usable_by_everybody(seen: dict[str, Any]) -> None:
    for nothing in ("unnamed", "unspoken", "focus"):
        assert seen[nothing] == [], nothing
    for zero in ("uncaptioned", "sections", "links", "tabindex"):
        assert seen[zero] == 0, zero
    assert seen["landmarks"] == [1, 1, 1, 1]
    assert seen["levels"][0] == 1
    assert all(after - before <= 1 for before, after in pairwise(seen["levels"])), "no level of headings is skipped"
    assert len(set(seen["buttons"])) == len(seen["buttons"]), "no two controls have the same name"
    assert seen["slider"] == "at 1 ms"
    assert seen["language"] == "en"


@needs_browser
def test_pictures_of_the_page_and_a_print(path: Path, tmp_path: Path) -> None:
    """Light, dark and on paper: something is drawn, and dark is dark."""
    brightness = []
    for number, options in enumerate(((), ("--force-dark-mode", "--blink-settings=preferredColorScheme=0"))):
        picture = tmp_path / f"{number}.png"
        depict(tmp_path, *options, "--window-size=1280,2000", f"--screenshot={picture}", path.as_uri())
        pixels = matplotlib.image.imread(picture)[..., :3]
        colours = (pixels * 255).astype(int) @ [1 << 16, 1 << 8, 1]
        assert len(np.unique(colours)) > 50, "more than a blank page"
        brightness.append(pixels.mean())
    assert brightness[1] < 0.35 < 0.85 < brightness[0]
    depict(tmp_path, f"--print-to-pdf={tmp_path / 'print.pdf'}", path.as_uri())
    assert (tmp_path / "print.pdf").read_bytes().count(b"/Type /Page\n") >= 2 or (
        tmp_path / "print.pdf"
    ).stat().st_size > 20_000
