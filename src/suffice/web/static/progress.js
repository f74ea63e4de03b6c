// The view that tells where the project stands, and what more labels would buy.

import { capital } from "./api.js";
import { forecastWords, makeChart } from "./chart.js";
import { ago, count, h, many, moment, percent, put, short, svg } from "./dom.js";
import { scaleFor } from "./scales.js";
import { store, watch } from "./store.js";
import { guarantee, learning, quantity, sentences, standing } from "./verdict.js";

/** Make the view. */
export function makeProgressView(root, project) {
  const ratio = makeChart(capital(quantity(project)).slice(0, -1) + " against the threshold");
  const error = makeChart("The error that the model expects of itself");
  const parts = { verdict: card("Is it enough?"), purchase: card("What would the next 50 labels buy?"), ratio: card(), error: card(), classes: card("Labels of each class"), people: card("Who labelled") };
  put(root, h("h2", { class: "visually-hidden" }, "Progress"), h("div", { class: "board" }, Object.values(parts).map((each) => each.element)));
  parts.classes.element.hidden = project.task === "regression";

  const update = () => {
    const { status } = store;
    if (!status || root.hidden) return;
    verdictCard(parts.verdict.body, status);
    ratioCard(parts.ratio.body, ratio, status, project);
    errorCard(parts.error.body, error, status, project);
    purchaseCard(parts.purchase.body, status, project);
    if (project.task === "classification") classCard(parts.classes.body, status);
    peopleCard(parts.people.body, status, project);
  };
  watch(update);
  return { show: update };
}

function card(title = "") {
  const body = h("div", { class: "stack" });
  return { body, element: h("section", { class: "card", "aria-label": title || null }, title && h("h3", {}, title), body) };
}

/** Put things in an element only where they differ from what it holds, so that nothing flickers or loses its place. */
function swap(element, ...children) {
  const fresh = h(element.tagName.toLowerCase(), {}, ...children);
  if (fresh.textContent === element.textContent && fresh.childElementCount === element.childElementCount) return;
  const unfolded = element.querySelector("details")?.open ?? false;
  put(element, ...fresh.childNodes);
  if (unfolded) element.querySelector("details")?.setAttribute("open", "");
}

function verdictCard(body, status) {
  const { word, tone } = standing(status);
  const [first, ...rest] = sentences(status);
  const certificate = status.verdict?.certificate;
  swap(body, h("p", { class: `state large ${tone}` }, word), first && h("p", {}, first),
    status.problem && h("p", { class: "problem" }, capital(status.problem)),
    rest.length > 0 && h("ul", { class: "plain" }, rest.map((each) => h("li", {}, each))),
    certificate && guarantee(certificate),
    learning(status) && h("p", { class: "muted" }, `${learning(status)}.`),
    !status.verdict?.ready && h("p", { class: "muted" }, "The rule compares how much the latest labels changed the model with how much the first ones did. It needs a few labels before there is something to compare: go on labelling."));
}

function ratioCard(body, chart, status, project) {
  const { curve, forecast, verdict } = status;
  if (curve.length < 2) {
    swap(body, h("h3", {}, capital(quantity(project)).slice(0, -1)), h("p", { class: "muted" }, "The curve begins when the model has learned a few labels."));
    return;
  }
  const [n, value, threshold] = curve.at(-1);
  const limit = threshold === null ? "" : `, the threshold is ${short(threshold)}`;
  chart.update({
    points: curve.map(([at, number, against]) => [at, number, null, null, against]),
    log: true, y: quantity(project), format: short, forecast: verdict?.stop || !forecast ? null : { ...forecast, most: status.size },
    sentence: `After ${many(n, "label")} the ${quantity(project)} is ${short(value)}${limit}.${forecast ? ` ${capital(forecastWords(forecast))}` : ""}`,
    columns: [capital(quantity(project)).slice(0, -1), "", "", "Threshold"],
    read: ([at, number, , , against]) => `At ${many(at, "label")}: ${short(number)}${typeof against === "number" ? ` (threshold ${short(against)})` : ""}`,
  });
  if (body.firstChild !== chart.element) put(body, chart.element);
}

function errorCard(body, chart, status, project) {
  const { unit, estimates } = status.error;
  if (estimates.length < 2) {
    swap(body, h("h3", {}, "Expected error"), h("p", { class: "muted" }, "The model cannot tell yet how well it does."));
    return;
  }
  const share = unit === "share";
  const format = share ? percent : short;
  const [n, value, low, high] = estimates.at(-1);
  chart.update({
    points: estimates.map((each) => [...each, null]),
    zero: true, y: share ? "share of items that it gets wrong" : `error of ${project.target} (${unit})`, format, forecast: null,
    sentence: `After ${many(n, "label")} the model expects an error of ${format(value)}, with 90 % certainty between ${format(low)} and ${format(high)}.`,
    columns: ["Error", "At least", "At most", ""],
    read: ([at, number, from, to]) => `At ${many(at, "label")}: ${format(number)} (between ${format(from)} and ${format(to)})`,
  });
  if (body.firstChild !== chart.element) put(body, chart.element);
}

function purchaseCard(body, status, project) {
  const bought = status.purchase;
  if (!bought) {
    swap(body, h("p", { class: "muted" }, "That can be told once the model has learned a few labels."));
    return;
  }
  const format = status.error.unit === "share" ? percent : short;
  swap(body,
    h("p", { class: "deal" }, h("span", {}, h("b", {}, format(bought.now)), h("small", {}, "error now")), h("span", { class: "arrow", "aria-hidden": "true" }, "→"),
      h("span", {}, h("b", {}, format(bought.then)), h("small", {}, `after ${many(bought.labels, "more label", "more labels")}`))),
    range(bought),
    h("p", { class: "muted" }, `Likely between ${format(bought.low)} and ${format(bought.high)}.${bought.ratio === null ? "" : ` The ${quantity(project)} would then be about ${short(bought.ratio)}.`}`));
}

function range({ now, then, low, high }) {
  const x = scaleFor([now, then, low, high], [8, 292], { zero: true });
  return svg("svg", { class: "range", viewBox: "0 0 300 30", "aria-hidden": "true" },
    svg("line", { class: "grid", x1: 8, x2: 292, y1: 15, y2: 15 }),
    svg("rect", { class: "strip", x: x(low), y: 11, width: Math.max(2, x(high) - x(low)), height: 8, rx: 4 }),
    svg("circle", { class: "now", cx: x(now), cy: 15, r: 5.5 }), svg("circle", { class: "dot", cx: x(then), cy: 15, r: 5.5 }));
}

function classCard(body, status) {
  const most = Math.max(1, ...status.classes.map((each) => each.count));
  const rows = status.classes.map(({ name, count: labels }) => {
    const bar = h("span", { class: "bar" });
    bar.style.setProperty("--share", labels / most);
    return h("div", {}, h("dt", { dir: "auto" }, name), h("dd", {}, bar, h("span", { class: "count" }, count(labels))));
  });
  swap(body, h("dl", { class: "bars", tabindex: rows.length > 12 ? "0" : null }, rows), status.n_skipped > 0 && h("p", { class: "muted" }, `${many(status.n_skipped, "item was", "items were")} skipped.`));
}

function peopleCard(body, status, project) {
  const { agreement } = status;
  // Whoever only opened the project has not labelled.
  const people = status.people.filter((each) => each.labels > 0);
  swap(body,
    people.length ? h("dl", { class: "people" }, people.map((each) => h("div", {}, h("dt", { dir: "auto" }, each.name), h("dd", {}, many(each.labels, "label"), " ", h("span", { class: "muted", title: moment(each.last) }, ago(each.last))))))
      : h("p", { class: "muted" }, "Nobody yet."),
    agreement && agreement.both > 0 ? [h("p", {}, `Two people labelled the same ${many(agreement.both, "item")}${project.task === "classification" ? `, and agree on ${count(agreement.same)} (${percent(agreement.same / agreement.both)})` : ""}.`,
      agreement.kappa !== null && ` Cohen's kappa is ${short(agreement.kappa)}.`,
      agreement.difference !== null && ` Their numbers differ by ${short(agreement.difference)} on average.`),
    h("p", {}, h("a", { href: "#labels/disagreed" }, "Show where they disagree"))]
      : h("p", { class: "muted" }, project.overlap > 0 ? "No item has been labelled by two people yet." : "Each item is given to one person."));
}
