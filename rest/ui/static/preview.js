// A preview of a deployed connector.

import { api, call } from "./api.js";
import { element } from "./elements.js";
import { show } from "./records.js";

const form = document.getElementById("preview");
const outcome = document.getElementById("outcome");

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = form.querySelector("button");
  button.disabled = true;
  outcome.replaceChildren("Waiting for records …");
  try {
    const query = new URLSearchParams(new FormData(form));
    const { document: found } = await call("POST", `${api("connectors", form.dataset.name, "preview")}?${query}`);
    show(outcome, found);
  } catch (error) {
    outcome.replaceChildren(element("p", { class: "refusal" }, error.message));
  }
  button.disabled = false;
});
