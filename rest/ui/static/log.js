// The log as it grows, and the level of the logger.

import { api, call } from "./api.js";
import { tell } from "./live.js";

const PAUSE = 2000;
const MOST_LINES = 5000;
const log = document.getElementById("log");
const only = document.getElementById("only");
const follow = document.getElementById("follow");
const level = document.getElementById("level");
let next = log.dataset.next;
let lost = false;

const marked = (line) => {
  const span = document.createElement("span");
  span.textContent = line.endsWith("\n") ? line : `${line}\n`;
  return decorate(span);
};
const decorate = (span) => {
  if (/\b(ERROR|CRITICAL|FATAL)\b/.test(span.textContent)) span.className = "log-error";
  else if (/\bWARN(ING)?\b/.test(span.textContent)) span.className = "log-warn";
  span.hidden = Boolean(only.value) && !span.textContent.toLowerCase().includes(only.value.toLowerCase());
  return span;
};

async function more() {
  try {
    const { document: found } = await call("GET", `${api("connectors", log.dataset.name, "logs")}?worker=${encodeURIComponent(log.dataset.worker)}&after=${next}&lines=1000`);
    next = found.next;
    log.append(...found.lines.map(marked));
    if (found.lines.length) document.getElementById("no-lines")?.remove();
    while (log.children.length > MOST_LINES) log.firstElementChild.remove();
    if (follow.checked && found.lines.length) log.scrollTop = log.scrollHeight;
    if (lost) tell("");
    lost = false;
  } catch (error) {
    lost = true;
    tell(error.status ? error.message : "The worker does not answer; the log continues when it does.", true);
  }
}

(async () => {
  await more();
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
    if (!document.hidden) await more();
  }
})();

for (const span of log.children) decorate(span);
only.addEventListener("input", () => { for (const span of log.children) decorate(span); });
log.scrollTop = log.scrollHeight;

level?.addEventListener("change", async () => {
  const said = document.getElementById("level-said");
  try {
    await call("PUT", `${api("admin", "loggers", level.dataset.logger)}?scope=cluster`, { level: level.value });
    level.dataset.level = level.value;
    said.textContent = `${level.dataset.logger} logs at level ${level.value} on every worker until the workers restart.`;
  } catch (error) {
    level.value = level.dataset.level;
    said.textContent = error.message;
  }
});
