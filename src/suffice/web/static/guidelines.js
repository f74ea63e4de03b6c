// How to label: the guidelines of the project and what belongs to each class, folded or not.

import { fromHtml, h, put } from "./dom.js";
import { kept } from "./store.js";

/** Make the panel; update() shows the present text, or nothing where there is none. */
export function makeGuidelines(project) {
  const body = h("div", { class: "guidelines-text" });
  const details = h("details", { open: kept.get("guidelines") !== "folded" }, h("summary", {}, "Guidelines"), body);
  const element = h("section", { class: "card guidelines", "aria-label": "Guidelines" },
    h("h2", { class: "visually-hidden" }, "Guidelines"), details);
  details.addEventListener("toggle", () => kept.set("guidelines", details.open ? null : "folded"));
  let drawn = null;
  const update = () => {
    const told = JSON.stringify([project.guidelines_html, project.descriptions, project.classes]);
    if (told === drawn) return;
    drawn = told;
    const described = project.classes.filter((name) => project.descriptions[name]);
    const list = described.map((name) =>
      h("div", {}, h("dt", { dir: "auto" }, name), h("dd", { dir: "auto" }, project.descriptions[name])));
    put(body, fromHtml(project.guidelines_html), list.length > 0 && h("dl", { class: "descriptions" }, list));
    element.hidden = !project.guidelines_html && !list.length;
  };
  update();
  return { element, update };
}
