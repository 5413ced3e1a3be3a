"use strict";
(() => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const data = read("report-data");
  const specs = read("report-specs");
  const $ = (id) => document.getElementById(id);

  const root = document.documentElement;
  const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const SERIES = {
    light: ["#0b6e99", "#c8553d", "#588157", "#8e5ea2", "#b8860b", "#3d5a80", "#d1495b", "#5f7470"],
    dark: ["#62b7dd", "#f08a6b", "#8fc08d", "#c39bd3", "#e3b341", "#8fb0dd", "#f28ba0", "#a5bdb8"],
  };
  const config = () => ({
    background: "transparent",
    font: "system-ui, -apple-system, Segoe UI, Roboto, Arial, sans-serif",
    view: { stroke: null },
    axis: {
      labelColor: colour("--soft"), titleColor: colour("--soft"), titleFontWeight: "normal", labelFontSize: 11.5,
      titleFontSize: 12.5, gridColor: colour("--grid"), domainColor: colour("--line"), tickColor: colour("--line"),
      labelLimit: 120, labelAngle: 0, labelOverlap: "greedy",
    },
    legend: { labelColor: colour("--ink"), titleColor: colour("--soft"), labelFontSize: 12, labelLimit: 230,
      symbolBaseFillColor: colour("--soft"), symbolBaseStrokeColor: colour("--soft"),
      titleFontWeight: "normal", layout: { top: { direction: "vertical", anchor: "start", margin: 4 } } },
    text: { color: colour("--ink") },
    rule: { color: colour("--link") },
    range: { category: SERIES[root.dataset.theme] },
    circle: { stroke: colour("--soft") },
    mark: { color: SERIES[root.dataset.theme][0] },
  });

  // ---- drawing ------------------------------------------------------------------------------------------
  const views = {};
  const fill = (spec, words) =>
    JSON.parse(JSON.stringify(spec), (_, value) =>
      typeof value === "string" && Object.hasOwn(words, value) ? words[value] : value);
  const draw = async (id, spec, datasets, spoken) => {
    const before = views[id];
    const made = await window.vegaEmbed($(id), { ...spec, datasets, config: config() }, {
      mode: "vega-lite", renderer: "svg", actions: false, tooltip: true,
    });
    if (before) before.finalize();
    views[id] = made;
    // Vega makes the picture a document of many marks; one sentence and the table below it say more.
    $(id).setAttribute("role", "img");
    $(id).setAttribute("aria-label", spoken);
    $(id).removeAttribute("aria-roledescription");
    $(id).dataset.drawn = String(Number($(id).dataset.drawn || 0) + 1);
  };
  const failed = (id) => (error) => { $(id).textContent = "This picture could not be drawn: " + error.message; };

  // ---- the table and the CSV behind each picture --------------------------------------------------------
  const showData = (id, columns, rows) => {
    const place = $(id + "-data");
    if (!place) return;
    const table = document.createElement("table");
    const caption = table.createCaption();
    caption.className = "unseen"; caption.textContent = place.dataset.title;
    const head = table.createTHead().insertRow();
    for (const [, title] of columns) {
      const cell = document.createElement("th");
      cell.scope = "col"; cell.textContent = title; head.append(cell);
    }
    const body = table.createTBody();
    for (const row of rows) {
      const line = body.insertRow();
      for (const [key] of columns) {
        const value = row[key], cell = line.insertCell();
        cell.textContent = value === null || value === undefined ? "–" : String(value);
        if (typeof value === "number") cell.className = "num";
      }
    }
    place.querySelector(".scroll").replaceChildren(table);
    place.querySelector("button").onclick = () => download(id + ".csv", columns, rows);
  };
  const quoted = (value) => {
    if (value === null || value === undefined) return "";
    let text = String(value);
    if (typeof value !== "number" && /^[=+\-@\t\r]/.test(text)) text = "'" + text; // no formulas in spreadsheets
    return /[",\n\r]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
  };
  const download = (name, columns, rows) => {
    const lines = [columns.map(([, title]) => quoted(title)), ...rows.map((r) => columns.map(([k]) => quoted(r[k])))];
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([lines.map((l) => l.join(",")).join("\n") + "\n"], { type: "text/csv" }));
    link.download = name;
    link.click();
    URL.revokeObjectURL(link.href);
  };

  // ---- metrics against a swept key ----------------------------------------------------------------------
  // In a picture of several metrics that share a beginning, "latency, median" is just "median".
  const shortTitle = (name) => data.metrics[name].title.split(", ").at(-1);
  const metricRows = (names, key) => {
    const order = data.dimensions.find((d) => d.name === key).values;
    const rows = [];
    for (const name of names) {
      for (const point of data.points) {
        const value = point.values[name];
        if (!value || value.mean === null) continue;
        const x = point.keys[key] ?? null;
        const rest = data.dimensions.filter((d) => d.name !== key && point.keys[d.name] != null)
          .map((d) => (d.numeric ? d.title.split(".").at(-1) + " " : "") + point.keys[d.name]);
        rows.push({ x, xText: x ?? "does not apply", y: value.mean, low: value.low ?? value.mean,
          high: value.high ?? value.mean, series: rest.join(", ") || "all",
          metric: names.length > 1 ? shortTitle(name) : data.metrics[name].title,
          seeds: value.n, text: value.text });
      }
    }
    return rows.sort((a, b) => order.indexOf(a.x) - order.indexOf(b.x));
  };
  // What a picture shows, for those who do not see it: every series with its range.
  const spoken = (rows, title, against) => {
    const bySeries = {};
    for (const r of rows) (bySeries[r.series + (title.startsWith(r.metric) ? "" : ", " + r.metric)] ??= []).push(r);
    const said = Object.entries(bySeries).map(([name, of]) => {
      const least = of.reduce((a, b) => (b.y < a.y ? b : a)), most = of.reduce((a, b) => (b.y > a.y ? b : a));
      return name + " " + (least.text === most.text ? least.text : least.text + " to " + most.text);
    });
    return title + " against " + against + ": " + said.join("; ") + ". The data are below the picture.";
  };
  const MOST_NAMES = 16; // in a legend
  const drawMetric = (id, names, key, only = "", scale = "auto") => {
    const dimension = data.dimensions.find((d) => d.name === key);
    let rows = metricRows(names, key).filter((r) => !only || r.series === only);
    const unit = data.metrics[names[0]].unit;
    showData(id, [["series", "series"], ["xText", dimension.title], ["metric", "metric"], ["y", "mean"],
      ["low", "95 % low"], ["high", "95 % high"], ["seeds", "seeds"]], rows);
    const title = names.length > 1 ? unit : data.metrics[names[0]].title + (unit === "share" ? "" : " (" + unit + ")");
    const spec = fill(specs.lines, { __x_title__: dimension.title, __y_title__: title });
    const positive = rows.map((r) => r.y).filter((y) => y > 0);
    const top = Math.max(0, ...rows.map((r) => r.high));
    const sentence = spoken(rows, title, dimension.title);
    // Values that differ a thousandfold are all nothing but the largest on a linear axis.
    const log = positive.length > 1 && (scale === "log" || (scale === "auto" && unit !== "share" &&
      Math.max(...positive) > 1000 * Math.min(...positive)));
    if (log) rows = rows.filter((r) => r.y > 0).map((r) => ({ ...r, low: Math.max(r.low, r.y / 10) }));
    $(id + "-scale").textContent = (log ? " Logarithmic; values of 0 are in the data only." : "") +
      (new Set(rows.map((r) => r.series)).size > MOST_NAMES ? " Too many lines for a legend: point at one for its name." : "");
    // Vega complains about a layer without rows.
    const across = rows.some((r) => r.x === null), swept = rows.some((r) => r.x !== null);
    spec.layer = spec.layer.filter((layer) => (layer.encoding.x ? swept : across));
    // Names have no order that a line could follow.
    if (!dimension.numeric) spec.layer = spec.layer.filter((layer) => layer.mark.type !== "line");
    const series = new Set(rows.map((r) => r.series));
    const crowded = dimension.values.join("").length > 50;
    for (const layer of spec.layer) {
      const { encoding } = layer;
      if (encoding.x) encoding.x.scale.domain = dimension.values;
      if (encoding.x && crowded) encoding.x.axis = { labelAngle: -35, labelOverlap: false };
      encoding.y.axis = { format: unit === "share" ? "%" : top >= 1e6 ? "~s" : undefined, tickCount: 6 };
      encoding.y.scale = log ? { type: "log", nice: true } : scale === "fit" ? { zero: false, nice: true }
        : { zero: true, nice: false, domainMax: 1.06 * top || 1 };
      // A legend of one entry says nothing; one of dozens leaves no room for the picture.
      if (series.size < 2 || series.size > MOST_NAMES) encoding.color.legend = null;
      else encoding.color.legend.columns = Math.max(...[...series].map((s) => s.length)) > 14 ? 2 : 4;
      if (names.length < 2) { delete encoding.strokeDash; delete encoding.shape; }
      else if (encoding.strokeDash) encoding.strokeDash.legend = null; // the shapes say it already
    }
    return draw(id, spec, { rows }, sentence).catch(failed(id));
  };

  const option = (select, value, text) => {
    const made = document.createElement("option");
    made.value = value; made.textContent = text; select.append(made);
  };
  const drawExplorer = () => {
    const metric = $("explore-metric").value;
    $("explore-note").textContent = data.metrics[metric].definition + " " + data.metrics[metric].formula + ".";
    return drawMetric("explore", [metric], $("explore-key").value, $("explore-series").value,
      $("explore-scale-kind").value);
  };
  // Another metric or key has other series: offer those, and keep the choice where it still exists.
  const drawExplorerAnew = () => {
    const select = $("explore-series"), before = select.value;
    const names = new Set(metricRows([$("explore-metric").value], $("explore-key").value).map((r) => r.series));
    select.replaceChildren();
    option(select, "", "all");
    for (const name of names) option(select, name, name);
    select.value = names.has(before) ? before : "";
    return drawExplorer();
  };

  // ---- the advisor's front ------------------------------------------------------------------------------
  const drawFront = () => {
    const number = Number($("front-group")?.value || 0);
    const rows = data.advice[number].rows;
    showData("front", [["label", "ε"], ["cost", "probes per check"], ["entries", "table entries"],
      ["recall", "recall"], ["front", "on the front"], ["advised", "advised"]], rows);
    // Room for the names of the outermost dots.
    const spec = JSON.parse(JSON.stringify(specs.front));
    const sentence = "Search cost against table size: " + rows.map((r) =>
      r.name + " " + r.text + (r.advised ? " (advised)" : "")).join("; ") + ".";
    // As above: beside a cost a thousand times larger all others look like nothing.
    const costs = rows.map((r) => r.cost), log = Math.min(...costs) > 0 && Math.max(...costs) > 1000 * Math.min(...costs);
    const large = (key) => (Math.max(...rows.map((r) => r[key])) >= 1e6 ? "~s" : undefined);
    for (const layer of spec.layer) {
      layer.encoding.x.axis = { format: large("cost"), tickCount: 6, grid: !log };
      layer.encoding.y.axis = { format: large("entries"), tickCount: 6 };
      layer.encoding.x.scale = log ? { type: "log", domain: [Math.min(...costs) / 2, Math.max(...costs) * 4] }
        : { ...layer.encoding.x.scale, domainMax: 1.12 * Math.max(...costs) };
      layer.encoding.y.scale.domainMax = 1.12 * Math.max(...rows.map((r) => r.entries));
    }
    return draw("front", spec, { rows }, sentence).catch(failed("front"));
  };

  // ---- theory over measurement --------------------------------------------------------------------------
  const drawBounds = () => {
    const { title, rows } = data.study[Number($("bounds-case")?.value || 0)];
    showData("bounds", [["series", "series"], ["x", "ε"], ["y", "per check"]], rows);
    const sentence = "Counts per check, " + title + ": " + rows.map((r) => r.series + " at ε " + r.x + " " + r.text)
      .join("; ") + ".";
    return draw("bounds", specs.bounds, { rows }, sentence).catch(failed("bounds"));
  };

  // ---- the overlay --------------------------------------------------------------------------------------
  const drawOverlay = () => {
    const net = data.overlays[Number($("overlay-point").value)];
    const measure = $("overlay-measure").value;
    const slider = $("overlay-time");
    const last = net.times.length - 1;
    slider.max = last;
    slider.disabled = measure !== "entries" || last < 1;
    const at = slider.disabled ? last : Math.min(Number(slider.value), last);
    $("overlay-clock").textContent = slider.disabled ? "at the end" : (at === last ? "at the end" :
      "at " + Math.round(net.times[at]).toLocaleString("en") + " ms");
    slider.setAttribute("aria-valuetext", $("overlay-clock").textContent);
    const entries = (i) => (at >= 0 && at < last ? net.samples[at][i] : net.brokers[i].entries);
    const nodes = net.brokers.map((b, i) => ({ ...b, entries: entries(i),
      value: measure === "entries" ? entries(i) : b.processed }));
    const top = Math.max(1, ...net.brokers.map((b, i) => measure === "entries"
      ? Math.max(b.entries, ...net.samples.map((s) => s[i])) : b.processed));
    const where = new Map(net.brokers.map((b) => [b.broker, b]));
    const links = net.links.map((l) => {
      const a = where.get(l.broker), b = where.get(l.neighbour);
      return { ...l, x: a.x, y: a.y, x2: b.x, y2: b.y, name: a.name + " – " + b.name,
        traffic: l.control + l.events };
    });
    const title = measure === "entries" ? "table entries" : "messages processed";
    const spec = fill(specs.overlay, { __y_title__: title });
    for (const layer of spec.layer)
      for (const channel of ["color", "size"])
        if (layer.encoding[channel]) layer.encoding[channel].scale.domain = [0, top];
    const first = nodes.reduce((a, b) => (b.value > a.value ? b : a));
    const sentence = "The overlay, " + net.title + ", " + $("overlay-clock").textContent + ": " + nodes.length +
      " brokers, " + links.length + " links; most " + title + " at " + first.name + ", " +
      first.value.toLocaleString("en") + ". The data are below the picture.";
    showData("overlay", [["name", "broker"], ["entries", "table entries"], ["processed", "messages processed"]], nodes);
    return draw("overlay", spec, { nodes, links }, sentence).catch(failed("overlay"));
  };

  // ---- putting it together ------------------------------------------------------------------------------
  const drawAll = () => {
    const jobs = data.charts.map((chart) => drawMetric(chart.id, chart.metrics, data.defaultKey));
    jobs.push(drawExplorerAnew());
    if (data.advice.length) jobs.push(drawFront());
    if (data.study.length) jobs.push(drawBounds());
    if (data.overlays.length) jobs.push(drawOverlay());
    return Promise.all(jobs);
  };

  for (const [name, metric] of Object.entries(data.metrics)) option($("explore-metric"), name, metric.title);
  for (const dimension of data.dimensions) option($("explore-key"), dimension.name, dimension.title);
  $("explore-key").value = data.defaultKey;
  $("explore-metric").onchange = $("explore-key").onchange = drawExplorerAnew;
  $("explore-series").onchange = $("explore-scale-kind").onchange = drawExplorer;
  if ($("front-group")) {
    data.advice.forEach((advice, i) => option($("front-group"), String(i), advice.title));
    $("front-group").onchange = drawFront;
  }
  if ($("bounds-case")) {
    data.study.forEach((item, i) => option($("bounds-case"), String(i), item.title));
    $("bounds-case").onchange = drawBounds;
  }
  if (data.overlays.length) {
    data.overlays.forEach((net, i) => option($("overlay-point"), String(i), net.title));
    $("overlay-point").value = String(data.defaultOverlay);
    const slider = $("overlay-time");
    slider.max = slider.value = Math.max(0, data.overlays[data.defaultOverlay].times.length - 1);
    $("overlay-point").onchange = $("overlay-measure").onchange = slider.oninput = drawOverlay;
  }
  root.addEventListener("theme", drawAll);
  drawAll().then(() => { root.dataset.ready = "yes"; });
})();
