// The view for a second look: labels that are likely wrong, disagreements, and skipped items, one at a time.

import { makeAnswer } from "./answer.js";
import { get } from "./api.js";
import { checking } from "./check.js";
import { ago, button, count, h, labelText, many, put, quiet, unbroken } from "./dom.js";
import { showItem } from "./item.js";
import { submit } from "./outbox.js";
import { person } from "./person.js";
import { onKeys } from "./shortcuts.js";
import { refreshSoon, store, watch } from "./store.js";
import { hush, toast } from "./toast.js";

const MOST = 200;
// Thousands of labels are ranked in several seconds.
const PATIENCE = 120000;
const KINDS = {
  unlikely: { name: "Unlikely", none: "No label is left that is worth a second look." },
  unresolved: { name: "Disagreements", none: "Nobody disagrees, or all disagreements are resolved." },
  skipped: { name: "Skipped", none: "No item was skipped, and nobody is unsure of one." },
};

/** What the review found, and why it looked at fewer labels than there are. */
function result({ sentence, n_labelled: reviewed }) {
  const { status } = store;
  const checked = status && reviewed > 0 && status.n_labelled > reviewed && (status.held > 0 || checking(status));
  return unbroken(checked ? `${sentence} (Answers of a check are not reviewed.)` : sentence);
}

/** Make the view. */
export function makeReviewView(root, project) {
  let kind = "unlikely";
  let rows = [];
  let at = 0;
  let newest = 0;
  let undoable = false;

  let answer = makeAnswer(project, give);
  const present = () => JSON.stringify([project.classes, project.descriptions, project.unit, project.lowest, project.highest]);
  let classes = present();
  const confirmButton = button(confirm, { "aria-keyshortcuts": "c" }, "The label is right ", h("kbd", {}, "c"));
  const nextButton = button(() => turn(1), { "aria-keyshortcuts": "n" }, "Later ", h("kbd", {}, "n"));
  const undoButton = button(undo, { "aria-keyshortcuts": "u", hidden: true }, "Undo ", h("kbd", {}, "u"));
  const segments = h("div", { class: "segments", role: "group", "aria-label": "What to review" },
    Object.entries(KINDS).map(([value, { name }]) =>
      button(() => location.replace(value === "unlikely" ? "#review" : `#review/${value}`), { "data-kind": value }, name)));
  const found = h("p", { class: "muted", role: "status" });
  const note = quiet();
  const problem = h("p", { class: "problem", role: "alert" });
  const article = h("article", { class: "card item", tabindex: -1, "aria-label": "Item", "aria-live": "polite" });
  const said = h("section", { class: "card said-of", "aria-label": "What was said" });
  const answers = h("div", { class: "answers" }, answer.element, problem,
    h("div", { class: "row small" }, confirmButton, nextButton, undoButton));
  const empty = h("p", { class: "card empty" });
  const desk = h("div", { class: "desk" }, h("div", { class: "work" }, said, article, answers),
    h("aside", { class: "side" }, h("section", { class: "card" }, note)));
  put(root, h("h2", { class: "visually-hidden" }, "Review"), h("div", { class: "review-head" }, segments, found), empty, desk);

  // After a change of the classes there are other answers, and the rows have other labels.
  watch(() => {
    if (classes === present()) return;
    classes = present();
    const old = answer.element;
    answer = makeAnswer(project, give);
    old.replaceWith(answer.element);
    if (!root.hidden) load(kind);
  });

  async function load(wanted) {
    const mine = (newest += 1);
    kind = wanted;
    rows = [];
    at = 0;
    problem.textContent = "";
    for (const each of segments.children) each.setAttribute("aria-pressed", String(each.dataset.kind === kind));
    found.textContent = kind === "unlikely" ? "Looking at the labels…" : "";
    empty.hidden = desk.hidden = true;
    try {
      const page = kind === "unlikely" ? await get(`api/review?most=${MOST}`, PATIENCE)
        : await get(`api/labels?${new URLSearchParams({ only: kind, limit: MOST })}`);
      if (mine !== newest) return;
      rows = kind === "unlikely" ? page.labels : page.rows;
      found.textContent = kind === "unlikely" ? result(page) : many(page.total, "item");
      note.textContent = kind === "unlikely" ? page.note : "";
      note.parentElement.hidden = !note.textContent;
      draw();
      // The sentence says already that there is none.
      if (kind === "unlikely") empty.hidden = true;
    } catch (error) {
      if (mine === newest) found.textContent = error.message;
    }
  }

  /** Say how many labels are left, and how many of them are expected to be wrong. */
  function tell() {
    if (kind !== "unlikely") {
      found.textContent = rows.length ? `${many(rows.length, "item")} left` : "";
      return;
    }
    const expected = Number(rows.reduce((sum, row) => sum + row.wrong, 0).toFixed(1));
    found.textContent = rows.length ? `${many(rows.length, "label")} left, of which about ${expected} are expected to be wrong.` : "";
  }

  async function draw() {
    const row = rows[at] ?? null;
    desk.hidden = row === null;
    empty.hidden = row !== null;
    empty.textContent = KINDS[kind].none;
    article.dataset.item = row === null ? "" : row.item;
    undoButton.hidden = !undoable;
    if (row === null) return;
    answer.clear();
    confirmButton.hidden = kind === "skipped";
    put(said, ...words(row), quiet(`${count(at + 1)} of ${count(rows.length)}`));
    put(article, h("p", { class: "item-id" }, row.id), quiet(row.summary));
    try {
      const item = await get(`api/items/${row.item}`);
      if (rows[at] === row) put(article, h("p", { class: "item-id" }, row.id), ...showItem(item, project));
    } catch (error) {
      problem.textContent = error.message;
    }
  }

  function words(row) {
    if (kind === "unlikely") {
      return [h("p", {}, unbroken(row.sentence)), quiet(`By ${row.person}, ${ago(row.at)}.`)];
    }
    if (kind === "skipped") {
      const how = row.unsure ? `${row.person} is unsure` : `Skipped by ${row.person}`;
      return [h("p", { dir: "auto" }, `${how}, ${ago(row.at)}.${row.reason ? ` Reason: ${row.reason}` : ""}`)];
    }
    // Those who gave the same label stand together, the most frequent label first.
    const names = new Map();
    for (const each of row.opinions) names.set(each.label, [...(names.get(each.label) ?? []), each.person]);
    const sides = [...names].sort((one, other) => other[1].length - one[1].length).map(([label, people]) =>
      h("div", { class: label === row.label ? "counts" : null }, h("dt", { dir: "auto" }, people.join(", ")),
        h("dd", { dir: "auto" }, labelText(label), people.length > 1 && h("span", { class: "muted" }, ` ${count(people.length)} of ${count(row.opinions.length)}`))));
    const most = row.majority !== null && row.majority !== row.label && ` Most people say ${labelText(row.majority)}.`;
    return [h("dl", { class: "sides" }, sides), quiet(`${labelText(row.label)} counts.`, most, " Your answer resolves it.")];
  }

  function turn(by) {
    if (!rows.length) return;
    at = (at + by + rows.length) % rows.length;
    hush();
    draw();
  }

  function send(path, body, text, act) {
    const row = rows[at];
    if (!row) return;
    rows.splice(at, 1);
    if (at >= rows.length) at = 0;
    problem.textContent = "";
    tell();
    draw();
    submit(path, { person: person(), item: row.item, ...body }).then(() => {
      undoable = act;
      undoButton.hidden = !undoable;
      toast(text);
      refreshSoon();
    }, (error) => {
      rows.splice(at, 0, row);
      tell();
      draw();
      problem.textContent = `Not recorded (${row.id}): ${error.message}`;
    });
  }

  function give(label, more = {}) {
    const row = rows[at];
    if (!row) return;
    if (kind === "unlikely" && label === row.label) confirm();
    else if (kind === "skipped") send("api/labels", { label, ...more }, `Recorded: ${labelText(label)}.`, true);
    else {
      // Who reviews an unlikely label has seen what the model says.
      const seen = kind === "unlikely" ? { saw_prediction: true } : {};
      send("api/corrections", { label, ...more, ...seen }, `Corrected to ${labelText(label)}.`, true);
    }
  }

  function confirm() {
    const row = rows[at];
    if (!row || kind === "skipped") return;
    if (kind === "unlikely") send("api/confirmations", {}, `Confirmed: ${labelText(row.label)}.`, false);
    else send("api/corrections", { label: row.label }, `Resolved: ${labelText(row.label)}.`, true);
  }

  function undo() {
    if (!undoable) return;
    undoable = false;
    submit("api/undo", { person: person() }).then(() => {
      toast("Taken back.");
      refreshSoon();
      load(kind);
    }, (error) => toast(error.message));
  }

  onKeys("review", (name) => {
    if (!rows.length && name !== "u") return false;
    if (name === "c") confirm();
    else if (name === "n") turn(1);
    else if (name === "p") turn(-1);
    else if (name === "u" || name === "undo") undo();
    else return answer.key(name);
    return true;
  });

  return { show: (wanted = "unlikely") => load(Object.hasOwn(KINDS, wanted) ? wanted : "unlikely") };
}
