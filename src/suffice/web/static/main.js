// Opens the project, and puts header, views and routes together.

import { inProjects, whenSignedOut } from "./api.js";
import { makeExportView } from "./export.js";
import { openJump } from "./jump.js";
import { count, many } from "./dom.js";
import { changeScheme } from "./kept.js";
import { makeLabelView } from "./label.js";
import { watchOutbox } from "./outbox.js";
import { askPerson, can, person, showPerson } from "./person.js";
import { makeProgressView } from "./progress.js";
import { makeSettingsView } from "./settings.js";
import { showAccount, signIn } from "./signin.js";
import { makeReviewView } from "./review.js";
import { keysTo, onKeyEverywhere, showShortcuts } from "./shortcuts.js";
import { openProject, refresh, store, watch } from "./store.js";
import { makeTableView } from "./table.js";
import { hush } from "./toast.js";
import { isStop } from "./verdict.js";

const MAKERS = {
  label: makeLabelView, progress: makeProgressView, labels: makeTableView, review: makeReviewView,
  export: makeExportView, settings: makeSettingsView,
};
const TITLES = {
  label: "Label", progress: "Progress", labels: "Labels", review: "Review", export: "Export", settings: "Settings",
};
// The role that a view needs, where there are accounts.
const ROLES = { review: "review", export: "manage", settings: "manage" };
// Where predictions made elsewhere are checked, there is no model that could suspect labels.
const allowed = (name) => can(ROLES[name] ?? "label") && !(name === "review" && store.project.checked);
const views = {};
const at = (id) => document.getElementById(id);

function route() {
  const [asked, rest] = location.hash.replace(/^#/, "").split("/");
  // The link to the content is no view.
  if (asked === "main") return;
  const name = Object.hasOwn(views, asked) ? asked : "label";
  for (const view of Object.keys(MAKERS)) at(`view-${view}`).hidden = view !== name;
  for (const link of document.querySelectorAll(".tabs a")) {
    if (link.dataset.view === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.body.dataset.view = name;
  keysTo(name);
  hush();
  title(name);
  scrollTo(0, 0);
  views[name].show(rest);
}

function title(name = document.body.dataset.view) {
  const answer = isStop(store.status) ? `${store.status.decision.headline} · ` : "";
  document.title = `${answer}${TITLES[name]} · ${store.project.name}`;
}

function header() {
  const { status } = store;
  at("project-name").textContent = store.project.name;
  if (status) {
    at("counter").textContent = `${count(status.n_labelled)} of ${count(status.size)} labelled`;
    title();
  }
  saving();
}

let unsaved = { waiting: [], trouble: "" };
let slow = 0;

function saving(late = false) {
  const { waiting, trouble } = unsaved;
  const line = at("saving");
  let text = store.trouble ? `${store.trouble} Trying again.` : "";
  if (waiting.length && trouble) text = `Not yet saved: ${many(waiting.length, "answer")}. Retrying. ${trouble}`;
  else if (waiting.length && late) text = "Saving…";
  if (line.textContent !== text) line.textContent = text;
  line.hidden = !text;
}

watchOutbox((now) => {
  unsaved = now;
  clearTimeout(slow);
  // Most answers are through before the eye sees a change.
  if (now.trouble || !now.waiting.length) saving();
  else slow = setTimeout(() => saving(true), 600);
});

async function changePerson() {
  const before = person();
  const chosen = await askPerson();
  if (chosen && chosen !== before) views.label.anew();
}

async function open() {
  for (let wait = 1000; ; wait = Math.min(wait * 2, 15000)) {
    try {
      return await openProject();
    } catch (error) {
      if (error.signIn) {
        await signIn();
        continue;
      }
      const next = error.passing ? "Trying again." : "Reload this page when the problem is solved.";
      at("starting").textContent = `${error.message} ${next}`;
      if (!error.passing) return null;
      await new Promise((resume) => {
        setTimeout(resume, wait);
      });
    }
  }
}

async function start() {
  at("theme").addEventListener("click", changeScheme);
  at("help").addEventListener("click", showShortcuts);
  const project = await open();
  if (project === null) return;
  at("project-name").textContent = project.name;
  at("starting").remove();
  for (const link of document.querySelectorAll(".tabs a")) link.hidden = !allowed(link.dataset.view);
  for (const [name, make] of Object.entries(MAKERS)) if (allowed(name)) views[name] = make(at(`view-${name}`), project);
  onKeyEverywhere("e", () => { location.hash = "#labels"; });
  onKeyEverywhere("g", () => openJump(project));
  if (project.account) showAccount(project.account);
  if (!project.account?.name) at("person").addEventListener("click", changePerson);
  showPerson();
  // In a folder of projects; people with an account of this project may not see the others.
  at("all-projects").hidden = !inProjects() || Boolean(project.account?.name);
  // Removed, or given a new password, while this page is open.
  whenSignedOut(() => signIn({ reload: true }));
  watch(header);
  window.addEventListener("hashchange", route);
  route();
  refresh();
  if (!person()) await changePerson();
}

start();
