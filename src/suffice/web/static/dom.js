// Making elements, and words for numbers and times. Text only ever enters the page as text.

const SVG = "http://www.w3.org/2000/svg";

/** An element with properties (class, on: {event: handler}, attributes) and children (nodes, texts, or nothing). */
export function h(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

/** The same for a part of a drawing. */
export function svg(tag, properties = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [event, handler] of Object.entries(value)) element.addEventListener(event, handler);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...present(children));
  return element;
}

/** A button that does something; properties as for h. */
export function button(run, properties, ...children) {
  return h("button", { type: "button", ...properties, on: { click: run } }, ...children);
}

/** A paragraph in quiet letters. */
export const quiet = (...children) => h("p", { class: "muted" }, ...children);

// Lists may hold lists, and nothing where there is nothing to show.
function present(children) {
  return children.flat(Infinity).filter((child) => ![null, undefined, false, ""].includes(child));
}

/** Replace what an element holds. */
export function put(element, ...children) {
  element.replaceChildren(...present(children));
  return element;
}

/** Replace what an element holds where it differs, so that nothing flickers, is said twice, or loses its place. */
export function swap(element, ...children) {
  const fresh = h("div", {}, ...children);
  if (fresh.textContent === element.textContent && fresh.childElementCount === element.childElementCount) return;
  const unfolded = element.querySelector("details")?.open ?? false;
  put(element, ...fresh.childNodes);
  if (unfolded) element.querySelector("details")?.setAttribute("open", "");
}

// What the guidelines may hold: the server renders no other, and nothing else is taken over here.
const ALLOWED = new Set(["P", "H3", "H4", "H5", "H6", "UL", "OL", "LI", "EM", "STRONG", "CODE", "PRE", "BLOCKQUOTE", "HR", "BR", "A",
  "TABLE", "THEAD", "TBODY", "TR", "TH", "TD"]);

/** Elements of HTML that the server made from Markdown, built anew: known tags, texts and links alone. */
export function fromHtml(html) {
  const copy = (node) => {
    if (node.nodeType === Node.TEXT_NODE) return node.textContent;
    if (node.nodeType !== Node.ELEMENT_NODE || !ALLOWED.has(node.tagName)) return null;
    const link = node.tagName === "A" && /^(https?:|mailto:)/i.test(node.getAttribute("href") ?? "");
    const properties = link
      ? { href: node.getAttribute("href"), target: "_blank", rel: "noopener noreferrer nofollow" } : {};
    return h(node.tagName.toLowerCase(), properties, ...[...node.childNodes].map(copy));
  };
  return [...new DOMParser().parseFromString(html, "text/html").body.childNodes].map(copy);
}

/** A text in which every place of another text is marked, in upper or lower case; the text itself where that is empty. */
export function marked(text, sought) {
  if (!sought) return text;
  const pattern = new RegExp(sought.trim().replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace(/\s+/g, "\\s+"), "giu");
  const parts = [];
  let from = 0;
  for (const match of text.matchAll(pattern)) {
    parts.push(text.slice(from, match.index), h("mark", {}, match[0]));
    from = match.index + match[0].length;
  }
  return [...parts, text.slice(from)];
}

/** Whether this is a touch screen, which usually has no keyboard. */
export const touched = () => matchMedia("(pointer: coarse)").matches;

const whole = new Intl.NumberFormat("en-GB");

/** A whole number, in groups of three. */
export const count = (n) => whole.format(n);

/** A noun after its number: "1 label", "2 labels". */
export const many = (n, noun, plural = `${noun}s`) => `${count(n)} ${n === 1 ? noun : plural}`;

/** A number to three digits, without needless zeros. */
export function short(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 0.001 || size >= 1e15)) return value.toExponential(1).replace("e+", "e");
  const rounded = Number(value.toPrecision(3));
  return size >= 1e4 ? count(rounded) : String(rounded);
}

/** A share as a percentage: 0.0345 is "3.5 %". */
export function percent(share) {
  const value = share * 100;
  return `${value < 9.95 && value !== 0 ? value.toFixed(1) : value.toFixed(0)}\u00a0%`;
}

/** A sentence that does not break between a number and its per cent sign. */
export const unbroken = (text) => text.replace(/(\d) %/g, "$1\u00a0%");

/** A whole number to two digits, as a forecast deserves. */
export const roughly = (n) => count(Number(n.toPrecision(2)));

/** A label as a person writes it. */
export const labelText = (label) => (typeof label === "number" ? String(Number(label.toPrecision(12))) : String(label));

/** How long ago a moment was, or the day where that is long. */
export function ago(iso) {
  const then = new Date(iso);
  const minutes = (Date.now() - then.getTime()) / 60000;
  if (Number.isNaN(minutes)) return "";
  if (minutes < 1) return "just now";
  if (minutes < 60) return `${Math.floor(minutes)} min ago`;
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)} h ago`;
  return then.toLocaleDateString("en-GB", { day: "numeric", month: "short", year: "numeric" });
}

/** A moment in full, for a tooltip. */
export const moment = (iso) => new Date(iso).toLocaleString("en-GB");
