// Draining workers, and ending it.

import { api } from "./api.js";
import { confirm, request } from "./dialog.js";

const WHAT = {
  drain: {
    method: "PUT",
    title: (worker) => `Drain ${worker}?`,
    says: (units) => `moves ${units} to the other workers, and takes no work until it is restarted or draining is ended`,
    button: "Drain",
  },
  undrain: {
    method: "DELETE",
    title: (worker) => `End draining of ${worker}?`,
    says: () => "gets its share of the work again; each connector and task that moves restarts once",
    button: "End draining",
  },
};

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-worker]");
  if (!button) return;
  const { worker, does, units } = button.dataset;
  const what = WHAT[does];
  confirm({
    title: what.title(worker),
    steps: [{ name: worker, says: what.says(units), run: request(what.method, api("cluster", "workers", worker, "drain")) }],
    button: what.button,
  });
});
