// How many answers a check takes, and what a sample has shown, without a project: a form, sentences, a chart, a table.

import { get } from "./api.js";
import { count, h, put, quiet, roughly, short, svg, unbroken } from "./dom.js";
import { scaleFor, ticksOf } from "./scales.js";

// Milliseconds without a key before the plan is made again.
const PAUSE = 500;
const [WIDEST, HEIGHT] = [640, 240];
const EDGE = { left: 56, right: 16, top: 22, bottom: 44 };

/** Fill a details element with the planner. */
export function makePlanner(element) {
  const field = (id, label, properties, note) => h("div", { class: "field" },
    h("label", { for: `plan-${id}` }, label),
    h("input", { id: `plan-${id}`, type: "number", inputmode: "decimal", ...properties }), note && quiet(note));
  const corrected = h("input", { id: "plan-corrected", type: "checkbox" });
  const form = h("form", { class: "fields planner", novalidate: true },
    field("pool", "Predictions to check", { min: 1, step: 1, value: 20000 }),
    field("at-most", "Largest share that may be wrong, in %", { min: 0.5, max: 99, step: "any", value: 5 }),
    field("expected", "Share that is probably wrong, in %", { min: 0, max: 99, step: "any", value: 2 }, "A guess. It changes the plan and the number of answers, not what a check proves."),
    field("seconds", "Seconds per answer", { min: 1, step: "any", value: 10 }),
    field("checked", "Rows drawn at random and checked already", { min: 1, step: 1 }, "Leave both fields empty if there are none."),
    field("wrong", "Wrong predictions among these", { min: 0, step: 1 }),
    h("label", { class: "choice" }, corrected, "People correct what they find wrong"));
  const result = h("div", { class: "stack", role: "status" });
  put(element, h("summary", {}, "How many answers does a check take?"),
    h("p", {}, "You have labels from a language model, another program or an earlier project. Plan what it takes to " +
      "prove how many are wrong."), form, result);
  let timer = 0;
  let newest = 0;
  const update = async () => {
    const wanted = query(form, corrected.checked);
    newest += 1;
    const asked = newest;
    if (wanted.problem) {
      put(result, h("p", { class: "problem" }, wanted.problem));
      return;
    }
    try {
      const budget = await get(`api/plan?${wanted.query}`, 60000);
      if (asked === newest) put(result, shown(budget, Math.min(WIDEST, result.clientWidth)));
    } catch (error) {
      if (asked === newest) put(result, h("p", { class: "problem" }, error.message));
    }
  };
  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(update, PAUSE);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(timer);
    update();
  });
  element.addEventListener("toggle", () => {
    if (element.open && !result.childElementCount) update();
  });
}

/** The question for the server, or what is missing in the form. */
function query(form, corrected) {
  const number = (id) => {
    const { value, validity } = form.querySelector(`#plan-${id}`);
    return validity.badInput ? NaN : value === "" ? null : Number(value);
  };
  const [pool, atMost, expected, seconds, checked, wrong] =
    ["pool", "at-most", "expected", "seconds", "checked", "wrong"].map(number);
  const problem = (sentence) => ({ problem: sentence });
  if ([pool, atMost, expected, seconds, checked, wrong].some(Number.isNaN)) return problem("Enter numbers only.");
  if (!Number.isInteger(pool) || pool < 1) return problem("Enter the number of predictions, a whole number.");
  if (atMost === null && checked === null) return problem("Enter the share of wrong predictions that you want to prove.");
  if (atMost !== null && !(atMost >= 0.5 && atMost < 100)) return problem("The share to prove must be from 0.5 to below 100 %.");
  if (expected !== null && !(expected >= 0 && expected < 100)) return problem("The expected share must be from 0 to below 100 %.");
  if (seconds !== null && !(seconds > 0)) return problem("The seconds per answer must be above 0.");
  if ((checked === null) !== (wrong === null)) return problem("Enter both: how many were checked, and how many of them were wrong.");
  if (checked !== null && !(Number.isInteger(checked) && Number.isInteger(wrong) && wrong >= 0 && wrong <= checked && checked <= pool)) {
    return problem("Enter whole numbers: at most as many checked ones as predictions, and at most as many wrong as checked ones.");
  }
  const share = (value) => value !== null && Number((value / 100).toPrecision(12));
  const sent = { pool, prove: share(atMost), expected: checked === null && share(expected), corrected, seconds, checked, wrong };
  const given = Object.entries(sent).filter(([name, value]) => value !== null && value !== false && (name !== "corrected" || value));
  return { query: new URLSearchParams(given.map(([name, value]) => [name, String(value)])) };
}

function shown({ sentences, table, plan }, width) {
  const [first, ...rest] = sentences;
  return [first && h("p", {}, h("strong", {}, unbroken(first))), rest.map((each) => h("p", {}, unbroken(each))),
    table.length > 0 && [chart(table, plan, width), numbers(table)]];
}

const percent = (value) => `${short(100 * value)}\u00a0%`;
const share = (value) => (value ? percent(value) : "none");

/** The median number of answers over the share that is wrong, with the range of eight checks of ten. */
function chart(table, plan, width) {
  const points = table.filter((each) => each.median !== null);
  if (points.length < 2) return null;
  const x = scaleFor(table.map((each) => each.expected), [EDGE.left, width - EDGE.right], { zero: true, air: 0.04 });
  const heights = points.flatMap((each) => [each.low, each.high ?? each.median]);
  const y = scaleFor(heights, [HEIGHT - EDGE.bottom, EDGE.top], { log: true, air: 0.08 });
  const at = (each, name) => `${x(each.expected).toFixed(1)} ${y(each[name] ?? each.median).toFixed(1)}`;
  const band = [...points.map((each) => at(each, "high")), ...points.map((each) => at(each, "low")).reverse()];
  const floor = HEIGHT - EDGE.bottom;
  const chosen = plan && plan.median !== null && plan.expected <= x.domain[1];
  const said = `Answers over the share that is wrong: ${points.map((each) => `${share(each.expected)}: ${roughly(each.median)}`).join("; ")}`;
  return h("figure", { class: "chart" },
    h("figcaption", {}, `Answers to prove that at most ${percent(table[0].at_most)} are wrong`),
    svg("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "img", "aria-label": said },
      svg("g", { class: "axes" },
        ticksOf(y, 5).map((value) => [
          svg("line", { class: "grid", x1: EDGE.left, x2: width - EDGE.right, y1: y(value), y2: y(value) }),
          svg("text", { x: EDGE.left - 8, y: y(value) + 4, "text-anchor": "end" }, count(value))]),
        table.map((each) => svg("text", { x: x(each.expected), y: floor + 19, "text-anchor": "middle" }, share(each.expected))),
        svg("line", { x1: EDGE.left, x2: width - EDGE.right, y1: floor, y2: floor }),
        svg("text", { class: "name", x: width - EDGE.right, y: HEIGHT - 6, "text-anchor": "end" }, "share of predictions that is wrong"),
        svg("text", { class: "name", x: 2, y: 11 }, "answers (logarithmic)")),
      svg("path", { class: "band", d: `M${band.join("L")}Z` }),
      svg("path", { class: "line", d: `M${points.map((each) => at(each, "median")).join("L")}` }),
      points.map((each) => svg("circle", { class: "dot", cx: x(each.expected), cy: y(each.median), r: 3 })),
      chosen && svg("circle", { class: "dot", cx: x(plan.expected), cy: y(plan.median), r: 6 })),
    quiet("Line: half of the checks end by then. Band: eight of ten checks end within it. Large point: your guess."));
}

function numbers(table) {
  const cell = (value) => (value === null ? "never" : roughly(value));
  const range = (each) => (each.low === each.high ? cell(each.low) : `${cell(each.low)} to ${cell(each.high)}`);
  const fixed = table.some((each) => each.fixed !== null);
  const head = ["If wrong", "Answers, typically", "8 of 10 checks", ...(fixed ? ["With a fixed size"] : [])];
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Answers by share" }, h("table", {},
    h("thead", {}, h("tr", {}, head.map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, table.map((each) => h("tr", {}, h("th", { scope: "row" }, share(each.expected)), h("td", {}, cell(each.median)),
      h("td", {}, range(each)), fixed && h("td", {}, each.fixed === null ? "–" : count(each.fixed)))))));
}
