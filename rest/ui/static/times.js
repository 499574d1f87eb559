// Times as people say them, with the whole time in the reader's zone on hover.

const format = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "short" });
const UNITS = [["second", 1], ["minute", 60], ["hour", 3600], ["day", 86400]];
const WEEK = 7 * 86400;
const AGAIN = 15000;

// What is longer ago than a week, or ahead, has its date.
function said(at) {
  const seconds = (at.getTime() - Date.now()) / 1000;
  const distance = Math.abs(seconds);
  if (distance >= WEEK) return format.format(at);
  const [unit, length] = UNITS.findLast(([, least]) => distance >= least) || UNITS[0];
  return relative.format(Math.trunc(seconds / length), unit);
}

export function localise(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const at = new Date(time.getAttribute("datetime"));
    if (Number.isNaN(at.getTime())) continue;
    const text = "clock" in time.dataset ? clock.format(at) : said(at);
    if (time.textContent !== text) time.textContent = text;
    time.title = format.format(at);
  }
}

// They go on being true while the page stands.
export function keepTrue() {
  setInterval(() => document.hidden || localise(document), AGAIN);
}

export const localTime = (milliseconds) => format.format(new Date(milliseconds));
