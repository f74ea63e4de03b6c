// Going to an item by its id: what it is, and its label, which can be given or changed there.

import { get } from "./api.js";
import { openDialog } from "./dialog.js";
import { h, labelText, put, quiet } from "./dom.js";
import { makeEditor } from "./editor.js";
import { showItem } from "./item.js";

/** Open the window that asks for an id, and shows the item. */
export function openJump(project) {
  const id = h("input", { id: "jump-id", type: "text", maxlength: 500, autocomplete: "off", spellcheck: "false" });
  const problem = h("p", { class: "problem", role: "alert" });
  const found = h("div", { class: "stack" });
  const look = async (event) => {
    event?.preventDefault();
    problem.textContent = "";
    if (!id.value.trim()) {
      problem.textContent = "Write an id first.";
      return;
    }
    try {
      const item = await get(`api/items?${new URLSearchParams({ id: id.value.trim() })}`);
      const entry = { ...item, skipped: item.label === null };
      const now = item.label === null ? "It has no label that you see." : `Labelled ${labelText(item.label)} by ${item.person}.`;
      put(found, h("div", { class: "item" }, h("p", { class: "item-id" }, item.id), ...showItem(item, project)), quiet(now),
        makeEditor(entry, project, { cancel: () => dialog.close(), saved: look }));
    } catch (error) {
      put(found);
      problem.textContent = error.message;
    }
  };
  const form = h("form", { novalidate: true, on: { submit: look } },
    h("label", { for: "jump-id" }, "Id of the item"), h("div", { class: "row" }, id, h("button", { type: "submit", class: "primary" }, "Show")),
    problem);
  const dialog = openDialog("Go to an item", [form, found], { wide: true });
  id.focus();
}
