"use strict";
// The picture of a network: brokers, links, names and, where brokers are on the globe, the coast; one SVG as wide as its
// place, in one scale for both directions. Texts are put in as text, never as markup.
window.coverlayNetwork = (() => {
  const MARGIN = 26, LEAST = 220, MOST = 620; // pixels around the brokers; heights of the picture
  const LABELS = 9, LABELS_NEAR = 40; // names that are written out: of the whole, and once somebody looks closer
  const STOPS = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]]; // viridis
  const shade = (share) => {
    const at = Math.max(0, Math.min(1, share)) * (STOPS.length - 1), i = Math.min(Math.floor(at), STOPS.length - 2);
    return "rgb(" + STOPS[i].map((low, c) => Math.round(low + (at - i) * (STOPS[i + 1][c] - low))).join() + ")";
  };
  const make = (parent, name, attributes, text) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    parent.append(made);
    return made;
  };

  // ---- one tip for all pictures -------------------------------------------------------------------------
  let tip = null;
  const hide = () => { if (tip) tip.hidden = true; };
  const point = (mark, lines) => {
    mark.addEventListener("pointerenter", (event) => {
      if (!tip) { tip = document.createElement("div"); tip.className = "tip"; document.body.append(tip); }
      tip.replaceChildren(...lines.map((line, i) => {
        const row = document.createElement(i ? "div" : "b");
        row.textContent = line;
        return row;
      }));
      tip.hidden = false;
      const right = event.clientX + tip.offsetWidth + 24 > document.documentElement.clientWidth;
      tip.style.left = Math.max(4, window.scrollX + event.clientX + (right ? -tip.offsetWidth - 12 : 14)) + "px";
      tip.style.top = window.scrollY + event.clientY + 12 + "px";
    });
    mark.addEventListener("pointerleave", hide);
  };

  // ---- where things are ---------------------------------------------------------------------------------
  const bounds = (values) => [Math.min(...values), Math.max(...values)];
  const projection = (net, width, view) => {
    const [low, high] = bounds(net.brokers.map((b) => b.y));
    // On a globe a degree of longitude is shorter than one of latitude; north, or the largest y, is up.
    const stretch = net.geographic ? Math.cos((Math.PI / 360) * (low + high)) : 1;
    const xs = bounds(net.brokers.map((b) => stretch * b.x)), ys = [-high, -low];
    const wide = xs[1] - xs[0] || 1e-9, tall = ys[1] - ys[0] || 1e-9;
    const room = Math.max(60, width - 2 * MARGIN);
    const height = Math.min(MOST, Math.max(LEAST, (room * tall) / wide + 2 * MARGIN, width < 640 ? 0.7 * width : 0));
    const scale = Math.min(room / wide, (height - 2 * MARGIN) / tall) * view.zoom;
    const middle = [(xs[0] + xs[1]) / 2, (ys[0] + ys[1]) / 2];
    const at = (x, y) => [width / 2 + view.x + scale * (stretch * x - middle[0]),
      height / 2 + view.y + scale * (-y - middle[1])];
    return { height, at };
  };
  const drawCoast = (svg, rings, at, width, height) => {
    const group = make(svg, "g", { class: "coast" });
    for (const ring of rings) {
      let x = 0, y = 0, path = "", near = false;
      const xs = [], ys = [];
      for (let i = 0; i < ring.length; i += 2) {
        x += ring[i]; y += ring[i + 1];
        const [left, top] = at(x / 10, y / 10);
        xs.push(left); ys.push(top);
        path += (i ? "L" : "M") + left.toFixed(1) + " " + top.toFixed(1);
      }
      near = Math.max(...xs) > 0 && Math.min(...xs) < width && Math.max(...ys) > 0 && Math.min(...ys) < height;
      if (near) make(group, "path", { d: path + "Z" });
    }
  };

  // Where names beside dots begin, those of the first dots first: on no dot, bar or other name; null where there is no room.
  const placed = (dots, width, height, { bars = [], most = dots.length } = {}) => {
    const taken = [...bars, ...dots.map(({ x, y, radius }) => [x - radius, y - radius, x + radius, y + radius])];
    let written = 0;
    return dots.map(({ x, y, radius, text }) => {
      const long = 6.8 * text.length, off = radius + 4;
      const lefts = [x + off, x - off - long, x - long / 2, x + 4, x - 4 - long], middles = [y, y - off - 7, y + off + 7];
      for (const middle of long && written < most ? middles : []) for (const left of middle === y ? lefts.slice(0, 2) : lefts.slice(2)) {
        const box = [left, middle - 7, left + long, middle + 7];
        if (box[0] < 0 || box[2] > width || box[1] < 0 || box[3] > height) continue;
        if (taken.some((t) => box[0] < t[2] && t[0] < box[2] && box[1] < t[3] && t[1] < box[3])) continue;
        taken.push(box);
        written += 1;
        return { left, middle };
      }
      return null;
    });
  };
  // Names of the brokers on a way, then of the largest.
  const drawNames = (svg, nodes, width, height, most) => {
    const order = [...nodes].sort((a, b) => b.first - a.first || b.value - a.value);
    placed(order, width, height, { most }).forEach((place, i) => {
      if (place) make(svg, "text", { x: place.left, y: place.middle + 4, class: "name" }, order[i].text);
    });
  };

  /* Draw `net` into `place`. `look`: value(i) and top for colour and size, tips(i) and linkTip(link) for what a pointer
     sees, coast, changed (links that joined or left trees), trail (steps of a replay that have happened), now (the step under way), view (zoom and shift). */
  const draw = (place, net, look) => {
    const width = Math.max(240, place.clientWidth), view = look.view;
    const { height, at } = projection(net, width, view);
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("class", "network");
    if (look.coast && net.geographic) drawCoast(svg, look.coast, at, width, height);
    const places = net.brokers.map((b) => at(b.x, b.y));
    const row = new Map(net.brokers.map((b, i) => [b.broker, i]));
    const ends = (a, b) => {
      const [x1, y1] = places[row.get(a)], [x2, y2] = places[row.get(b)];
      return { x1, y1, x2, y2 };
    };
    const busiest = Math.max(1, ...net.links.map((l) => l.control + l.events));
    for (const [i, link] of net.links.entries()) {
      const more = look.changed?.get(i) ?? 0; // trees that have it, compared with the beginning
      const line = make(svg, "line", { ...ends(link.broker, link.neighbour),
        class: "link" + (more ? (more > 0 ? " joined" : " left") : link.routed ? "" : " unused"),
        "stroke-width": look.trail ? 1 : (1 + (6 * (link.control + link.events)) / busiest).toFixed(2) });
      if (look.linkTip) point(line, look.linkTip(link, more));
    }
    const reached = new Set();
    for (const step of look.trail || []) {
      if (step.kind !== "held" && step.kind !== "lost") reached.add(step.to);
      if (step.from === null || step.from === step.to) continue;
      make(svg, "line", { ...ends(step.from, step.to), class: "step " + step.kind + (step === look.now ? " now" : "") });
    }
    const size = Math.max(0.45, Math.min(1, (width / 700) * Math.sqrt(60 / net.brokers.length))); // crowds need small dots
    const nodes = net.brokers.map((b, i) => ({ text: b.name, x: places[i][0], y: places[i][1], value: look.value(i), first: Number(look.names?.has(b.broker) ?? false) }));
    net.brokers.forEach((b, i) => {
      const share = look.top > 0 ? nodes[i].value / look.top : 0;
      nodes[i].radius = size * (look.trail ? (reached.has(b.broker) ? 7 : 5) : 4 + 8 * Math.sqrt(Math.max(0, share)));
      const dot = make(svg, "circle", { cx: places[i][0], cy: places[i][1], class: "broker", r: nodes[i].radius });
      if (look.trail) dot.classList.add(reached.has(b.broker) ? "reached" : "waiting");
      else dot.setAttribute("fill", shade(share));
      if (look.now && look.now.to === b.broker) dot.classList.add("now");
      point(dot, look.tips(i));
    });
    if (look.now && look.now.from !== null && look.now.kind !== "held") {
      const way = ends(look.now.from, look.now.to);
      const dot = make(svg, "circle", { r: 5, class: "moving", cx: way.x2, cy: way.y2 });
      const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
      if (look.lasts && !still)
        dot.animate([{ transform: `translate(${way.x1 - way.x2}px, ${way.y1 - way.y2}px)` }, { transform: "none" }],
          { duration: look.lasts, easing: "ease-in-out" });
    }
    drawNames(svg, nodes, width, height, view.zoom > 1.5 || look.names?.size ? LABELS_NEAR : LABELS);
    hide();
    place.replaceChildren(svg);
    return svg;
  };

  // Buttons to look closer, and dragging.
  const explore = (place, view, redraw) => {
    let from = null;
    place.addEventListener("pointerdown", (e) => {
      if (e.pointerType === "touch") return; // a finger scrolls the page
      from = [e.clientX - view.x, e.clientY - view.y];
    });
    place.addEventListener("pointermove", (e) => {
      if (!from) return;
      view.x = e.clientX - from[0]; view.y = e.clientY - from[1];
      redraw();
    });
    for (const end of ["pointerup", "pointerleave"]) place.addEventListener(end, () => { from = null; });
    return {
      zoom: (factor) => { view.zoom *= factor; view.x *= factor; view.y *= factor; redraw(); },
      whole: () => { Object.assign(view, { zoom: 1, x: 0, y: 0 }); redraw(); },
    };
  };
  const whole = () => ({ zoom: 1, x: 0, y: 0 });
  const gradient = "linear-gradient(90deg," + STOPS.map((s) => "rgb(" + s.join() + ")").join() + ")";
  return { draw, explore, whole, gradient, placed };
})();
