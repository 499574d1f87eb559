// The page's only dialog: it lists the steps, carries them out, and shows the outcome of each.

import { call } from "./api.js";
import { element } from "./elements.js";
import { refresh, tell } from "./live.js";

const dialog = document.getElementById("dialog");

// `steps` are {name, says, run}, without `run` where nothing is to be done; with `typed` the reader must type that text first.
export function confirm({ title, says = "", steps, typed = null, button, danger = false, follow = null, done = () => refresh() }) {
  // Many steps scroll, with the keyboard too.
  const list = element("ul", { tabindex: "0", "aria-label": "What will be done" }, ...steps.map((step) => element("li", {}, element("b", {}, step.name), ": ", element("span", {}, step.says))));
  const told = element("p", { role: "status", "aria-live": "polite" });
  const go = element("button", { type: "submit", class: danger ? "danger" : "primary" }, button);
  const close = element("button", { type: "button", click: () => dialog.close() }, "Cancel");
  const proof = element("input", { type: "text", id: "dialog-typed", autocomplete: "off", spellcheck: "false" });
  const asked = typed === null ? null : element(
    "p", {}, element("label", { for: "dialog-typed" }, `Type ${typed} to confirm: `), proof,
  );
  if (typed !== null) {
    go.disabled = true;
    proof.addEventListener("input", () => { go.disabled = proof.value !== typed; });
  }
  if (steps.every((step) => step.run === null)) go.disabled = true;
  const form = element(
    "form", { method: "dialog" },
    element("h2", { id: "dialog-title" }, title),
    says ? element("p", {}, says) : null, list, asked, told,
    element("div", { class: "end" }, close, go),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    go.disabled = true;
    proof.disabled = true;
    const failures = await work(steps, list, told);
    told.textContent = failures ? `${failures} of ${steps.length} failed.` : "Done.";
    go.remove();
    close.textContent = "Close";
    close.focus();
    const outcome = follow && !failures ? refresh().then(() => follow((text) => dialog.open && show(told, text))) : null;
    await done(failures);
    if (outcome) tellOf(told, await outcome);
  });
  dialog.replaceChildren(form);
  dialog.showModal();
  (typed === null ? close : proof).focus();
}

function show(told, text, bad = false) {
  told.className = bad ? "outcome-failed" : "";
  if (told.textContent !== text) told.textContent = text;
}

// In the dialog, or if the reader has closed it, on top of the page.
async function tellOf(told, { text, bad }) {
  if (told.isConnected && dialog.open) show(told, text, bad);
  else tell(text, bad);
  await refresh();
}

async function work(steps, list, told) {
  let failures = 0;
  for (const [number, step] of steps.entries()) {
    const outcome = list.children[number].querySelector("span");
    if (step.run === null) continue;
    outcome.textContent = "running …";
    try {
      const said = await step.run((message) => { told.textContent = message; });
      outcome.className = "outcome-done";
      outcome.textContent = typeof said === "string" ? said : "done";
    } catch (error) {
      failures += 1;
      outcome.className = "outcome-failed";
      outcome.textContent = error.message;
    }
  }
  return failures;
}

export const request = (method, url, body) => (waiting) => call(method, url, body, { waiting });
