// The view that tells where the project stands, and what more labels would buy.

import { capital } from "./api.js";
import { forecastWords, makeChart } from "./chart.js";
import { h, many, percent, put, quiet, short, svg, swap } from "./dom.js";
import { classBars, people } from "./labelled.js";
import { scaleFor } from "./scales.js";
import { store, watch } from "./store.js";
import { guarantee, learning, quantity, sentences, standing } from "./verdict.js";

const UNDECIDED =
  "The rule compares how much the latest labels changed the model with how much the first ones did. It needs a few " +
  "labels before there is something to compare: go on labelling.";

/** Make the view. */
export function makeProgressView(root, project) {
  const name = capital(quantity(project)).slice(0, -1);
  const ratio = makeChart(`${name} against the threshold`);
  const error = makeChart("The estimated error of the model");
  const parts = {
    verdict: card("Is it enough?"),
    purchase: card("What would the next 50 labels buy?"),
    ratio: card(),
    error: card(),
    classes: card("Labels of each class"),
    people: card("Who labelled"),
  };
  const cards = Object.values(parts).map((each) => each.element);
  put(root, h("h2", { class: "visually-hidden" }, "Progress"), h("div", { class: "board" }, cards));
  parts.classes.element.hidden = project.task === "regression";

  const update = () => {
    const { status } = store;
    if (!status || root.hidden) return;
    swap(parts.verdict.body, verdict(status));
    swap(parts.purchase.body, purchase(status, project));
    chartOr(parts.ratio.body, ratio, ratioData(status, project), "The curve begins once a few labels are learned.");
    chartOr(parts.error.body, error, errorData(status, project), "The model cannot tell yet how well it does.");
    swap(parts.classes.body, classBars(status));
    swap(parts.people.body, people(status, project));
  };
  watch(update);
  return { show: update };
}

function card(title = "") {
  const body = h("div", { class: "stack" });
  return { body, element: h("section", { class: "card" }, title && h("h3", {}, title), body) };
}

function chartOr(body, chart, data, otherwise) {
  if (data === null) {
    swap(body, h("h3", {}, chart.title), quiet(otherwise));
    return;
  }
  if (body.firstChild !== chart.element) put(body, chart.element);
  chart.update(data);
}

function verdict(status) {
  const { word, tone } = standing(status);
  const [first, ...rest] = sentences(status);
  const certificate = status.verdict?.certificate;
  return [
    h("p", { class: `state large ${tone}` }, word),
    first && h("p", {}, first),
    status.problem && h("p", { class: "problem" }, capital(status.problem)),
    rest.length > 0 && h("ul", { class: "plain" }, rest.map((each) => h("li", {}, each))),
    certificate && guarantee(certificate),
    learning(status) && quiet(`${learning(status)}.`),
    !status.verdict?.ready && quiet(UNDECIDED),
  ];
}

function ratioData(status, project) {
  const { curve, forecast } = status;
  if (curve.length < 2) return null;
  const [n, value, threshold] = curve.at(-1);
  const against = (limit) => (typeof limit === "number" ? ` (threshold ${short(limit)})` : "");
  const ahead = forecast && !status.verdict?.stop ? { ...forecast, most: status.size } : null;
  const told = `After ${many(n, "label")} the ${quantity(project)} is ${short(value)}${against(threshold)}.`;
  return {
    points: curve.map(([at, number, limit]) => [at, number, null, null, limit]),
    log: true,
    y: quantity(project),
    format: short,
    forecast: ahead,
    sentence: ahead ? `${told} ${capital(forecastWords(forecast))}` : told,
    columns: [capital(quantity(project)).slice(0, -1), "", "", "Threshold"],
    read: ([at, number, , , limit]) => `At ${many(at, "label")}: ${short(number)}${against(limit)}`,
  };
}

function errorData(status, project) {
  const { unit, estimates, random_labels: random } = status.error;
  if (estimates.length < 2) return null;
  const share = unit === "share";
  const format = share ? percent : short;
  const between = (low, high) => `between ${format(low)} and ${format(high)}`;
  const [n, value, low, high] = estimates.at(-1);
  const about = `${format(value)}, likely ${between(low, high)}`;
  const rests = random > 0 ? `Estimated with the help of ${many(random, "random label")}.` : "";
  return {
    points: estimates.map((each) => [...each, null]),
    zero: true,
    y: share ? "share of items that it gets wrong" : `error of ${project.target} (${unit})`,
    format,
    forecast: null,
    sentence: rests
      ? `After ${many(n, "label")} the error is about ${about}. ${rests}`
      : `After ${many(n, "label")} the model expects an error of ${about}.`,
    columns: ["Error", "At least", "At most", ""],
    read: ([at, number, from, to]) => `At ${many(at, "label")}: ${format(number)} (${between(from, to)})`,
  };
}

function purchase(status, project) {
  const bought = status.purchase;
  if (!bought) return quiet("That can be told once the model has learned a few labels.");
  const format = status.error.unit === "share" ? percent : short;
  const figure = (value, words) => h("span", {}, h("b", {}, format(value)), h("small", {}, words));
  const likely = `Likely between ${format(bought.low)} and ${format(bought.high)}.`;
  const ratio = bought.ratio === null ? "" : ` The ${quantity(project)} would then be about ${short(bought.ratio)}.`;
  return [
    h("p", { class: "deal" }, figure(bought.now, "error now"),
      h("span", { class: "arrow", "aria-hidden": "true" }, "→"),
      figure(bought.then, `after ${many(bought.labels, "more label", "more labels")}`)),
    range(bought),
    quiet(likely + ratio),
  ];
}

function range({ now, then, low, high }) {
  const x = scaleFor([now, then, low, high], [8, 292], { zero: true });
  return svg("svg", { class: "range", viewBox: "0 0 300 30", "aria-hidden": "true" },
    svg("line", { class: "grid", x1: 8, x2: 292, y1: 15, y2: 15 }),
    svg("rect", { class: "strip", x: x(low), y: 11, width: Math.max(2, x(high) - x(low)), height: 8, rx: 4 }),
    svg("circle", { class: "now", cx: x(now), cy: 15, r: 5.5 }),
    svg("circle", { class: "dot", cx: x(then), cy: 15, r: 5.5 }));
}
