// The part of the settings in which classes are added, renamed, merged, reordered and removed, all at once.

import { button, h, many, put, quiet } from "./dom.js";
import { submit } from "./outbox.js";
import { person } from "./person.js";
import { refresh, store, watch } from "./store.js";
import { toast } from "./toast.js";

const LONGEST = 200;

/** Make the part. */
export function makeClassesPart(project) {
  // Each row: the current name or null, the wanted name, and the row that it is merged into or null.
  let rows = [];
  let before = [];
  let changed = false;
  const list = h("ol", { class: "class-rows" });
  const problem = h("p", { class: "problem", role: "alert" });
  const news = h("p", { class: "muted", role: "status" });
  const save = button(send, { class: "primary" }, "Save the classes");
  const cancel = button(() => start(), {}, "Discard changes");
  const add = button(addRow, {}, "Add a class");
  const element = h("section", { class: "card wide", "aria-labelledby": "classes-heading" },
    h("h3", { id: "classes-heading" }, "Classes"),
    quiet("The order is that of the keys. No label is lost: those of a class that is renamed or merged get its new " +
      "name, and the model learns all labels again."),
    list, h("div", { class: "row" }, add), problem, news, h("div", { class: "row end" }, cancel, save));

  const counts = () => new Map((store.status?.classes ?? []).map((each) => [each.name, each.count]));

  function start() {
    before = [...project.classes];
    rows = before.map((name) => ({ old: name, name, into: null }));
    changed = false;
    problem.textContent = "";
    news.textContent = "";
    draw();
  }

  function touch() {
    changed = true;
    save.disabled = cancel.disabled = false;
    problem.textContent = "";
  }

  function addRow() {
    rows.push({ old: null, name: "", into: null });
    touch();
    draw();
    list.lastElementChild.querySelector("input").focus();
  }

  function move(at, by) {
    const [row] = rows.splice(at, 1);
    rows.splice(at + by, 0, row);
    touch();
    draw();
    const buttons = list.children[at + by].querySelectorAll("button.move");
    (buttons[by < 0 ? 0 : 1].disabled ? buttons[by < 0 ? 1 : 0] : buttons[by < 0 ? 0 : 1]).focus();
  }

  function remove(at) {
    rows.splice(at, 1);
    touch();
    draw();
    add.focus();
  }

  function draw() {
    const number = counts();
    put(list, rows.map((row, at) => line(row, at, number)));
    save.disabled = cancel.disabled = !changed;
  }

  const offered = (row) => `merge into ${row.name.trim() || "the new class"}`;

  function line(row, at, number) {
    const called = row.old ?? (row.name || "the new class");
    const labels = row.old === null ? 0 : number.get(row.old) ?? 0;
    const name = h("input", { type: "text", maxlength: LONGEST, "aria-label": `Name of ${called}`, dir: "auto",
      autocomplete: "off", disabled: row.into !== null });
    name.value = row.name;
    name.addEventListener("input", () => {
      row.name = name.value;
      touch();
    });
    // Other rows offer this name for merging. Drawing anew would take away the button that is being clicked.
    name.addEventListener("change", () => {
      for (const each of list.querySelectorAll(`option[value="${at}"]`)) each.textContent = offered(row);
    });
    const others = rows.filter((each) => each !== row && each.into === null);
    const into = h("select", { "aria-label": `Merge ${called} into` }, h("option", { value: "" }, "not merged"),
      others.map((each) => h("option", { value: rows.indexOf(each) }, offered(each))));
    into.value = row.into === null ? "" : String(rows.indexOf(row.into));
    into.disabled = row.old === null || rows.some((each) => each.into === row);
    into.addEventListener("change", () => {
      row.into = into.value === "" ? null : rows[Number(into.value)];
      if (row.into) row.name = row.old;
      touch();
      draw();
      list.children[at].querySelector("select").focus();
    });
    const merged = rows.some((each) => each.into === row);
    return h("li", { class: row.into ? "merged" : null }, name, h("span", { class: "muted" }, many(labels, "label")), into,
      h("span", { class: "row-tools" },
        button(() => move(at, -1), { class: "icon small move", "aria-label": `Move ${called} up`, disabled: at === 0 }, "↑"),
        button(() => move(at, 1), { class: "icon small move", "aria-label": `Move ${called} down`,
          disabled: at === rows.length - 1 }, "↓"),
        button(() => remove(at), { class: "icon small", "aria-label": `Remove ${called}`,
          title: labels ? "It has labels: merge it into another class" : null, disabled: labels > 0 || merged }, "×")));
  }

  async function send() {
    const kept = rows.filter((row) => row.into === null);
    const classes = kept.map((row) => row.name.trim());
    const pairs = rows.filter((row) => row.old !== null).map((row) => [row.old, (row.into ?? row).name.trim()]);
    const moved = Object.fromEntries(pairs.filter(([old, now]) => old !== now));
    if (classes.includes("")) {
      problem.textContent = "A class needs a name.";
      return;
    }
    save.disabled = true;
    try {
      await submit("api/classes", { person: person(), classes, moved, before });
      changed = false;
      await refresh();
      toast("The classes are changed.");
    } catch (error) {
      problem.textContent = error.message;
      save.disabled = false;
    }
  }

  watch(() => {
    const same = JSON.stringify(before) === JSON.stringify(project.classes);
    if (!changed && !same) start();
    else if (changed && !same) {
      news.textContent = "Somebody has changed the classes meanwhile. Discard your changes to see them.";
    } else if (!changed && !list.contains(document.activeElement)) draw();
  });
  start();
  return { element, show: () => !changed && start() };
}
