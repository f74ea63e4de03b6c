// The view in which items are labelled: one item, its answers, and what the rule says so far.

import { post } from "./api.js";
import { makeAnswer } from "./answer.js";
import { h, labelText, many, put } from "./dom.js";
import { showItem } from "./item.js";
import { pending, recover, submit } from "./outbox.js";
import { person } from "./person.js";
import { onKeys } from "./shortcuts.js";
import { kept, refreshSoon, store, tab, watch } from "./store.js";
import { hush, toast } from "./toast.js";
import { makeBanner, makeVerdictCard } from "./verdict.js";

// One on the screen and one ready: more would be chosen before the model has learned from those before them.
const AHEAD = 2;
// Nobody has read an item in less time: what comes sooner was meant for the one before.
const GLANCE = 200;

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

  const answer = makeAnswer(project, (label) => act("api/labels", { label }, `Recorded: ${labelText(label)}.`));
  const skipButton = h("button", { type: "button", "aria-keyshortcuts": "s", on: { click: skip } }, "Skip ", h("kbd", {}, "s"));
  const undoButton = h("button", { type: "button", "aria-keyshortcuts": "u", on: { click: undo } }, "Undo ", h("kbd", {}, "u"));
  const problem = h("p", { class: "problem", role: "alert" });
  const article = h("article", { class: "card item", "aria-label": "Item", "aria-live": "polite" });
  const answers = h("div", { class: "answers" }, answer.element, problem, h("div", { class: "row small" }, skipButton, undoButton, h("p", { class: "said", role: "status" })));
  const why = h("p", {});
  const whyCard = h("section", { class: "card why", "aria-label": "Why this item?" }, h("h2", {}, "Why this item?"), why);
  const card = makeVerdictCard(project);
  const banner = makeBanner();
  put(root, banner.element, h("div", { class: "desk" },
    h("div", { class: "work" }, article, answers), h("aside", { class: "side" }, card.element, whyCard)));

  function act(path, extra, said) {
    const item = queue[0];
    if (!item || undoing || performance.now() - shownAt < GLANCE) return;
    queue.shift();
    answered.add(item.item);
    hush();
    problem.textContent = "";
    const sent = submit(path, { person: item.person, item: item.item, ...extra });
    draw();
    sent.then(() => {
      through.add(item.item);
      toast(said, { name: "Undo (u)", run: undo });
      refreshSoon();
      refill();
    }, (error) => refused(item, error));
  }

  function skip() {
    act("api/skips", {}, "Skipped.");
  }

  function refused(item, error) {
    answered.delete(item.item);
    // In the state that the project is in it cannot be done, now or later; anything else may be put right.
    if (error.status === 409) aside.add(item.item);
    else queue.unshift(item);
    problem.textContent = `Not recorded (${item.id}): ${error.message}`;
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
    try {
      const found = await post("api/next", { person: asker, n: Math.min(20, AHEAD + (first >= 0 ? 1 : 0) + answered.size + aside.size) });
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
    const items = found.items.filter(({ item }) => !answered.has(item) && !aside.has(item)).map((each) => ({ ...each, person: asker }));
    // What is on the screen stays there, unless it has gone to somebody else meanwhile.
    const wanted = items.find(({ item }) => item === first) ?? items.find(({ item }) => item === queue[0]?.item);
    if (queue.length && !wanted && drawn === queue[0]) toast("That item is done, or has gone to somebody else.");
    first = -1;
    queue = (wanted ? [wanted, ...items.filter((each) => each !== wanted)] : items).slice(0, AHEAD);
    // The next image is on its way before it is needed.
    for (const { image } of queue.slice(1)) if (image) new Image().src = image.replace(/^\//, "");
  }

  function draw() {
    const item = queue[0] ?? null;
    const fresh = item === null || drawn?.item !== item.item;
    answers.hidden = item === null && !undoing;
    answers.classList.toggle("locked", undoing);
    whyCard.hidden = item === null;
    if (item === null) put(article, ...empty());
    if (!fresh) return;
    drawn = item;
    article.dataset.item = item === null ? "" : item.item;
    article.dataset.ready = "false";
    if (item === null) return;
    kept.set("current", String(item.item), tab);
    shownAt = performance.now();
    setTimeout(() => { if (drawn === item) article.dataset.ready = "true"; }, GLANCE + 20);
    // What was typed was meant for the item before.
    answer.clear();
    put(article, h("p", { class: "item-id" }, item.id), ...showItem(item, project));
    why.textContent = `${item.why.charAt(0).toUpperCase()}${item.why.slice(1)}.`;
    if (article.getBoundingClientRect().top < 0) article.scrollIntoView({ block: "start" });
    if (!root.hidden) answer.focus();
  }

  function empty() {
    if (!store.reached || pending().length) {
      const kind = store.reached ? ["One moment", "The last answer is on its way."] : ["The server cannot be reached", "This page tries again by itself. Look whether suffice serve is still running."];
      const held = pending().length && !store.reached ? `${many(pending().length, "answer")} of yours ${pending().length === 1 ? "waits" : "wait"} in this tab and will be sent: keep it open.` : "";
      return [h("div", { class: "empty" }, h("h2", {}, kind[0]), h("p", {}, kind[1]), held && h("p", {}, held))];
    }
    if (store.trouble) return [h("div", { class: "empty" }, h("h2", {}, "The server does not let you in"), h("p", {}, store.trouble))];
    if (left === null || refilling) return [h("p", { class: "empty muted" }, "The next item is coming.")];
    if (left > 0) {
      return [h("div", { class: "empty" }, h("h2", {}, "Others are busy with the rest"),
        h("p", {}, `${left === 1 ? "The last item is" : `The last ${left} items are`} with other people. What they leave comes to you: this page looks again by itself.`))];
    }
    return [h("div", { class: "empty" }, h("h2", {}, "Nothing is left to label"), h("p", {}, "Every item has a label or was skipped."),
      h("p", { class: "row centre" }, h("a", { class: "button primary", href: "#export" }, "Export"), h("a", { class: "button", href: "#progress" }, "See the progress")))];
  }

  onKeys("label", (name) => {
    if (name === "s") skip();
    else if (name === "u" || name === "undo") undo();
    else return answer.key(name);
    return true;
  });

  watch(({ status }) => {
    if (status) {
      card.update(status);
      banner.update(status);
    }
    const stale = queue[0] && queue[0].until * 1000 < Date.now() + 60000;
    if ((!queue.length || stale) && store.reached && !document.hidden) refill();
    else if (!queue.length) draw();
  });

  recover((entry, error) => {
    through.add(entry.body.item);
    toast(error ? `Not recorded: ${error.message}` : "Saved what was still on its way.");
    refreshSoon();
    refill();
  });
  for (const { body } of pending()) if (body.item !== undefined) answered.add(body.item);

  return {
    show: () => (drawn ? answer.focus() : refill()),
    anew() {
      queue = [];
      left = null;
      draw();
      refill();
    },
  };
}
