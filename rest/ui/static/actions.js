// The actions on a connector: their descriptions, and the API calls that they make.

import { api } from "./api.js";
import { confirm, request } from "./dialog.js";
import { page } from "./api.js";
import { followed, statusOf } from "./follow.js";

const many = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

export const ACTIONS = {
  resume: {
    verb: "Resume",
    nothing: (one) => one.state === "RUNNING" || one.state === "FAILED",
    says: (one) => {
      if (one.state === "FAILED") return "the connector has failed, and resuming does not restart it: use Restart failed";
      if (one.state !== "RUNNING") return "continues from its committed offsets";
      if (one.failed) return `is not paused, but ${many(one.failed, "task")} of ${one.tasks} failed, and resuming does not restart them: use Restart failed`;
      return "is already running: nothing changes";
    },
    run: (one) => request("PUT", api("connectors", one.name, "resume")),
  },
  pause: {
    verb: "Pause",
    says: (one) => (one.state === "STOPPED" ? "goes from stopped to paused: its tasks start but process nothing" : `pauses (${many(one.tasks, "task")}); its tasks process nothing but keep their partitions`),
    run: (one) => request("PUT", api("connectors", one.name, "pause")),
  },
  stop: {
    verb: "Stop",
    dangerous: true,
    says: (one) => (one.state === "STOPPED" ? "is already stopped: nothing changes" : `stops (${many(one.tasks, "task")}); offsets and configuration are kept`),
    run: (one) => request("PUT", api("connectors", one.name, "stop")),
  },
  "restart-failed": {
    verb: "Restart what has failed of",
    nothing: (one) => one.state !== "FAILED" && !one.failed,
    says: (one) => {
      const parts = [one.state === "FAILED" ? "the connector" : null, one.failed ? many(one.failed, "failed task") : null].filter(Boolean);
      return parts.length ? `restarts ${parts.join(" and ")}` : "nothing has failed: nothing is restarted";
    },
    run: (one) => request("POST", `${api("connectors", one.name, "restart")}?includeTasks=true&onlyFailed=true`),
  },
  "restart-all": {
    verb: "Restart",
    says: (one) => `restarts with ${many(one.tasks, "task")}; records since the last commit may be delivered twice`,
    run: (one) => request("POST", `${api("connectors", one.name, "restart")}?includeTasks=true`),
  },
  "restart-connector": {
    verb: "Restart the connector only, not its tasks, of",
    says: () => "the connector restarts; its tasks continue unless it gives them new configurations",
    run: (one) => request("POST", api("connectors", one.name, "restart")),
  },
  "restart-task": {
    verb: "Restart a task of",
    says: (one) => `task ${one.task} restarts`,
    run: (one) => request("POST", api("connectors", one.name, "tasks", one.task, "restart")),
  },
  "reset-topics": {
    verb: "Reset the topics of",
    says: () => "the list of used topics is emptied; the topics themselves do not change",
    run: (one) => request("PUT", api("connectors", one.name, "topics", "reset")),
  },
  delete: {
    verb: "Delete",
    dangerous: true,
    says: (one) => `${one.state === "STOPPED" ? "" : `stops (${many(one.tasks, "task")}) and `}is deleted; its offsets are kept for a new connector of this name`,
    run: (one) => request("DELETE", api("connectors", one.name)),
  },
};

export function ask(action, connectors, done) {
  const what = ACTIONS[action];
  const right = action === "delete" ? "delete" : "operate";
  const may = (one) => !(one.lacks || "").split(" ").includes(right);
  const title = connectors.length === 1 ? `${what.verb} ${connectors[0].name}?` : `${what.verb} ${connectors.length} connectors?`;
  const follows = connectors.length === 1 && !["delete", "reset-topics"].includes(action);
  let before = null;
  const run = (one) => async (waiting) => {
    if (follows) before = await statusOf(one.name);
    return what.run(one)(waiting);
  };
  let typed = null;
  if (action === "delete") typed = connectors.length === 1 ? connectors[0].name : `delete ${connectors.length}`;
  else if (what.dangerous && connectors.length > 1) typed = `${action} ${connectors.length}`;
  confirm({
    title,
    typed,
    steps: connectors.map((one) => ({ name: one.name, says: may(one) ? what.says(one) : `you lack the right ${right}: this will be refused`, run: what.nothing?.(one) ? null : run(one) })),
    button: what.verb.split(" ")[0],
    danger: Boolean(what.dangerous),
    follow: follows ? (tell) => followed(action, connectors[0], before, tell) : null,
    ...(done ? { done } : {}),
  });
}

// The buttons of one connector, below the element that names it.
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
