// Windows over the page: a heading, something in it, and a way out.

import { button, h } from "./dom.js";

/**
 * Open a window; it is taken away when it is closed.
 * @param {string} title - Its heading.
 * @param {Node[]} content - What it holds.
 * @param {{closable?: boolean, wide?: boolean}} options - Without closable it stays until it is closed by its content.
 */
export function openDialog(title, content, { closable = true, wide = false } = {}) {
  const before = document.activeElement;
  const dialog = h("dialog", { "aria-labelledby": "dialog-title", class: wide ? "wide" : null },
    h("div", { class: "dialog-head" },
      h("h2", { id: "dialog-title" }, title),
      closable && button(() => dialog.close(), { class: "quiet icon", "aria-label": "Close" }, "×")),
    content);
  dialog.addEventListener("cancel", (event) => {
    if (!closable) event.preventDefault();
  });
  dialog.addEventListener("click", (event) => {
    if (closable && event.target === dialog) dialog.close();
  });
  dialog.addEventListener("close", () => {
    dialog.remove();
    if (before instanceof HTMLElement) before.focus({ preventScroll: true });
  });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/** Whether a window is open. */
export const dialogOpen = () => document.querySelector("dialog[open]") !== null;
