// The view in which items are labelled: one item, its answers, and the decision so far.

import { post } from "./api.js";
import { makeAnswer } from "./answer.js";
import { checking, makeCheckLine } from "./check.js";
import { makeCheckEnd } from "./checkend.js";
import { openDialog } from "./dialog.js";
import { button, h, labelText, put, quiet, swap, touched } from "./dom.js";
import { makeGuidelines } from "./guidelines.js";
import { imageAddress, showItem } from "./item.js";
import { pending, recover, submit } from "./outbox.js";
import { person } from "./person.js";
import { makePredictionCard } from "./prediction.js";
import { onKeys } from "./shortcuts.js";
import { kept, refreshSoon, store, tab, watch } from "./store.js";
import { hush, toast } from "./toast.js";
import { makeStatement, nextButton } from "./verdict.js";
import { noItem } from "./waiting.js";

// One on the screen and one ready: more would be chosen before the model has learned from those before them.
const AHEAD = 2;
// Nobody has read an item in less time: what comes sooner was meant for the one before.
const GLANCE = 200;
// More items the API does not give at once.
const MOST = 20;
// Pixels above an item that was scrolled to; see its scroll margin.
const TOP = 10;

/** Make the view. */
export function makeLabelView(root, project) {
  let queue = [];
  let left = null;
  let drawn = null;
  let shownAt = 0;
  let undoing = false;
  let refilling = false;
  let again = false;
  let first = Number(kept.get("current", tab) ?? -1);
  // Items answered whose answer is on its way; those of them that are through; and those not to be shown any more.
  const answered = new Set();
  const through = new Set();
  const aside = new Set();

  const newAnswer = () => makeAnswer(project, (label, more = {}) =>
    act("api/labels", { label, ...more }, `Recorded: ${labelText(label)}.`));
  let answer = newAnswer();
  const present = () => JSON.stringify([project.classes, project.descriptions, project.unit, project.lowest, project.highest]);
  let classes = present();
  const skipButton = button(skip, { "aria-keyshortcuts": "s" }, "Skip ", h("kbd", {}, "s"));
  const unsureButton = button(askReason, { "aria-keyshortcuts": "n" }, "Unsure ", h("kbd", {}, "n"));
  const undoButton = button(undo, { "aria-keyshortcuts": "u" }, "Undo ", h("kbd", {}, "u"));
  const problem = h("p", { class: "problem", role: "alert" });
  const article = h("article", { class: "card item", tabindex: -1, "aria-label": "Item", "aria-live": "polite" });
  const answers = h("div", { class: "answers" }, answer.element, problem,
    h("div", { class: "row small" }, skipButton, unsureButton, undoButton, h("p", { class: "said", role: "status" })));
  const why = h("p", {});
  const whyCard = h("section", { class: "card why" }, h("h2", {}, "Why this item?"), why);
  const guidelines = makeGuidelines(project);
  const prediction = makePredictionCard();
  const statement = makeStatement();
  const checkLine = makeCheckLine();
  const tellEnd = makeCheckEnd(reveal);
  // The check whose items are asked for.
  let checkNumber = 0;
  put(root, checkLine.element, h("div", { class: "banner-slot" }, statement.element), h("div", { class: "desk" },
    h("div", { class: "work" }, article, answers), h("aside", { class: "side" }, guidelines.element, whyCard, prediction.element)));

  function act(path, extra, said) {
    const item = queue[0];
    if (!item || undoing || tooQuick()) return;
    queue.shift();
    answered.add(item.item);
    hush();
    problem.textContent = "";
    const sent = submit(path, { person: item.person, item: item.item, ...extra });
    draw();
    sent.then(() => {
      through.add(item.item);
      toast(said, { name: touched() ? "Undo" : "Undo (u)", run: undo });
      refreshSoon();
      refill();
    }, (error) => refused(item, error, path));
  }

  function skip() {
    act("api/skips", {}, "Skipped.");
  }

  /** Ask why somebody is unsure, and record it; the reason can be left empty. */
  function askReason() {
    const item = queue[0];
    if (!item || undoing || tooQuick()) return;
    const reason = h("input", { id: "reason", type: "text", maxlength: 500, autocomplete: "off" });
    const record = (path, said) => {
      dialog.close();
      if (queue[0] === item) act(path, reason.value.trim() ? { reason: reason.value.trim() } : {}, said);
    };
    const accept = (event) => {
      event.preventDefault();
      record("api/unsure", "Recorded: unsure.");
    };
    const form = h("form", { novalidate: true, on: { submit: accept } },
      h("label", { for: "reason" }, "Why? (optional)"), reason,
      quiet("The item is listed under Labels, Unsure. Somebody can label it there."),
      h("div", { class: "row end" },
        button(() => record("api/skips", "Skipped."), {}, "Skip it"),
        h("button", { type: "submit", class: "primary" }, "Unsure ", h("kbd", {}, "Enter"))));
    const dialog = openDialog("Unsure of this item", [form]);
    reason.focus();
  }

  function refused(item, error, path) {
    answered.delete(item.item);
    // The state of the project does not allow it, now or later. Other errors may be corrected by the user.
    if (error.status === 409) aside.add(item.item);
    else queue.unshift(item);
    // A person who skips an item that somebody else has labelled has nothing more to do.
    if (error.status === 409 && path !== "api/labels") toast("Set aside: somebody else has labelled it.");
    else problem.textContent = `Not recorded (${item.id}): ${error.message}`;
    draw();
    refill();
  }

  function undo() {
    if (undoing) return;
    undoing = true;
    hush();
    draw();
    submit("api/undo", { person: person() }).then(async ({ item }) => {
      for (const set of [answered, through, aside]) set.delete(item);
      first = item;
      toast("Taken back.");
      refreshSoon();
      await refill();
    }, (error) => toast(error.message)).finally(() => {
      undoing = false;
      problem.textContent = "";
      draw();
    });
  }

  async function refill() {
    if (!person()) return;
    if (refilling) {
      again = true;
      return;
    }
    refilling = true;
    // An answer that came in while the list was made may still stand on that list, but on none that is made later.
    for (const item of through) answered.delete(item);
    through.clear();
    const asker = person();
    // Those that are not to be shown stand on the list too, and the one taken back comes in addition.
    const n = Math.min(MOST, AHEAD + (first >= 0 ? 1 : 0) + answered.size + aside.size);
    try {
      const found = await post("api/next", { person: asker, n });
      if (asker === person()) take(found, asker);
    } catch (error) {
      if (error.status >= 400 && error.status < 500 && error.status !== 401) problem.textContent = error.message;
    }
    refilling = false;
    draw();
    if (again) {
      again = false;
      await refill();
    }
  }

  function take(found, asker) {
    left = found.left;
    const open = found.items.filter(({ item }) => !answered.has(item) && !aside.has(item));
    const items = open.map((each) => ({ ...each, person: asker }));
    // A wrong answer makes a check longer: its next item comes before one that was chosen when the check seemed to end.
    const longer = queue[0] && !queue[0].check && items.some((each) => each.check);
    // What is on the screen stays there, unless it has gone to somebody else meanwhile.
    const wanted = items.find(({ item }) => item === first) ?? (longer ? null : items.find(({ item }) => item === queue[0]?.item));
    if (queue.length && !wanted && !longer && drawn === queue[0]) toast("That item is done, or was given to somebody else.");
    first = -1;
    queue = (wanted ? [wanted, ...items.filter((each) => each !== wanted)] : items).slice(0, AHEAD);
    // The next image is on its way before it is needed.
    for (const { image } of queue.slice(1)) if (image) new Image().src = imageAddress(image);
  }

  /** Whether an answer came sooner than anybody can read; if so, say that it was not taken. */
  function tooQuick() {
    if (performance.now() - shownAt >= GLANCE) return false;
    toast("Not recorded: the item had just changed. Answer again.");
    return true;
  }

  /** Take no answer for a moment: what comes sooner was meant for something else. */
  function glance(item) {
    shownAt = performance.now();
    article.dataset.ready = "false";
    const began = shownAt;
    setTimeout(() => { if (drawn === item && shownAt === began) article.dataset.ready = "true"; }, GLANCE + 20);
  }

  /** Whether the answers hide nothing of the item, or it is at the top of the window and larger than the room. */
  function inView() {
    const { top, bottom } = article.getBoundingClientRect();
    const end = answers.hidden ? innerHeight : answers.getBoundingClientRect().top;
    return top >= 0 && (bottom <= end || top <= TOP);
  }

  /** Scroll to the item, unless it is in view. */
  function reveal() {
    if (!inView()) article.scrollIntoView({ block: "start" });
  }

  function draw() {
    const item = queue[0] ?? null;
    // An item that has become part of a check is asked for in another way.
    const fresh = item === null || drawn?.item !== item.item || Boolean(drawn.check) !== Boolean(item.check);
    // While the next item is awaited, the box that somebody types in keeps the focus.
    const { reached, trouble } = store;
    const ended = left !== null && reached && !pending().length && !undoing && !refilling;
    answers.hidden = item === null && ended;
    answers.classList.toggle("locked", undoing || item === null);
    whyCard.hidden = item === null;
    const awaited = { reached, trouble, pending: pending().length, left: ended ? left : null };
    if (item === null) swap(article, noItem({ ...awaited, next: project.checked && store.status ? nextButton(store.status, { class: "primary" }) : null }));
    if (!fresh) return;
    drawn = item;
    prediction.update(item);
    article.dataset.item = item === null ? "" : item.item;
    article.dataset.ready = "false";
    if (item === null) return;
    kept.set("current", String(item.item), tab);
    glance(item);
    // What was typed was meant for the item before.
    answer.clear();
    put(article, h("p", { class: "item-id" }, item.id, item.check && h("span", { class: "chip" }, "check item, drawn at random")),
      ...showItem(item, project));
    why.textContent = `${item.why.charAt(0).toUpperCase()}${item.why.slice(1)}.`;
    reveal();
    // An image has its size only when it has come.
    article.querySelector("img")?.addEventListener("load", () => { if (drawn === item) reveal(); });
    if (!root.hidden) answer.focus();
  }

  onKeys("label", (name) => {
    if (name === "s") skip();
    else if (name === "n") askReason();
    else if (name === "z" && article.querySelector(".zoom")) article.querySelector(".zoom").click();
    else if (name === "u" || name === "undo") undo();
    else return answer.key(name);
    return true;
  });

  watch(({ status }) => {
    guidelines.update();
    if (classes !== present()) {
      classes = present();
      const old = answer.element;
      answer = newAnswer();
      old.replaceWith(answer.element);
      // A key that was about to be pressed may have another meaning now.
      if (drawn) glance(drawn);
      if (drawn) toast(project.task === "regression" ? "The unit or the range was changed." : "The classes were changed.");
    }
    if (status) {
      const seen = inView();
      statement.update(status);
      checkLine.update(status);
      // The text above the item has become longer.
      if (seen && !inView()) reveal();
      tellEnd(status);
      // Items of a check that somebody has just started come before those that wait here.
      const open = checking(status) ? status.check.number : 0;
      if (open && open !== checkNumber) {
        queue = [];
        refill();
      }
      checkNumber = open;
    }
    const stale = queue[0] && queue[0].until * 1000 < Date.now() + 60000;
    if ((!queue.length || stale) && store.reached && !document.hidden) refill();
    else if (!queue.length) draw();
  });

  recover((entry, error) => {
    through.add(entry.body.item);
    toast(error ? `Not recorded: ${error.message}` : "Saved the pending answers.");
    refreshSoon();
    refill();
  });
  for (const { body } of pending()) if (body.item !== undefined) answered.add(body.item);

  return {
    show() {
      if (drawn) {
        reveal();
        answer.focus();
      } else refill();
    },
    anew() {
      queue = [];
      left = null;
      draw();
      refill();
    },
  };
}
