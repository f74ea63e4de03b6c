// Submissions on their way. They go one after the other, each under a name of its own, and each again under the same
// name until the server answers; they outlive a reload. Nothing counts as recorded before the server said so.

import { post, requestId } from "./api.js";
import { kept, store, tab, watch } from "./store.js";

// What somebody else left in this tab waits until they sign in again.
const isOurs = ({ body }) => !store.project.account?.name || body.person === store.project.account.name;

const SLOWEST = 8000;
const listeners = new Set();

const waiting = [];
let sending = false;
let trouble = "";
let pause = 1000;
let timer = 0;

// A project of the same address may be another one tomorrow: its box is its own.
const key = () => `outbox.${store.project.made}`;

/** Be told of every change: listener({waiting, trouble}). */
export function watchOutbox(listener) {
  listeners.add(listener);
}

/** Submissions that are not acknowledged yet, oldest first. */
export const pending = () => waiting;

/**
 * Send something, once the submissions before it are through.
 * @param {string} path - Of the API.
 * @param {object} body - Without the request's name, which is added.
 * @returns A promise of the receipt; it fails only where the server refused for good.
 */
export function submit(path, body) {
  return new Promise((resolve, reject) => {
    waiting.push({ path, body: { ...body, request: requestId() }, resolve, reject });
    changed();
    flush();
  });
}

/** Take up what a reload interrupted; done(entry, error) is called for each when it is through. */
export function recover(done) {
  let saved = [];
  try {
    saved = JSON.parse(kept.get(key(), tab) ?? "[]");
  } catch {
    kept.set(key(), null, tab);
  }
  for (const entry of saved) {
    waiting.push({ ...entry, resolve: () => done(entry, null), reject: (error) => done(entry, error) });
  }
  if (saved.length) flush();
}

/** Try again now. */
export function hurry() {
  clearTimeout(timer);
  pause = 1000;
  flush();
}

async function flush() {
  // Until somebody has signed in, nobody knows whose they are.
  if (sending || !waiting.length || store.signedOut) return;
  clearTimeout(timer);
  sending = true;
  for (;;) {
    const entry = waiting.find(isOurs);
    if (!entry) {
      if (waiting.length) trouble = `${waiting[0].body.person} must sign in here again.`;
      break;
    }
    let receipt = null;
    let refused = null;
    try {
      receipt = await post(entry.path, entry.body);
    } catch (error) {
      // Without access, too, what was typed is kept until there is access again.
      if (error.passing || error.status === 401) {
        trouble = error.message;
        break;
      }
      refused = error;
    }
    trouble = "";
    pause = 1000;
    waiting.splice(waiting.indexOf(entry), 1);
    changed();
    if (refused) entry.reject(refused);
    else entry.resolve(receipt);
  }
  sending = false;
  changed();
  if (waiting.length) {
    timer = setTimeout(flush, pause);
    pause = Math.min(pause * 2, SLOWEST);
  }
}

function changed() {
  kept.set(key(), waiting.length ? JSON.stringify(waiting.map(({ path, body }) => ({ path, body }))) : null, tab);
  for (const listener of listeners) listener({ waiting, trouble });
}

let reached = true;
watch((now) => {
  if (now.reached && !reached && waiting.length) hurry();
  reached = now.reached;
});
window.addEventListener("online", hurry);
window.addEventListener("beforeunload", (event) => {
  // Closing the tab would lose them; a reload would not, but the browser does not tell the two apart.
  if (trouble && waiting.length) event.preventDefault();
});
