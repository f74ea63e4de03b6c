// The decision whether to go on labelling: a card beside the item, and a banner when there is reason to stop. Its words
// and numbers are those of status.decision, here and everywhere else.

import { capital } from "./api.js";
import { checkButton, checking, endedWithout, guaranteed, guaranteeParts, sequential } from "./check.js";
import { makeCheckPlot } from "./checkplot.js";
import { button, count, h, many, percent, put, quiet, short, svg, unbroken } from "./dom.js";
import { openDialog } from "./dialog.js";
import { checkAdvised, finished, goalButton, goalOf, goalParts } from "./goal.js";
import { submit } from "./outbox.js";
import { can, person } from "./person.js";
import { scaleFor } from "./scales.js";
import { kept, refreshSoon, store, tab } from "./store.js";
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
    return { guarantee: goalParts(status, { short: !large }), state, problem: trouble, rest: warning && h("p", {}, unbroken(warning)) };
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

/** The card beside the item; update(status) fills it. */
export function makeVerdictCard() {
  const body = h("div", { class: "stack" });
  const element = h("section", { class: "card verdict", "aria-label": "Is it enough?" }, body);
  const plot = makeCheckPlot();
  let drawn = "";
  return {
    element,
    update(status) {
      const { decision, warning, problem, behind, error, check, guarantee, held, goal } = status;
      const open = checking(status) && sequential(status);
      if (open) plot.update(check);
      const told = JSON.stringify([decision, warning, problem, behind, error, check?.state, guarantee, Boolean(open), held > 0, goal]);
      if (told === drawn) return;
      drawn = told;
      const parts = decisionParts(status);
      put(body,
        h("div", { class: "row state-row" }, parts.state, h("p", { class: "muted learning" }, learning(status))),
        parts.guarantee, endedWithout(status), open && plot.element, parts.error, !goal && sparkline(status), parts.problem, parts.rest,
        h("p", { class: "row" }, (!goal || finished(status) || checkAdvised(status)) && nextButton(status, { class: "small" }),
          h("a", { href: "#progress" }, "More under Progress")));
    },
  };
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

/** The banner where there is reason to stop; update(status) shows it, folds it to a chip, or takes it away. */
export function makeBanner() {
  const element = h("div", { class: "banner-slot" });
  let drawn = "";
  const draw = (status) => {
    const { decision, guarantee, model, goal } = status;
    // A goal may be reached while a check is open, if people have labelled nearly all rows.
    const shown = goal ? finished(status) || checkAdvised(status)
      : (isStop(status) || decision.plan?.check_now || guaranteed(status)) && !checking(status);
    const name = `${decision.headline} ${decision.since} ${model.name} ${guarantee?.check}`;
    const folded = kept.get("folded", tab) === name;
    const told = JSON.stringify([decision, guarantee, model, folded, shown, goal]);
    if (told === drawn) return;
    drawn = told;
    if (!shown) put(element);
    else if (folded) put(element, chip(status, () => fold(status, null)));
    else {
      // Details that somebody reads stay open.
      const open = element.querySelector("details")?.open ?? false;
      put(element, banner(status, () => fold(status, name)));
      element.querySelector("details").open = open;
    }
  };
  const fold = (status, value) => {
    kept.set("folded", value, tab);
    draw(status);
  };
  return { element, update: draw };
}

/** What is guaranteed about all labels, or about a class, as a figure and a note. */
function goalFigure(status) {
  const reached = finished(status);
  return reached && [reached.figure, reached.figure_note];
}

/** The heading of a banner. It is announced when it appears; a heading itself cannot have the role "status". */
function bannerHeading(decision) {
  return h("div", { role: "status" }, h("h2", { id: "stop-heading" }, decision.headline));
}

function goalBanner(status, fold) {
  const { decision, goal } = status;
  const figure = goalFigure(status);
  const report = { href: "api/report", target: "_blank", rel: "noopener" };
  return h("section", { class: `banner ${decision.tone}`, role: "region", "aria-labelledby": "stop-heading" },
    bannerHeading(decision),
    figure && h("p", { class: "figure" }, h("b", {}, figure[0]), h("small", {}, figure[1])),
    goal.reached?.errors_of_people && h("p", {}, unbroken(goal.reached.errors_of_people)),
    h("details", {}, h("summary", {}, "Why, and what next"), goal.sentences.filter((each) => each !== goal.reached?.errors_of_people).map((each) => h("p", {}, unbroken(each)))),
    h("div", { class: "row" }, goalButton(status, { class: "primary" }),
      can("manage") && h("a", { class: "button", ...report }, "See the report"),
      button(fold, { class: "quiet" }, decision.answer === "complete" ? "Hide" : "Keep labelling")));
}

function banner(status, fold) {
  const { decision } = status;
  if (goalOf(status)) return goalBanner(status, fold);
  const report = { href: "api/report", target: "_blank", rel: "noopener" };
  const switching = switchButton(status);
  const proven = guaranteed(status);
  // What is to be done next stands first.
  const checkFirst = !switching && !proven;
  const checks = decision.target_missed ? null : checkButton(status, { class: checkFirst ? "primary" : "" });
  const figure = proven ? [proven.figure, proven.figure_note]
    : decision.error_figure && [decision.error_figure, figureNote(decision, "predicted wrong")];
  const goOn = decision.target_missed;
  return h("section", { class: `banner ${decision.tone}`, role: "region", "aria-labelledby": "stop-heading" },
    bannerHeading(decision),
    figure && h("p", { class: "figure" }, h("b", {}, figure[0]), h("small", {}, figure[1])),
    h("details", {}, h("summary", {}, "Why, and what next"),
      proven && h("p", {}, unbroken(proven.sentences[0])),
      h("p", {}, unbroken(decision.summary)),
      (decision.plan?.check_now || goOn) && h("p", {}, unbroken(decision.outlook_note)),
      decision.remedy && h("p", {}, unbroken(decision.remedy))),
    h("div", { class: "row" }, switching, checkFirst && checks,
      can("manage") && h("a", { class: switching || goOn || (checkFirst && checks) ? "button" : "button primary", ...report },
        "See the report"),
      can("manage") && h("a", { class: "button", href: "#export" }, "Export"), !checkFirst && checks,
      button(fold, { class: goOn ? "primary" : "quiet" }, decision.answer === "complete" ? "Hide" : "Keep labelling")));
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
      h("p", {}, `From now on ${alternative.description} learns, in place of ${status.model.description}.`),
      h("ul", {},
        h("li", {}, `All ${many(status.n_labelled, "label")} stay, and all items that were skipped.`),
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

function chip(status, unfold) {
  const { decision, goal } = status;
  const proven = guaranteed(status);
  const figure = goal ? goalFigure(status)?.join(" ") : proven ? `${proven.figure} ${proven.figure_note}`
    : decision.error_figure && `${decision.error_figure} ${figureNote(decision, "wrong")}`;
  return button(unfold, { class: `chip ${decision.tone}` }, decision.headline, figure && `: ${figure}`);
}
