// Values that this browser keeps, and the choice of light or dark among them.

/** A value kept in this browser; nothing where storage is forbidden. */
export const kept = {
  get(key, storage = () => localStorage) {
    try {
      return storage().getItem(`suffice.${key}`);
    } catch {
      return null;
    }
  },
  set(key, value, storage = () => localStorage) {
    try {
      if (value === null) storage().removeItem(`suffice.${key}`);
      else storage().setItem(`suffice.${key}`, value);
    } catch {
      // The page works without it, and asks again next time.
    }
  },
};

/** Storage of this tab alone; it outlives a reload. */
export const tab = () => sessionStorage;

/** Change between light and dark; the choice is kept. */
export function changeScheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  kept.set("theme", root.dataset.theme);
}
