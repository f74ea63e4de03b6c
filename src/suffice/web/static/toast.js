// A short word at the bottom of the page that goes away by itself.

import { button, h, put } from "./dom.js";

const STAYS = 5000;
let timer = 0;

/**
 * Say something.
 * @param {string} text - What.
 * @param {{name: string, run: function}|null} action - A button beside it.
 */
export function toast(text, action = null) {
  const box = document.getElementById("toast");
  clearTimeout(timer);
  // On a narrow screen it stands beside Undo, and needs no button of its own.
  for (const beside of document.querySelectorAll(".said")) beside.textContent = text;
  const act = () => {
    hush();
    action.run();
  };
  put(box, h("span", {}, text), action && button(act, { class: "link" }, action.name));
  box.classList.add("shown");
  box.onpointerenter = () => clearTimeout(timer);
  box.onpointerleave = () => (timer = setTimeout(hush, STAYS / 2));
  timer = setTimeout(hush, STAYS);
}

/** Take it away. */
export function hush() {
  clearTimeout(timer);
  const box = document.getElementById("toast");
  box.classList.remove("shown");
  // A button that cannot be seen must not be reached by Tab either.
  put(box);
  for (const beside of document.querySelectorAll(".said")) beside.textContent = "";
}
