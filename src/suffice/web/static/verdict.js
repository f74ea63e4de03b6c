// What the rule says, in a card beside the item, and the banner when it is enough.

import { capital } from "./api.js";
import { button, h, many, put, quiet, short, svg, unbroken } from "./dom.js";
import { scaleFor } from "./scales.js";
import { kept, tab } from "./store.js";

/** What the numbers of a rule are called. */
export function quantity(project) {
  return project.rule === "ErrorStability" ? "error ratio" : "value of the rule";
}

/** The state in a word, and its colour's name. */
export function standing(status) {
  const verdict = status?.verdict;
  if (status?.advice || verdict?.stop) return { word: "You can stop now", tone: "good" };
  if (!verdict || !verdict.ready) return { word: "Too early to say", tone: "quiet" };
  return { word: "Keep going", tone: "on" };
}

/** Sentences for a person: the verdict first, then what else is known. */
export function sentences(status) {
  // The problem stands among them too, and is shown apart.
  const said = (status.words ?? []).filter((each) => each !== status.problem).map(unbroken);
  if (said.length || status.problem) return said;
  return [status.verdict?.sentence ?? "Label a few items, then the model begins to learn and the rule to judge."];
}

/** That the model has not learned the newest labels yet, or nothing. */
export function learning(status) {
  return status.behind > 0 ? `Learning, ${many(status.behind, "label")} to go` : "";
}

/** The card beside the item; update(status) fills it. */
export function makeVerdictCard(project) {
  const body = h("div", { class: "stack" });
  const element = h("section", { class: "card verdict", "aria-label": "Is it enough?" }, body);
  let drawn = "";
  return {
    element,
    update(status) {
      const { words, problem, behind, curve, advice, verdict } = status;
      const told = JSON.stringify([words, problem, behind, curve.at(-1), advice, verdict]);
      if (told === drawn) return;
      drawn = told;
      const { word, tone } = standing(status);
      const [first, ...rest] = sentences(status);
      put(body,
        h("div", { class: "row state-row" }, h("p", { class: `state ${tone}` }, word),
          h("p", { class: "muted learning" }, learning(status))),
        first && h("p", {}, first),
        status.problem && h("p", { class: "problem" }, capital(status.problem)),
        sparkline(status, project),
        rest.length > 0 && h("ul", { class: "plain" }, rest.map((each) => h("li", {}, each))),
        h("p", {}, h("a", { href: "#progress" }, "More under Progress")));
    },
  };
}

function sparkline(status, project) {
  const points = status.curve;
  if (points.length < 2) return null;
  const [width, height] = [300, 64];
  const threshold = points.at(-1)[2];
  const x = scaleFor(points.map((each) => each[0]), [4, width - 8]);
  const heights = [...points.map((each) => each[1]), ...(threshold === null ? [] : [threshold])];
  const y = scaleFor(heights, [height - 6, 8], { log: true });
  const line = points.map(([n, value], at) => `${at ? "L" : "M"}${x(n).toFixed(1)} ${y(value).toFixed(1)}`).join("");
  const [n, value] = points.at(-1);
  const limit = threshold === null ? "" : `threshold ${short(threshold)}`;
  const said = `The ${quantity(project)} after ${many(n, "label")}: ${short(value)}; ${limit}`;
  return h("figure", { class: "spark" },
    svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": said },
      threshold !== null && svg("line", { class: "limit", x1: 0, x2: width, y1: y(threshold), y2: y(threshold) }),
      svg("path", { class: "line", d: line }),
      svg("circle", { class: "dot", cx: x(n), cy: y(value), r: 3.5 })),
    h("figcaption", {}, h("span", {}, capital(quantity(project)).slice(0, -1), " ", h("b", {}, short(value))),
      limit && h("span", {}, h("i", { class: "dash" }), limit)));
}

/** The banner that it is enough; update(status) shows it, folds it to a chip, or takes it away. */
export function makeBanner() {
  const element = h("div", { class: "banner-slot" });
  let drawn = "";
  const draw = (status) => {
    const { advice, verdict } = status;
    const folded = kept.get("folded", tab) === String(advice?.at);
    const told = JSON.stringify([advice, folded, verdict?.certificate]);
    if (told === drawn) return;
    drawn = told;
    if (!advice) put(element);
    else if (folded) put(element, chip(() => fold(status, null)));
    else put(element, banner(advice, verdict?.certificate, () => fold(status, String(advice.at))));
  };
  const fold = (status, value) => {
    kept.set("folded", value, tab);
    draw(status);
  };
  return { element, update: draw };
}

function banner(advice, certificate, fold) {
  return h("section", { class: "banner", role: "region", "aria-labelledby": "stop-heading" },
    h("h2", { id: "stop-heading", role: "status" }, "You can stop now"),
    h("p", {}, capital(`Said at ${many(advice.n_labelled, "label")}: ${advice.reason}`)),
    certificate && (matchMedia("(max-width: 760px)").matches ? guarantee(certificate) : guaranteed(certificate)),
    h("div", { class: "row" },
      h("a", { class: "button primary", href: "api/report", target: "_blank", rel: "noopener" }, "See the report"),
      h("a", { class: "button", href: "#export" }, "Export"),
      button(fold, { class: "quiet" }, "Keep labelling")));
}

function guaranteed({ statement, assumption }) {
  return h("p", {}, h("strong", {}, "What is guaranteed: "), capital(statement), " ",
    h("span", { class: "muted" }, capital(`This holds if ${assumption}`)));
}

/** What is guaranteed and when, to be unfolded. */
export function guarantee({ statement, assumption }) {
  return h("details", {}, h("summary", {}, "What is guaranteed"),
    h("p", {}, capital(statement)), quiet(capital(`This holds if ${assumption}`)));
}

function chip(unfold) {
  return button(unfold, { class: "chip good" }, "You can stop now");
}
