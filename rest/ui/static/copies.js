// The configuration in formats to copy and paste elsewhere.

import { api } from "./api.js";
import { element } from "./elements.js";
import { FORMS } from "./forms.js";

const place = document.getElementById("copies");
const config = JSON.parse(document.getElementById("config").textContent);
const { name } = place.dataset;
const labels = { json: "JSON", properties: "Properties", curl: "curl" };

for (const [form, label] of Object.entries(labels)) {
  const text = FORMS[form](name, config, new URL(api("connectors", name, "config"), location.href).href);
  const said = element("span", { role: "status", "aria-live": "polite", class: "faint" });
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      said.textContent = " Copied.";
    } catch {
      said.textContent = " The browser does not allow copying: select the text instead.";
    }
  };
  place.append(element(
    "details", { class: "trace" },
    element("summary", {}, label),
    element("button", { type: "button", click: copy, "aria-label": `Copy as ${label}` }, "Copy"), said,
    element("pre", { tabindex: "0" }, text),
  ));
}
