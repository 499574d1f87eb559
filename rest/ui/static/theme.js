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
  const root = document.documentElement;
  root.classList.add("scripted");
  // By then the modules have run: a click before would be lost.
  document.addEventListener("DOMContentLoaded", () => root.classList.add("ready"));
})();
