// Keys. They do nothing while somebody types, while a window is open, or together with Alt, Ctrl or Meta.

import { dialogOpen, openDialog } from "./dialog.js";
import { h, quiet } from "./dom.js";

const handlers = new Map();
// What a key does in every view.
const general = new Map();
let current = "";

/** What a view does with a key: handler(name), which says whether it took it. Names: digits, letters, "undo". */
export function onKeys(view, handler) {
  handlers.set(view, handler);
}

/** What a key does in every view; it needs no handler there. */
export function onKeyEverywhere(name, run) {
  general.set(name, run);
}

/** Which view the keys go to. */
export function keysTo(view) {
  current = view;
}

function typing(element) {
  if (!(element instanceof HTMLElement)) return false;
  if (element.isContentEditable || element.matches("textarea, select")) return true;
  return element.matches("input") && !["checkbox", "radio", "button", "submit"].includes(element.type);
}

function nameOf(event) {
  const control = (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey;
  if (control && event.key.toLowerCase() === "z") return "undo";
  if (event.ctrlKey || event.altKey || event.metaKey) return "";
  if (/^[0-9]$/.test(event.key)) return event.key;
  // Where digits need Shift, as on French keyboards, the bare key counts as well.
  const digit = /^Digit([0-9])$/.exec(event.code);
  if (digit && !event.shiftKey && !/^[a-z]$/i.test(event.key)) return digit[1];
  return event.key.length === 1 ? event.key.toLowerCase() : "";
}

document.addEventListener("keydown", (event) => {
  const answer = event.target instanceof Element && event.target.closest("button.answer");
  if (event.repeat && answer && (event.key === "Enter" || event.key === " ")) event.preventDefault();
  if (event.repeat || event.isComposing || event.defaultPrevented || dialogOpen() || typing(event.target)) return;
  const name = nameOf(event);
  if (!name) return;
  const everywhere = general.get(name);
  if (everywhere) {
    event.preventDefault();
    everywhere();
  } else if (handlers.get(current)?.(name)) event.preventDefault();
});

const KEYS = [
  ["1 to 9, or 0", "give the class with that key; 0 is the tenth, or the class that is called 0"],
  ["Enter", "record the number that was typed, or the first class found"],
  ["s", "skip this item: nobody is asked for it again"],
  ["n", "not sure: say why, if you like; the item is listed for review"],
  ["u or Ctrl+Z", "take back the last label, skip or correction"],
  ["z", "show an image larger, or as before"],
  ["e", "earlier answers: the view Labels"],
  ["g", "go to an item by its id"],
  ["c, n, p", "in the review: the label is right; the next item; the one before"],
  ["/", "type to find a class; in the view Labels, search them"],
  ["Escape", "leave the box that you type in"],
  ["?", "this list"],
];

onKeyEverywhere("?", showShortcuts);

/** Open the list of keys. */
export function showShortcuts() {
  const rows = KEYS.map(([key, what]) => h("div", {}, h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)));
  openDialog("Keyboard shortcuts", [
    h("dl", { class: "keys" }, rows),
    quiet("Keys do nothing while you type in a box. Tab and Enter reach everything else."),
  ]);
}
