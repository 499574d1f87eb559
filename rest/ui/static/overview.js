// Selecting connectors and acting on all of them.

import { ask } from "./actions.js";
import { refresh } from "./live.js";

const all = document.getElementById("all");
const boxes = () => [...document.querySelectorAll("input[data-select]")];
const chosen = () => boxes().filter((box) => box.checked).map((box) => box.closest("tr"));
const form = document.querySelector("form.filter");
const DELAY = 400;

function show() {
  const count = chosen().length;
  document.getElementById("selected").textContent = count ? `${count} selected` : "None selected";
  for (const button of document.querySelectorAll("[data-bulk]")) button.disabled = !count;
  all.checked = count > 0 && count === boxes().length;
  all.indeterminate = count > 0 && !all.checked;
}

document.addEventListener("change", (event) => {
  if (event.target === all) for (const box of boxes()) box.checked = all.checked;
  if (event.target.closest("table.list")) show();
  if (event.target.matches("form.filter select")) form.requestSubmit();
});
document.addEventListener("refreshed", show);
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-bulk]");
  if (!button) return;
  const connectors = chosen().map(({ dataset }) => ({
    name: dataset.key, state: dataset.state, tasks: Number(dataset.tasks), failed: Number(dataset.failed), lacks: dataset.lacks,
  }));
  ask(button.dataset.bulk, connectors);
});

// The search runs while typing: only the table and the address change, so the cursor stays where it is.
let timer = 0;
form.elements.q.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(async () => {
    const given = [...new FormData(form)].filter(([, value]) => value !== "");
    history.replaceState(null, "", `${form.action}?${new URLSearchParams(given)}`);
    await refresh();
  }, DELAY);
});
show();
