// The view of the settings: the classes.

import { makeClassesPart } from "./classes.js";
import { h, put } from "./dom.js";

/** Make the view. */
export function makeSettingsView(root, project) {
  const classes = project.task === "classification" ? makeClassesPart(project) : null;
  put(root, h("h2", { class: "visually-hidden" }, "Settings"), h("div", { class: "board" }, classes?.element));
  return { show: () => classes?.show() };
}
