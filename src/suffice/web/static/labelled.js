// What was labelled and by whom, for the progress view: bars of the classes, people, and how far they agree.

import { can } from "./person.js";
import { ago, count, h, many, moment, percent, quiet, short, unbroken } from "./dom.js";

// So many bars are seen at once; more are scrolled, and must be reached by keys too.
const AT_ONCE = 12;

/** How many items have each class. */
export function classBars(status) {
  const most = Math.max(1, ...status.classes.map((each) => each.count));
  const rows = status.classes.map((each, at) => {
    const bar = h("span", { class: `bar colour-${(at % 8) + 1}` });
    bar.style.setProperty("--share", each.count / most);
    return h("div", {}, h("dt", { dir: "auto" }, each.name),
      h("dd", {}, bar, h("span", { class: "count" }, count(each.count))));
  });
  return [
    h("dl", { class: "bars", tabindex: rows.length > AT_ONCE ? 0 : null }, rows),
    status.n_skipped > 0 && quiet(`${many(status.n_skipped, "item was", "items were")} skipped.`),
  ];
}

/** Who labelled how many, whether those who labelled the same agree, and what is known about their answers, if it is. */
export function people(status, project, team = null) {
  const known = new Map((team?.people ?? []).map((each) => [each.name, each]));
  // A person who only opened the project has not labelled.
  const rows = status.people.map((each) =>
    h("div", {}, h("dt", { dir: "auto" }, each.name),
      h("dd", {}, many(each.labels, "label"), " ",
        h("span", { class: "muted", title: moment(each.last) }, ago(each.last))),
      answers(known.get(each.name))));
  const list = rows.length ? h("dl", { class: "people" }, rows) : quiet("Nobody yet.");
  const notes = team?.notes ?? [];
  return [list, agreement(status.agreement, project),
    notes.length > 0 && h("details", {}, h("summary", {}, "What the numbers of people mean"),
      h("div", { class: "stack" }, notes.map((note) => quiet(unbroken(note)))))];
}

function answers(found) {
  if (!found?.sentences.length) return null;
  const said = found.by_chance ? found.sentences.slice(0, -1) : found.sentences;
  return h("dd", { class: "of-answers" }, said.length > 0 && quiet(unbroken(said.join(" "))),
    found.by_chance && h("p", { class: "by-chance", dir: "auto" }, found.sentences.at(-1)));
}

function agreement(found, project) {
  if (!found || !found.both) {
    return quiet(project.overlap > 0 ? "No item has two labels yet." : "Each item is given to one person.");
  }
  const { both, same, alpha, low, high, difference } = found;
  const alike = project.task === "classification" ? `, and all agree on ${count(same)} (${percent(same / both)})` : "";
  const two = (number) => number.toFixed(2);
  return [
    h("p", {}, `${found.people === 2 ? "Two" : count(found.people)} people labelled the same ${many(both, "item")}${found.people > 2 ? ", two or more each" : ""}${alike}.`,
      alpha !== null && ` Krippendorff's alpha is ${two(alpha)} (95\u00a0% confidence: ${two(low)} to ${two(high)}).`,
      difference !== null && ` Their numbers differ by ${short(difference)} on average.`),
    can("review") && h("p", {}, h("a", { href: "#labels/disagreed" }, "Show where they disagree")),
  ];
}
