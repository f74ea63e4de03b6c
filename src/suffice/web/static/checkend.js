// The window that states the result of a check when its last answer is given.

import { checking, guaranteed, guaranteeParts } from "./check.js";
import { dialogOpen, openDialog } from "./dialog.js";
import { button, h, unbroken } from "./dom.js";
import { finished } from "./goal.js";
import { can } from "./person.js";
import { store } from "./store.js";

/**
 * Tells the result of a check that was open while this page was; returns what is called with each status.
 * @param {function} goOn - Called when somebody goes on labelling.
 */
export function makeCheckEnd(goOn) {
  let open = 0;
  return (status) => {
    const { check } = status;
    if (checking(status)) open = check.number;
    // Another window stays until it is closed.
    if (!open || checking(status) || dialogOpen()) return;
    const ended = check?.number === open && check.state === "complete";
    open = 0;
    // Without a model of this project no further item comes, and its place shows what comes next.
    if (ended && !store.project.checked) tellResult(status, goOn);
  };
}

function tellResult(status, goOn) {
  const said = (text) => h("p", {}, h("b", {}, unbroken(text)));
  const result = finished(status) ? said(status.goal.sentences[0])
    : guaranteed(status) ? guaranteeParts(status) : said(status.check.sentence);
  const further = guaranteed(status) && !finished(status) &&
    "Further labels change the model. The guarantee does not hold for the changed model.";
  const leave = () => {
    dialog.close();
    location.hash = "#export";
  };
  const stay = () => {
    dialog.close();
    location.hash = "#label";
    goOn();
  };
  const dialog = openDialog("The check is complete", [
    h("div", { class: "stack" }, result, further && h("p", {}, further),
      h("div", { class: "row end" }, button(stay, {}, "Go on labelling"),
        can("manage") && button(leave, { class: "primary" }, "Download the results"))),
  ]);
  // A key that was meant for an item must not press a button.
  dialog.tabIndex = -1;
  dialog.focus();
  scrollTo(0, 0);
}
