// What stands where an item would be, while there is none.

import { h, many } from "./dom.js";
import { can } from "./person.js";

/**
 * The words and the ways on.
 * @param {{reached: boolean, trouble: string, pending: number, left: number|null, next: Element|null}} now - How things
 *   stand; left is null while the next item is awaited; next is the next step of a check of predictions made elsewhere.
 */
export function noItem({ reached, trouble, pending, left, next = null }) {
  if (!reached) {
    const held = `${many(pending, "answer")} of yours ${pending === 1 ? "waits" : "wait"} in this tab: keep it open.`;
    const lost = "This page tries again by itself. Check whether suffice serve is still running.";
    return words("The server cannot be reached", lost, pending > 0 && h("p", {}, held));
  }
  if (trouble) return words("The server does not let you in", trouble);
  if (pending > 0) return words("One moment", "The last answer is being saved.");
  if (left === null) return h("p", { class: "empty muted" }, "The next item is coming.");
  if (left > 0) {
    const those = left === 1 ? "The last item is" : `The last ${left} items are`;
    const told = `${those} with other people. What they leave comes to you: this page looks again by itself.`;
    return words("Others are busy with the rest", told);
  }
  if (next) return words("No row waits for an answer", "Nothing needs an answer now.", h("p", { class: "row centre" }, next));
  return words("Nothing is left to label", "Every item has a label or was skipped.",
    h("p", { class: "row centre" },
      can("manage") && h("a", { class: "button primary", href: "#export" }, "Export"),
      h("a", { class: "button", href: "#progress" }, "See the progress")));
}

function words(heading, sentence, more = null) {
  return h("div", { class: "empty" }, h("h2", {}, heading), h("p", {}, sentence), more);
}
