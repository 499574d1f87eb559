// What became of an action: follows the connector for some seconds, until it is what was wanted, or has failed.

import { api, call } from "./api.js";

const PAUSE = 1000;
const STEADY = 2;
const MOST = 15;
const WANTED = { resume: "RUNNING", pause: "PAUSED", stop: "STOPPED" };

const partsOf = (status) => [{ ...status.connector, who: "the connector" }, ...status.tasks.map((task) => ({ ...task, who: `task ${task.id}` }))];

export async function statusOf(name) {
  try {
    return (await call("GET", api("connectors", name, "status"))).document;
  } catch {
    return null;
  }
}

// Tells of one connector what has become of it since the status `before`.
export async function followed(action, one, before, tell) {
  const wanted = WANTED[action] || (before?.connector.state === "PAUSED" ? "PAUSED" : "RUNNING");
  const restarts = action.startsWith("restart");
  let steady = 0;
  let last = null;
  for (let second = 0; second < MOST && steady < STEADY; second += 1) {
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
    last = await statusOf(one.name);
    if (last === null) continue;
    const parts = partsOf(last);
    const failed = parts.filter((part) => part.state === "FAILED" && isNews(part, before));
    const there = parts.every((part) => part.state === wanted) && (wanted !== "RUNNING" || parts.length > 1);
    steady = failed.length || (there && !(restarts && parts.some((part) => awaited(part, one, before, action)))) ? steady + 1 : 0;
    tell(said(last, wanted, failed));
  }
  if (last === null) return { text: "The worker does not say what has become of it.", bad: true };
  const failed = partsOf(last).filter((part) => part.state === "FAILED");
  return { text: said(last, wanted, failed), bad: failed.length > 0 };
}

const was = (part, before) => (before ? partsOf(before).find((other) => other.who === part.who) : null);
const isNews = (part, before) => was(part, before)?.changed_at !== part.changed_at || was(part, before)?.state !== "FAILED";

// A part that is restarted must have started again before its state says anything.
function awaited(part, one, before, action) {
  const former = was(part, before);
  if (!former || !former.started_at) return false;
  const meant = { "restart-task": part.who === `task ${one.task}`, "restart-connector": part.who === "the connector", "restart-failed": former.state === "FAILED" };
  return (meant[action] ?? true) && former.started_at === part.started_at;
}

function said(status, wanted, failed) {
  if (failed.length) return `Failed: ${failed[0].who}: ${(failed[0].trace || "see its log").split("\n", 1)[0]}`;
  const counts = {};
  for (const task of status.tasks) counts[task.state] = (counts[task.state] || 0) + 1;
  const tasks = Object.entries(counts).map(([state, count]) => `${count} ${state.toLowerCase()}`).join(", ") || "no tasks";
  const waits = status.tasks.find((task) => task.waiting);
  return `The connector is ${status.connector.state.toLowerCase()}; tasks: ${tasks}.${waits ? ` It waits: ${waits.waiting.reason}` : ""}`;
}
