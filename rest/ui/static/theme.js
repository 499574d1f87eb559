// Chosen colours, before anything is painted: this one is no module, so that it is not deferred.
"use strict";
(() => {
  let chosen = "";
  try {
    chosen = localStorage.getItem("sluice-theme") || "";
  } catch {
    // Storage is switched off: the system's colours.
  }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  document.documentElement.classList.add("scripted");
})();
