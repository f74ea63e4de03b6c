// Checks: a random sample of the unlabelled items that guarantees how many predictions are wrong. The window in which one
// is started, and the line above the item while one is open.

import { get } from "./api.js";
import { button, h, many, put, quiet, unbroken } from "./dom.js";
import { openDialog } from "./dialog.js";
import { submit } from "./outbox.js";
import { can, person } from "./person.js";
import { readNumber } from "./answer.js";
import { refreshSoon, store } from "./store.js";
import { toast } from "./toast.js";

/** Whether a check is open. */
export const checking = (status) => status?.check?.state === "open";

/** The guarantee of the present model, or null. */
export const guaranteed = (status) => (status?.guarantee?.about_present_model ? status.guarantee : null);

/** A button that opens the window, unless a check is open or the model has not started. */
export function checkButton(status, properties = {}) {
  if (!can("manage") || checking(status) || !status.decision.error || !status.left) return null;
  const first = status.decision.screening ? "Check what was missed" : "Check the predictions";
  const again = guaranteed(status) ? "Check again" : first;
  return button(() => offerCheck(status), properties, again);
}

/** The guarantee in sentences: what is proven, of which model, and from which sample. */
export function guaranteeParts(status) {
  const { guarantee } = status;
  if (!guarantee) return null;
  const [first, ...rest] = guarantee.sentences;
  return h("div", { class: guarantee.about_present_model ? "guarantee" : "guarantee earlier" },
    h("p", {}, h("b", {}, unbroken(first))),
    rest.map((each) => h("p", {}, unbroken(each))),
    quiet(unbroken(guarantee.evidence)));
}

/** The line above the item while a check is open; update(status) fills it. */
export function makeCheckLine() {
  const element = h("div", { class: "check-slot" });
  let drawn = "";
  return {
    element,
    update(status) {
      const { check } = status;
      const told = checking(status) ? JSON.stringify([check.number, check.answered, check.size]) : "";
      if (told === drawn) return;
      drawn = told;
      put(element, told && h("section", { class: "check-line", "aria-label": "Check" },
        h("p", { role: "status" }, h("b", {}, `Check: ${check.answered} of ${check.size} answered`)),
        h("progress", { max: check.size, value: check.answered, "aria-label": "Answered items of the check" }),
        h("p", { class: "muted" }, "These items are drawn at random, without the model's prediction. Skip one only if it " +
          "cannot be answered: it then counts as predicted wrong. The model learns these answers afterwards."),
        can("manage") && button(confirmAbort, { class: "quiet small" }, "Stop the check")));
    },
  };
}

function confirmAbort() {
  const problem = h("p", { class: "problem", role: "alert" });
  const run = async () => {
    yes.disabled = true;
    try {
      await submit("api/checks/abort", { person: person() });
      dialog.close();
      toast("The check is stopped.");
      refreshSoon();
    } catch (error) {
      problem.textContent = error.message;
      yes.disabled = false;
    }
  };
  const yes = button(run, { class: "primary" }, "Stop it");
  const dialog = openDialog("Stop the check?", [
    h("div", { class: "stack" },
      h("ul", {},
        h("li", {}, "It then guarantees nothing: a part of a check is not a smaller check."),
        h("li", {}, "The labels given so far stay, and the model learns them."),
        h("li", {}, "A later check has to be a little larger to guarantee the same.")),
      problem,
      h("div", { class: "row end" }, button(() => dialog.close(), {}, "Continue the check"), yes)),
  ]);
}

/** Open the window that says what a check costs and can guarantee, and starts it. */
async function offerCheck(status) {
  const numbers = store.project.task === "regression";
  const screening = status.decision.screening ?? null;
  const problem = h("p", { class: "problem", role: "alert" });
  const list = h("div", { class: "stack", role: "radiogroup", "aria-label": "Size of the check" });
  const intro = h("p", {}, "");
  const state = { size: null, tolerance: null };
  const start = button(() => begin(), { class: "primary" }, "Start");
  start.disabled = true;

  const choose = (size) => {
    state.size = size;
    start.disabled = size === null;
    start.textContent = size === null ? "Start" : `Start: label ${many(size, "random item")}`;
  };
  const row = ({ size, cost, words }) => {
    const input = h("input", { type: "radio", name: "check-size", value: size, on: { change: () => choose(size) } });
    return h("label", { class: "offer" }, input, h("span", {}, h("b", {}, cost), h("br"), words));
  };
  const own = h("input", {
    type: "text", inputmode: "numeric", "aria-label": "Other number of items", placeholder: "other number",
    on: { input: () => other() },
  });
  const ownWords = h("span", { class: "muted" });
  const other = async () => {
    const size = Number(own.value.trim());
    choose(null);
    for (const each of list.querySelectorAll("input[type=radio]")) each.checked = false;
    ownWords.textContent = "";
    if (!own.value.trim()) return;
    if (!Number.isInteger(size) || size < 1 || size > status.left) {
      ownWords.textContent = `Write a whole number from 1 to ${status.left}.`;
      return;
    }
    choose(size);
    if (screening) return;
    try {
      const found = await get(`api/checks/offers?size=${size}${query()}`);
      if (Number(own.value.trim()) === size && found.offers.length) {
        ownWords.textContent = unbroken(found.rows.find((each) => each.size === size)?.words ?? "");
      }
    } catch (error) {
      ownWords.textContent = error.message;
    }
  };
  const query = () => (state.tolerance === null ? "" : `&tolerance=${state.tolerance}`);

  const loadRecall = async () => {
    try {
      const named = encodeURIComponent(screening.positive);
      const found = await get(`api/checks/recall-offers?recall_of=${named}&predicted_as_found=false`);
      intro.textContent = unbroken(found.sentences[0]);
      const none = "No check of fewer items than all is likely to guarantee enough. Screen more items first.";
      put(list, found.rows.map((each) => row({ ...each, words: unbroken(each.words) })), !found.rows.length && quiet(none),
        h("label", { class: "offer" }, h("span", {}, own, " ", ownWords)));
      const wanted = found.offers.findLast((each) => each.size !== null && each.at_least <= screening.recall);
      const chosen = wanted && [...list.querySelectorAll("input[type=radio]")].find((each) => Number(each.value) === wanted.size);
      if (chosen) chosen.checked = true;
      choose(chosen ? wanted.size : null);
    } catch (error) {
      problem.textContent = error.message;
    }
  };
  const load = async () => {
    problem.textContent = "";
    if (screening) {
      await loadRecall();
      return;
    }
    try {
      const found = await get(`api/checks/offers?${query().slice(1)}`);
      const [, estimate, ...rest] = found.sentences;
      intro.textContent = unbroken(estimate);
      put(list, found.rows.map((each) => row({ ...each, words: unbroken(each.words) })),
        h("label", { class: "offer" }, h("span", {}, own, " ", ownWords)),
        found.at_most !== null && !found.planned && quiet(unbroken(rest.at(-2))));
      const sizes = new Set(found.rows.map((each) => each.size));
      const first = found.planned ?? (sizes.has(100) ? 100 : found.offers.at(-1)?.size);
      const chosen = [...list.querySelectorAll("input[type=radio]")].find((each) => Number(each.value) === first);
      if (chosen) chosen.checked = true;
      choose(chosen ? first : null);
    } catch (error) {
      problem.textContent = error.message;
    }
  };
  const tolerance = numbers && h("input", { id: "check-tolerance", type: "text", inputmode: "decimal" });
  const setTolerance = (event) => {
    event.preventDefault();
    const read = readNumber(tolerance.value);
    if (read.problem || read.value < 0) {
      problem.textContent = read.problem ?? "Write a number that is not below 0.";
      return;
    }
    state.tolerance = read.value;
    load();
  };
  const begin = async () => {
    start.disabled = true;
    start.textContent = "Starting…";
    try {
      const asked = screening ? { recall_of: screening.positive, predicted_as_found: false }
        : state.tolerance === null ? {} : { tolerance: state.tolerance };
      await submit("api/checks", { person: person(), size: state.size, ...asked });
      dialog.close();
      location.hash = "#label";
      toast("The check is started: its items come next.");
      refreshSoon();
    } catch (error) {
      problem.textContent = error.message;
      choose(state.size);
    }
  };
  const measures = screening
    ? "A check measures how many relevant items were missed. You label items that are drawn at random from those that " +
      "nobody has screened, and from your answers follows which share of the relevant items is found at least."
    : "A check measures the predictions; it does not make them better. You label items that are drawn at " +
      "random, and from your answers follows how many predictions are wrong at most.";
  const dialog = openDialog(screening ? "Check what was missed" : "Check the predictions", [
    h("div", { class: "stack" },
      numbers && h("form", { class: "row", on: { submit: setTolerance } },
        h("label", { for: "check-tolerance" }, "A prediction is good enough if it is off by at most"), tolerance,
        h("button", { type: "submit" }, "Show what a check costs")),
      h("p", {}, measures),
      intro, list,
      h("details", {}, h("summary", {}, "What happens in a check"),
        h("ul", {},
          h("li", {}, "The model does not change now. Items are drawn at random, and you are asked for them before all " +
            "others, without its predictions."),
          h("li", {}, screening ? "An item that you skip counts as missed." : "An item that you skip counts as predicted wrong."),
          h("li", {}, "When all are answered, the guarantee is stated. The model learns your answers when you go on " +
            "labelling; the new model then has no guarantee until it is checked."),
          h("li", {}, `If it finds more ${screening ? "relevant items" : "wrong predictions"} than expected, it guarantees less than shown here. ` +
            "Your labels are never lost."),
          h("li", {}, "You can pause, and others can help. If you stop the check for good, it guarantees nothing. Each " +
            "check that is started makes the next ones a little larger."))),
      problem,
      h("div", { class: "row end" }, button(() => dialog.close(), {}, "Not now"), start)),
  ]);
  if (numbers) tolerance.focus();
  else await load();
}
