// What the model says of the item on the screen: on request only, switched on by each person for themselves.

import { post } from "./api.js";
import { h, put, quiet, unbroken } from "./dom.js";
import { person } from "./person.js";
import { kept, store } from "./store.js";

const WHY = "Seeing a prediction influences people. Labels that you give while it is shown are marked, and do not count as "
  + "random labels when the error is estimated.";

// Two people at one browser have a switch each.
const key = () => `predictions.${person()}`;

/**
 * A card with the switch, and the predictions where it is on.
 * @returns {{element, update}} update(item) shows those of an item; null for none.
 */
export function makePredictionCard() {
  let current = null;
  let newest = 0;
  const input = h("input", { type: "checkbox", id: "show-predictions" });
  const said = h("div", { role: "status" });
  const element = h("section", { class: "card prediction" },
    h("label", { class: "switch", for: "show-predictions" }, input, " Show the prediction"), said);
  input.addEventListener("change", () => {
    kept.set(key(), input.checked ? "on" : null);
    update(current);
  });

  async function update(item) {
    current = item;
    input.checked = kept.get(key()) === "on";
    // In a check the label must not depend on a prediction. Predictions made elsewhere are shown with the item.
    element.hidden = Boolean(item?.check || store.project.checked);
    const mine = (newest += 1);
    put(said);
    if (!input.checked || !item || element.hidden) return;
    try {
      const { predictions } = await post("api/predictions", { person: item.person, item: item.item });
      if (mine !== newest) return;
      put(said, predictions.map((each) => h("p", { dir: "auto" }, unbroken(each.sentence))),
        !predictions.length && quiet("There is no prediction yet."), quiet(WHY));
    } catch (error) {
      if (mine === newest) put(said, quiet(error.message));
    }
  }

  return { element, update };
}
