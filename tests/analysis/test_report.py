"""The page: self-contained, hostile names harmless, every claim in it taken from the results."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from analysis.report import embed, write_report
from analysis.summary import Summary

pytestmark = pytest.mark.spark

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_browser = pytest.mark.skipif(
    BROWSER is None, reason="no Chromium on this machine (apt-get install chromium)"
)


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
    return write_report(analysed.out)


@pytest.fixture(scope="module")
def page(path: Path) -> Page:
    return Page(path.read_text(encoding="utf-8"))


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
    assert [d["name"] for d in data["dimensions"]] == ["epsilon", "strategy"]
    assert data["defaultKey"] == "epsilon"
    shown = {
        (p["keys"]["strategy"], p["keys"]["epsilon"]): p["values"]["entries"]["mean"] for p in data["points"]
    }
    assert shown == {("simple", None): 16.5, ("covering", "0 (exact)"): 4.5, ("covering", "0.1"): 8.5}
    assert len(data["overlays"]) == 3
    net = data["overlays"][0]
    assert [broker["entries"] for broker in net["brokers"]] == [4, 8, 4]
    assert net["times"] == [1.0, 9.0]
    assert net["samples"][1] == [4, 8, 4]
    assert len(net["links"]) == 2


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
VISIT = """
<script>
(async () => {
  const wait = async (test) => {
    for (let i = 0; i < 200 && !test(); i++) await new Promise((r) => setTimeout(r, 25));
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
  seen.charts = document.querySelectorAll(".chart").length;
  seen.metric = await change("explore-metric", "explore", "control_messages");
  seen.key = await change("explore-key", "explore", "strategy");
  seen.measure = await change("overlay-measure", "overlay", "processed");
  seen.back = await change("overlay-measure", "overlay", "entries");
  seen.time = await change("overlay-time", "overlay", "0");
  seen.point = await change("overlay-point", "overlay", "2");
  seen.rows = at("chart-0-data").querySelectorAll("tbody tr").length;
  const drawn = at("overlay").dataset.drawn;
  at("theme").click();
  await wait(() => at("overlay").dataset.drawn !== drawn);
  seen.other = document.documentElement.dataset.theme;
  seen.title = document.title === "owned";
  seen.problems = window.problems;
  const note = document.createElement("pre");
  note.id = "seen"; note.textContent = JSON.stringify(seen); document.body.append(note);
})();
</script>
"""


@needs_browser
def test_a_visit_in_a_real_browser(path: Path, tmp_path: Path) -> None:
    visited = tmp_path / "visited.html"
    page = path.read_text(encoding="utf-8")
    # The last one: the drawing library has the words in its own texts.
    body, _, rest = page.rpartition("</body>")
    visited.write_text(body.replace("<style>", VISITOR + "<style>", 1) + VISIT + "</body>" + rest)
    quiet = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-sync",
    ]
    quiet += ["--disable-background-networking", "--disable-component-update"]
    command = [str(BROWSER), *quiet, f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=30000"]
    done = subprocess.run(
        [*command, "--dump-dom", visited.as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
    dom = Page(done.stdout)
    seen = next(json.loads(text) for text in dom.text if text.startswith('{"ready"'))
    assert seen["problems"] == []
    assert seen["ready"] == "yes"
    assert seen["svgs"] == seen["charts"] == 9
    assert seen["theme"] != seen["other"]
    assert not seen["title"], "a hostile name was executed"
    assert seen["rows"] == 3
    changes = {name: seen[name] for name in ("metric", "key", "measure", "back", "time", "point")}
    assert all(changes.values()), changes
