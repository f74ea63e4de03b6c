// A curve over the number of labels, drawn as SVG: axes, a threshold, an interval, what is extrapolated, and a way to
// read it by pointer, by keys, or as a table.

import { count, h, put, roughly, short, svg } from "./dom.js";
import { scaleFor, ticksOf } from "./scales.js";

const NARROW = 480;
const EDGE = { left: 54, right: 14, top: 20, bottom: 42 };

/**
 * A chart to be filled by update(data), with data:
 *   points: [[n, value, low or null, high or null, threshold or null], ...];
 *   log, zero: of the vertical axis; y: its name; format: of its numbers; sentence: what one sees, in words;
 *   limit: what the threshold is called; forecast: {labels, low, high, most} or null, with most the number of items;
 *   then: {n, value}, an extrapolated point, or null; note: a sentence below the curve, or nothing;
 *   columns: names for the table; read: words for a point.
 * @param {string} title - What it shows.
 */
export function makeChart(title) {
  const canvas = h("div", { class: "canvas" });
  const readout = h("p", { class: "readout", "aria-live": "polite" });
  const table = h("div", { class: "scroll" });
  const details = h("details", { class: "numbers" }, h("summary", {}, "The numbers as a table"), table);
  const note = h("p", { class: "muted" });
  const element = h("figure", { class: "chart" }, h("figcaption", {}, title), canvas, readout, note, details);
  let data = null;
  let told = "";

  const draw = () => {
    if (!data || !canvas.clientWidth) return;
    put(canvas, drawing(data, canvas.clientWidth, readout, title));
  };
  const list = () => {
    if (data && details.open) put(table, asTable(data));
  };
  details.addEventListener("toggle", list);
  new ResizeObserver(draw).observe(canvas);
  return {
    element,
    title,
    update(now) {
      const text = JSON.stringify(now);
      if (text === told) return;
      told = text;
      data = now;
      note.textContent = data.note ?? "";
      note.hidden = !data.note;
      draw();
      list();
    },
  };
}

function drawing(data, width, readout, title) {
  const height = width < NARROW ? 230 : 280;
  const { points, forecast } = data;
  const last = points.at(-1)[0];
  const { then } = data;
  const ends = forecast ? [last + forecast.low, Math.min(last + forecast.high, forecast.most)] : [];
  // A forecast that reaches very far must not squeeze the curve into a corner.
  const far = Math.max(last + 80, last * 3, forecast ? Math.min((last + forecast.labels) * 1.1, last * 5) : 0, then ? then.n : 0);
  const x = scaleFor([points[0][0], last, ...ends.map((end) => Math.min(end, far)), ...(then ? [then.n] : [])], [EDGE.left, width - EDGE.right]);
  const heights = [...points.flatMap((each) => each.slice(1)), then?.value].filter((value) => value !== null && value !== undefined);
  const y = scaleFor(heights, [height - EDGE.bottom, EDGE.top], { log: data.log, zero: data.zero, air: 0.06 });
  const reader = svg("g", { class: "reader", visibility: "hidden" },
    svg("line", { y1: EDGE.top, y2: height - EDGE.bottom }), svg("circle", { r: 4.5 }));
  const seen = `${title}. ${data.sentence} The arrow keys read the points.`;
  const frame = { viewBox: `0 0 ${width} ${height}`, width, height };
  const picture = svg("svg", { ...frame, role: "img", tabindex: 0, "aria-label": seen },
    axes(x, y, width, height, data), forecast && outlook(x, y, forecast, last, far, height),
    interval(points, x, y), limits(data, x, y, width), then && extrapolated(points.at(-1), then, x, y),
    svg("path", { class: "line", d: path(points.map(([n, value]) => [x(n), y(value)])) }),
    svg("circle", { class: "dot", cx: x(last), cy: y(points.at(-1)[1]), r: 4 }), reader);
  follow(picture, reader, { data, x, y, width, readout });
  return picture;
}

function path(places) {
  return places.map(([x, y], at) => `${at ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
}

function axes(x, y, width, height, data) {
  const floor = height - EDGE.bottom;
  const across = ticksOf(x, width < NARROW ? 4 : 8, { whole: true });
  const up = ticksOf(y, 5);
  return svg("g", { class: "axes" },
    up.map((value) => [
      svg("line", { class: "grid", x1: EDGE.left, x2: width - EDGE.right, y1: y(value), y2: y(value) }),
      svg("text", { x: EDGE.left - 8, y: y(value) + 4, "text-anchor": "end" }, data.format(value)),
    ]),
    across.map((value) => [
      svg("line", { x1: x(value), x2: x(value), y1: floor, y2: floor + 5 }),
      svg("text", { x: x(value), y: floor + 19, "text-anchor": "middle" }, count(value)),
    ]),
    svg("line", { x1: EDGE.left, x2: width - EDGE.right, y1: floor, y2: floor }),
    svg("text", { class: "name", x: width - EDGE.right, y: height - 6, "text-anchor": "end" }, "labels"),
    svg("text", { class: "name", x: 2, y: 11 }, data.y + (y.logarithmic ? " (log)" : "")));
}

function interval(points, x, y) {
  const both = points.filter((each) => each[2] !== null && each[3] !== null);
  if (both.length < 2) return null;
  const upper = both.map((each) => [x(each[0]), y(each[3])]);
  const lower = both.map((each) => [x(each[0]), y(each[2])]).reverse();
  return svg("path", { class: "band", d: `${path([...upper, ...lower])}Z` });
}

function extrapolated([n, value], then, x, y) {
  return svg("g", { class: "forecast" },
    svg("line", { x1: x(n), y1: y(value), x2: x(then.n), y2: y(then.value) }),
    svg("circle", { class: "then", cx: x(then.n), cy: y(then.value), r: 4 }),
    svg("text", { x: x(then.n), y: y(then.value) - 10, "text-anchor": "end" }, "extrapolated"));
}

function limits({ points, limit }, x, y, width) {
  const known = points.filter((each) => typeof each[4] === "number");
  if (!known.length) return null;
  const value = known.at(-1)[4];
  const across = [[EDGE.left, y(value)], [width - EDGE.right, y(value)]];
  const places = known.every((each) => each[4] === value) ? across : known.map((each) => [x(each[0]), y(each[4])]);
  return svg("g", {}, svg("path", { class: "limit", d: path(places) }),
    svg("text", { class: "limit-name", x: EDGE.left + 6, y: places[0][1] - 6 }, `${limit} ${short(value)}`));
}

function outlook(x, y, forecast, last, far, height) {
  const [from, to] = [x(Math.min(last + forecast.low, far)), x(Math.min(last + forecast.high, far))];
  const floor = height - EDGE.bottom;
  const middle = Math.min(last + forecast.labels, forecast.most);
  const at = x(Math.min(middle, far));
  const most = last + forecast.high < forecast.most ? roughly(last + forecast.high) : `all ${count(forecast.most)}`;
  // On a narrow screen there is no room for both.
  const upTo = last + forecast.high > far ? `${x(x.domain[1]) < NARROW ? "" : `, up to ${most}`} →` : "";
  return svg("g", { class: "forecast" },
    svg("rect", { class: "wash", x: from, y: EDGE.top, width: Math.max(2, to - from), height: floor - EDGE.top }),
    svg("rect", { class: "strip", x: from, y: floor - 3, width: Math.max(2, to - from), height: 6, rx: 3 }),
    middle <= far && svg("line", { x1: at, x2: at, y1: EDGE.top, y2: floor }),
    svg("text", { x: x(x.domain[1]), y: 11, "text-anchor": "end" }, `extrapolated: enough near ${roughly(middle)}${upTo}`));
}

function follow(picture, reader, { data, x, y, width, readout }) {
  const { points } = data;
  let at = points.length - 1;
  const say = () => {
    readout.textContent = data.read(points[at]);
  };
  const go = (to) => {
    at = Math.max(0, Math.min(points.length - 1, to));
    const [n, value] = points[at];
    reader.setAttribute("visibility", "visible");
    for (const [name, place] of [["x1", x(n)], ["x2", x(n)]]) reader.firstChild.setAttribute(name, place);
    reader.lastChild.setAttribute("cx", x(n));
    reader.lastChild.setAttribute("cy", y(value));
    say();
  };
  const leave = () => {
    at = points.length - 1;
    reader.setAttribute("visibility", "hidden");
    say();
  };
  picture.addEventListener("pointermove", (event) => {
    const box = picture.getBoundingClientRect();
    const place = ((event.clientX - box.left) / box.width) * width;
    const near = points.map(([n]) => Math.abs(x(n) - place));
    go(near.indexOf(Math.min(...near)));
  });
  picture.addEventListener("pointerleave", leave);
  picture.addEventListener("focus", () => go(at));
  picture.addEventListener("blur", leave);
  picture.addEventListener("keydown", (event) => {
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: points.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    go(to);
  });
  say();
}

function asTable(data) {
  const used = [1, 2, 3, 4].filter((at) => data.points.some((each) => typeof each[at] === "number"));
  return h("table", { class: "plain-table" },
    h("caption", { class: "visually-hidden" }, data.sentence),
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Labels"),
      used.map((at) => h("th", { scope: "col" }, data.columns[at - 1])))),
    h("tbody", {}, data.points.map((each) => h("tr", {}, h("th", { scope: "row" }, count(each[0])),
      used.map((at) => h("td", {}, typeof each[at] === "number" ? data.format(each[at]) : "–"))))));
}
