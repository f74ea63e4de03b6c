// The view of all labels: search, filter, look at an item, correct its label.

import { get } from "./api.js";
import { openDialog } from "./dialog.js";
import { ago, button, count, h, labelText, many, marked, moment, put, touched } from "./dom.js";
import { makeEditor } from "./editor.js";
import { showItem } from "./item.js";
import { openJump } from "./jump.js";
import { can } from "./person.js";
import { onKeys } from "./shortcuts.js";
import { watch } from "./store.js";

const PAGE = 50;
const FILTERS = [
  ["all", "All"], ["unsure", "Unsure"], ["skipped", "Skipped"], ["disagreed", "Disagreed"], ["corrected", "Corrected"],
];

// People who see their own labels only see no disagreements.
const filters = () => FILTERS.filter(([value]) => can("review") || value !== "disagreed");

/** Make the view. */
export function makeTableView(root, project) {
  const asked = { offset: 0, search: "", only: "all" };
  let editing = false;
  let newest = 0;
  let seen = "";

  const search = h("input", {
    type: "search", id: "search", maxlength: 200, placeholder: touched() ? "Search" : "Search  (/)",
    "aria-label": "Search the labels", autocomplete: "off",
  });
  const filter = h("div", { class: "segments", role: "group", "aria-label": "Which labels" },
    filters().map(([value, name]) => button(() => choose(value), { "data-only": value }, name)));
  const found = h("p", { class: "muted", role: "status" });
  const problem = h("p", { class: "problem", role: "alert" });
  const body = h("tbody", {});
  const heads = ["Item", "What it is", project.target, "By", h("span", { class: "visually-hidden" }, "Actions")];
  const table = h("table", { class: "labels" },
    h("caption", { class: "visually-hidden" }, "Labels, the newest first"),
    h("thead", {}, h("tr", {}, heads.map((name) => h("th", { scope: "col" }, name)))), body);
  const before = button(() => turn(-PAGE), {}, "Newer");
  const after = button(() => turn(PAGE), {}, "Older");
  const where = h("span", { class: "muted" });
  const pager = h("nav", { class: "row pager", "aria-label": "Pages" }, before, where, after);
  put(root, h("h2", { class: "visually-hidden" }, "Labels"),
    h("div", { class: "card" }, h("div", { class: "row finder" }, search,
      button(() => openJump(project), { class: "small", "aria-keyshortcuts": "g" }, "Go to an id ", h("kbd", {}, "g")), filter), problem, found, table, pager));

  let typing = 0;
  search.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => load({ search: search.value.trim(), offset: 0 }), 200);
  });
  search.addEventListener("keydown", (event) => {
    if (event.key === "Escape") search.blur();
  });
  onKeys("labels", (name) => {
    if (name === "/") search.focus();
    return name === "/";
  });

  function choose(only) {
    location.replace(only === "all" ? "#labels" : `#labels/${only}`);
  }

  function turn(by) {
    load({ offset: Math.max(0, asked.offset + by) }).then(() => root.scrollIntoView({ block: "start" }));
  }

  async function load(change = {}, { quietly = false } = {}) {
    Object.assign(asked, change);
    const mine = (newest += 1);
    try {
      const page = await get(`api/labels?${new URLSearchParams({ ...asked, limit: PAGE })}`);
      // A slow answer to an older question must not replace a newer one, nor a mere refresh what somebody is editing.
      if (mine === newest && !(quietly && editing)) show(page);
    } catch (error) {
      problem.textContent = error.message;
    }
  }

  function show({ total, rows }) {
    problem.textContent = "";
    editing = false;
    for (const each of filter.children) each.setAttribute("aria-pressed", String(each.dataset.only === asked.only));
    put(body, rows.map(row));
    table.hidden = !rows.length;
    const none = asked.search || asked.only !== "all" ? "Nothing fits." : "Nothing is labelled yet.";
    found.textContent = total ? many(total, "item") + (can("review") ? "" : " of yours") : none;
    pager.hidden = total <= PAGE;
    before.disabled = asked.offset === 0;
    after.disabled = asked.offset + PAGE >= total;
    const last = Math.min(total, asked.offset + PAGE);
    where.textContent = `${count(asked.offset + 1)} to ${count(last)} of ${count(total)}`;
  }

  function row(entry) {
    const cell = h("td", { class: "given" });
    const actions = h("td", { class: "actions" });
    const rest = () => {
      editing = false;
      put(cell, given(entry, asked.search), chips(entry));
      put(actions, button(edit, { class: "small" }, entry.skipped ? "Label" : "Correct"));
    };
    const edit = () => {
      if (editing) return;
      editing = true;
      put(actions);
      put(cell, makeEditor(entry, project, { cancel, saved }));
      cell.querySelector("select, input").focus();
    };
    const cancel = () => {
      rest();
      actions.firstChild.focus();
    };
    const saved = async () => {
      await load();
      body.querySelector(`tr[data-item="${entry.item}"] .actions button`)?.focus();
    };
    rest();
    return h("tr", { "data-item": entry.item },
      h("td", { class: "id" }, button(() => look(entry), { class: "link" }, marked(entry.id, asked.search))),
      h("td", { class: "summary", dir: "auto" }, marked(entry.summary, asked.search)), cell,
      h("td", { class: "by" }, h("span", { dir: "auto" }, marked(entry.person, asked.search)), " ",
        h("span", { class: "muted", title: moment(entry.at) }, ago(entry.at))), actions);
  }

  async function look(entry) {
    try {
      const item = await get(`api/items/${entry.item}`);
      const dialog = openDialog(item.id, [h("div", { class: "item" }, ...showItem(item, project, asked.search)), said(entry)], { wide: true });
      // In a long text, the first place that was looked for.
      dialog.querySelector("mark")?.scrollIntoView({ block: "center" });
    } catch (error) {
      problem.textContent = error.message;
    }
  }

  watch(({ status }) => {
    const now = JSON.stringify([status?.n_labelled, status?.n_skipped, status?.n_unsure, status?.revision, status?.agreement]);
    if (root.hidden || editing || !status || now === seen) return;
    seen = now;
    load({}, { quietly: true });
  });

  return {
    show(only = "all") {
      const wanted = filters().some(([value]) => value === only) ? only : "all";
      load({ only: wanted, offset: 0 }, { quietly: wanted === asked.only });
    },
  };
}

function given(entry, sought) {
  if (entry.skipped) {
    return [h("span", { class: entry.unsure ? "chip warn first" : "muted" }, entry.unsure ? "unsure" : "skipped"),
      entry.reason && h("span", { class: "opinions muted", dir: "auto" }, marked(entry.reason, sought))];
  }
  return h("strong", { dir: "auto" }, marked(labelText(entry.label), sought));
}

const disagree = (entry) => new Set(entry.opinions.map((each) => each.label)).size > 1;

function chips(entry) {
  const opinions = entry.opinions.map((each) => `${each.person}: ${labelText(each.label)}`).join(", ");
  return [
    entry.corrected && h("span", { class: "chip" }, "corrected"),
    disagree(entry) && h("span", { class: "chip warn" }, "disagree"),
    disagree(entry) && h("span", { class: "opinions muted" }, opinions),
  ];
}

function said(entry) {
  if (!entry.opinions.length) return null;
  const rows = entry.opinions.map((each) =>
    h("div", {}, h("dt", { dir: "auto" }, each.person),
      h("dd", {}, h("strong", { dir: "auto" }, labelText(each.label)), " ",
        h("span", { class: "muted" }, ago(each.at)))));
  return h("div", {}, h("h3", {}, "What people said"), h("dl", { class: "people" }, rows));
}
