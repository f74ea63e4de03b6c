// The name of the person who labels: asked once, kept in this browser, changed with a click. People with accounts sign in.

import { openDialog } from "./dialog.js";
import { h } from "./dom.js";
import { kept, store } from "./store.js";

const LONGEST = 64;
const WHY = "Each label is kept with the name of the person who gave it. Two people at once need two names.";

/** The name, or nothing. */
export const person = () => store.project?.account?.name ?? kept.get("person") ?? passing;
let passing = "";

const ROLES = ["label", "review", "manage"];

/** Whether the present user has a role; without accounts everybody has every role. */
export function can(role) {
  const account = store.project?.account;
  return !account || ROLES.indexOf(account.role) >= ROLES.indexOf(role);
}

/** Show the name in the header. */
export function showPerson() {
  document.getElementById("person-name").textContent = person() || "Who are you?";
}

/** Ask for the name; the promise gives it, or nothing where the person thought better of it. */
export function askPerson() {
  const had = person();
  return new Promise((resolve) => {
    const input = h("input", {
      id: "your-name", name: "name", type: "text", maxlength: LONGEST, autocomplete: "nickname", required: true,
      "aria-describedby": "name-why name-problem", spellcheck: "false",
    });
    input.value = had;
    const problem = h("p", { id: "name-problem", class: "problem", role: "alert" });
    let chosen = "";
    const accept = (event) => {
      event.preventDefault();
      chosen = input.value.trim().replace(/\s+/g, " ");
      if (!chosen) {
        problem.textContent = "Enter a name; a short one is enough.";
        input.focus();
        return;
      }
      passing = chosen;
      kept.set("person", chosen);
      showPerson();
      dialog.close();
    };
    const form = h("form", { novalidate: true, on: { submit: accept } },
      h("label", { for: "your-name" }, "Your name"),
      input, problem,
      h("p", { id: "name-why", class: "muted" }, WHY),
      h("div", { class: "row end" },
        h("button", { type: "submit", class: "primary" }, had ? "Change" : "Start labelling")));
    const dialog = openDialog(had ? "Who labels now?" : "Who are you?", [form], { closable: Boolean(had) });
    dialog.addEventListener("close", () => resolve(chosen));
    input.focus();
    input.select();
  });
}
