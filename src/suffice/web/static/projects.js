// The projects of a folder: what to do next, the list, and the way to a new one.

import { getFolder } from "./api.js";
import { ago, button, count, h, many, moment, put, quiet } from "./dom.js";
import { changeScheme } from "./kept.js";
import { makePlanner } from "./planner.js";
import { makeUpload } from "./upload.js";

const EVERY = 15000;
const SOON = 2000;
const at = (id) => document.getElementById(id);

let folder = null;
let upload = null;
let timer = 0;
let drawn = "";

async function refresh() {
  clearTimeout(timer);
  try {
    folder = await getFolder();
    at("starting").hidden = true;
    draw();
  } catch (error) {
    at("starting").hidden = false;
    at("starting").textContent = `${error.message} ${error.passing ? "Trying again." : "Reload this page."}`;
    if (!error.passing) return;
  }
  const busy = folder?.projects.some((each) => each.state === "busy");
  if (!document.hidden) timer = setTimeout(refresh, busy ? SOON : EVERY);
}

function draw() {
  upload ??= makeUpload(at("new"), { folder: () => folder, close });
  // A list that is the same is not drawn again, so that it keeps the focus.
  const now = JSON.stringify([folder.projects, folder.refusal]);
  if (now === drawn) return;
  drawn = now;
  at("counter").textContent = `Folder ${folder.folder} · ${many(folder.projects.length, "project")}`;
  const open = !at("new").hidden;
  at("start").hidden = at("list").hidden = open;
  start();
  put(at("list"), folder.projects.length > 0 &&
    h("ul", { class: "lines" }, folder.projects.map((each) => h("li", {}, line(each)))));
}

// Replaced while nothing is sent only: the progress and the way to cancel stand here.
function start() {
  if (upload.busy()) return;
  const next = folder.projects.find((each) => isShown(each) && !each.done && each.n_labelled < each.size);
  const choose = button(() => file.click(), { class: next ? null : "primary" }, "New project from a file");
  const file = h("input", { type: "file", id: "file", hidden: true, accept: ACCEPTED });
  file.addEventListener("change", () => {
    if (file.files.length) upload.send(file.files[0], at("start"), begin);
  });
  const go = next && h("a", { class: "button primary", href: next.path }, next.n_labelled ? "Continue" : "Start labelling");
  put(at("start"), ...words(next),
    h("div", { class: "row" }, go, folder.refusal ? null : choose), file,
    folder.refusal ? h("p", {}, capitalised(folder.refusal))
      : quiet(`${folder.kinds}; up to ${count(Math.floor(folder.largest / 2 ** 20))} MiB. You can also drop the file here.`),
    h("p", { id: "start-problem", class: "problem", role: "alert" }));
}

const ACCEPTED = ".csv,.tsv,.txt,.gz,.xlsx,.xlsm,.jsonl,.ndjson,.json,.parquet,.pq,.zip";
const capitalised = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
const heading = (text) => h("h2", { id: "start-heading" }, text);

function words(next) {
  if (next) {
    const done = next.n_labelled ? `${count(next.n_labelled)} of ${count(next.size)} items have a label.`
      : `None of its ${count(next.size)} items has a label yet.`;
    return [heading(`Next: ${next.n_labelled ? "continue with" : "label"} ${next.name}`), h("p", {}, done)];
  }
  if (!folder.projects.length) {
    return [heading("Create your first project"),
      h("p", {}, "Choose a file with what you want to label: a table of texts or numbers, or an archive of images. " +
        "You see what is in it before anything is created.")];
  }
  const closed = folder.projects.some((each) => !isShown(each));
  return [heading(closed ? "Choose a project, or create a new one" : "No project asks for more labels now"),
    h("p", {}, closed ? "Open a project of the list." : "Open a project to see its result, or create a new one.")];
}

/** A new start of this section: after an error with its sentence, or for the preview without one. */
function begin(sentence) {
  start();
  at("start-problem").textContent = sentence;
  if (sentence) at("start").querySelector("button")?.focus();
}

function close() {
  at("new").hidden = true;
  at("start").hidden = at("list").hidden = false;
  document.title = "Projects · suffice";
  at("start").querySelector("button")?.focus();
}

/** Whether the details of a project are known: with accounts they are once somebody has signed in there. */
const isShown = (each) => ["ok", "accounts"].includes(each.state) && each.size !== null;

function line(each) {
  const readable = isShown(each);
  const name = each.state === "unreadable" ? each.name : h("a", { href: each.path }, each.name);
  const about = [each.kind, each.last && ago(each.last * 1000)].filter(Boolean).join(" · ");
  return h("article", { class: "card line" },
    h("div", {}, h("h3", {}, name),
      about && h("p", { class: "muted", title: each.last ? moment(each.last * 1000) : null }, about)),
    readable && h("div", {},
      h("progress", { max: each.size, value: each.n_labelled, "aria-label": `Labelled items of ${each.name}` }),
      h("p", { class: "muted" }, `${count(each.n_labelled)} of ${count(each.size)} labelled`)),
    h("p", { class: readable ? null : `wide ${each.state}` }, each.statement));
}

function drops() {
  const over = (on) => (event) => {
    if (![...(event.dataTransfer?.types ?? [])].includes("Files")) return;
    event.preventDefault();
    at("start").classList.toggle("over", on);
    if (event.type !== "drop" || at("start").hidden || folder?.refusal !== "" || upload.busy()) return;
    upload.send(event.dataTransfer.files[0], at("start"), begin);
  };
  document.addEventListener("dragover", over(true));
  document.addEventListener("dragleave", over(false));
  document.addEventListener("drop", over(false));
}

makePlanner(at("plan"));
at("theme").addEventListener("click", changeScheme);
at("start").hidden = true;
document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : refresh()));
drops();
refresh().then(() => {
  at("start").hidden = at("list").hidden = folder === null;
});
