// Pausing, resuming and stopping the flows of mirrors: all connectors of one at once.

import { api } from "./api.js";
import { confirm, request } from "./dialog.js";

const WHAT = {
  resume: { title: (flow) => `Resume ${flow}?`, says: "its connectors run again, from where they have been", button: "Resume" },
  pause: { title: (flow) => `Pause ${flow}?`, says: "nothing more is mirrored, and no offset of a group is translated, until it is resumed", button: "Pause" },
  stop: { title: (flow) => `Stop ${flow}?`, says: "its tasks end; topics, offsets and configurations stay", button: "Stop", danger: true },
};

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-flow]");
  if (!button) return;
  const { flow, does } = button.dataset;
  const { title, says, button: label, danger = false } = WHAT[does];
  confirm({
    title: title(flow),
    steps: [{ name: flow, says, run: request("PUT", api("mirror", "flows", flow, does)) }],
    button: label,
    danger,
  });
});
