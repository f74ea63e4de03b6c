// Talking to the server. Nothing outside /api is used, so a script can do whatever the page does.

const PATIENCE = 20000;
let csrf = "";
// What gives the key.
let renew = getProject;
let signedOut = () => {};

/** Whether this is one of several projects that are served together. */
export const inProjects = () => /\/p\/[^/]+\/$/.test(location.pathname);

/** What to do where the server wants somebody to sign in. */
export function whenSignedOut(run) {
  signedOut = run;
}

/** The server refused (its status and its sentence), or could not be reached (status 0). */
export class ApiError extends Error {
  constructor(status, detail, signIn = false) {
    super(detail);
    this.status = status;
    this.signIn = signIn;
  }

  /** Whether the same request may succeed later: no answer, an overloaded server, a full disk. */
  get passing() {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

async function ask(path, options = {}) {
  let response;
  try {
    response = await fetch(path, { credentials: "same-origin", signal: AbortSignal.timeout(PATIENCE), ...options });
  } catch {
    throw new ApiError(0, "The server cannot be reached.");
  }
  if (response.ok) return response;
  const signIn = response.status === 401 && response.headers.has("X-Suffice-Sign-In");
  if (signIn) signedOut();
  throw new ApiError(response.status, await sentence(response), signIn);
}

async function sentence(response) {
  try {
    const { detail } = await response.json();
    if (typeof detail === "string" && detail) return capital(detail);
    if (Array.isArray(detail)) return detail.map((each) => each.msg ?? String(each)).join("; ");
  } catch {
    // No JSON: a proxy between here and the server answered.
  }
  return `The server answered ${response.status}.`;
}

/** A sentence with a capital at its start and a full stop at its end. */
export function capital(text) {
  const trimmed = text.trim();
  return trimmed.charAt(0).toUpperCase() + trimmed.slice(1) + (/[.!?]\)?$/.test(trimmed) ? "" : ".");
}

async function json(response) {
  try {
    return await response.json();
  } catch {
    throw new ApiError(0, "The response of the server was cut off.");
  }
}

/** What the project is; also the key that the server wants to see on every POST. */
export async function getProject() {
  const project = await get("api/project");
  csrf = project.csrf;
  return project;
}

/** The projects of a folder; also the key, as above. */
export async function getFolder() {
  renew = getFolder;
  const folder = await get("api/projects", 60000);
  csrf = folder.csrf;
  return folder;
}

export async function get(path, patience = PATIENCE) {
  return json(await ask(path, { signal: AbortSignal.timeout(patience) }));
}

/** A file to save: its bytes, and the name that the server gives it or else this one. */
export async function getFile(path, fallback) {
  const response = await ask(path, { signal: AbortSignal.timeout(600000) });
  const named = /filename="?([^";]+)"?/.exec(response.headers.get("content-disposition") ?? "");
  try {
    return { blob: await response.blob(), name: named ? named[1] : fallback };
  } catch {
    throw new ApiError(0, "The file was cut off.");
  }
}

export async function post(path, body, patience = PATIENCE) {
  const send = async () =>
    json(await ask(path, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Suffice-CSRF": csrf },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(patience),
    }));
  try {
    return await send();
  } catch (error) {
    if (error.status !== 403) throw error;
    // A server that was started again has another key.
    await renew();
    return send();
  }
}

/**
 * Send a file. The promise gives the answer of the server.
 * @param {string} path - Of the API.
 * @param {File} file - The file.
 * @param {{progress: function, signal: AbortSignal}} options - progress(share) is called while it is sent; signal ends it.
 */
export function sendFile(path, file, { progress, signal }) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const fail = (sentenceOfIt) => () => reject(new ApiError(0, sentenceOfIt));
    request.upload.onprogress = (event) => progress(event.lengthComputable ? event.loaded / event.total : 0);
    request.upload.onload = () => progress(1);
    request.onerror = fail("The server cannot be reached, or it refused the file. Is the file too large?");
    request.onabort = fail("");
    request.onload = () => {
      let answer = {};
      try {
        answer = JSON.parse(request.responseText);
      } catch {
        // No JSON: a proxy between here and the server answered.
      }
      if (request.status === 200) resolve(answer);
      else reject(new ApiError(request.status, capital(answer.detail ?? `The server answered ${request.status}`)));
    };
    signal.addEventListener("abort", () => request.abort());
    request.open("POST", path);
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.setRequestHeader("X-Suffice-CSRF", csrf);
    request.send(file);
  });
}

/** A name for one submission: the server does what comes again under it only once. */
export function requestId() {
  // Over plain http from another machine there is no randomUUID.
  if (globalThis.crypto.randomUUID) return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
