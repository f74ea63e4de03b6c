// What the page knows of the project: what it is, where it stands, and whether the server answers.

import { get, getProject } from "./api.js";

export { kept, tab } from "./kept.js";

const EVERY = 2000;
const SLOWEST = 15000;

const listeners = new Set();
let timer = 0;
let wait = EVERY;
let asking = false;
let again = false;

/** The project, its status, whether the server was reached last, the sentence where it was not, and whether to sign in. */
export const store = { project: null, status: null, reached: true, trouble: "", signedOut: false };

/** Be told whenever the status came anew, or did not come; returns what ends it. */
export function watch(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function tell() {
  for (const listener of listeners) listener(store);
}

/** Open the project. */
export async function openProject() {
  store.project = await getProject();
  return store.project;
}

/** Ask for the status now, and go on asking while the page is looked at. */
export async function refresh() {
  clearTimeout(timer);
  if (store.signedOut) return;
  if (asking) {
    again = true;
    return;
  }
  asking = true;
  again = false;
  try {
    store.status = await get("api/status");
    // The views hold this object: what was changed for everybody is changed in it.
    if (store.status.revision !== store.project.revision) {
      const fresh = await getProject();
      // Somebody with another role, or without an account, has another page.
      if (JSON.stringify(fresh.account) !== JSON.stringify(store.project.account)) location.reload();
      Object.assign(store.project, fresh);
    }
    store.reached = true;
    store.trouble = "";
    wait = EVERY;
  } catch (error) {
    store.reached = error.status !== 0;
    store.trouble = error.message;
    wait = Math.min(wait * 2, SLOWEST);
  }
  asking = false;
  tell();
  plan(again ? 150 : wait);
}

function plan(delay) {
  clearTimeout(timer);
  if (!document.hidden) timer = setTimeout(refresh, delay);
}

/** Ask for the status soon: something was just recorded. */
export const refreshSoon = () => (asking ? (again = true) : plan(120));

document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : refresh()));
window.addEventListener("online", () => {
  wait = EVERY;
  refresh();
});
