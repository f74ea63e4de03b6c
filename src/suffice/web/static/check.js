// Checks: a random sample of the unlabelled items that guarantees how many predictions are wrong. The window in which one
// is started, and the line above the item while one is open.

import { get } from "./api.js";
import { button, count, h, many, put, quiet, short, unbroken } from "./dom.js";
import { openDialog } from "./dialog.js";
import { submit } from "./outbox.js";
import { can, person } from "./person.js";
import { readNumber } from "./answer.js";
import { refreshSoon, store, watch } from "./store.js";
import { toast } from "./toast.js";

/** Whether a check is open. */
export const checking = (status) => status?.check?.state === "open";

/** The guarantee of the current model, or null. */
export const guaranteed = (status) => (status?.guarantee?.about_present_model ? status.guarantee : null);

/** A button that opens the window, unless a check is open or the model has not started. */
export function checkButton(status, properties = {}) {
  if (store.project.checked) return predictionCheckButton(status, properties);
  if (!can("manage") || checking(status) || !status.decision.error || !status.left) return null;
  const first = status.decision.screening ? "Check what was missed" : "Check the predictions";
  const again = guaranteed(status) ? "Check again" : first;
  return button(() => offerCheck(status), properties, again);
}

/** A button that starts a check of predictions made elsewhere, or opens the statement about them. */
function predictionCheckButton(status, properties) {
  if (checking(status)) return null;
  if (status.result?.complete) {
    return h("a", { class: "button", href: "api/checks/statement", target: "_blank", rel: "noopener" }, "See the statement");
  }
  if (!can("manage") || !status.left) return null;
  return button(() => offerPredictionCheck(), properties, "Start a check");
}

/** Open the window that asks for the target, and starts a check of predictions made elsewhere. */
function offerPredictionCheck() {
  const problem = h("p", { class: "problem", role: "alert" });
  const target = h("input", { id: "prediction-target", type: "text", inputmode: "decimal", value: "5", autocomplete: "off" });
  const expected = h("input", { id: "prediction-expected", type: "text", inputmode: "decimal", autocomplete: "off" });
  const begin = async (event) => {
    event.preventDefault();
    const read = readShare(target.value);
    const guess = expected.value.trim() ? readShare(expected.value, { orNone: true }) : {};
    problem.textContent = read.problem ?? guess.problem ?? "";
    if (problem.textContent) return;
    start.disabled = true;
    try {
      await submit("api/checks", { person: person(), at_most: read.value, expected: guess.value ?? null });
      dialog.close();
      refreshSoon();
    } catch (error) {
      problem.textContent = error.message;
      start.disabled = false;
    }
  };
  const start = h("button", { type: "submit", class: "primary" }, "Start");
  const form = h("form", { class: "stack", novalidate: true, on: { submit: begin } },
    h("label", { for: "prediction-target" }, "How many of the predictions may be wrong at most, in %?"), target,
    h("label", { for: "prediction-expected" }, "How many are probably wrong, in %? (optional)"), expected,
    quiet("The check is planned for this share, or for half of the target if the box is empty. A wrong guess costs answers, " +
      "and does not change what is proven."),
    quiet("Rows are drawn at random and you answer them. The check ends by itself when the target is proven."), problem,
    h("div", { class: "row end" }, button(() => dialog.close(), {}, "Cancel"), start));
  const dialog = openDialog("Start a check", [form]);
  target.focus();
  target.select();
}

/** A line in the window of a check that says, from begin to end, why the check has not started yet. */
export function makeStartLine() {
  const element = h("p", { class: "muted", role: "status" });
  let unwatch = () => {};
  const tell = ({ status }) => {
    const text = status?.behind > 0 ? `The model learns the labels first, ${count(status.behind)} to go.`
      : "The model predicts all items before the sample is drawn.";
    if (element.textContent !== text) element.textContent = text;
  };
  return {
    element,
    begin() {
      tell(store);
      unwatch = watch(tell);
    },
    end() {
      unwatch();
      element.textContent = "";
    },
  };
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

/** The check that ends when its target is proven, if it is the newest one; otherwise null. */
export const sequential = (status) => (status?.check?.sequential ? status.check : null);

/** What the newest check came to, where it ended without a guarantee and the model is still the checked one. */
export function endedWithout(status) {
  const { check, held } = status;
  return check?.state === "complete" && held > 0 && check.sentence ? h("p", {}, h("b", {}, unbroken(check.sentence))) : null;
}

/** The line above the item while a check is open; update(status) fills it. */
export function makeCheckLine() {
  const element = h("div", { class: "check-slot" });
  let drawn = "";
  return {
    element,
    update(status) {
      const { check } = status;
      const told = checking(status) ? JSON.stringify([check.number, check.answered, check.size, check.sentence]) : "";
      if (told === drawn) return;
      drawn = told;
      // On a small screen the item is worth more room than how to answer it.
      const open = element.querySelector("details")?.open ?? !matchMedia("(max-width: 760px)").matches;
      put(element, told && h("section", { class: "check-line", "aria-label": "Check" },
        check.sequential ? untilProven(check, open) : ofSize(check)));
    },
  };
}

function ofSize(check) {
  return [h("p", { role: "status" }, h("b", {}, `Check: ${check.answered} of ${check.size} answered`)),
    h("progress", { max: check.size, value: check.answered, "aria-label": "Answered items of the check" }),
    h("p", { class: "muted" }, unbroken(store.project.checked ? check.how_to_answer
      : `${check.how_to_answer} The model learns these answers afterwards.`)),
    can("manage") && button(() => confirmAbort(check), { class: "quiet small" }, "Stop the check")];
}

function untilProven(check, open) {
  const pause = "To pause, just leave: the check continues when you come back.";
  const about = [`Target: ${check.target_words}.`, check.plan_words, pause].filter(Boolean).join(" ");
  return [h("p", { role: "status" }, h("b", {}, unbroken(check.sentence))),
    can("manage") && button(() => confirmAbort(check), { class: "quiet small" }, "Give the check up"),
    h("p", { class: "muted" }, about),
    h("details", { open }, h("summary", {}, "How to answer"), h("p", { class: "muted" }, unbroken(check.how_to_answer)))];
}

function confirmAbort(check) {
  const open = check.sequential;
  const problem = h("p", { class: "problem", role: "alert" });
  const run = async () => {
    yes.disabled = true;
    try {
      await submit("api/checks/abort", { person: person() });
      dialog.close();
      toast(open ? "The check is given up." : "The check is stopped.");
      refreshSoon();
    } catch (error) {
      problem.textContent = error.message;
      yes.disabled = false;
    }
  };
  const yes = button(run, { class: "primary" }, open ? "Give it up" : "Stop it");
  const costs = open
    ? ["It then proves nothing, and its part of the error probability is spent: a later check needs more answers for the " +
        "same target.",
      "The labels are kept, and the model learns them.",
      "To pause, you do not need to give it up: leave the page, and continue another day."]
    : ["It then guarantees nothing: a part of a check is not a smaller check.",
      "The labels given so far stay, and the model learns them.",
      "A later check has to be a little larger to guarantee the same."];
  const dialog = openDialog(open ? "Give the check up?" : "Stop the check?", [
    h("div", { class: "stack" },
      h("ul", {}, costs.map((each) => h("li", {}, each))),
      problem,
      h("div", { class: "row end" }, button(() => dialog.close(), {}, "Continue the check"), yes)),
  ]);
}

/** A share in percent as it was typed, or a sentence that says why it is none. */
function readShare(typed, { orNone = false } = {}) {
  const text = typed.trim().replace(/\s*%$/, "");
  if (!text) return { problem: "Enter a share in %, such as 5." };
  const read = readNumber(text);
  if (read.problem) return { problem: /,/.test(text) ? read.problem : `“${text.slice(0, 40)}” is not a share. Enter a number such as 5.` };
  if (read.value < 0 || (read.value === 0 && !orNone) || read.value >= 100) {
    return { problem: `Enter a share ${orNone ? "of at least" : "above"} 0 % and below 100 %, such as 5.` };
  }
  return { value: Number((read.value / 100).toPrecision(12)) };
}

const percentText = (share) => String(Number((share * 100).toPrecision(6)));
const shareText = (share) => `${percentText(share)}\u00a0%`;

/** Open the window that says what a check costs and can guarantee, and starts it. */
async function offerCheck(status) {
  const numbers = store.project.task === "regression";
  const screening = status.decision.screening ?? null;
  const problem = h("p", { class: "problem", role: "alert" });
  const list = h("div", { class: "stack", role: "radiogroup", "aria-label": "Size of the check" });
  const intro = h("p", {}, "");
  const line = makeStartLine();
  // Either a size or a target is chosen.
  const state = { size: null, target: null, tolerance: null };
  const start = button(() => begin(), { class: "primary" }, "Start");
  start.disabled = true;

  const name = () => {
    start.disabled = state.size === null && state.target === null;
    if (state.target !== null) start.textContent = `Start: prove at most ${shareText(state.target)}`;
    else start.textContent = state.size === null ? "Start" : `Start: label ${many(state.size, "random item")}`;
  };
  const choose = (size) => {
    state.size = size;
    if (size !== null) {
      state.target = null;
      kinds.size.checked = true;
      showKind();
    }
    name();
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
      ownWords.textContent = `Enter a whole number from 1 to ${status.left}.`;
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

  // The check until a target is proven.
  const kind = (value, run) => h("input", { type: "radio", name: "check-kind", id: `check-kind-${value}`, value, on: { change: run } });
  const kinds = { target: kind("target", () => aim()), size: kind("size", () => bySize()) };
  const share = h("input", {
    type: "text", inputmode: "decimal", autocomplete: "off", id: "check-target", "aria-label": "Largest share that may be wrong, in %",
    "aria-describedby": "check-target-words check-target-problem",
  });
  const shareWords = h("div", { id: "check-target-words", class: "muted" });
  const shareProblem = h("p", { id: "check-target-problem", class: "problem", role: "alert" });
  const wrongWords = h("span", {}, "wrong");
  let waiting = 0;
  const showKind = () => {
    list.hidden = !kinds.size.checked && !screening;
    intro.hidden = list.hidden;
  };
  const say = (text) => {
    shareProblem.textContent = text;
    if (text) share.setAttribute("aria-invalid", "true");
    else share.removeAttribute("aria-invalid");
  };
  const bySize = () => {
    clearTimeout(waiting);
    say("");
    state.target = null;
    const chosen = list.querySelector("input[type=radio]:checked");
    choose(chosen ? Number(chosen.value) : null);
    showKind();
    if (!chosen && own.value.trim()) other();
  };
  const aim = ({ quietly = false } = {}) => {
    kinds.target.checked = true;
    showKind();
    const read = readShare(share.value);
    state.size = null;
    state.target = read.problem ? null : read.value;
    name();
    put(shareWords);
    // An empty box is no mistake before something was written.
    say(read.problem && !(quietly && !share.value.trim()) ? read.problem : "");
    clearTimeout(waiting);
    if (!read.problem) waiting = setTimeout(cost, 150);
  };
  const cost = async () => {
    const { target } = state;
    if (target === null) return;
    try {
      const found = await get(`api/checks/sequential-offer?at_most=${target}${query()}`);
      if (state.target === target) put(shareWords, found.sentences.map((each) => h("p", {}, unbroken(each))));
    } catch (error) {
      if (state.target === target) say(error.message);
    }
  };
  share.addEventListener("input", () => aim({ quietly: true }));
  share.addEventListener("focus", () => !kinds.target.checked && aim({ quietly: true }));
  // The sign stands beside the box.
  share.addEventListener("change", () => {
    share.value = share.value.trim().replace(/\s*%$/, "");
  });
  share.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !start.disabled) begin();
    else if (event.key === "Enter") aim();
  });
  const choices = h("div", { class: "stack", role: "radiogroup", "aria-label": "Kind of check", hidden: numbers },
    h("div", { class: "offer" }, kinds.target, h("div", {},
      h("p", {}, h("label", { for: "check-kind-target" }, "Check until at most "), share, " % ", wrongWords, " is proven"),
      shareProblem, shareWords)),
    h("div", { class: "offer" }, kinds.size, h("div", {},
      h("p", {}, h("label", { for: "check-kind-size" }, "What can you guarantee with a number of labels?")),
      intro, list)));

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
      const [, estimate] = found.sentences;
      intro.textContent = unbroken(estimate);
      put(list, found.rows.map((each) => row({ ...each, words: unbroken(each.words) })),
        h("label", { class: "offer" }, h("span", {}, own, " ", ownWords)));
      const sizes = new Set(found.rows.map((each) => each.size));
      const first = sizes.has(100) ? 100 : found.offers.at(-1)?.size;
      const chosen = [...list.querySelectorAll("input[type=radio]")].find((each) => Number(each.value) === first);
      if (chosen) chosen.checked = true;
      suggest(found);
      if (share.value.trim()) aim();
      else choose(chosen ? first : null);
      if (!share.value.trim() && !chosen) kinds.size.checked = true;
      showKind();
    } catch (error) {
      problem.textContent = error.message;
    }
  };
  /** The target of the project in the box; without one, a share that about 100 labels are likely to guarantee. */
  const suggest = (found) => {
    choices.hidden = false;
    if (state.tolerance !== null) wrongWords.textContent = `off by more than ${short(state.tolerance)}`;
    if (!share.value && found.at_most !== null) share.value = percentText(found.at_most);
    const likely = (found.offers.find((each) => each.size === 100) ?? found.offers.at(-1))?.at_most ?? 0.05;
    share.placeholder = `such as ${Math.min(50, Math.ceil(100 * likely))}`;
  };
  const tolerance = numbers && h("input", { id: "check-tolerance", type: "text", inputmode: "decimal" });
  const setTolerance = (event) => {
    event.preventDefault();
    const read = readNumber(tolerance.value);
    if (read.problem || read.value < 0) {
      problem.textContent = read.problem ?? "Enter a number of at least 0.";
      return;
    }
    state.tolerance = read.value;
    load();
  };
  const begin = async () => {
    start.disabled = true;
    start.textContent = "Starting…";
    line.begin();
    try {
      const asked = screening ? { recall_of: screening.positive, predicted_as_found: false }
        : state.tolerance === null ? {} : { tolerance: state.tolerance };
      const wanted = state.target === null ? { size: state.size } : { at_most: state.target };
      await submit("api/checks", { person: person(), ...wanted, ...asked });
      dialog.close();
      location.hash = "#label";
      toast("The check is started: its items come next.");
      refreshSoon();
    } catch (error) {
      problem.textContent = error.message;
      name();
    } finally {
      line.end();
    }
  };
  const measures = screening
    ? "A check measures how many relevant items were missed. You label items that are drawn at random from those that " +
      "nobody has screened, and from your answers follows which share of the relevant items is found at least."
    : "A check measures the predictions; it does not make them better. You label items that are drawn at " +
      "random, and from your answers follows how many predictions are wrong at most.";
  const wrong = screening ? "relevant items" : "wrong predictions";
  const dialog = openDialog(screening ? "Check what was missed" : "Check the predictions", [
    h("div", { class: "stack" },
      numbers && h("form", { class: "row", on: { submit: setTolerance } },
        h("label", { for: "check-tolerance" }, "A prediction is good enough if it is off by at most"), tolerance,
        h("button", { type: "submit" }, "Show what a check costs")),
      h("p", {}, measures),
      screening ? [intro, list] : choices,
      h("details", {}, h("summary", {}, "What happens in a check"),
        h("ul", {},
          h("li", {}, "The model does not change now. Items are drawn at random, and you are asked for them before all " +
            "others, without its predictions."),
          h("li", {}, screening ? "An item that you skip counts as missed." : "An item that you skip counts as predicted wrong."),
          !screening && h("li", {}, "A check for a target ends as soon as the target is proven. Each wrong prediction makes it " +
            "longer. If too many are wrong, give it up."),
          h("li", {}, `${screening ? "When" : "With a number of labels, when"} all are answered, the guarantee is stated. If it finds ` +
            `more ${wrong} than expected, it guarantees less than shown here.`),
          h("li", {}, "The model learns your answers when you go on labelling; the new model then has no guarantee until it is " +
            "checked. Your labels are never lost."),
          h("li", {}, "You can pause, and others can help. If you end the check before it is complete, it guarantees nothing. Each " +
            "check that is started makes the next ones a little larger."))),
      problem, line.element,
      h("div", { class: "row end" }, button(() => dialog.close(), {}, "Not now"), start)),
  ]);
  if (numbers) tolerance.focus();
  else await load();
}
