// One item, shown well: a row, a text, or an image.

import { button, h, marked, put, quiet } from "./dom.js";

const MANY = 4;
const SMALL = 160;
// Characters of a text that is shown large, and very large.
const LONGER = 240;
const SHORT = 90;
// How much larger than it is shown an image gets, at least.
const ZOOM = 2.5;

/**
 * What a person sees of an item.
 * @param {object} item - As the API gives it.
 * @param {object} project - As the API gives it.
 * @param {string} sought - A text whose places are marked.
 */
export function showItem(item, project, sought = "") {
  if (project.checked?.answer === "verdict") return withPrediction(item, project, sought);
  return contents(item, project, { sought });
}

function contents(item, project, { span = null, sought = "" }) {
  if (item.image) return [picture(item), others(item, project, sought)];
  const main = item.cells.find((cell) => cell.name === project.main);
  if (project.shown === "text" && main) return [text(main, { span, sought }), others(item, project, sought)];
  return [cells(item.cells, sought)];
}

/** The address of an image relative to the page, which may be under a path of its own. */
export const imageAddress = (image) => image.slice(image.lastIndexOf("api/items/"));

/** An item with the prediction that people judge: a text, JSON, or a part of the text that is marked. */
function withPrediction(item, project, sought) {
  const { columns, spans, probability } = project.checked;
  const value = (name) => item.cells.find((cell) => cell.name === name)?.value ?? "";
  const apart = new Set([...columns, ...(spans ?? []), probability]);
  const rest = { ...item, cells: item.cells.filter((cell) => !apart.has(cell.name)) };
  const span = spans && [Number(value(spans[0])), Number(value(spans[1]))];
  const sure = probability && value(probability) !== "" && ` (confidence ${value(probability)})`;
  return [...contents(rest, project, { span, sought }),
    h("section", { class: "judged", "aria-label": "Prediction" }, h("h2", {}, "Prediction", sure),
      columns.map((name) => h("pre", { class: "reading", dir: "auto", tabindex: "0" }, readable(value(name)))))];
}

/** A value as it is read best: JSON with line breaks, everything else as it is. */
export function readable(value) {
  if (!/^\s*[[{]/.test(value)) return value;
  try {
    return JSON.stringify(JSON.parse(value), null, 2);
  } catch {
    return value;
  }
}

/** A text with one part marked; positions outside the text mark nothing. */
function withSpan(value, mark) {
  if (!mark) return value;
  // Positions count characters, as in Python; a text of JavaScript counts code units.
  const letters = [...value];
  const [start, end] = mark;
  if (!(start >= 0 && end > start && end <= letters.length)) return value;
  return [letters.slice(0, start).join(""), h("mark", {}, letters.slice(start, end).join("")), letters.slice(end).join("")];
}

function text(cell, { span, sought }) {
  const body = h("div", { class: "reading", dir: "auto" }, span ? withSpan(cell.value, span) : marked(cell.value, sought));
  if (!cell.value.trim()) return quiet("This text is empty.");
  const size = cell.value.length;
  const kind = size > LONGER ? null : size > SHORT ? "short" : "short very";
  return h("div", { class: kind }, body, cell.cut && shortened());
}

function shortened() {
  return quiet("The text is longer: only its first 20,000 characters are shown.");
}

function picture(item) {
  // Without the leading slash it is found below a proxy's prefix too.
  const image = h("img", { src: imageAddress(item.image), alt: `Image ${item.id}`, class: "picture" });
  const zoom = button(() => toggle(), { class: "zoom", "aria-pressed": "false", "aria-label": `Zoom image ${item.id}`,
    "aria-keyshortcuts": "z" }, image);
  const frame = h("div", { class: "frame" }, zoom);
  const toggle = () => {
    const larger = zoom.getAttribute("aria-pressed") !== "true";
    image.style.width = larger ? `${Math.max(image.naturalWidth, Math.round(image.clientWidth * ZOOM))}px` : "";
    zoom.setAttribute("aria-pressed", String(larger));
  };
  image.addEventListener("load", () => {
    // A very small image is blown up in whole squares, not blurred.
    if (Math.max(image.naturalWidth, image.naturalHeight) <= SMALL) image.classList.add("small");
  });
  image.addEventListener("error", () => {
    const told = "This image cannot be shown. Skip it, or check whether its file exists.";
    put(frame, h("p", { class: "problem" }, told));
  });
  return frame;
}

function others(item, project, sought) {
  const rest = item.cells.filter((cell) => cell.name !== project.main);
  if (!rest.length) return null;
  if (rest.length <= MANY) return cells(rest, sought);
  const open = Boolean(sought) && rest.some((cell) => marked(cell.value, sought).length > 1);
  return h("details", { class: "others", open }, h("summary", {}, `${rest.length} more columns`), cells(rest, sought));
}

function cells(list, sought) {
  const long = list.some((cell) => cell.value.length > 60);
  const rows = list.map((cell) =>
    h("div", {}, h("dt", {}, cell.name),
      h("dd", { dir: "auto", class: cell.value === "" ? "muted" : null },
        cell.value === "" ? "(empty)" : marked(cell.value, sought), cell.cut && shortened())));
  return h("dl", { class: `cells${!long && list.length > 6 ? " columns" : ""}` }, rows);
}
