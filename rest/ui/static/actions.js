// What can be done to a connector, in words and as calls of the API.

import { api } from "./api.js";
import { confirm, request } from "./dialog.js";
import { page } from "./api.js";

const many = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

export const ACTIONS = {
  resume: {
    verb: "Resume",
    says: (one) => (one.state === "RUNNING" ? "runs already: nothing changes" : "runs again from its committed offsets"),
    run: (one) => request("PUT", api("connectors", one.name, "resume")),
  },
  pause: {
    verb: "Pause",
    says: (one) => (one.state === "STOPPED" ? "is stopped, and will be paused: its tasks are made again, and read nothing" : `reads nothing more (${many(one.tasks, "task")}), and keeps its partitions`),
    run: (one) => request("PUT", api("connectors", one.name, "pause")),
  },
  stop: {
    verb: "Stop",
    dangerous: true,
    says: (one) => (one.state === "STOPPED" ? "is stopped already: nothing changes" : `ends (${many(one.tasks, "task")}); offsets and configuration stay`),
    run: (one) => request("PUT", api("connectors", one.name, "stop")),
  },
  "restart-failed": {
    verb: "Restart what failed of",
    says: (one) => {
      const parts = [one.state === "FAILED" ? "the connector" : null, one.failed ? many(one.failed, "failed task") : null].filter(Boolean);
      return parts.length ? `restarts ${parts.join(" and ")}` : "nothing has failed: nothing changes";
    },
    run: (one) => request("POST", `${api("connectors", one.name, "restart")}?includeTasks=true&onlyFailed=true`),
  },
  "restart-all": {
    verb: "Restart",
    says: (one) => `stops and starts again with ${many(one.tasks, "task")}; records since the last commit may be delivered twice`,
    run: (one) => request("POST", `${api("connectors", one.name, "restart")}?includeTasks=true`),
  },
  "restart-connector": {
    verb: "Restart the connector, without its tasks, of",
    says: () => "the connector itself starts again; its tasks go on, unless it gives them new configurations",
    run: (one) => request("POST", api("connectors", one.name, "restart")),
  },
  "restart-task": {
    verb: "Restart a task of",
    says: (one) => `task ${one.task} stops and starts again`,
    run: (one) => request("POST", api("connectors", one.name, "tasks", one.task, "restart")),
  },
  "reset-topics": {
    verb: "Forget the topics of",
    says: () => "the list of topics begins anew; the topics themselves stay as they are",
    run: (one) => request("PUT", api("connectors", one.name, "topics", "reset")),
  },
  delete: {
    verb: "Delete",
    dangerous: true,
    says: (one) => `ends (${many(one.tasks, "task")}), and its configuration is lost; offsets stay for a new connector of this name`,
    run: (one) => request("DELETE", api("connectors", one.name)),
  },
};

export function ask(action, connectors, done) {
  const what = ACTIONS[action];
  const right = action === "delete" ? "delete" : "operate";
  const may = (one) => !(one.lacks || "").split(" ").includes(right);
  const title = connectors.length === 1 ? `${what.verb} ${connectors[0].name}?` : `${what.verb} ${connectors.length} connectors?`;
  let typed = null;
  if (action === "delete") typed = connectors.length === 1 ? connectors[0].name : `delete ${connectors.length}`;
  else if (what.dangerous && connectors.length > 1) typed = `${action} ${connectors.length}`;
  confirm({
    title,
    typed,
    steps: connectors.map((one) => ({ name: one.name, says: may(one) ? what.says(one) : `you lack the right ${right} on it: this will be refused`, run: what.run(one) })),
    button: what.verb.split(" ")[0],
    danger: Boolean(what.dangerous),
    ...(done ? { done } : {}),
  });
}

// Buttons of one connector: they stand below the element that says which.
export function listen() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-act]");
    if (!button || !(button.dataset.act in ACTIONS)) return;
    const facts = document.querySelector("[data-facts]").dataset;
    const one = { name: button.dataset.name, state: facts.state, tasks: Number(facts.tasks), failed: Number(facts.failed), task: button.dataset.task };
    const away = (failures) => { if (!failures) location.assign(page()); };
    ask(button.dataset.act, [one], button.dataset.act === "delete" ? away : undefined);
  });
}
