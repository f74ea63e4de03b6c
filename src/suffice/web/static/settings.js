// The view of the settings: classes, guidelines, descriptions, costs, and who changed what.

import { get } from "./api.js";
import { makeClassesPart } from "./classes.js";
import { ago, button, h, moment, put, quiet } from "./dom.js";
import { submit } from "./outbox.js";
import { person } from "./person.js";
import { refresh, watch } from "./store.js";
import { toast } from "./toast.js";

const percentOf = (share) => (share === null ? "" : String(Number((share * 100).toPrecision(6))));

/** Make the view. */
export function makeSettingsView(root, project) {
  const isClasses = project.task === "classification";
  const classes = isClasses ? makeClassesPart(project) : null;
  const general = makeForm("General", isClasses);
  const words = makeWords(project);
  const history = h("ol", { class: "history plain" });
  const problem = h("p", { class: "problem", role: "alert" });
  put(root, h("h2", { class: "visually-hidden" }, "Settings"), problem, h("div", { class: "board" },
    words.element, general.element, classes?.element,
    h("section", { class: "card wide" }, h("h3", {}, "Who changed what"), history)));
  let revision = -1;

  async function load() {
    try {
      const found = await get("api/settings");
      problem.textContent = "";
      revision = project.revision;
      general.fill(found);
      words.fill(found);
      put(history, found.history.length ? found.history.map((each) =>
        h("li", {}, h("strong", { dir: "auto" }, each.person), ` ${each.words} `,
          h("span", { class: "muted", title: moment(each.at) }, ago(each.at)))) : h("li", { class: "muted" }, "Nobody yet."));
    } catch (error) {
      problem.textContent = error.message;
    }
  }

  watch(() => {
    if (!root.hidden && revision !== project.revision) load();
  });
  return {
    show() {
      classes?.show();
      load();
    },
  };
}

/** A form that sends what was changed: element, fill(found). Each field: input, read(found), value(text). */
function formOf(title, note, fields, { wide = false } = {}) {
  let shown = {};
  let dirty = false;
  const problem = h("p", { class: "problem", role: "alert" });
  const save = h("button", { type: "submit", class: "primary" }, "Save");
  const discard = button(() => show(shown), {}, "Discard changes");
  const enable = () => {
    save.disabled = discard.disabled = !dirty;
  };
  const show = (found) => {
    shown = found;
    dirty = false;
    problem.textContent = "";
    for (const each of fields) each.fill(found);
    inputs.disabled = false;
    enable();
  };
  const accept = async (event) => {
    event.preventDefault();
    problem.textContent = "";
    let changes = {};
    try {
      for (const each of fields) if (!each.hidden?.()) changes = { ...changes, ...each.changes(shown) };
    } catch (error) {
      problem.textContent = error.message;
      return;
    }
    if (!Object.keys(changes).length) {
      show(shown);
      return;
    }
    save.disabled = true;
    try {
      await submit("api/settings", { person: person(), ...changes });
      dirty = false;
      await refresh();
      toast("The settings are saved.");
    } catch (error) {
      problem.textContent = error.message;
      save.disabled = false;
    }
  };
  // Until the settings have come, nothing can be typed that they would not reach.
  const inputs = h("fieldset", { class: "all", disabled: true }, fields.map((each) => each.element));
  const element = h("section", { class: wide ? "card wide" : "card" }, h("h3", {}, title), note && quiet(note),
    h("form", { class: "settings", novalidate: true, on: { submit: accept, input: () => {
      dirty = true;
      enable();
    } } }, inputs, problem, h("div", { class: "row end" }, discard, save)));
  return { element, fill: (found) => !dirty && show(found) };
}

function field(id, name, hint, input) {
  input.id = id;
  if (hint) input.setAttribute("aria-describedby", `${id}-hint`);
  return h("div", { class: "field" }, h("label", { for: id }, name), input,
    hint && h("p", { class: "muted", id: `${id}-hint` }, hint));
}

/** A box for one setting; read turns its text into a value or throws a sentence. */
function textField(key, name, hint, input, { write = (value) => value ?? "", read = (text) => text.trim() } = {}) {
  const element = field(`setting-${key}`, name, hint, input);
  return {
    element,
    hidden: () => element.hidden,
    fill(found) {
      input.value = write(found[key]);
    },
    changes(found) {
      return input.value === write(found[key]) ? {} : { [key]: read(input.value) };
    },
  };
}

const box = (properties = {}) => h("input", { type: "text", autocomplete: "off", ...properties });
const decimal = () => box({ inputmode: "decimal" });

function numberOf(text, name) {
  const value = Number(text.trim());
  if (!text.trim() || !Number.isFinite(value)) throw new Error(`${name} must be a number, such as 2 or 0.5.`);
  return value;
}

const share = (text, name) => Number((numberOf(text.replace("%", ""), name) / 100).toPrecision(12));

/** The target error: of the unlabelled items, or of all labels at the end; and what else a goal for all labels needs. */
function goalField(isClasses) {
  const everything = h("option", { value: "all" });
  const of = h("select", {},
    h("option", { value: "rest" }, isClasses ? "of the predictions for unlabelled items" : "typical error of the predictions"), everything);
  // In a screening, the class that is looked for.
  let positive = null;
  const [atMost, people, cost, tolerance] = [decimal(), decimal(), decimal(), decimal()];
  const inPercent = () => isClasses || of.value === "all";
  const hint = "At most this share may be wrong. Leave it empty for no target.";
  const wanted = field("setting-at_most", isClasses ? "Target error, in % wrong" : "Target error", hint, atMost);
  const only = h("div", { class: "stack" },
    !isClasses && field("setting-tolerance", "A number is wrong if it is off by more than", "In units of the label.", tolerance),
    field("setting-annotator_error", "Wrong labels of people, in %",
      "0: labels of people count as right. Another share is subtracted from the target, and the statement says so.", people),
    field("setting-correction_cost", "Cost of an answer in a check, relative to a label", "1, or less if answers in a check are cheaper.", cost));
  const show = () => {
    const missed = positive !== null && of.value === "all";
    only.hidden = of.value !== "all" || missed;
    everything.textContent = positive === null ? "of all labels at the end, of people and of the model"
      : `of the items of class “${positive}”, which may be missed`;
    wanted.querySelector("label").textContent = missed ? "Target, in % missed" : inPercent() ? "Target error, in % wrong" : "Target error";
    wanted.querySelector("p").textContent = missed ? "At most this share of the class may be missed. Leave it empty for no target."
      : inPercent() ? hint
      : "The largest acceptable typical error, in units of the label. Leave it empty for no target.";
  };
  of.addEventListener("change", show);
  const written = (value, percents) => (percents ? percentOf(value) : value === null ? "" : String(value));
  return {
    element: h("div", { class: "stack" }, wanted, field("setting-of", "What the target is about", "", of), only),
    fill(found) {
      of.value = found.of;
      positive = found.positive;
      atMost.value = written(found.at_most, inPercent());
      people.value = percentOf(found.annotator_error);
      cost.value = String(found.correction_cost);
      tolerance.value = written(found.tolerance, false);
      show();
    },
    changes(found) {
      const all = of.value === "all";
      if (all && !atMost.value.trim()) throw new Error("A target of all labels needs a share, such as 5 %.");
      if (all && !isClasses && !tolerance.value.trim()) throw new Error("Enter how far off a number may be at most.");
      const read = inPercent() ? share : numberOf;
      const now = { at_most: atMost.value.trim() ? read(atMost.value, "Target error") : null, of: of.value };
      if (all) {
        now.annotator_error = people.value.trim() ? share(people.value, "Wrong labels of people") : 0;
        now.correction_cost = cost.value.trim() ? numberOf(cost.value, "Cost of an answer") : 1;
        if (!isClasses) now.tolerance = numberOf(tolerance.value, "The largest error");
      }
      return Object.fromEntries(Object.entries(now).filter(([key, value]) => value !== found[key]));
    },
  };
}

const limit = (key, name, hint) => textField(key, name, hint, decimal(), {
  write: (value) => (value === null ? "" : String(value)), read: (text) => (text.trim() ? numberOf(text, name) : null),
});

function makeForm(title, isClasses) {
  const cost = (key, name, hint) => {
    const made = textField(key, name, hint, decimal(), {
      write: (value) => (value === null ? "" : String(value)), read: (text) => numberOf(text, name),
    });
    const fill = made.fill;
    made.fill = (found) => {
      made.element.hidden = found[key] === null;
      fill(found);
    };
    return made;
  };
  return formOf(title, "Settings apply to everybody. After a change of the costs or the target error, the rule is applied again from the first label on.", [
    textField("name", "Name of the project", "", box({ maxlength: 200 })),
    cost("label_cost", "Cost of a label", "In any unit, the same as for a mistake."),
    cost("mistake_cost", "Cost of a mistake", "What one wrong prediction costs."),
    goalField(isClasses),
    ...(isClasses ? [textField("may_miss", "Classes that may be missed, one on each line",
      "While a rare class has fewer than 5 labels, the advice is not to stop, except for these.", h("textarea", { rows: 2, dir: "auto" }), {
        write: (names) => names.join("\n"), read: (text) => text.split("\n").map((name) => name.trim()).filter(Boolean),
      })] : []),
    ...(isClasses ? [] : [
      textField("unit", "Unit of the label", "Shown beside the box, such as kg.", box({ maxlength: 40 })),
      limit("lowest", "Smallest plausible label", "A smaller number must be confirmed. Leave it empty for no limit."),
      limit("highest", "Largest plausible label", "A larger number must be confirmed. Leave it empty for no limit."),
    ]),
    textField("overlap", "Items for several people, in %", "This share of the items is also given to other people.", decimal(), {
      write: percentOf, read: (text) => share(text, "Items for several people"),
    }),
    textField("opinions", "People for each of these items", "How many people label each of these items, at least 2.", decimal(), {
      write: String, read: (text) => numberOf(text, "People for each of these items"),
    }),
  ]);
}

function makeWords(project) {
  const boxes = h("div", {});
  const guidelines = textField("guidelines", "Guidelines, in Markdown", "Shown next to the item. # heading, - list, *emphasis*, `code`, [link](https://…)",
    h("textarea", { rows: 10, maxlength: 20000, spellcheck: "true" }), { read: (text) => text });
  let inputs = new Map();
  const texts = () => Object.fromEntries([...inputs].map(([name, input]) => [name, input.value.trim()]));
  const described = {
    element: boxes,
    fill(found) {
      inputs = new Map(project.classes.map((name) => [name, box({ maxlength: 500, dir: "auto" })]));
      for (const [name, input] of inputs) input.value = found.descriptions[name] ?? "";
      put(boxes, project.classes.length > 0 && h("fieldset", {}, h("legend", {}, "What belongs to each class"),
        [...inputs].map(([name, input], at) => field(`description-${at}`, name, "", input))));
    },
    changes(found) {
      const now = Object.fromEntries(Object.entries(texts()).filter(([, text]) => text));
      return JSON.stringify(Object.entries(now).sort()) === JSON.stringify(Object.entries(found.descriptions).sort())
        ? {} : { descriptions: now };
    },
  };
  return formOf("Guidelines", "", [guidelines, described]);
}
