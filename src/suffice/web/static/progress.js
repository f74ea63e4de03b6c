// The view that tells where the project stands: the decision, the error and its curve, and what more labels bring. What
// the rule compares is under details.

import { capital, get } from "./api.js";
import { makeChart } from "./chart.js";
import { checking, endedWithout, sequential } from "./check.js";
import { foundWords, makeCheckPlot } from "./checkplot.js";
import { h, many, percent, put, quiet, short, swap, unbroken } from "./dom.js";
import { finished, goalOf, totalsData } from "./goal.js";
import { classBars, people } from "./labelled.js";
import { can } from "./person.js";
import { store, watch } from "./store.js";
import { certified, decisionParts, learning, nextButton, switchButton } from "./verdict.js";

const WORTH_RULES = ["LabelWorth", "ExpectedCost"];

// Milliseconds between two questions about people: the answer reads all labels.
const PEOPLE_EVERY = 10000;

/** What the numbers of a rule are called, and what they are compared with. */
function ruleNames({ rule }) {
  if (rule === "ErrorStability") return ["error ratio", "threshold"];
  return WORTH_RULES.includes(rule) ? ["worth of a label", "cost"] : ["value of the rule", "threshold"];
}

/** Make the view. */
export function makeProgressView(root, project) {
  const [name, limit] = ruleNames(project);
  const error = makeChart("The estimated error");
  const totals = makeChart("Expected number of labels by people at the end");
  const compared = makeChart(`The ${name} and the ${limit}`);
  const course = makeCheckPlot({ table: true });
  const parts = {
    decision: card("Is it enough?"),
    check: card("The check"),
    totals: card(),
    error: card(),
    outlook: card("What do more labels bring?"),
    classes: card("Labels of each class"),
    people: card("Who labelled"),
  };
  const [curve, facts] = [h("div", { class: "stack" }), h("div", { class: "stack" })];
  const details = h("details", { class: "card wide" },
    h("summary", {}, "Details: what the stopping rule compares"),
    h("div", { class: "stack" }, curve, facts));
  const about = h("p", { class: "check-about" });
  parts.decision.element.classList.add("wide");
  parts.check.element.classList.add("wide");
  parts.people.element.classList.toggle("wide", project.task === "regression");
  const cards = Object.values(parts).map((each) => each.element);
  put(root, h("h2", { class: "visually-hidden" }, "Progress"), h("div", { class: "board" }, cards, details));
  parts.classes.element.hidden = project.task === "regression";

  // What is known about people's answers, for those who may see it, and the status that it belongs to.
  let team = null;
  let asked = "";
  let askedAt = 0;
  async function askPeople(status) {
    const now = JSON.stringify([status.people, status.agreement, status.revision]);
    if (!can("review") || now === asked || Date.now() - askedAt < PEOPLE_EVERY) return;
    asked = now;
    askedAt = Date.now();
    try {
      team = await get("api/people");
      swap(parts.people.body, people(store.status, project, team));
    } catch {
      // It is asked for again with one of the next statuses.
      asked = "";
    }
  }

  const update = () => {
    const { status } = store;
    if (!status || root.hidden) return;
    swap(parts.decision.body, decision(status));
    const check = sequential(status);
    parts.check.element.hidden = !check;
    if (!check) put(parts.check.body);
    else {
      if (!course.element.isConnected) put(parts.check.body, about, course.element);
      about.textContent = unbroken(checkWords(check));
      course.update(check);
    }
    // A goal for all labels decides alone: what the rule compares would be another answer.
    const goal = goalOf(status);
    parts.totals.element.hidden = !goal;
    details.hidden = Boolean(goal || project.checked);
    // What the decision says already is not said again.
    const { outlook: figures, outlook_note: note, sentences: said } = status.decision;
    parts.outlook.element.hidden = details.hidden || (!figures.length && said.includes(note));
    // Predictions made elsewhere are checked; without a goal for all labels nothing is estimated.
    // A goal that is reached is about other predictions: those of the model at the check.
    parts.error.element.hidden = Boolean((project.checked && !goal) || finished(status));
    if (goal) chartOr(parts.totals.body, totals, totalsData(status), "The curve begins once a few labels are learned.");
    swap(parts.outlook.body, outlook(status));
    chartOr(parts.error.body, error, errorData(status, project), "There is no estimate before the model has started.");
    chartOr(curve, compared, ruleData(status, project), "The curve begins once a few labels are learned.");
    swap(facts, certificate(status));
    swap(parts.classes.body, classBars(status));
    swap(parts.people.body, people(status, project, team));
    askPeople(status);
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

/** The newest check that is for a target, in words: its number, its target, and how far it is or how it ended. */
function checkWords(check) {
  const { answered, state } = check.sequential;
  const ended = state === "proven" && `Proven after ${many(answered, "answer")}, with ${foundWords(check.sequential)}.`;
  return `Target: ${check.target_words}. ${check.sentence || ended || ""}`.trim();
}

function decision(status) {
  const parts = decisionParts(status, { large: true });
  const switching = switchButton(status);
  const checks = nextButton(status);
  return [...(goalOf(status) ? [parts.state, parts.guarantee] : [parts.guarantee, parts.state]), parts.error, parts.problem, parts.rest,
    checking(status) && !sequential(status) && h("p", {}, unbroken(status.check.sentence)), endedWithout(status),
    (switching || checks) && h("p", { class: "row" }, switching, checks),
    quiet(store.project.checked ? capital(status.model.description)
      : unbroken([
        `Model: ${status.model.description}.`, status.model.reason, ...(status.model.choice?.sentences ?? []),
      ].filter(Boolean).join(" "))),
    learning(status) && quiet(`${learning(status)}.`)];
}

function errorData(status, project) {
  const { unit, estimates } = status.error;
  if (estimates.length < 2) return null;
  const { decision: decided } = status;
  const share = unit === "share";
  const format = share ? percent : short;
  const between = (low, high) => `probably between ${format(low)} and ${format(high)}`;
  const [n, value, low, high] = estimates.at(-1);
  const then = decided.forecast && decided.error_then !== null
    ? { n: n + decided.forecast.labels, value: decided.error_then, most: status.size } : null;
  return {
    points: estimates.map((each) => [...each, null]),
    zero: true,
    y: share ? "share of predictions that are wrong" : `typical error of ${project.target}`,
    format,
    forecast: null,
    then: then && then.n <= status.size ? then : null,
    sentence: `After ${many(n, "label")} the estimated error is ${format(value)}, ${between(low, high)}.`,
    columns: ["Error", "At least", "At most", ""],
    // The newest one is told as the decision tells it.
    read: ([at, number, from, to]) => (at === decided.n_labelled && decided.error_figure && !decided.screening
      ? `At ${many(at, "label")}: ${decided.error_figure} (estimated)`
      : `At ${many(at, "label")}: ${format(number)}, ${between(from, to)} (estimated)`),
  };
}

const plain = (...children) => h("p", {}, ...children);

function outlook({ decision: { outlook: figures, outlook_note: note } }) {
  const figure = ([value, words]) => h("span", {}, h("b", {}, value), h("small", {}, words));
  return [
    figures.length > 0 && h("p", { class: "deal" }, figure(figures[0]),
      h("span", { class: "arrow", "aria-hidden": "true" }, "→"), figure(figures[1])),
    note && (figures.length ? quiet : plain)(unbroken(note)),
  ];
}

function ruleData({ curve, decision: { forecast }, size }, project) {
  if (curve.length < 2) return null;
  const [name, limit] = ruleNames(project);
  const [n, value, threshold] = curve.at(-1);
  const against = (level) => (typeof level === "number" ? ` (${limit} ${short(level)})` : "");
  return {
    points: curve.map(([at, number, level]) => [at, number, null, null, level]),
    log: true,
    y: name,
    limit,
    format: short,
    forecast: forecast && { ...forecast, most: size },
    then: null,
    sentence: `After ${many(n, "label")} the ${name} is ${short(value)}${against(threshold)}.`,
    columns: [capital(name).slice(0, -1), "", "", capital(limit).slice(0, -1)],
    read: ([at, number, , , level]) => `At ${many(at, "label")}: ${short(number)}${against(level)}`,
  };
}

function certificate({ verdict }) {
  return verdict?.certificate ? certified(verdict.certificate) : [];
}
