// How a label is given: a button for each class, with a filter where there are many, or a box for a number.

import { button, h, put, touched } from "./dom.js";
import { store } from "./store.js";

const KEYS = 10;

/**
 * The controls.
 * @param {object} project - As the API gives it.
 * @param {function} give - Called with the label.
 * @returns {{element, key, focus, clear}} key(name) says whether it took a key.
 */
export function makeAnswer(project, give) {
  if (project.task === "regression") return numberBox(project, give);
  if (project.checked?.answer === "verdict") return verdictButtons(project, give);
  const few = project.classes.length <= KEYS || areDigits(project.classes);
  return few ? fewClasses(project, give) : manyClasses(project, give);
}

// Classes that are digits have themselves as keys: nobody should have to press 1 for 0.
const areDigits = (classes) => classes.every((name) => /^[0-9]$/.test(name));

const COLOURS = 8;
const WIDEST = 5;

/** The number of the colour of a class. */
export const colourOf = (project, name) => (project.classes.indexOf(name) % COLOURS) + 1;

/** Columns of a grid whose rows are as even as can be. */
export const balanced = (n, most) => Math.ceil(n / Math.ceil(n / most));

function classButton(name, give, project) {
  const told = project.descriptions[name];
  const properties = { class: `answer colour-${colourOf(project, name)}`, title: told ? `${name}: ${told}` : name, "aria-description": told };
  return button(() => give(name), properties, h("kbd"), h("span", { dir: "auto" }, name));
}

function number(buttons, keys) {
  buttons.forEach((each, at) => {
    const key = each.querySelector("kbd");
    key.textContent = keys[at] ?? "";
    key.hidden = keys[at] === undefined;
    if (keys[at] === undefined) each.removeAttribute("aria-keyshortcuts");
    else each.setAttribute("aria-keyshortcuts", keys[at]);
  });
}

/** Let no answer look chosen: a pointer that still rests on a button, or its focus, was meant for the item before. */
function calm(element) {
  element.classList.add("calm");
  if (element.contains(document.activeElement) && document.activeElement.matches("button.answer")) {
    // From the item, Tab leads to the answers.
    element.closest(".work")?.querySelector("article")?.focus({ preventScroll: true });
  }
  const wake = (event) => {
    if (event.type === "pointermove" && event.movementX === 0 && event.movementY === 0) return;
    for (const name of ["pointermove", "pointerdown"]) document.removeEventListener(name, wake);
    element.classList.remove("calm");
  };
  for (const name of ["pointermove", "pointerdown"]) document.addEventListener(name, wake);
}

// In the order of the keyboard: 0 is the tenth.
const NUMBERS = Array.from({ length: KEYS }, (_, at) => String((at + 1) % KEYS));

function fewClasses(project, give) {
  const buttons = project.classes.map((name) => classButton(name, give, project));
  const keys = areDigits(project.classes) ? project.classes : NUMBERS;
  number(buttons, keys);
  const brief = project.classes.every((name) => name.length <= 7);
  const element = h("div", { class: "classes", role: "group", "aria-label": project.target }, buttons);
  const n = buttons.length;
  element.style.setProperty("--wide", balanced(n, brief ? WIDEST : WIDEST - 1));
  element.style.setProperty("--narrow", brief ? balanced(n, 3) : n === 3 ? 1 : Math.min(n, 2));
  const key = (name) => {
    const chosen = buttons[keys.indexOf(name)];
    chosen?.click();
    return chosen !== undefined;
  };
  return { element, key, focus() {}, clear: () => calm(element) };
}

/** Right or wrong, with a box for what is right instead. */
function verdictButtons(project, give) {
  const [right, wrong] = project.classes;
  const box = h("textarea", { id: "correction", rows: 1, maxlength: 20000, autocomplete: "off" });
  const say = (name) => give(name, name === wrong && box.value.trim() ? { correction: box.value.trim() } : {});
  const buttons = fewClasses(project, say);
  const element = h("div", { class: "stack" }, buttons.element,
    h("div", { class: "correction" }, h("label", { for: "correction" }, "If it is wrong: what is right? (optional)"), box));
  box.addEventListener("keydown", (event) => {
    if (event.key === "Escape") box.blur();
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) say(box.value.trim() ? wrong : right);
  });
  return { element, key: buttons.key, focus() {}, clear: () => { box.value = ""; buttons.clear(); } };
}

function manyClasses(project, give) {
  const buttons = new Map(project.classes.map((name) => [name, classButton(name, give, project)]));
  const list = h("div", { class: "classes lots", role: "group", "aria-label": project.target });
  const none = h("p", { class: "problem", role: "status" });
  const filter = h("input", {
    type: "search", "aria-label": "Find a class", placeholder: touched() ? "Find a class" : "Find a class  (/)",
    autocomplete: "off", spellcheck: "false",
  });
  let visible = [];
  const narrow = () => {
    const sought = filter.value.trim().toLowerCase();
    const starts = project.classes.filter((name) => name.toLowerCase().startsWith(sought));
    const holds = project.classes.filter((name) => name.toLowerCase().includes(sought) && !starts.includes(name));
    visible = [...starts, ...holds];
    const shown = visible.map((name) => buttons.get(name));
    put(list, shown);
    number(shown, NUMBERS);
    for (const each of buttons.values()) each.classList.remove("first");
    if (sought && shown.length) shown[0].classList.add("first");
    none.textContent = visible.length ? "" : "No class is called that.";
  };
  const clear = () => {
    filter.value = "";
    narrow();
    list.scrollTop = 0;
    calm(list);
  };
  filter.addEventListener("input", narrow);
  filter.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.repeat && !event.isComposing) {
      event.preventDefault();
      if (filter.value.trim() && visible.length) give(visible[0]);
    } else if (event.key === "Escape") {
      event.preventDefault();
      clear();
      filter.blur();
    }
  });
  narrow();
  const key = (name) => {
    if (name === "/") filter.focus();
    else if (/^[0-9]$/.test(name)) buttons.get(visible[NUMBERS.indexOf(name)])?.click();
    else return false;
    return true;
  };
  return { element: h("div", {}, filter, list, none), key, focus() {}, clear };
}

/** The plausible range of a number in words, or nothing; and what a number outside of it is told. */
export function plausible({ lowest, highest, unit }) {
  if (lowest === null && highest === null) return "";
  const of = unit ? ` ${unit}` : "";
  if (lowest === null || highest === null) return `at ${lowest === null ? "most" : "least"} ${lowest ?? highest}${of}`;
  return `${lowest} to ${highest}${of}`;
}

/** Whether a number is outside of the plausible range. */
export const outsideRange = (value, { lowest, highest }) => !within(value, lowest, highest);

/** What is said of a number outside of the plausible range, or far from all labels; nothing for any other. */
export function implausible(value, project) {
  const { lowest, highest, unit } = project;
  if (within(value, lowest, highest)) return unusual(value, project);
  return `${value}${unit ? ` ${unit}` : ""} is outside of the plausible range, ${plausible(project)}. If it is right, record it again.`;
}

const within = (value, lowest, highest) => (lowest === null || value >= lowest) && (highest === null || value <= highest);

/** What is said of a number far from all labels so far, where no plausible range is set; nothing for any other. */
function unusual(value, { lowest, highest, unit }) {
  const [low, high] = store.status?.usual_numbers ?? [null, null];
  if (lowest !== null || highest !== null || within(value, low, high)) return "";
  return `${value}${unit ? ` ${unit}` : ""} is far from all labels so far. If it is right, record it again.`;
}

/** A number as it was typed, or a sentence that says why it is none. */
export function readNumber(typed) {
  const text = typed.trim();
  if (!text) return { problem: "Type a number first." };
  if (/^[+-]?\d+,\d+$/.test(text)) return { problem: `Write ${text.replace(",", ".")} with a point, not a comma.` };
  if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text)) {
    return { problem: `“${text.slice(0, 40)}” is not a number. Write it like 3.5, -2 or 1e3.` };
  }
  const value = Number(text);
  return Number.isFinite(value) ? { value } : { problem: `${text.slice(0, 40)} is too large.` };
}

function numberBox(project, give) {
  const problem = h("p", { id: "number-problem", class: "problem", role: "alert" });
  const input = h("input", {
    id: "number", type: "text", inputmode: "decimal", autocomplete: "off", spellcheck: "false",
    "aria-describedby": "number-problem number-range",
  });
  // The number that was asked about.
  let asked = null;
  const clear = () => {
    input.value = "";
    problem.textContent = "";
    asked = null;
    input.removeAttribute("aria-invalid");
  };
  const accept = (event) => {
    event.preventDefault();
    const read = readNumber(input.value);
    const outside = read.problem ? "" : implausible(read.value, project);
    if (read.problem || (outside && asked !== read.value)) {
      asked = outside ? read.value : null;
      problem.textContent = read.problem ?? outside;
      input.setAttribute("aria-invalid", "true");
      input.focus();
      input.select();
    } else give(read.value, outsideRange(read.value, project) ? { outside_range: true } : {});
  };
  input.addEventListener("input", () => {
    problem.textContent = "";
    input.removeAttribute("aria-invalid");
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.repeat) event.preventDefault();
    if (event.key === "Escape") input.blur();
  });
  // Number pads of telephones have no minus.
  const negate = () => {
    input.value = input.value.startsWith("-") ? input.value.slice(1) : `-${input.value}`;
    input.focus();
  };
  const minus = button(negate, { class: "minus", "aria-label": "Change the sign" }, "±");
  const element = h("form", { class: "number", novalidate: true, on: { submit: accept } },
    h("label", { for: "number" }, project.target, project.unit && h("span", { class: "muted" }, ` in ${project.unit}`)), minus, input,
    h("button", { type: "submit", class: "primary answer" }, "Record ", h("kbd", {}, "Enter")), problem,
    h("p", { class: "muted range", id: "number-range" }, plausible(project) && `Plausible: ${plausible(project)}.`),
    h("p", { class: "muted hint" }, "Escape leaves the box; then s skips, n means unsure and u undoes."));
  const key = (name) => {
    if (!/^[-.0-9/]$/.test(name)) return false;
    input.focus();
    if (name !== "/") input.value += name;
    return true;
  };
  return { element, key, focus: () => input.focus({ preventScroll: true }), clear };
}
