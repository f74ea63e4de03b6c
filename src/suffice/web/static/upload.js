// A new project from a file: it is sent, shown with what was guessed of it, and made into a project.

import { get, post, sendFile } from "./api.js";
import { button, count, h, many, put, quiet } from "./dom.js";
import { kept } from "./kept.js";

const LONG = 600000;
const TRIES = 20;
const ROLES = {
  text: "Text to read", image: "Image", id: "Id (names the item)", label: "Label", feature: "Other information",
  ignored: "Leave out",
};
// Of each of these, a table has one column at most.
const SINGLE = ["text", "image", "id", "label"];

/**
 * Make the section for a new project.
 * @param {Element} section - Where the preview is shown.
 * @param {{folder: function, close: function}} options - folder() is what is known of the folder; close() is called where
 *   the preview is left.
 */
export function makeUpload(section, { folder, close }) {
  let sending = null;
  let found = null;
  let roles = {};
  // Classes that a person has typed are not replaced.
  let typed = false;
  let parts = {};

  /** Send a file, with its progress in an element; begin(sentence) is called when that is over. */
  async function send(file, place, begin) {
    const { largest } = folder();
    if (file.size > largest) {
      begin(`The file has ${count(Math.ceil(file.size / 2 ** 20))} MiB, and at most ${count(Math.floor(largest / 2 ** 20))} MiB ` +
        "can be sent. Make the project from it with the command suffice serve FILE.");
      return;
    }
    sending = new AbortController();
    const bar = h("progress", { max: 1, value: 0, "aria-labelledby": "start-heading" });
    const said = h("p", { class: "muted", role: "status" }, "Sending the file.");
    const cancel = button(() => sending.abort(), {}, "Cancel");
    put(place, h("div", { class: "sending" }, h("h2", { id: "start-heading" }, `Sending ${file.name}`), bar, said,
      h("div", { class: "row" }, cancel)));
    cancel.focus();
    const progress = (share) => {
      bar.value = share;
      if (share < 1) return;
      bar.removeAttribute("value");
      said.textContent = "The file is being read. This can take a while.";
    };
    let trouble = "";
    try {
      found = await sendFile(`api/uploads?file=${encodeURIComponent(file.name)}`, file, { progress, signal: sending.signal });
    } catch (error) {
      found = null;
      trouble = error.message;
    }
    sending = null;
    begin(trouble);
    if (found) show();
  }

  function show() {
    roles = Object.fromEntries(found.columns.map((each) => [each.name, each.role]));
    typed = false;
    const table = found.kind === "table";
    const items = table ? `${many(found.size, "row")} and ${many(found.columns.length, "column")}` : many(found.size, "image");
    const heading = h("h2", { id: "new-heading", tabindex: "-1" }, `New project from ${found.file}`);
    document.title = `New project · suffice`;
    put(section, h("div", { class: "stack" },
      h("div", { class: "card" }, heading,
        h("p", {}, `It has ${items}. Next: ${table ? "check what each column is, " : ""}say what the labels are, and create the project.`),
        table ? preview() : pictures(),
        found.notes.length > 0 && h("details", {}, h("summary", {}, `How it was read (${many(found.notes.length, "note")})`),
          h("ul", { class: "plain" }, found.notes.map((note) => h("li", {}, note))))),
      table && columnsCard(), labelsCard(), nameCard()));
    section.hidden = false;
    document.getElementById("start").hidden = document.getElementById("list").hidden = true;
    labels();
    scrollTo(0, 0);
    heading.focus({ preventScroll: true });
  }

  function preview() {
    return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "The first rows" },
      h("table", {},
        h("thead", {}, h("tr", {}, found.columns.map((each) => h("th", { scope: "col" }, each.name)))),
        h("tbody", {}, found.rows.map((row) => h("tr", {}, row.map((cell) =>
          h("td", { title: cell.length > 60 ? cell : null }, h("span", { class: "clip" }, cell))))))));
  }

  function pictures() {
    const address = (k) => `api/uploads/images/${k}?upload=${encodeURIComponent(found.upload)}`;
    return h("ul", { class: "pictures" }, found.images.map((name, k) => h("li", {}, h("img", { src: address(k), alt: name }))));
  }

  function columnsCard() {
    const row = (each, k) => {
      const choice = h("select", { id: `role-${k}`, "aria-describedby": `reason-${k}` }, Object.entries(ROLES)
        .filter(([role]) => role !== "image" || each.role === "image")
        .map(([role, words]) => h("option", { value: role, selected: role === each.role }, words)));
      choice.addEventListener("change", () => choose(each.name, choice.value));
      return h("li", { "data-column": each.name }, h("label", { for: `role-${k}` }, each.name), choice,
        h("p", { id: `reason-${k}` }, each.reason));
    };
    return h("div", { class: "card" }, h("h3", {}, "What is in each column?"),
      quiet("This was guessed from the names and the values. Change what is wrong."),
      h("ul", { class: "roles" }, found.columns.map(row)));
  }

  function choose(name, role) {
    const before = Object.keys(roles).find((other) => other !== name && roles[other] === role && SINGLE.includes(role));
    roles[name] = role;
    const columns = [...section.querySelectorAll(".roles li")];
    const explain = (column, reason) => {
      const line = columns.find((each) => each.dataset.column === column);
      line.querySelector("select").value = roles[column];
      line.querySelector("p").textContent = reason;
    };
    const guessed = found.columns.find((each) => each.name === name);
    explain(name, role === guessed.role ? guessed.reason : `You chose this. The guess was: ${ROLES[guessed.role]}.`);
    if (before !== undefined) {
      roles[before] = "feature";
      explain(before, `Now other information, because ${name} is chosen instead.`);
    }
    labels();
  }

  function labelsCard() {
    const kind = (value, words) => {
      const input = h("input", { type: "radio", name: "kind", value, id: `kind-${value}` });
      input.addEventListener("change", () => (parts.classesField.hidden = value !== "classes"));
      return h("label", { class: "choice", for: `kind-${value}` }, input, words);
    };
    parts = {
      held: h("p", { id: "held", role: "status" }),
      classes: h("textarea", { id: "classes", rows: "4", spellcheck: "false", "aria-describedby": "classes-hint" }),
    };
    parts.classes.addEventListener("input", () => (typed = true));
    parts.classesField = h("div", { class: "field" }, h("label", { for: "classes" }, "Classes"), parts.classes,
      h("p", { id: "classes-hint", class: "muted" }, "One in each line, in the order of their keys. You can add others later."));
    return h("div", { class: "card fields" }, h("h3", {}, "What are the labels?"), parts.held,
      h("fieldset", {}, h("legend", { class: "visually-hidden" }, "Kind of labels"),
        kind("classes", "Classes, such as spam and ham"), kind("numbers", "Numbers, such as a price")),
      parts.classesField);
  }

  /** Say what the column of labels holds, and fill in its classes. */
  function labels() {
    const column = found.columns.find((each) => roles[each.name] === "label");
    let words = found.kind === "table" ? "No column holds labels yet. You give all of them." : "You give all labels.";
    let classes = [];
    let numbers = false;
    if (column) {
      ({ classes } = column);
      numbers = column.labels > 0 && !classes.length && !column.problem;
      const left = found.size - column.labels;
      words = `The column ${column.name} holds ${many(column.labels, "label")}; they are kept, and you give ` +
        `${left === 1 ? "the other one" : `the other ${count(left)}`}.`;
      if (!left) {
        words = `The column ${column.name} has a label in each row, so nothing would be left to label. Leave it out to ` +
          "give all labels anew.";
      }
      if (!column.labels) words = `The column ${column.name} is empty so far. You give all labels.`;
      if (column.problem) words = `The column ${column.name} is unlikely to be the label: ${column.problem}`;
    }
    parts.held.textContent = words;
    document.getElementById(numbers ? "kind-numbers" : "kind-classes").checked = true;
    parts.classesField.hidden = numbers;
    if (!typed) parts.classes.value = classes.join("\n");
  }

  function nameCard() {
    const name = h("input", { id: "project-name", type: "text", maxlength: 100, required: true, spellcheck: "false" });
    const person = h("input", { id: "person", type: "text", maxlength: 64, autocomplete: "nickname", spellcheck: "false",
      "aria-describedby": "person-hint" });
    name.value = found.name;
    person.value = kept.get("person") ?? "";
    const problem = h("p", { id: "new-problem", class: "problem", role: "alert" });
    const news = h("p", { class: "muted", role: "status" });
    const make = h("button", { type: "submit", class: "primary" }, "Create project");
    const cancel = button(leave, {}, "Cancel");
    const create = async (event) => {
      event.preventDefault();
      const numbers = document.getElementById("kind-numbers").checked;
      const classes = numbers ? [] : parts.classes.value.split("\n").map((each) => each.trim()).filter(Boolean);
      problem.textContent = "";
      if (!numbers && classes.length < 2) {
        problem.textContent = "At least two classes are needed: write one in each line, or choose numbers.";
        parts.classes.focus();
        return;
      }
      if (!person.value.trim()) {
        problem.textContent = "Your name is missing; a short one is enough.";
        person.focus();
        return;
      }
      kept.set("person", person.value.trim());
      make.disabled = cancel.disabled = true;
      make.setAttribute("aria-busy", "true");
      make.textContent = "Creating the project…";
      const watching = setInterval(watch, 1000);
      try {
        const made = await until({ upload: found.upload, name: name.value, roles, classes, numbers,
          person: person.value.trim() });
        location.assign(made.path);
      } catch (error) {
        problem.textContent = error.message;
        news.textContent = "";
        make.disabled = cancel.disabled = false;
        make.removeAttribute("aria-busy");
        make.textContent = "Create project";
        make.focus();
      }
      clearInterval(watching);
    };
    const watch = async () => {
      try {
        const { what, done, total } = await get(`api/uploads/progress?upload=${encodeURIComponent(found.upload)}`);
        if (make.disabled && what) news.textContent = `Now ${what}${total ? `: ${count(done)} of ${count(total)}` : ""}.`;
      } catch {
        // It is asked again, and the answer to the request itself says what is wrong.
      }
    };
    return h("form", { class: "card fields", novalidate: true, on: { submit: create } }, h("h3", {}, "Names"),
      h("div", { class: "field" }, h("label", { for: "project-name" }, "Name of the project"), name),
      h("div", { class: "field" }, h("label", { for: "person" }, "Your name"), person,
        h("p", { id: "person-hint", class: "muted" }, "Each label is kept with the name of the person who gave it.")),
      problem, news, h("div", { class: "row end" }, cancel, make));
  }

  /** Create the project. A proxy may give up on a long request, and the same request again waits for the same project. */
  async function until(wanted) {
    for (let tries = 0; ; tries += 1) {
      try {
        return await post("api/projects", wanted, LONG);
      } catch (error) {
        if (![0, 502, 504].includes(error.status) || tries === TRIES) throw error;
      }
      await new Promise((resume) => {
        setTimeout(resume, 2000);
      });
    }
  }

  function leave() {
    post("api/uploads/discard", { upload: found.upload }).catch(() => {
      // It is removed after an hour.
    });
    found = null;
    put(section);
    close();
  }

  return { send, busy: () => sending !== null };
}
