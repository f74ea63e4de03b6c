// The decision whether to go on labelling: one statement above the item. Its words and numbers are those of
// status.decision, here and everywhere else.

import { capital } from "./api.js";
import { checkButton, checking, endedWithout, guaranteed, guaranteeParts, sequential } from "./check.js";
import { makeCheckPlot } from "./checkplot.js";
import { button, count, h, many, percent, put, quiet, short, svg, unbroken } from "./dom.js";
import { openDialog } from "./dialog.js";
import { checkAdvised, finished, goalBar, goalButton, goalOf, goalParts } from "./goal.js";
import { submit } from "./outbox.js";
import { can, person } from "./person.js";
import { scaleFor } from "./scales.js";
import { kept, refreshSoon, store } from "./store.js";
import { toast } from "./toast.js";

const STOPS = ["enough", "limit", "complete"];
// What a model is called on a button.
const NAMES = { kernel: "kernel features", forest: "a forest", boosting: "boosted trees" };

/** Whether the decision is a reason to stop. */
export const isStop = (status) => STOPS.includes(status?.decision.answer);

/** The decision in sentences, the most important first, and what else is to be known. */
export function sentences(status) {
  const { decision, problem, warning, check } = status;
  // What keeps the model from learning is shown apart.
  const all = problem && decision.answer === "too early" ? [] : decision.sentences;
  // The progress of an open check is shown apart.
  const said = all.filter((each) => !(checking(status) && each === check.sentence));
  return [...said, ...(warning ? [warning] : [])].map(unbroken);
}

/** That the model has not learned the newest labels yet, or nothing. */
export function learning(status) {
  return status.behind > 0 ? `Learning, ${many(status.behind, "label")} to go` : "";
}

/** The answer, the error as a large figure, and the sentences; the first one only where the figure does not say it. */
export function decisionParts(status, { large = false } = {}) {
  const { decision, problem } = status;
  const [first, ...rest] = sentences(status);
  const state = h("p", { class: `state ${decision.tone}${large ? " large" : ""}` }, decision.headline);
  const trouble = problem && h("p", { class: "problem" }, capital(problem));
  // A goal for all labels says itself how far it is.
  if (goalOf(status)) {
    const { warning } = status;
    return { guarantee: goalParts(status, { short: !large, bar: large }), state, problem: trouble, rest: warning && h("p", {}, unbroken(warning)) };
  }
  return {
    guarantee: guaranteeParts(status),
    state,
    error: decision.error_figure
      ? h("p", { class: "error-now" }, h("b", {}, decision.error_figure), " ",
        h("span", { class: "muted" }, unbroken(decision.error_note)))
      : first && h("p", {}, first === decision.sentences[0] ? unbroken(decision.summary) : first),
    problem: trouble,
    rest: rest.length > 0 && h("ul", { class: "plain" }, rest.map((each) => h("li", {}, each))),
  };
}

/** The button of the next step, where there is one: a check, or for a goal for all labels its check or its result. */
export function nextButton(status, properties = {}) {
  return goalOf(status) ? goalButton(status, properties) : checkButton(status, properties);
}

/**
 * The statement of the state of the work above the item: first what to do next, then the error, and the details behind
 * "Why". update(status) fills it.
 */
export function makeStatement() {
  const heading = h("h2", { id: "stop-heading" });
  const next = h("span", { class: "next" });
  const figure = h("p", { class: "figure" });
  const late = h("p", { class: "muted learning" });
  const actions = h("div", { class: "row" });
  const body = h("div", { class: "stack" });
  const summary = h("summary", {}, "Why");
  const details = h("details", { open: kept.get("why") === "open" }, summary, body);
  const said = h("div", { role: "status" }, heading, next);
  const trouble = h("p", { class: "problem" });
  const way = h("div", { class: "way" });
  const element = h("section", { class: "banner verdict", "aria-label": "Is it enough?", hidden: true },
    said, figure, late, actions, trouble, way, details);
  const plot = makeCheckPlot();
  let drawn = "";
  // Whether somebody wants to see the details is remembered in this browser.
  details.addEventListener("toggle", () => kept.set("why", details.open ? "open" : null));
  return {
    element,
    update(status) {
      const { decision, warning, problem, behind, error, check, guarantee, held, goal, model } = status;
      // While a check is open, the line of the check says what to do.
      const asked = checking(status) && !finished(status);
      const open = asked && sequential(status);
      if (open) plot.update(check);
      const told = JSON.stringify([decision, warning, problem, behind, error, check?.state, guarantee, Boolean(open), held > 0, goal, model.name]);
      if (told === drawn) return;
      drawn = told;
      element.hidden = false;
      element.className = `banner verdict ${decision.tone}`;
      said.hidden = asked;
      if (heading.textContent !== decision.headline) heading.textContent = decision.headline;
      if (next.textContent !== decision.next_step) next.textContent = decision.next_step;
      const [number, note] = (!asked && headFigure(status)) || [];
      put(figure, number && h("b", {}, number), number && h("small", {}, note));
      figure.hidden = !number;
      late.textContent = learning(status);
      trouble.textContent = problem ? capital(problem) : "";
      put(actions, asked ? null : statementActions(status));
      actions.hidden = !actions.childElementCount;
      put(way, goalOf(status) && goalBar(status));
      summary.textContent = asked ? "Why, and how large the error is" : "Why";
      put(body, statementDetails(status, open && plot.element));
    },
  };
}

/** The figure of the statement with its note: what is guaranteed, or else the estimated error; null without one. */
function headFigure(status) {
  const { decision, goal } = status;
  if (goal) return finished(status) ? goalFigure(status) : null;
  const proven = guaranteed(status);
  if (proven) return [proven.figure, proven.figure_note];
  return decision.error_figure && [decision.error_figure, figureNote(decision, "predicted wrong (estimate)")];
}

/** The buttons of the statement, the next step first. */
function statementActions(status) {
  const { decision } = status;
  const goal = goalOf(status);
  const report = { href: "api/report", target: "_blank", rel: "noopener" };
  const stops = isStop(status);
  if (goal) {
    return [(finished(status) || checkAdvised(status)) && goalButton(status, { class: "primary" }),
      finished(status) && can("manage") && h("a", { class: "button", ...report }, "See the report")];
  }
  const switching = switchButton(status);
  const proven = guaranteed(status);
  // Before a reason to stop, what comes next is another label, not a check.
  const due = !switching && !proven && !decision.target_missed && (stops || decision.plan?.check_now);
  const checks = decision.target_missed && stops ? null : checkButton(status, { class: due ? "primary" : "small" });
  const ends = stops && can("manage") && [
    h("a", { class: switching || (due && checks) ? "button" : "button primary", ...report }, "See the report"),
    h("a", { class: "button", href: "#export" }, "Export")];
  return [switching, due && checks, ends, !due && checks];
}

/** What is behind the statement: what is guaranteed, the error and its basis, the sentences, and what to try. */
function statementDetails(status, plot) {
  const { decision, goal } = status;
  const parts = decisionParts(status);
  const told = goalOf(status) ? [] : sentences(status).slice(1);
  const more = [isStop(status) && decision.remedy].filter((each) => each && !told.includes(each) && !told.some((one) => each.includes(one)));
  const outlook = (decision.plan?.check_now || decision.target_missed) && decision.outlook_note;
  return [parts.guarantee, endedWithout(status), plot, parts.error, !goal && sparkline(status),
    parts.rest, outlook && !told.includes(unbroken(outlook)) && h("p", {}, unbroken(outlook)), more.map((each) => h("p", {}, unbroken(each))),
    h("p", {}, h("a", { href: "#progress" }, "More under Progress"))];
}

/** The estimated error over the labels, with its interval, small. */
function sparkline(status) {
  const { estimates, unit } = status.error;
  if (estimates.length < 2) return null;
  const [width, height] = [300, 64];
  const format = unit === "share" ? percent : short;
  const x = scaleFor(estimates.map((each) => each[0]), [4, width - 8]);
  const y = scaleFor(estimates.flatMap((each) => each.slice(1)), [height - 4, 6], { zero: true });
  const path = (places) => places.map(([n, at], k) => `${k ? "L" : "M"}${x(n).toFixed(1)} ${y(at).toFixed(1)}`).join("");
  const band = [...estimates.map((each) => [each[0], each[3]]),
    ...estimates.map((each) => [each[0], each[2]]).reverse()];
  const [start, end] = [estimates[0], estimates.at(-1)];
  const said = `Estimated error: ${format(start[1])} after ${many(start[0], "label")}, ` +
    `${format(end[1])} after ${many(end[0], "label")}`;
  return h("figure", { class: "spark" },
    svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": said },
      svg("line", { class: "grid", x1: 0, x2: width, y1: y(0), y2: y(0) }),
      svg("path", { class: "band", d: `${path(band)}Z` }),
      svg("path", { class: "line", d: path(estimates) }),
      svg("circle", { class: "dot", cx: x(end[0]), cy: y(end[1]), r: 3.5 })),
    h("figcaption", {}, h("span", {}, "Estimated error"),
      h("span", {}, `${count(start[0])} to ${many(end[0], "label")}`)));
}

/** What is guaranteed about all labels, or about a class, as a figure and a note. */
function goalFigure(status) {
  const reached = finished(status);
  return reached && [reached.figure, reached.figure_note];
}

/** A button that lets the better model learn, where the project can have it. */
export function switchButton(status) {
  const { alternative, answer } = status.decision;
  if (store.project.checked) return null;
  const known = store.project.models.some((each) => each.name === alternative?.name);
  if (!can("manage") || !alternative?.clear || !known || alternative.name === status.model.name) return null;
  const name = NAMES[alternative.name] ?? alternative.description;
  const kind = answer === "limit" ? "primary" : "";
  return button(() => confirmSwitch(status, alternative, name), { class: kind }, `Switch to ${name}`);
}

function confirmSwitch(status, alternative, name) {
  const problem = h("p", { class: "problem", role: "alert" });
  const change = async () => {
    yes.disabled = true;
    try {
      await submit("api/model", { person: person(), model: alternative.name });
      dialog.close();
      toast("The new model is learning all labels.");
      refreshSoon();
    } catch (error) {
      problem.textContent = error.message;
      yes.disabled = false;
    }
  };
  const yes = button(change, { class: "primary" }, "Switch");
  const dialog = openDialog(`Switch to ${name}?`, [
    h("div", { class: "stack" },
      h("p", {}, `From now on, the model is ${alternative.description} instead of ${status.model.description}.`),
      h("ul", {},
        h("li", {}, `All ${many(status.n_labelled, "label")} and all skips are kept.`),
        h("li", {}, "The new model learns them again from the first one. That takes a few seconds to minutes; you " +
          "can continue to label meanwhile."),
        h("li", {}, "The error, the predictions and the decision are computed again. They may say that more labels are " +
          "worth it."),
        h("li", {}, "The change applies to everybody in this project. The command suffice switch reverses it.")),
      problem,
      h("div", { class: "row end" }, button(() => dialog.close(), {}, "Cancel"), yes)),
  ]);
}

/** What a certificate says and when it holds. */
export function certified({ statement, assumption }) {
  return [h("h4", {}, "What the rule certifies about the last label"), h("p", {}, capital(statement)),
    quiet(capital(`This holds if ${assumption}`))];
}

// What the large figure is: relevant items of a screening, or the error.
function figureNote(decision, wrong) {
  if (decision.screening) return "found";
  return decision.share ? wrong : "typical error";
}
