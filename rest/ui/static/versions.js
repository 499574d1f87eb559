// Restoring an earlier version of a configuration, with the changes that this makes.

import { api, call, page } from "./api.js";
import { given } from "./changes.js";
import { confirm } from "./dialog.js";
import { element, table } from "./elements.js";

const versions = document.getElementById("versions");

versions?.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-restore]");
  if (!button) return;
  const { name, revision } = versions.dataset;
  const version = button.dataset.restore;
  const rows = JSON.parse(button.nextElementSibling.textContent);
  confirm({
    title: `Restore version ${version} of ${name}?`,
    steps: [{
      name,
      says: revision ? given("the configuration of that version") : "is created again with the configuration of that version, and started",
      run: async (waiting) => {
        await call("POST", api("connectors", name, "config", "history", version, "restore"), undefined, { headers: revision ? { "If-Match": `"${revision}"` } : {}, waiting });
      },
    }],
    button: "Restore",
    done: (failures) => { if (!failures) location.assign(page("connectors", name, "versions")); },
  });
  document.querySelector("#dialog ul").before(table("Changes", ["Key", "Before", "After"], rows.map(({ key, before, after }) => [
    key,
    before === null ? "" : element("del", {}, before),
    after === null ? element("i", {}, "removed") : element("ins", {}, before === after ? `${after} (another value)` : after),
  ])));
});
