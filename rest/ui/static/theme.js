// Applies the chosen colours before the first paint: not a module, because modules are deferred.
"use strict";
(() => {
  let chosen = "";
  try {
    chosen = localStorage.getItem("sluice-theme") || "";
  } catch {
    // Storage is disabled: use the system's colours.
  }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  const root = document.documentElement;
  root.classList.add("scripted");
  // Only now have the modules run; earlier clicks would be lost.
  document.addEventListener("DOMContentLoaded", () => root.classList.add("ready"));
})();
