// Links that save a file of the server.

import { getFile } from "./api.js";
import { h } from "./dom.js";
import { toast } from "./toast.js";

/** A link that saves a file, or says beside it why there is none. */
export function saving(path, file, problem, properties, words) {
  const click = (event) => {
    event.preventDefault();
    save(path, file, event.currentTarget, problem);
  };
  return h("a", { class: "button", href: path, ...properties, on: { click } }, words);
}

/** Save a file, or say why there is none: a link alone would save the refusal. */
async function save(path, file, link, problem) {
  if (link.getAttribute("aria-busy") === "true") return;
  problem.textContent = "";
  link.setAttribute("aria-busy", "true");
  try {
    const { blob, name } = await getFile(path, file);
    const address = URL.createObjectURL(blob);
    h("a", { href: address, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(address), 60000);
    toast(`Saved ${name}.`);
  } catch (error) {
    problem.textContent = error.message;
  }
  link.removeAttribute("aria-busy");
}
