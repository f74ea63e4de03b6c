// Signing in and out, where the project has accounts.

import { ApiError, capital, post } from "./api.js";
import { h, many, put, quiet } from "./dom.js";
import { hurry, pending } from "./outbox.js";
import { store } from "./store.js";
import { toast } from "./toast.js";

const at = (id) => document.getElementById(id);
let asking = null;

/**
 * Ask for name and password in the place of all views; the promise is kept once somebody is signed in.
 * @param {{reload?: boolean}} options - Whether the page is then loaded anew: what it shows may be another person's.
 */
export function signIn({ reload = false } = {}) {
  asking ??= new Promise((resolve) => {
    const name = h("input", { id: "sign-in-name", type: "text", maxlength: 64, autocomplete: "username", required: true,
      spellcheck: "false", autocapitalize: "none", "aria-describedby": "sign-in-problem" });
    const password = h("input", { id: "sign-in-password", type: "password", maxlength: 1000, required: true,
      autocomplete: "current-password", "aria-describedby": "sign-in-problem" });
    const problem = h("p", { id: "sign-in-problem", class: "problem", role: "alert" });
    const send = h("button", { type: "submit", class: "primary" }, "Sign in");
    const accept = async (event) => {
      event.preventDefault();
      const empty = [name, password].find((each) => !each.value.trim());
      problem.textContent = empty ? "Enter both the name and the password." : "";
      if (empty) {
        empty.focus();
        return;
      }
      send.disabled = true;
      try {
        await enter(name.value.trim(), password.value);
        if (reload) location.reload();
        else {
          close();
          resolve();
        }
      } catch (error) {
        problem.textContent = error.message;
        send.disabled = false;
        password.select();
        password.focus();
      }
    };
    const waiting = pending().length;
    put(at("sign-in"), h("div", { class: "card sign-in" }, h("h2", {}, "Sign in"),
      h("form", { novalidate: true, on: { submit: accept } },
        h("label", { for: "sign-in-name" }, "Name"), name,
        h("label", { for: "sign-in-password" }, "Password"), password, problem,
        h("div", { class: "row end" }, send)),
      waiting > 0 && h("p", {}, `${many(waiting, "answer")} of ${pending()[0].body.person} ${waiting === 1 ? "waits" : "wait"} ` +
        "in this tab, to be saved after signing in. Keep it open."),
      quiet("Do you have a personal link? Open it instead.")));
    store.signedOut = true;
    document.body.classList.add("signed-out");
    document.querySelector("dialog[open]")?.close();
    at("sign-in").hidden = false;
    document.title = "Sign in · suffice";
    name.focus();
  });
  return asking;
}

// Somebody may have opened a personal link in another tab.
document.addEventListener("visibilitychange", async () => {
  if (!asking || document.hidden) return;
  const response = await fetch("api/project", { credentials: "same-origin" }).catch(() => null);
  if (asking && response?.ok) location.reload();
});

function close() {
  asking = null;
  store.signedOut = false;
  document.body.classList.remove("signed-out");
  put(at("sign-in"));
  at("sign-in").hidden = true;
}

async function enter(person, password) {
  let response;
  try {
    response = await fetch("sign-in", {
      method: "POST", credentials: "same-origin", headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ person, password }), signal: AbortSignal.timeout(20000),
    });
  } catch {
    throw new ApiError(0, "The server cannot be reached. Try again.");
  }
  if (response.ok) return;
  const { detail } = await response.json().catch(() => ({}));
  throw new ApiError(response.status, capital(detail ?? `The server answered ${response.status}`));
}

/** Show in the header who is signed in, with a way to sign out. */
export function showAccount({ name, role }) {
  if (name) {
    const shown = h("span", { class: "person account", id: "person", title: `Your role: ${role}` },
      h("span", { class: "visually-hidden" }, "You are signed in as "), h("span", { id: "person-name", dir: "auto" }));
    at("person").replaceWith(shown);
  }
  at("sign-out").hidden = false;
  at("sign-out").addEventListener("click", async () => {
    if (pending().length) {
      hurry();
      toast("Not yet: your last answers are being saved.");
      return;
    }
    try {
      await post("sign-out", {});
      location.reload();
    } catch (error) {
      toast(error.message);
    }
  });
}
