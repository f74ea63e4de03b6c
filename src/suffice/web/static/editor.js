// Giving an item of the table another label, in its place.

import { implausible, outsideRange, readNumber } from "./answer.js";
import { button, h, labelText } from "./dom.js";
import { submit } from "./outbox.js";
import { person } from "./person.js";
import { refreshSoon } from "./store.js";
import { toast } from "./toast.js";

/**
 * A form with the label, Save and Cancel.
 * @param {object} entry - A row of the table; one without a label gets its first.
 * @param {object} project - As the API gives it.
 * @param {{cancel: function, saved: function}} then - What to do afterwards.
 */
export function makeEditor(entry, project, { cancel, saved }) {
  const problem = h("p", { class: "problem", role: "alert" });
  const name = `${project.target} of ${entry.id}`;
  const field = project.task === "regression"
    ? h("input", { type: "text", inputmode: "decimal", autocomplete: "off", "aria-label": name })
    : h("select", { "aria-label": name }, entry.skipped && h("option", { value: "" }, "choose…"),
      project.classes.map((each) => h("option", { value: each }, each)));
  if (!entry.skipped) field.value = labelText(entry.label);
  const save = h("button", { type: "submit", class: "small primary" }, "Save");

  // The number that was asked about.
  let asked = null;
  const accept = async (event) => {
    event.preventDefault();
    const chosen = field.value ? { value: field.value } : { problem: "Choose a class." };
    const read = project.task === "regression" ? readNumber(field.value) : chosen;
    const outside = project.task === "regression" && !read.problem ? implausible(read.value, project) : "";
    if (read.problem || (outside && asked !== read.value && read.value !== entry.label)) {
      asked = read.value ?? null;
      problem.textContent = read.problem ?? outside;
      field.focus();
    } else if (read.value === entry.label) cancel();
    else await send(read.value, outside && outsideRange(read.value, project) ? { outside_range: true } : {});
  };
  const send = async (label, more) => {
    save.disabled = true;
    problem.textContent = "";
    try {
      await submit(entry.skipped ? "api/labels" : "api/corrections", { person: person(), item: entry.item, label, ...more });
      toast(entry.skipped ? `Recorded: ${labelText(label)}.` : `Corrected to ${labelText(label)}.`);
      refreshSoon();
      saved();
    } catch (error) {
      problem.textContent = error.message;
      save.disabled = false;
    }
  };
  const form = h("form", { class: "editor", novalidate: true, on: { submit: accept } }, field, save,
    button(cancel, { class: "small quiet" }, "Cancel"), problem,
    entry.in_check && h("p", { class: "muted" }, "This label is an answer of a check. If you correct it, the guarantee states both " +
      "numbers: with the correction, and by the first answers."));
  form.addEventListener("keydown", (event) => {
    if (event.key === "Escape") cancel();
  });
  return form;
}
