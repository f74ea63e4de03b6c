// The view from which labels, predictions and the report are taken away.

import { inProjects } from "./api.js";
import { button, h, many, put, quiet, unbroken } from "./dom.js";
import { saving } from "./files.js";
import { FINAL_FORMATS, finalFiles, finished, goalOf, goalParts } from "./goal.js";
import { store, watch } from "./store.js";
import { toast } from "./toast.js";

const FORMATS = [["csv", "CSV"], ["jsonl", "JSON lines"], ["parquet", "Parquet"]];

/** Make the view. */
export function makeExportView(root, project) {
  const problem = h("p", { class: "problem", role: "alert" });
  const summary = quiet();
  const guarantee = guaranteePart(problem);
  const final = finalPart(problem);
  const skippedRow = h("p", { hidden: true },
    saving("api/export/skipped", "skipped.csv", problem, { class: null }, "Skipped items and the reasons, CSV"));
  put(root, h("h2", { class: "visually-hidden" }, "Export"), problem, h("div", { class: "board three" },
    final.element,
    project.checked?.answer !== "verdict" && allRows(project, problem),
    part("Labels", [h("p", {}, "What was labelled, by whom and when."), summary, skippedRow], "labels", problem),
    part("Predictions", [h("p", {}, project.checked ? "The rows without a label, with their predictions."
      : "What the model says of the items without a label, and how sure it is.")], "predictions", problem),
    guarantee.element, report(problem), script(project)));
  watch(({ status }) => {
    if (!status) return;
    final.update(status);
    guarantee.update(status);
    skippedRow.hidden = !status.n_skipped;
    const skipped = status.n_skipped ? `, ${many(status.n_skipped, "item")} skipped` : "";
    summary.textContent = `${many(status.n_labelled, "label")} so far${skipped}.`;
  });
  return { show: () => (problem.textContent = "") };
}

function part(title, words, what, problem) {
  return h("section", { class: "card" }, h("h3", {}, title), words,
    h("div", { class: "row" }, FORMATS.map(([format, name]) => {
      const path = `api/export/${what}?format=${format}`;
      return saving(path, `${what}.${format}`, problem, { "aria-label": `${title} as ${name}` }, name);
    })));
}

/** One file with every row, which needs no goal. */
function allRows(project, problem) {
  const others = project.checked ? "the predictions that are checked" : "what the model says";
  const sure = project.checked ? "The result of the check is about all of these predictions."
    : "Nothing is guaranteed of it; the report says how many predictions are expected to be wrong.";
  return h("section", { class: "card" }, h("h3", {}, "All rows in one file"),
    h("p", {}, `Every row in its order: the labels of people, and for the others ${others}. The column “source” tells which ` +
      `is which. ${sure}`),
    h("div", { class: "row" }, FINAL_FORMATS.map(([format, name]) =>
      saving(`api/export/rows?format=${format}`, `all-rows.${format}`, problem, { "aria-label": `All rows as ${name}` }, name))));
}

/** The finished data set, where the project has a goal for all labels. */
function finalPart(problem) {
  const words = h("div", {});
  const files = finalFiles(problem);
  const element = h("section", { class: "card wide", hidden: true }, h("h3", {}, "Finished data set"), words, files);
  let drawn = "";
  return {
    element,
    update(status) {
      const goal = goalOf(status);
      element.hidden = !goal;
      if (!goal || JSON.stringify(goal) === drawn) return;
      drawn = JSON.stringify(goal);
      files.hidden = !finished(status);
      put(words, goalParts(status), !finished(status) && quiet("The final file is ready when the goal is reached."));
    },
  };
}

/** The guarantee as a file, where there is one; and the predictions that it is about, if these are of an earlier model. */
function guaranteePart(problem) {
  const words = h("p", {});
  const earlier = h("div", { class: "row" }, FORMATS.map(([format, name]) =>
    saving(`api/export/checked-predictions?format=${format}`, `checked_predictions.${format}`, problem,
      { "aria-label": `Checked predictions as ${name}` }, `Its predictions, ${name}`)));
  const element = h("section", { class: "card", hidden: true }, h("h3", {}, "Guarantee"), words,
    h("div", { class: "row" }, saving("api/export/guarantee", "guarantee.json", problem, {}, "JSON")), earlier);
  return {
    element,
    update(status) {
      const { guarantee } = status;
      // With a goal for all labels, the statement about these counts.
      element.hidden = !guarantee || Boolean(goalOf(status));
      if (element.hidden) return;
      words.textContent = unbroken(guarantee.sentences.join(" "));
      earlier.hidden = guarantee.about_present_model;
    },
  };
}

function report(problem) {
  return h("section", { class: "card" }, h("h3", {}, "Report"),
    h("p", {}, "One page to share: whether you can stop, how large the error is, what was labelled."),
    h("div", { class: "row" },
      h("a", { class: "button primary", href: "api/report", target: "_blank", rel: "noopener" }, "See the report"),
      saving("api/report", `${store.project.name} report.html`, problem, {}, "Save it")));
}

function script(project) {
  const base = new URL(".", location.href).href;
  const label = project.task === "regression" ? "3.5" : JSON.stringify(project.classes[0] ?? "yes");
  const sent = `{"person": "script", "item": 0, "label": ${label}, "request": "any name, used once"}`;
  const quoted = (body) => `'${body.replaceAll("'", "'\\''")}'`;
  const get = 'curl -H "Authorization: Bearer $TOKEN"';
  const post = `${get} -H "Content-Type: application/json" ${base}`;
  const lines = [
    `# the file "token" in the folder of the ${inProjects() ? "projects" : "project"}; with accounts, the token of a personal link`,
    "TOKEN=...",
    "# the next item",
    `${post}api/next -d ${quoted('{"person": "script", "n": 1}')}`,
    "# its label",
    `${post}api/labels -d ${quoted(sent)}`,
    "# where it stands, and all labels",
    `${get} ${base}api/status`,
    `${get} -o labels.csv "${base}api/export/labels?format=csv"`,
  ];
  const text = lines.join("\n");
  const copy = button(() => {
    navigator.clipboard.writeText(text).then(() => toast("Copied."), () => toast("The browser does not allow it."));
  }, { class: "small" }, "Copy");
  return h("section", { class: "card wide" }, h("h3", {}, "From a script"),
    h("p", {}, "This page uses only the API, so a script can do the same."),
    h("pre", { tabindex: 0, "aria-label": "Commands" }, h("code", {}, text)),
    h("div", { class: "row" }, navigator.clipboard && copy,
      h("a", { href: "api/openapi.json" }, "All of the API (OpenAPI)")),
    quiet("A server that was started without a token ignores the header Authorization."));
}
