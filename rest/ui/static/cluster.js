// Draining workers, and having them take work again.

import { api } from "./api.js";
import { confirm, request } from "./dialog.js";

const WHAT = {
  drain: {
    method: "PUT",
    title: (worker) => `Drain ${worker}?`,
    says: (units) => `gives ${units} to the other workers, and takes nothing until it is restarted`,
    button: "Drain",
  },
  undrain: {
    method: "DELETE",
    title: (worker) => `Have ${worker} take work again?`,
    says: () => "gets its share of the work; each connector and task that moves is stopped and started once",
    button: "Take work again",
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
