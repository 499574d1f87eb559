// The behaviour of every page: local times, refreshing, colours, the buttons of a connector.

import { listen } from "./actions.js";
import { api, call } from "./api.js";
import { keepLive } from "./live.js";
import { keepTrue, localise } from "./times.js";

localise(document);
keepTrue();

const live = document.querySelector("main").dataset.live;
if (live) keepLive(Number(live));

const theme = document.getElementById("theme");
theme.parentElement.hidden = false;
theme.value = document.documentElement.dataset.theme || "";
theme.addEventListener("change", () => {
  if (theme.value) document.documentElement.dataset.theme = theme.value;
  else delete document.documentElement.dataset.theme;
  try {
    localStorage.setItem("sluice-theme", theme.value);
  } catch {
    // Storage is switched off: the choice holds for this page.
  }
});

listen();

// A slash goes to the search of the page, unless the reader is typing.
document.addEventListener("keydown", (event) => {
  const search = document.querySelector("input[type=search]");
  const isTyping = event.target.closest?.("input:not([type=checkbox]):not([type=radio]), textarea, select, dialog");
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || !search || isTyping) return;
  event.preventDefault();
  search.focus();
  search.select();
});

document.getElementById("sign-out")?.addEventListener("click", async () => {
  await call("DELETE", api("session"));
  location.reload();
});
