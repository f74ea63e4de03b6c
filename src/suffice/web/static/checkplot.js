// The course of a check that ends when its target is proven: wrong predictions as steps, and the limit as a line. The target
// is proven when the steps are at the limit or below it.

import { count, h, many, put, svg, unbroken } from "./dom.js";
import { scaleFor, ticksOf } from "./scales.js";

const EDGE = { left: 30, right: 12, top: 20, bottom: 34 };

/**
 * A plot to be filled by update(check), with the check of the status.
 * @param {{table?: boolean}} options - With table, the numbers can be opened as a table.
 */
export function makeCheckPlot({ table = false } = {}) {
  const canvas = h("div", { class: "canvas small" });
  const rows = h("div", { class: "scroll" });
  const details = table && h("details", { class: "numbers" }, h("summary", {}, "The numbers as a table"), rows);
  const caption = h("figcaption", {});
  const element = h("figure", { class: "check-plot" }, caption, canvas, details);
  let check = null;
  let told = "";

  const draw = () => {
    if (check && canvas.clientWidth) put(canvas, drawing(check, canvas.clientWidth));
  };
  const list = () => {
    if (check && details?.open) put(rows, asTable(check.sequential));
  };
  if (details) details.addEventListener("toggle", list);
  new ResizeObserver(draw).observe(canvas);
  return {
    element,
    update(now) {
      const text = JSON.stringify(now.sequential);
      if (text === told) return;
      told = text;
      check = now;
      put(caption, legend(now.sequential));
      draw();
      list();
    },
  };
}

/** What counts against the target: a prediction that is wrong, or in a screening an answer that is of the class. */
const faultWords = (sequential) => (sequential.class_name === null ? "wrong" : "of the class");

/** How many of them were found, in words. */
export const foundWords = ({ wrong, class_name: name }) => (name === null ? many(wrong, "wrong prediction") : `${count(wrong)} of the class`);

const raised = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}`;

const faultyAnswers = (sequential) => (sequential.class_name === null ? "wrong predictions" : "answers of the class");

function legend(sequential) {
  const sample = (kind) => svg("svg", { viewBox: "0 0 22 8", width: 22, height: 8, "aria-hidden": "true" },
    svg("path", { class: kind, d: "M0 4L22 4" }));
  return [h("span", {}, sample("line"), ` ${faultyAnswers(sequential)}`), h("span", {}, sample("limit"), " limit: proven at or below it")];
}

/** What one sees, in words. */
function sentence({ sentence: said, sequential }) {
  const { answered, state } = sequential;
  const so = said || `Check: ${many(answered, "answer")}, ${foundWords(sequential)}. The target is ${state}.`;
  const at = valueAt(sequential.limits, answered);
  const limit = at >= 0 ? `The limit is ${count(at)} there.`
    : `So few answers do not prove it, even if none is ${faultWords(sequential)}.`;
  return unbroken(`${raised(faultyAnswers(sequential))} of the check, and the limit. ${so} ${state === "open" && answered ? limit : ""}`.trim());
}

/** The last value at or before a number of answers; -1 before the first. */
function valueAt(changes, answers) {
  return changes.reduce((value, [at, next]) => (at <= answers ? next : value), -1);
}

/**
 * The number of answers up to which the plot goes: some more than the proof takes, so that the end is well seen. After
 * the proof it is less, because the limit then rises fast.
 */
function lastShown({ answered, needed, horizon, state }) {
  const end = answered + (needed ?? 0);
  return Math.max(answered, 1, Math.min(horizon, Math.ceil((state === "proven" ? 1.1 : 1.5) * end) + 5));
}

/** The changes up to a number of answers; the last value goes on to there. */
function upTo(changes, last) {
  const before = changes.filter(([at]) => at < last);
  return before.length && changes.at(-1)[0] >= last ? [...before, [last, valueAt(changes, last)]] : before;
}

function drawing(check, width) {
  const { answered, wrong, needed, counts, state } = check.sequential;
  const height = 150;
  const floor = height - EDGE.bottom;
  const shown = lastShown(check.sequential);
  const known = upTo(check.sequential.limits, shown).filter(([, limit]) => limit >= 0);
  const highest = Math.max(1, wrong, ...known.map(([, limit]) => limit));
  const x = scaleFor([0, shown], [EDGE.left, width - EDGE.right]);
  const y = scaleFor([0, highest], [floor, EDGE.top], { zero: true, air: 0.08 });
  const end = x(x.domain[1]);
  const first = known.length ? x(known[0][0]) : end;
  const line = steps(known, x, y);
  const open = state === "open" && needed;
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": sentence(check) },
    axes(x, y, width, floor, highest, faultWords(check.sequential)),
    known.length > 0 && svg("path", { class: "proven", d: `${line}L${end.toFixed(1)} ${floor}L${first.toFixed(1)} ${floor}Z` }),
    known.length > 0 && svg("path", { class: "limit", d: `M${first.toFixed(1)} ${floor}${line.replace("M", "L")}` }),
    open && svg("g", { class: "forecast" },
      svg("line", { x1: x(answered), x2: x(answered + needed), y1: y(wrong), y2: y(wrong) }),
      svg("circle", { class: "then", cx: x(answered + needed), cy: y(wrong), r: 4 })),
    svg("path", { class: "line", d: steps([[0, 0], ...counts], x, y) }),
    svg("circle", { class: "dot", cx: x(answered), cy: y(wrong), r: 4 }));
}

/** A line that changes at each place, as steps. */
function steps(changes, x, y) {
  return changes.map(([at, value], k) => {
    const place = `${x(at).toFixed(1)} ${y(value).toFixed(1)}`;
    return k ? `L${x(at).toFixed(1)} ${y(changes[k - 1][1]).toFixed(1)}L${place}` : `M${place}`;
  }).join("");
}

function axes(x, y, width, floor, highest, name) {
  const right = width - EDGE.right;
  const up = ticksOf(y, Math.min(4, highest + 1), { whole: true }).filter((value) => value <= highest);
  const across = ticksOf(x, width < 320 ? 3 : 6, { whole: true });
  return svg("g", { class: "axes" },
    up.map((value) => [
      svg("line", { class: "grid", x1: EDGE.left, x2: right, y1: y(value), y2: y(value) }),
      svg("text", { x: EDGE.left - 6, y: y(value) + 4, "text-anchor": "end" }, count(value)),
    ]),
    across.map((value) => [
      svg("line", { x1: x(value), x2: x(value), y1: floor, y2: floor + 4 }),
      svg("text", { x: x(value), y: floor + 16, "text-anchor": "middle" }, count(value)),
    ]),
    svg("line", { x1: EDGE.left, x2: right, y1: floor, y2: floor }),
    svg("text", { class: "name", x: right, y: floor + 31, "text-anchor": "end" }, "answers"),
    svg("text", { class: "name", x: 2, y: 11 }, name));
}

function asTable(course) {
  const { counts, answered } = course;
  const limits = upTo(course.limits, lastShown(course));
  const places = [...new Set([...counts, ...limits].map(([at]) => at))].sort((one, other) => one - other);
  const limit = (at) => (valueAt(limits, at) < 0 ? "none" : count(valueAt(limits, at)));
  return h("table", { class: "plain-table" },
    h("caption", { class: "visually-hidden" }, `${raised(faultyAnswers(course))} and the limit, where one of them changes`),
    h("thead", {}, h("tr", {}, ["Answers", raised(faultWords(course)), "Limit"].map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, places.map((at) => h("tr", {}, h("th", { scope: "row" }, count(at)),
      h("td", {}, at <= answered ? count(Math.max(0, valueAt(counts, at))) : "–"), h("td", {}, limit(at))))));
}
