// What was labelled and by whom, for the progress view: bars of the classes, people, and how far they agree.

import { can } from "./person.js";
import { ago, count, h, many, moment, percent, quiet, short } from "./dom.js";

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

/** Who labelled how many, and whether those who labelled the same agree. */
export function people(status, project) {
  // A person who only opened the project has not labelled.
  const rows = status.people.map((each) =>
    h("div", {}, h("dt", { dir: "auto" }, each.name),
      h("dd", {}, many(each.labels, "label"), " ",
        h("span", { class: "muted", title: moment(each.last) }, ago(each.last)))));
  const list = rows.length ? h("dl", { class: "people" }, rows) : quiet("Nobody yet.");
  return [list, agreement(status.agreement, project)];
}

function agreement(found, project) {
  if (!found || !found.both) {
    return quiet(project.overlap > 0 ? "No item has two labels yet." : "Each item is given to one person.");
  }
  const { both, same, kappa, difference } = found;
  const alike = project.task === "classification" ? `, and agree on ${count(same)} (${percent(same / both)})` : "";
  return [
    h("p", {}, `Two people labelled the same ${many(both, "item")}${alike}.`,
      kappa !== null && ` Cohen's kappa is ${short(kappa)}.`,
      difference !== null && ` Their numbers differ by ${short(difference)} on average.`),
    can("review") && h("p", {}, h("a", { href: "#labels/disagreed" }, "Show where they disagree")),
  ];
}
