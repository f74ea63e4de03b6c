// Runs before the page is drawn, so that a chosen theme does not flash in the other one first.
(function () {
  "use strict";
  try {
    const chosen = localStorage.getItem("suffice.theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch {
    // Storage may be forbidden; the system's choice stands then.
  }
})();
