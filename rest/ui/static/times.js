// Times in the reader's time zone, with the ISO form on hover.

const format = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

export function localise(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const at = new Date(time.getAttribute("datetime"));
    if (!Number.isNaN(at.getTime())) time.textContent = format.format(at);
  }
}

export const localTime = (milliseconds) => format.format(new Date(milliseconds));
