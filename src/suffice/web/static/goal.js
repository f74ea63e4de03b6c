// A goal for all labels of the project: the bar towards it, the check that proves it, and what is taken away at the end.

import { button, count, h, many, quiet, roughly, unbroken } from "./dom.js";
import { checking, makeStartLine } from "./check.js";
import { openDialog } from "./dialog.js";
import { saving } from "./files.js";
import { submit } from "./outbox.js";
import { can, person } from "./person.js";
import { refreshSoon } from "./store.js";
import { toast } from "./toast.js";

export const FINAL_FORMATS = [
  ["csv", "CSV"], ["xlsx", "Excel (XLSX)"], ["jsonl", "JSON lines"], ["parquet", "Parquet"],
];

/** The goal for all labels, or null. */
export const goalOf = (status) => status?.goal ?? null;

/** What is guaranteed about all labels, or null. */
export const finished = (status) => goalOf(status)?.reached ?? null;

/** Whether the check for the goal is advised now. */
export const checkAdvised = (status) =>
  Boolean(goalOf(status) && !finished(status) && !checking(status) && status.goal.plan?.check_now && status.goal.plan.check_size);

/** The bar: labels of people so far, and those that are expected. */
export function goalBar(status) {
  const { goal } = status;
  const done = Boolean(goal.reached);
  // Before the first plan, all rows may have to be labelled.
  const known = goal.expected_total !== null;
  const total = known ? goal.expected_total : goal.rows;
  const bar = h("div", {
    class: done ? "goal-bar done" : "goal-bar", role: "progressbar", "aria-label": "Labels of people towards the goal",
    "aria-valuemin": 0, "aria-valuemax": Math.max(1, total), "aria-valuenow": Math.min(total, goal.by_people),
    "aria-valuetext": done ? "The goal is reached" : `${count(goal.by_people)} of ${known ? `about ${roughly(total)}` : count(total)} labels`,
  }, h("span", {}));
  bar.style.setProperty("--share", total ? Math.min(1, goal.by_people / total) : 1);
  return bar;
}

/** Bar and sentences. */
export function goalParts(status, { short = false, bar = true } = {}) {
  const { goal } = status;
  // The first sentences say what the goal is, how far it is, and how long that takes; of a reached goal, what is
  // guaranteed, and what wrong labels of people would mean.
  const [first, ...rest] = goal.sentences;
  const progress = goal.reached ? (goal.reached.errors_of_people ? 1 : 0) : (goal.plan ? 1 : 0) + (goal.hours ? 1 : 0);
  const shown = short ? rest.slice(0, progress) : rest;
  return h("div", { class: goal.reached ? "goal guarantee" : "goal" },
    h("p", {}, h("b", {}, unbroken(first))), bar && goalBar(status), shown.map((each) => h("p", {}, unbroken(each))),
    goal.reached && !short && quiet(unbroken(goal.reached.evidence)));
}

/** A button that leads to the next step: the check for the goal, or its result; null between. */
export function goalButton(status, properties = {}) {
  if (!can("manage")) return null;
  if (finished(status)) return button(() => finish(status), { ...properties, class: `primary ${properties.class ?? ""}`.trim() }, "Finish");
  if (checking(status) || !goalOf(status)?.plan?.check_size || !status.left) return null;
  return button(() => offerGoalCheck(status), properties, "Start the check");
}

/** The window that says what the check for the goal takes, and starts it. */
function offerGoalCheck(status) {
  const { goal } = status;
  const { plan } = goal;
  const problem = h("p", { class: "problem", role: "alert" });
  const start = button(begin, { class: "primary" }, "Start the check");
  const line = makeStartLine();
  async function begin() {
    start.disabled = true;
    start.textContent = "Starting…";
    line.begin();
    try {
      await submit("api/checks", { person: person(), at_most: goal.at_most, of: "all" });
      dialog.close();
      location.hash = "#label";
      toast("The check is started: its items come next.");
      refreshSoon();
    } catch (error) {
      problem.textContent = error.message;
      start.disabled = false;
      start.textContent = "Start the check";
    } finally {
      line.end();
    }
  }
  const early = !plan.check_now && `By the plan, about ${roughly(plan.more_labels)} more labels should come first: a check now would ` +
    "probably take more answers in total.";
  const [first, ...notes] = goal.check_sentences;
  const dialog = openDialog("Check for the goal", [
    h("div", { class: "stack" },
      h("p", {}, unbroken(goal.sentences[0])),
      early && h("p", {}, early),
      h("p", {}, unbroken(first)),
      h("ul", {}, notes.map((each) => h("li", {}, unbroken(each)))),
      problem, line.element,
      h("div", { class: "row end" }, button(() => dialog.close(), {}, "Not now"), start)),
  ]);
}

/** The window with the final file and the statement. */
function finish(status) {
  const problem = h("p", { class: "problem", role: "alert" });
  const dialog = openDialog("Finish", [
    h("div", { class: "stack" },
      h("p", {}, h("b", {}, unbroken(status.goal.sentences[0]))),
      finished(status).errors_of_people && h("p", {}, unbroken(finished(status).errors_of_people)), finalFiles(problem), problem,
      h("div", { class: "row end" }, button(() => dialog.close(), {}, "Close"))),
  ]);
}

/** What is taken away at the end. */
export function finalFiles(problem) {
  const file = ([format, name]) =>
    saving(`api/final?format=${format}`, `final.${format}`, problem, { "aria-label": `Final file as ${name}` }, name);
  return h("div", { class: "stack final-files" },
    h("h4", {}, "Final file"),
    h("p", {}, "All rows in their order, with the label, where it comes from (person, check or model), and who gave it when."),
    h("div", { class: "row" }, FINAL_FORMATS.map(file),
      saving("api/final?format=csv&bom=true", "final.csv", problem, { "aria-label": "Final file as CSV with a byte order mark" },
        "CSV with byte order mark")),
    h("h4", {}, "Statement"),
    h("p", {}, "A page to print, for people who did not take part: what is guaranteed, how it was checked, what is not covered."),
    h("div", { class: "row" },
      h("a", { class: "button primary", href: "api/final/statement", target: "_blank", rel: "noopener" }, "See the statement"),
      saving("api/final/statement", "statement.html", problem, {}, "Save the statement")));
}

/** Data of the chart of the expected number of labels, or null before there are two plans. */
export function totalsData({ goal }) {
  const points = goal.history;
  if (points.length < 2) return null;
  const [n, total] = points.at(-1);
  const ended = `At ${many(n, "label")} of people the goal was reached.`;
  const checked = goal.check_open || typeof goal.reached?.check === "number";
  return {
    note: checked ? "The straight line at the end is the check: the expected number is not recorded during a check." : null,
    points: points.map(([at, expected]) => [at, expected, null, null, null]),
    zero: true,
    y: `labels of people at the end, of ${many(goal.rows, "row")}`,
    format: count,
    forecast: null,
    then: null,
    sentence: goal.reached ? ended : `After ${many(n, "label")} about ${roughly(total)} labels of people are expected at the end, of ${many(goal.rows, "row")}.`,
    columns: ["Expected at the end", "", "", ""],
    read: ([at, expected]) => (goal.reached && at === n ? ended : `At ${many(at, "label")}: about ${roughly(expected)} labels of people at the end (extrapolated)`),
  };
}
