"use strict";
(() => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const data = read("report-data");
  const specs = read("report-specs");
  const $ = (id) => document.getElementById(id);
  // "latency (ms)", but "control messages" and "probes per check", which name their unit.
  const withUnit = (title, unit) => title + (unit === "share" || title.includes(unit) ? "" : " (" + unit + ")");

  const root = document.documentElement;
  const MOST_NAMES = 6; // of series that are told apart by colour alone; more are numbered
  const MOST_ROWS = 24; // of a picture with a row per name
  const LETTER = 6.2, LINE = 15; // pixels: how wide a letter is on average, how high a line of text
  const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const SERIES = {
    light: ["#0b6e99", "#c8553d", "#588157", "#8e5ea2", "#b8860b", "#33415c", "#d6336c", "#5f7470", "#2a9d8f",
      "#7f4f24", "#4361ee", "#6c757d"],
    dark: ["#62b7dd", "#f08a6b", "#8fc08d", "#c39bd3", "#e3b341", "#b7c4dd", "#ff8fb1", "#a5bdb8", "#5fd3c4",
      "#d4a373", "#93a5ff", "#c3cad1"],
  };
  const STACKED = { direction: "vertical", anchor: "start", margin: 4 };
  const config = () => ({
    background: "transparent",
    font: "system-ui, -apple-system, Segoe UI, Roboto, Arial, sans-serif",
    view: { stroke: null },
    axis: {
      labelColor: colour("--soft"), titleColor: colour("--soft"), titleFontWeight: "normal", labelFontSize: 11.5,
      titleFontSize: 12.5, gridColor: colour("--grid"), domainColor: colour("--line"), tickColor: colour("--line"),
      labelLimit: 120, labelAngle: 0, labelOverlap: "greedy", labelSeparation: 6, labelBound: true,
    },
    legend: { labelColor: colour("--ink"), titleColor: colour("--soft"), labelFontSize: 12,
      symbolBaseFillColor: colour("--soft"), symbolBaseStrokeColor: colour("--soft"),
      titleFontWeight: "normal", layout: { top: STACKED, bottom: STACKED } },
    text: { color: colour("--ink") },
    rule: { color: colour("--link") },
    range: { category: SERIES[root.dataset.theme] },
    circle: { stroke: colour("--soft") },
    mark: { color: SERIES[root.dataset.theme][0] },
  });

  // ---- one colour per setting ---------------------------------------------------------------------------
  // A line has the colour of its first setting (its hue), so that the same thing has the same colour in every picture. Where
  // there are more settings than colours, lines are coloured in their own order.
  const colourOf = (hue) => SERIES[root.dataset.theme][hue % SERIES.light.length];
  const inOrder = (names) => new Map([...new Set(names)].map((name, i) => [name, i]));
  // More series than colours tell apart have numbers: before their names, in a legend below, and beside their marks.
  const numbered = (rows, names = inOrder(rows.map((r) => r.series))) => {
    const many = names.size > MOST_NAMES;
    return rows.map((r) => {
      const number = many ? String(names.get(r.series) + 1) : "";
      return { ...r, number, series: many ? number + "\u2002" + r.series : r.series };
    });
  };
  const broken = (name, letters) => name.replace(/ (?=[\d=])/g, "\u00a0").replace(new RegExp("(.{1," + letters + "})(?: |$)", "g"), "$1\n").trim();
  // Colours by the first of the names of a series; a legend in as many columns as fit whole names, which are broken between
  // words if one alone does not fit.
  const paint = (id, spec, rows) => {
    const names = new Map([...new Map(rows.map((r) => [r.series, r.hue]))].sort(([, a], [, b]) => a - b));
    const many = rows.some((r) => r.number);
    const scale = { domain: [...names.keys()], range: [...names.values()].map(colourOf) };
    const room = $(id).clientWidth - 60, longest = LETTER * Math.max(...[...names.keys()].map((name) => name.length)) + 32;
    const letters = Math.floor((room - 32) / LETTER);
    const legend = { orient: many ? "bottom" : "top", columns: Math.max(1, Math.floor(room / longest)), labelLimit: 0,
      labelExpr: "split(replace(datum.label, /(.{1," + letters + "})(?: |$)/g, '$1\\n'), /\\n(?=.)/)" };
    for (const layer of spec.layer) {
      const { color, shape } = layer.encoding;
      if (shape?.legend) shape.legend.columns = room < 400 ? 2 : 3;
      if (!color?.field) continue;
      color.scale = scale;
      // One name says nothing; a row that is named needs no other.
      color.legend = names.size < 2 || rows.every((r) => r.series === r.setting) ? null : legend;
    }
  };
  // The numbers of series at those of their marks that `worth` ranks highest; where marks are near, one label has all.
  const withNumbers = (rows, worth, pixel) => {
    const ends = new Map(), labels = new Map();
    for (const r of rows) if (r.x !== null && !(worth(ends.get(r.series + r.metric) ?? {}) >= worth(r))) ends.set(r.series + r.metric, r);
    for (const r of [...ends.values()].sort((a, b) => b.y - a.y)) {
      const near = [...labels.keys()].find((other) => other.x === r.x && Math.abs(pixel(other.y) - pixel(r.y)) < LINE);
      if (near) labels.get(near).add(r.number); else labels.set(r, new Set([r.number]));
    }
    return rows.map((r) => ({ ...r, label: r.number && [...labels.get(r) ?? []].join(", ") }));
  };

  // ---- drawing ------------------------------------------------------------------------------------------
  const views = {}, pictures = {};
  const fill = (spec, words) =>
    JSON.parse(JSON.stringify(spec), (_, value) =>
      typeof value === "string" && Object.hasOwn(words, value) ? words[value] : value);
  const draw = async (id, spec, datasets, spoken) => {
    const before = views[id];
    // Vega complains about a layer without rows: labels where nothing has one.
    spec.layer = spec.layer.filter((layer) => layer.encoding.text?.field !== "label" || datasets.rows.some((r) => r.label));
    const made = await window.vegaEmbed($(id), { ...spec, datasets, config: config() }, {
      mode: "vega-lite", renderer: "svg", actions: false, tooltip: true,
    });
    if (before) before.finalize();
    views[id] = made;
    pictures[id] = { spec, datasets };
    // Vega makes the picture a document of many marks; one sentence and the table below it say more.
    $(id).setAttribute("role", "img");
    $(id).setAttribute("aria-label", spoken);
    $(id).removeAttribute("aria-roledescription");
    $(id).dataset.drawn = String(Number($(id).dataset.drawn || 0) + 1);
  };
  const failed = (id) => (error) => { $(id).textContent = "This picture could not be drawn: " + error.message; };

  // ---- the table and the CSV behind each picture --------------------------------------------------------
  // On a narrow screen a row is a block, and each number has its column's name (report.css).
  const named = (table) => {
    const titles = [...table.tHead.rows[0].cells].map((cell) => cell.textContent.trim());
    for (const row of table.tBodies[0].rows) [...row.cells].forEach((cell, i) => { cell.dataset.name = titles[i]; });
  };
  document.querySelectorAll("main table").forEach(named);
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
    named(table);
    place.querySelector(".scroll").replaceChildren(table);
    const saved = { csv: () => download(id + ".csv", columns, rows), svg: () => savePicture(id, "svg"), png: () => savePicture(id, "png") };
    for (const button of place.querySelectorAll("button")) button.onclick = saved[button.dataset.save];
  };
  const keep = (name, blob) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  // A picture for a paper: dark on white whatever the page's theme, as wide as it is here.
  const savePicture = async (id, kind) => {
    const before = root.dataset.theme, place = document.createElement("div");
    root.dataset.theme = "light";
    const look = { ...config(), background: "white" };
    const drawing = pictures[id] ? null : networkSvg($(id).querySelector("svg"));
    root.dataset.theme = before;
    if (drawing) return kind === "svg" ? keep(id + ".svg", drawing) : keep(id + ".png", await painted(drawing));
    const { spec, datasets } = pictures[id];
    const made = await window.vegaEmbed(place, { ...spec, width: $(id).clientWidth - 80, datasets, config: look },
      { mode: "vega-lite", renderer: "svg", actions: false });
    if (kind === "svg") keep(id + ".svg", new Blob([await made.view.toSVG()], { type: "image/svg+xml" }));
    else (await made.view.toCanvas(3)).toBlob((blob) => keep(id + ".png", blob));
    made.finalize();
  };
  // The overlay's styles are the page's: in a file of its own each mark has to have them.
  const STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font", "paint-order"];
  const networkSvg = (svg) => {
    const copy = svg.cloneNode(true), marks = copy.querySelectorAll("*");
    svg.querySelectorAll("*").forEach((mark, i) => {
      const style = getComputedStyle(mark);
      for (const name of STYLES) marks[i].style.setProperty(name, style.getPropertyValue(name));
    });
    const [, , width, height] = svg.getAttribute("viewBox").split(" ");
    for (const [name, value] of Object.entries({ width, height, style: "background: white" })) copy.setAttribute(name, value);
    return new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" });
  };
  const painted = (drawing) => new Promise((done, fail) => {
    const image = new Image(), url = URL.createObjectURL(drawing);
    image.onerror = () => fail(new Error("this browser does not draw SVG files"));
    image.onload = () => {
      const canvas = document.createElement("canvas");
      canvas.width = 3 * image.width; canvas.height = 3 * image.height;
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      URL.revokeObjectURL(url);
      canvas.toBlob(done);
    };
    image.src = url;
  });
  const quoted = (value) => {
    if (value === null || value === undefined) return "";
    let text = String(value);
    if (typeof value !== "number" && /^[=+\-@\t\r]/.test(text)) text = "'" + text; // no formulas in spreadsheets
    return /[",\n\r]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
  };
  const download = (name, columns, rows) => {
    const lines = [columns.map(([, title]) => quoted(title)), ...rows.map((r) => columns.map(([k]) => quoted(r[k])))];
    keep(name, new Blob([lines.map((l) => l.join(",")).join("\n") + "\n"], { type: "text/csv" }));
  };

  // ---- settings that are shown: those ticked in the table, or all ----------------------------------------
  const ticked = new Set();
  const shownPoints = () => (ticked.size ? data.points.filter((_, i) => ticked.has(i)) : data.points);

  // ---- metrics against a swept key ----------------------------------------------------------------------
  const EACH = ""; // instead of a swept key: each setting is a row
  // In a picture of several metrics that share a beginning, "latency, median" is just "median".
  const shortTitle = (name) => data.metrics[name].title.split(", ").at(-1);
  // Whether any of the metrics has different values in settings that differ in this key alone.
  const changes = (names, key) => {
    const others = new Map();
    for (const point of data.points) {
      const rest = JSON.stringify(data.dimensions.map((d) => d.name !== key && point.keys[d.name]));
      others.set(rest, (others.get(rest) ?? new Set()).add(JSON.stringify(names.map((name) => point.values[name]?.text))));
    }
    return [...others.values()].some((texts) => texts.size > 1);
  };
  const metricRows = (names, key, only = "") => {
    const order = data.dimensions.find((d) => d.name === key)?.values ?? [], rows = new Map(), hues = new Map();
    // What changes nothing is no part of a name.
    const parts = data.dimensions.filter((d) => d.name !== key && changes(names, d.name));
    const seriesOf = (point) => (key === EACH ? point.title : parts.filter((d) => point.keys[d.name] != null)
      .map((d) => d.said + point.keys[d.name]).join(", ") || (parts.length ? "others" : "all"));
    data.points.forEach((point, i) => {
      if (!hues.has(seriesOf(point))) hues.set(seriesOf(point), data.points.length > SERIES.light.length ? hues.size : i);
    });
    for (const name of names) {
      for (const point of shownPoints()) {
        const value = point.values[name], series = seriesOf(point), x = key === EACH ? point.title : point.keys[key] ?? null;
        // A setting that has no such thing has its row too: none is neither 0 nor forgotten.
        if (!value || (value.mean === null && value.text !== data.none) || (only && series !== only)) continue;
        const metric = names.length > 1 ? shortTitle(name) : data.metrics[name].title, same = JSON.stringify([x, series, metric]);
        if (!rows.has(same)) rows.set(same, { x, xText: x ?? "does not apply", y: value.mean, low: value.low, high: value.high, series,
          hue: hues.get(series), metric, seeds: value.n, text: value.text });
      }
    }
    return alikeAsOne([...rows.values()].sort((a, b) => order.indexOf(a.x) - order.indexOf(b.x)));
  };
  // Names are joined by a sign after a space that does not break: ε = 0.1 is no two names.
  // Lines on each other hide each other: those with the same values everywhere are one line with all their names.
  const bySeries = (rows) => {
    const lines = new Map();
    for (const r of rows) lines.set(r.series, [...(lines.get(r.series) ?? []), r]);
    return lines;
  };
  const alikeAsOne = (rows) => {
    const lines = bySeries(rows), same = new Map();
    for (const [name, of] of lines) {
      const text = JSON.stringify(of.map((r) => [r.x, r.y, r.metric]));
      same.set(text, [...(same.get(text) ?? []), name]);
    }
    return [...same.values()].flatMap(([first, ...others]) =>
      lines.get(first).map((r) => ({ ...r, series: [first, ...others].join("\u00a0= ") })));
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
  // Lines within the width of a mark hide each other too: they are one line with all their names; the data have each.
  const nearAsOne = (rows, pixel) => {
    const lines = bySeries(rows), same = [];
    const near = (a, b) => a.length === b.length && a.every((r, i) => r.x === b[i].x && r.metric === b[i].metric && Math.abs(pixel(r.y) - pixel(b[i].y)) < 3);
    for (const [name, of] of lines) {
      const group = same.find((known) => near(lines.get(known[0]), of));
      if (group) group.push(name); else same.push([name]);
    }
    return same.flatMap((names) => lines.get(names[0]).map((r) => ({ ...r, series: names.join("\u00a0≈ ") })));
  };
  // A line with very many names is called by the first.
  const called = (series) => {
    const names = series.split(/\u00a0[=≈] /);
    return names.length > 3 ? names[0] + " and " + (names.length - 1) + " like it" : series;
  };
  const asLines = (rows) => numbered(rows.map((r) => ({ ...r, series: called(r.series) })));
  // The ticks of a logarithmic axis; where there is one alone Vega chooses better ones.
  const tens = (low, high) => {
    const found = Array.from({ length: 40 }, (_, i) => 10 ** (i - 12)).filter((ten) => low <= ten && ten <= high);
    return found.length > 1 ? found : undefined;
  };
  const SHORT = "datum.value < 1000 && datum.value > -1000 ? format(datum.value, '~g') : format(datum.value, '~s')";
  // Values that differ a hundredfold are all nothing but the largest on a linear axis.
  const isFar = (values) => Math.min(...values) > 0 && Math.max(...values) > 100 * Math.min(...values);
  const drawMetric = (id, names, key, { only = "", scale = "auto", headed = false } = {}) => {
    const dimension = data.dimensions.find((d) => d.name === key), { unit } = data.metrics[names[0]];
    const rows = metricRows(names, key, only), title = names.length > 1 ? unit : withUnit(data.metrics[names[0]].title, unit);
    const sentence = spoken(rows, title, dimension?.title ?? "setting");
    showData(id, [["xText", dimension?.title ?? "setting"], ...(key === EACH ? [] : [["series", "series"]]),
      ...(names.length > 1 ? [["metric", "metric"]] : []), ["y", "mean"], ["low", "95 % low"], ["high", "95 % high"], ["seeds", "seeds"]], rows);
    const positive = rows.map((r) => r.y).filter((y) => y > 0);
    const log = positive.length > 1 && (scale === "log" || (scale === "auto" && unit !== "share" && isFar(positive)));
    const axis = { unit, log, fit: scale === "fit", least: Math.min(...positive), top: Math.max(0, ...rows.map((r) => r.high ?? r.y)),
      title: (headed ? unit.replace("share", "") : title) + (log ? ", logarithmic" : "") };
    // An interval that reaches 0 would make the axis endless.
    const cut = (r) => (r.low === null ? null : Math.max(r.low, r.y / 10));
    const drawn = rows.map((r) => (log ? { ...r, y: r.y > 0 ? r.y : null, low: r.y > 0 ? cut(r) : null, high: r.y > 0 ? r.high : null } : r));
    return (dimension?.numeric ? drawLines : drawRows)(id, drawn, dimension ?? { name: EACH }, axis, sentence).catch(failed(id));
  };
  const note = (id, ...words) => { if ($(id + "-scale")) $(id + "-scale").textContent = words.filter(Boolean).map((text) => " " + text).join(""); };
  const drawLines = (id, all, dimension, { unit, log, fit, least, top, title }, sentence) => {
    let rows = all.filter((r) => r.y !== null);
    const whole = 1.06 * top;
    const pixel = (y) => (log ? 260 * Math.log(y / least) / Math.log(whole / least || 2) : 260 * y / (whole || 1));
    rows = asLines(fit ? rows : nearAsOne(rows, pixel));
    const series = new Set(rows.map((r) => r.series)), spec = fill(specs.lines, { __x_title__: dimension.title, __y_title__: title });
    rows = withNumbers(rows, (r) => dimension.values.indexOf(r.x), pixel);
    note(id, log && "Values of 0 are in the data only; intervals end at a tenth of the mean.",
      rows.some((r) => /\u00a0≈ | like it$/.test(r.series)) && "≈, like it: lines too close to tell apart here; the data have each.",
      series.size === 1 && /\u00a0[=≈] | like it$/.test(rows[0].series) && "The one line is " + rows[0].series + ".");
    // Vega complains about a layer without rows.
    const across = rows.some((r) => r.x === null), swept = rows.some((r) => r.x !== null), intervals = rows.some((r) => r.low !== null);
    spec.layer = spec.layer.filter((layer) => (layer.encoding.x ? swept : across) && (layer.mark.type !== "errorbar" || intervals));
    paint(id, spec, rows);
    for (const { encoding } of spec.layer) {
      if (encoding.x) encoding.x.scale.domain = dimension.values;
      if (!intervals) delete encoding.xOffset;
      encoding.y.axis = { format: unit === "share" ? "%" : undefined, labelExpr: top >= 1e6 ? SHORT : undefined, tickCount: 6,
        values: log ? tens(least / 2, 2 * top) : undefined };
      encoding.y.scale = log ? { type: "log", nice: true } : fit ? { zero: false, nice: true }
        : { zero: true, nice: false, domainMax: whole || 1 };
      if (new Set(rows.map((r) => r.metric)).size < 2) { delete encoding.strokeDash; delete encoding.shape; }
    }
    return draw(id, spec, { rows }, sentence);
  };
  // A row per name, with its dots below it: a name is broken between words, never cut.
  const drawRows = (id, all, dimension, { unit, log, fit, least, top, title }, sentence) => {
    const settings = [...inOrder(all.map((r) => r.xText)).keys()], some = new Set(settings.slice(0, MOST_ROWS));
    const lowest = log ? least / 2 : Math.min(...(fit ? [] : [0]), ...all.map((r) => r.low ?? r.y ?? Infinity));
    const letters = Math.floor(($(id).clientWidth - 30) / LETTER), known = new Set();
    let rows = all.filter((r) => some.has(r.xText)).map((r) => ({ ...r, setting: r.xText }));
    rows = dimension.name === EACH ? rows.map((r) => ({ ...r, number: "" })) : asLines(rows);
    const metrics = new Set(rows.map((r) => r.metric)).size;
    rows = rows.map((r) => {
      const name = known.has(r.setting) ? "" : broken(r.setting, letters);
      known.add(r.setting);
      return { ...r, name, zero: log || fit ? lowest : 0, lane: (dimension.name === EACH ? "" : r.series) + r.metric,
        end: r.high ?? r.y ?? lowest, short: (r.number && r.number + ": ") + r.text.split(" ± ")[0] };
    });
    note(id, log && "Intervals end at a tenth of the mean.",
      settings.length > some.size && "The first " + some.size + " of " + settings.length + "; tick settings in the table to see others.");
    const above = LINE * Math.max(...rows.map((r) => r.name.split("\n").length)), lanes = [...inOrder(rows.map((r) => r.lane)).keys()];
    const height = above + LINE * lanes.length + 10, spec = fill(specs.rows, { __y_title__: title });
    spec.height = height * known.size;
    paint(id, spec, rows);
    const marks = spec.layer.filter((layer) => layer.encoding.yOffset);
    if (!rows.some((r) => r.low !== null)) spec.layer = spec.layer.filter((layer) => layer.mark.type !== "errorbar");
    for (const { encoding } of spec.layer) encoding.y.scale = { type: "band", padding: 0, domain: [...known] };
    for (const { encoding } of marks) {
      encoding.yOffset.scale = { type: "point", padding: 0, domain: lanes, range: [above + LINE / 2, above + LINE * (lanes.length - 0.5)] };
      if (metrics < 2) delete encoding.shape;
      encoding.x.axis = unit === "share" ? { format: "%", tickCount: 4 }
        : { labelExpr: log || top >= 1e4 ? SHORT : undefined, tickCount: 4, values: log ? tens(lowest, 2 * top) : undefined };
      // Room for the number beside the largest dot.
      encoding.x.scale = log ? { type: "log", domain: [lowest, top * (top / lowest) ** 0.35], nice: false }
        : { domain: [lowest, lowest + 1.35 * (top - lowest) || 1], nice: false };
    }
    return draw(id, spec, { rows }, sentence);
  };

  const option = (select, value, text) => {
    const made = document.createElement("option");
    made.value = value; made.textContent = text; select.append(made);
  };
  const drawExplorer = () => {
    const metric = $("explore-metric").value;
    $("explore-note").textContent = data.metrics[metric].definition + " " + data.metrics[metric].formula + ".";
    return drawMetric("explore", [metric], $("explore-key").value,
      { only: $("explore-series").value, scale: $("explore-scale-kind").value });
  };
  // Another metric or key has other series: offer those, and keep the choice where it still exists.
  const drawExplorerAnew = () => {
    const select = $("explore-series"), before = select.value;
    const names = new Set(metricRows([$("explore-metric").value], $("explore-key").value).flatMap((r) => r.series.split("\u00a0= ")));
    select.replaceChildren();
    option(select, "", "all");
    for (const name of names) option(select, name, name);
    select.value = names.has(before) ? before : "";
    return drawExplorer();
  };

  // ---- theory over measurement --------------------------------------------------------------------------
  const drawBounds = () => {
    const { title, caption, rows } = data.bounds[Number($("bounds-case")?.value || 0)];
    $("bounds-caption").textContent = caption;
    showData("bounds", [["series", "series"], ["x", "ε of the volume"], ["y", "per check"]], rows);
    const sentence = "Counts per check, " + title + ": " + rows.map((r) => r.series + " at ε = " + r.x + " " + r.text)
      .join("; ") + ".";
    const spec = fill(specs.bounds, {}), names = inOrder(rows.map((r) => r.series)), counts = rows.map((r) => r.y);
    const drawn = numbered(rows.map((r) => ({ ...r, hue: names.get(r.series) })));
    paint("bounds", spec, drawn);
    for (const { encoding } of spec.layer) encoding.y.axis = { labelExpr: SHORT, values: tens(Math.min(...counts) / 5, 5 * Math.max(...counts)) };
    return draw("bounds", spec, { rows: drawn }, sentence).catch(failed("bounds"));
  };

  // ---- what answers -------------------------------------------------------------------------------------
  const drawTimes = (id, picture) => {
    const { rows } = picture, [first, last] = [Math.min, Math.max].map((of) => of(...rows.map((r) => r.x)));
    const marks = (picture.marks ?? []).filter((mark) => first <= mark.x && mark.x <= last);
    showData(id, [["series", "series"], ["x", "from, ms"], ["y", picture.y], ["text", "here"]], rows);
    const spec = fill(specs.times, { __y_title__: picture.y });
    const names = [...inOrder(rows.map((r) => r.series)).keys()], settings = data.points.map((point) => point.title);
    const highest = Math.max(...rows.map((r) => r.y));
    // A line that stands for several settings has the colour of the first; one of no setting the next in order.
    const hueOf = (r) => { const first = settings.indexOf(r.setting); return first < 0 ? names.indexOf(r.series) : first; };
    const drawn = withNumbers(numbered(rows.map((r) => ({ ...r, hue: hueOf(r) }))), (r) => r.y, (y) => 260 * y / highest);
    paint(id, spec, drawn);
    spec.layer[0].encoding.y.axis = { format: picture.unit === "share" ? "%" : undefined, tickCount: 5 };
    if (!marks.length) spec.layer.splice(1, 1);
    const peaks = names.map((name) => {
      const most = rows.filter((r) => r.series === name).reduce((a, b) => (b.y > a.y ? b : a));
      return name + " at most at " + Math.round(most.x).toLocaleString("en") + " ms: " + most.text;
    });
    return draw(id, spec, { rows: drawn, marks }, picture.title + ": " + peaks.join("; ") + ". The data are below the picture.");
  };
  const drawTrade = (id, picture) => {
    const known = picture.rows.filter((r) => r.x > 0 && r.y !== null);
    if (!known.length) {
      $(id).textContent = "Nothing was compared here.";
      return Promise.resolve();
    }
    showData(id, [["series", "line"], ["name", "search"], ["x", picture.x], ["xlow", "95 % low"], ["xhigh", "95 % high"],
      ["y", picture.y], ["low", "95 % low"], ["high", "95 % high"], ["front", "on the front"]], known);
    const left = Math.min(...known.map((r) => r.xlow)) / 2, right = 2 * Math.max(...known.map((r) => r.xhigh));
    const least = Math.max(-0.2, Math.min(0, ...known.map((r) => r.low ?? r.y))), width = $(id).clientWidth - 60; // costs may exceed what is saved
    // A method has the same colour and number in all pictures of a workload.
    const all = inOrder(data.studyCharts.flatMap((chart) => chart.of.filter((of) => of.case === picture.case))
      .flatMap((of) => of.rows.map((r) => r.series)));
    const across = Math.log(right / left), high = 1.15 - least;
    const px = (x) => width * Math.log(x / left) / across, py = (y) => 338 * (1.15 - y) / high;
    const dots = numbered(known, all).map((r, i) => ({ ...r, hue: all.get(known[i].series), label: [r.number, r.label].filter(Boolean).join(": ") }))
      .sort((a, b) => b.front - a.front);
    const bars = dots.flatMap((r) => [[px(r.xlow), py(r.y) - 1, px(r.xhigh), py(r.y) + 1], [px(r.x) - 1, py(r.high ?? r.y), px(r.x) + 1, py(r.low ?? r.y)]]);
    const places = window.coverlayNetwork.placed(dots.map((r) => ({ text: r.label, radius: 5, x: px(r.x), y: py(r.y) })), width, 338, { bars });
    const rows = dots.map((r, i) => ({ ...r, at: places[i] && { x: left * Math.exp(places[i].left / width * across), y: 1.15 - places[i].middle / 338 * high } }));
    const spec = fill(specs.trade, { __x_title__: picture.x, __y_title__: picture.y });
    paint(id, spec, rows);
    for (const layer of spec.layer) {
      layer.encoding.x.axis = { ...layer.encoding.x.axis, values: tens(left, right) };
      layer.encoding.x.scale = { type: "log", domain: [left, right], nice: false };
      layer.encoding.y.scale = { domain: [least, 1.15], nice: false, clamp: true };
      layer.encoding.y.axis = { format: "%", values: [0, 0.2, 0.4, 0.6, 0.8, 1] };
    }
    return draw(id, spec, { rows }, picture.title + (picture.case ? ", " + picture.case : "") + ": " +
      rows.map((r) => r.name + ": " + r.text).join("; ") + ".");
  };
  const gap = (values) => {
    const sorted = [...values].sort((a, b) => a - b), range = sorted.at(-1) - sorted[0];
    return Math.max(...sorted.slice(1).map((value, i) => value - sorted[i])) / range;
  };
  const drawCurve = (id, picture) => {
    const { metrics, key, per, x, marks } = picture;
    const rows = metricRows(metrics, key).filter((r) => r.x !== null && r.y !== null).map((r) => ({ ...r, x: per * Number(r.x) }))
      .sort((a, b) => a.x - b.x);
    showData(id, [["series", "series"], ["x", x], ["metric", "metric"], ["y", "mean"], ["low", "95 % low"],
      ["high", "95 % high"], ["seeds", "seeds"]], rows);
    const spec = fill(specs.curve, { __x_title__: x, __y_title__: picture.y });
    const ys = [...rows, ...marks].map((r) => r.y), xs = rows.map((r) => r.x), far = Math.max(...xs) >= 1e5;
    const wide = Math.min(...xs) > 0 && gap(xs.map(Math.log)) < gap(xs); // where they lie more evenly
    // Beyond saturation latencies are as long as the run: what is below would look like nothing.
    const log = data.metrics[metrics[0]].unit === "ms" && Math.max(...ys) > 30 * Math.min(...ys);
    const range = log ? Math.log(Math.max(...ys) / Math.min(...ys)) : Math.max(...ys), pixel = (y) => 260 * (log ? Math.log(y) : y) / range;
    const drawn = withNumbers(asLines(nearAsOne(rows, pixel)), (r) => r.x, pixel);
    paint(id, spec, drawn);
    for (const { encoding } of spec.layer) {
      encoding.y.scale = log ? { type: "log", nice: true } : { zero: true, nice: false, domainMax: 1.1 * Math.max(...ys) };
      encoding.y.axis = { tickCount: 6, labelExpr: log ? SHORT : undefined };
      if (encoding.x?.field) encoding.x.axis = { format: far ? "~s" : ",~f", tickCount: 6, values: wide ? tens(Math.min(...xs), Math.max(...xs)) : undefined };
      if (encoding.x?.field && wide) encoding.x.scale = { type: "log", nice: false };
      if (metrics.length < 2) { delete encoding.strokeDash; delete encoding.shape; }
    }
    if (!marks.length) spec.layer.splice(3);
    return draw(id, spec, { rows: drawn, marks }, spoken(rows, picture.title, x) +
      marks.map((mark) => " " + mark.name + ".").join(""));
  };
  const PICTURES = {
    curve: drawCurve,
    rows: (id, picture) => drawMetric(id, picture.metrics, EACH, { headed: true }),
    lines: (id, picture) => drawMetric(id, picture.metrics, picture.key),
    times: drawTimes,
    trade: drawTrade,
  };
  const drawAnswer = (chart, number = $(chart.id + "-case")?.value || 0) => {
    const picture = chart.of[Number(number)];
    if (picture.caption) $(chart.id + "-caption").textContent = picture.caption;
    return PICTURES[picture.kind](chart.id, picture).catch(failed(chart.id));
  };

  // ---- one workload of a study --------------------------------------------------------------------------
  const drawCase = () => {
    const number = Number($("study-pick")?.value || 0), { title, sentences, shape, rows } = data.cases[number];
    $("study-sentences")?.replaceChildren(...sentences.map((text) => Object.assign(document.createElement("li"), { textContent: text })));
    $("study-shape").textContent = shape;
    showData("study-numbers", data.caseColumns.map((name, i) => [i, name]), rows);
    for (const cell of document.querySelectorAll("#grid a")) cell.setAttribute("aria-current", String(Number(cell.dataset.case) === number));
    const bounds = data.bounds.findIndex((item) => item.title === title);
    if (bounds >= 0 && $("bounds-case")) { $("bounds-case").value = String(bounds); drawBounds(); }
    return Promise.all(data.studyCharts.map((chart) => drawAnswer(chart, number)));
  };

  const drawLoad = () => {
    const load = data.loads[Number($("load-point").value)], measure = $("load-measure").value;
    const { title, unit } = data.loadMeasures[measure];
    return drawTimes("load-chart", { title: title + ", " + load.title, y: title, unit, rows: load.lines[measure] })
      .catch(failed("load-chart"));
  };

  // ---- the overlay --------------------------------------------------------------------------------------
  const number = (value, digits = 3) => (Number.isInteger(value) ? value.toLocaleString("en")
    : value.toLocaleString("en", { maximumSignificantDigits: digits }));
  const view = window.coverlayNetwork.whole();
  const linkTip = (net) => (link, more) => {
    const name = (broker) => net.brokers.find((b) => b.broker === broker).name;
    return [name(link.broker) + " – " + name(link.neighbour), "latency " + number(link.latency) + " ms",
      number(link.control) + " control message" + (link.control === 1 ? "" : "s"), number(link.events) + " event message" + (link.events === 1 ? "" : "s") + ", " +
      number(link.needless) + " of them for nothing", ...(more ? [changedTip(more)] : [])];
  };
  const changedTip = (more) => "in " + Math.abs(more) + (more > 0 ? " more" : " fewer") + (more === 1 || more === -1 ? " tree" : " trees") + " than at first";
  const drawn = (id, sentence) => {
    $(id).setAttribute("aria-label", sentence);
    $(id).dataset.drawn = String(Number($(id).dataset.drawn || 0) + 1);
  };
  const drawOverlay = () => {
    const net = data.overlays[Number($("overlay-point").value)];
    const measure = data.measures[Number($("overlay-measure").value)];
    const slider = $("overlay-time");
    const last = net.times.length - 1, timed = measure.key === "entries";
    slider.max = last;
    slider.disabled = !timed || last < 1;
    const at = slider.disabled ? last : Math.min(Number(slider.value), last);
    $("overlay-clock").textContent = at === last ? "at the end" :
      "at " + Math.round(net.times[at]).toLocaleString("en") + " ms";
    slider.setAttribute("aria-valuetext", $("overlay-clock").textContent);
    const valueAt = (i, time) => (timed && time >= 0 && time < last ? net.samples[time][i] : net.brokers[i][measure.key]);
    const rows = net.brokers.map((b, i) => ({ ...b, [measure.key]: valueAt(i, at) }));
    // One scale for all settings, so that a saving can be seen when another is chosen.
    const top = Math.max(...data.overlays.flatMap((of) => of.brokers.map((b, i) => Math.max(b[measure.key] ?? 0,
      ...(timed ? of.samples.map((s) => s[i]) : [])))), measure.unit === "share" ? 0.01 : 1);
    const shown = (value) => (measure.unit === "share" ? number(100 * value) + " %" : number(value));
    window.coverlayNetwork.draw($("overlay"), net, {
      view, coast: data.coast, top, value: (i) => rows[i][measure.key], linkTip: linkTip(net), changed: new Map(net.changed[at]),
      tips: (i) => [rows[i].name, ...data.measures.map((m) => m.title + " " +
        (m.unit === "share" ? number(100 * rows[i][m.key]) + " %" : number(rows[i][m.key])))],
    });
    $("overlay-low").textContent = shown(0);
    $("overlay-high").textContent = shown(top) + " " + measure.title;
    $("overlay-moved").textContent = net.moved ? " " + net.moved + (net.moved === 1 ? " broker shares a place with another and is" : " brokers share a place with others and are") + " drawn beside it." : "";
    $("overlay-switched").textContent = net.switches.length ? " Events began to follow other trees at " +
      net.switches.map((time) => Math.round(time).toLocaleString("en") + " ms").join(" and ") + ": move the time. Green: links that joined; red: links that left." : "";
    const first = rows.reduce((a, b) => (b[measure.key] > a[measure.key] ? b : a));
    showData("overlay", [["name", "broker"], ...data.measures.map((m) => [m.key, m.title])], rows);
    drawn("overlay", "The overlay, " + net.title + ", " + $("overlay-clock").textContent + ": " + rows.length +
      " brokers, " + net.links.length + " links; most " + measure.title + " at " + first.name + ", " +
      shown(first[measure.key]) + ". The data are below the picture.");
  };

  // ---- a replay, step by step ---------------------------------------------------------------------------
  const step = () => 700 / Number($("replay-speed").value); // milliseconds that a step takes when it plays
  const replayView = window.coverlayNetwork.whole();
  let clock = null;
  const onWay = (steps) => new Set(steps.flatMap(({ from, to }) => [from, to]));
  const replayed = () => data.replays[Number($("replay-what").value)];
  const besides = () => {
    $("replay-beside").replaceChildren();
    option($("replay-beside"), "", "nothing");
    $("replay-beside-label").hidden = !replayed().beside.length;
    replayed().beside.forEach((other, i) => option($("replay-beside"), String(i), other.setting));
  };
  // Both settings follow one clock: a step is the next thing that happens in either.
  const drawReplay = (lasts = 0) => {
    const one = replayed(), chosen = $("replay-beside").value, other = chosen === "" ? null : one.beside[Number(chosen)];
    const net = data.overlays[data.defaultOverlay], slider = $("replay-step"), both = other ? [one, other] : [one];
    const steps = both.flatMap((of) => of.steps.map((s) => ({ ...s, of }))).sort((a, b) => a.time - b.time);
    slider.max = steps.length;
    const at = Math.min(Number(slider.value), steps.length), last = at ? steps[at - 1] : null, before = steps.slice(0, at);
    const where = last && other ? (last.of === one ? net.title : other.setting) + ": " : "";
    const words = last ? number(Math.round(10 * last.time) / 10, 10) + " ms: " + where + last.words : "Before the first step.";
    $("replay-content").textContent = one.content;
    $("replay-words").textContent = "Step " + at + " of " + steps.length + ". " + words;
    slider.setAttribute("aria-valuetext", $("replay-words").textContent);
    $("replay-other").parentElement.hidden = !other;
    both.forEach((of, i) => {
      const id = i ? "replay-other" : "replay", trail = before.filter((s) => s.of === of);
      $(id + "-title").textContent = other ? (i ? other.setting : net.title) + ". " + of.title : "";
      window.coverlayNetwork.draw($(id), net, {
        view: replayView, coast: data.coast, top: 1, value: (i) => net.brokers[i].entries, names: onWay(trail), trail,
        now: last?.of === of ? last : null, lasts,
        tips: (i) => [net.brokers[i].name, ...trail.filter((s) => s.to === net.brokers[i].broker)
          .slice(-3).map((s) => Math.round(s.time) + " ms: " + s.words)],
      });
      drawn(id, of.title + ". " + $("replay-words").textContent);
    });
  };
  const pause = () => { clearInterval(clock); clock = null; $("replay-play").textContent = "Play"; };
  const move = (by, lasts = 0) => {
    const slider = $("replay-step"), next = Number(slider.value) + by;
    if (next > Number(slider.max)) return pause();
    slider.value = Math.max(0, next);
    drawReplay(lasts);
  };
  const play = () => {
    if (clock) return pause();
    if ($("replay-step").value === $("replay-step").max) $("replay-step").value = 0;
    $("replay-play").textContent = "Pause";
    move(1, step());
    clock = setInterval(() => move(1, step()), step());
  };

  // ---- the table: sorted, filtered, and which settings are shown -----------------------------------------
  // Against the first swept key along which something changes; a small sweep of names has a row per setting.
  const drawChart = ({ id, metrics }) => drawMetric(id, metrics, !data.dimensions[0].numeric && data.points.length <= 14 ? EACH
    : (data.dimensions.find((d) => changes(metrics, d.name)) ?? data.dimensions[0]).name);
  const signed = (value) => (value < 0 ? "−" : "+") + number(Math.abs(value));
  const drawPair = () => {
    const place = $("pair");
    place.hidden = ticked.size !== 2;
    if (place.hidden) return place.replaceChildren();
    const [one, other] = [...ticked].sort((a, b) => a - b).map((i) => data.points[i]);
    const table = document.createElement("table"), head = table.createTHead().insertRow(), body = table.createTBody();
    table.createCaption().textContent = "Two settings side by side: means over seeds. Whether a difference is more than chance is in the effects below where the two differ in one factor.";
    for (const title of ["metric", one.title, other.title, "difference of the means"]) {
      const cell = document.createElement("th");
      cell.scope = "col"; cell.textContent = title; head.append(cell);
    }
    for (const [name, { title, unit }] of Object.entries(data.metrics)) {
      const [a, b] = [one, other].map((point) => point.values[name]);
      if (a.mean === null && b.mean === null) continue;
      const change = a.mean === null || b.mean === null ? "–" : a.mean === b.mean ? "=" : unit === "share"
        ? signed(100 * (b.mean - a.mean)) + " points" : a.mean ? signed(100 * (b.mean - a.mean) / Math.abs(a.mean)) + " %" : "";
      const line = body.insertRow();
      for (const text of [withUnit(title, unit), a.text, b.text, change]) line.insertCell().textContent = text;
    }
    for (const row of table.rows) for (const cell of [...row.cells].slice(1)) cell.className = "num";
    named(table);
    place.replaceChildren(table);
  };
  const drawShown = () => {
    drawPair();
    return Promise.all([...($("study-pick") ? [] : data.answer.map((chart) => drawAnswer(chart))), ...data.charts.map(drawChart),
      ...(data.points.length ? [drawExplorerAnew()] : [])]);
  };
  const lines = () => [...$("table").tBodies[0].rows];
  const sortBy = (column, button) => {
    const downwards = button.parentElement.ariaSort !== "descending";
    const worth = (row) => { const { value } = row.cells[column].dataset; return value === undefined || value === "nan" ? null : Number(value); };
    const text = (row) => row.cells[column].textContent.trim();
    const order = (a, b) => {
      const [x, y] = [worth(a), worth(b)];
      if (x === null || y === null) return x !== y ? (x === null ? 1 : -1) : text(a).localeCompare(text(b), "en", { numeric: true }) * (downwards ? -1 : 1);
      return downwards ? y - x : x - y;
    };
    $("table").tBodies[0].append(...lines().sort(order));
    for (const cell of $("table").tHead.rows[0].cells) cell.ariaSort = cell === button.parentElement ? (downwards ? "descending" : "ascending") : null;
  };
  document.querySelectorAll("#table .sort").forEach((button, column) => { button.onclick = () => sortBy(column, button); });
  $("table-filter").oninput = () => {
    const words = $("table-filter").value.toLowerCase().split(/\s+/);
    for (const row of lines()) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
  };
  if ($("table-more")) $("table-more").onclick = () => {
    const all = $("table").classList.toggle("all");
    $("table-more").ariaPressed = String(all);
    $("table-more").textContent = all ? "Columns that answer" : "All columns";
    sideways();
  };
  for (const box of document.querySelectorAll("#table .pick")) box.onchange = () => {
    const at = Number(box.closest("tr").dataset.number);
    if (box.checked) ticked.add(at); else ticked.delete(at);
    drawShown();
  };
  if ($("table-all")) $("table-all").onclick = () => {
    ticked.clear();
    for (const box of document.querySelectorAll("#table .pick")) box.checked = false;
    drawShown();
  };

  // ---- putting it together ------------------------------------------------------------------------------
  const drawAll = () => {
    const jobs = data.answer.map((chart) => drawAnswer(chart));
    if (data.cases.length) jobs.push(drawCase());
    jobs.push(...data.charts.map(drawChart));
    if (data.points.length) jobs.push(drawExplorerAnew());
    if (data.bounds.length) jobs.push(drawBounds());
    if (data.loads.length) jobs.push(drawLoad());
    if (data.overlays.length) drawOverlay();
    if (data.replays?.length) drawReplay();
    return Promise.all(jobs);
  };

  if (data.points.length) {
    const metrics = Object.entries(data.metrics);
    for (const [name, metric] of metrics) option($("explore-metric"), name, metric.title);
    $("explore-metric").value = (metrics.find(([name]) => data.dimensions.some((d) => changes([name], d.name))) ?? metrics[0])[0];
    for (const dimension of data.dimensions) option($("explore-key"), dimension.name, dimension.title);
    $("explore-key").value = data.defaultKey;
    $("explore-metric").onchange = $("explore-key").onchange = drawExplorerAnew;
    $("explore-series").onchange = $("explore-scale-kind").onchange = drawExplorer;
  }
  if ($("study-pick")) {
    const groups = {};
    data.cases.forEach(({ kind, title }, i) => {
      if (!groups[kind]) {
        groups[kind] = document.createElement("optgroup");
        groups[kind].label = kind;
        $("study-pick").append(groups[kind]);
      }
      option(groups[kind], String(i), title);
    });
    $("study-pick").value = String(data.defaultCase);
    $("study-pick").onchange = drawCase;
    for (const cell of document.querySelectorAll("#grid a")) {
      cell.onclick = () => { $("study-pick").value = cell.dataset.case; drawCase(); };
    }
  }
  if ($("bounds-case")) {
    data.bounds.forEach((item, i) => option($("bounds-case"), String(i), item.title));
    $("bounds-case").onchange = drawBounds;
  }
  for (const chart of data.answer) {
    const menu = $(chart.id + "-case");
    if (!menu) continue;
    chart.of.forEach((picture, i) => option(menu, String(i), picture.case || picture.title));
    menu.onchange = () => drawAnswer(chart);
  }
  if (data.loads.length) {
    data.loads.forEach((load, i) => option($("load-point"), String(i), load.title));
    $("load-point").value = String(data.defaultLoad);
    for (const [name, measure] of Object.entries(data.loadMeasures)) option($("load-measure"), name, measure.title);
    $("load-point").onchange = $("load-measure").onchange = drawLoad;
  }
  const near = (id, view, redraw) => {
    const { zoom, whole } = window.coverlayNetwork.explore($(id), view, redraw);
    $(id + "-nearer").onclick = () => zoom(1.5);
    $(id + "-farther").onclick = () => zoom(1 / 1.5);
    $(id + "-whole").onclick = whole;
  };
  if (data.overlays.length) {
    data.overlays.forEach((net, i) => option($("overlay-point"), String(i), net.title));
    data.measures.forEach((measure, i) => option($("overlay-measure"), String(i), measure.title));
    $("overlay-point").value = String(data.defaultOverlay);
    $("overlay-scale").style.background = window.coverlayNetwork.gradient;
    const slider = $("overlay-time");
    slider.max = slider.value = Math.max(0, data.overlays[data.defaultOverlay].times.length - 1);
    $("overlay-point").onchange = $("overlay-measure").onchange = slider.oninput = drawOverlay;
    near("overlay", view, drawOverlay);
  }
  if (data.replays?.length) {
    data.replays.forEach((replay, i) => option($("replay-what"), String(i), replay.title));
    $("replay-what").onchange = () => { pause(); besides(); $("replay-step").value = 0; drawReplay(); };
    $("replay-beside").onchange = () => { pause(); $("replay-step").max = 1e6; $("replay-step").value = 1e6; drawReplay(); };
    besides();
    $("replay-step").max = data.replays[0].steps.length;
    $("replay-step").value = data.replays[0].steps.length; // somebody who prints the page sees the whole way
    $("replay-step").oninput = () => { pause(); drawReplay(); };
    $("replay-play").onclick = play;
    $("replay-speed").onchange = () => { if (clock) { pause(); play(); } };
    $("replay-back").onclick = () => { pause(); move(-1); };
    $("replay-on").onclick = () => { pause(); move(1, step()); };
    near("replay", replayView, () => drawReplay());
    window.coverlayNetwork.explore($("replay-other"), replayView, () => drawReplay());
  }
  // A table that is wider than the page says so.
  const sideways = () => {
    for (const place of document.querySelectorAll("main .scroll")) {
      const more = place.scrollWidth > place.clientWidth + 1;
      place.classList.toggle("more", more);
      const hint = place.previousElementSibling;
      if (hint?.classList.contains("sideways")) hint.hidden = !more;
    }
  };
  let width = root.clientWidth;
  window.addEventListener("resize", () => {
    sideways();
    if (root.clientWidth !== width) { width = root.clientWidth; drawAll(); }
  });
  root.addEventListener("theme", drawAll);
  drawAll().then(() => { sideways(); root.dataset.ready = "yes"; });
})();
