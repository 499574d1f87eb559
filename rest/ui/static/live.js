// Keeps a page current: fetches it again, and updates only what has changed.

import { localise } from "./times.js";

let tag = null;
let lost = null;

export function keepLive(milliseconds) {
  const tick = async () => {
    if (!document.hidden) await refresh();
    setTimeout(tick, milliseconds);
  };
  setTimeout(tick, milliseconds);
  document.addEventListener("visibilitychange", () => document.hidden || refresh());
}

export async function refresh() {
  let answer;
  let text;
  try {
    const headers = { Accept: "text/html" };
    if (tag) headers["If-None-Match"] = tag;
    answer = await fetch(location.href, { headers, cache: "no-store" });
    text = await answer.text();
  } catch {
    tellLost("The worker does not answer");
    return;
  }
  if (answer.redirected && new URL(answer.url).pathname.endsWith("/ui/sign-in")) {
    tell("Your session has ended: reload the page to sign in.", true);
    return;
  }
  if (answer.status >= 500) {
    tellLost(`The worker answers ${answer.status}`);
    return;
  }
  found();
  if (answer.status === 304) return;
  tag = answer.headers.get("ETag");
  const fresh = new DOMParser().parseFromString(text, "text/html");
  localise(fresh);
  if (!answer.ok) {
    tell(fresh.querySelector(".refusal")?.textContent || `The worker answers ${answer.status}`, true);
    return;
  }
  document.title = fresh.title;
  for (const region of document.querySelectorAll("[data-region]")) {
    const newer = fresh.querySelector(`[data-region="${region.dataset.region}"]`);
    if (newer) morph(region, newer);
  }
  document.dispatchEvent(new CustomEvent("refreshed"));
}

export function tell(message, bad = false) {
  const notice = document.getElementById("notice");
  notice.classList.toggle("bad", bad);
  notice.hidden = !message;
  if (notice.textContent !== message) notice.textContent = message;
}

function tellLost(what) {
  if (lost === null) {
    lost = new Date();
    tell(`${what} since ${lost.toLocaleTimeString()}. The values shown are older; the page keeps trying.`, true);
  }
}

function found() {
  if (lost === null) return;
  lost = null;
  tag = null;
  tell("The worker answers again.");
}

// Keep what the reader has opened, ticked or typed.
const KEPT = new Set(["open"]);

function morph(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName) {
    old.replaceWith(document.importNode(fresh, true));
    return;
  }
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
    return;
  }
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name) && !KEPT.has(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  morphChildren(old, fresh);
}

function morphChildren(old, fresh) {
  const keyed = new Map();
  for (const child of old.children) if (child.dataset?.key !== undefined) keyed.set(child.dataset.key, child);
  const before = [...old.childNodes];
  const kept = new Set();
  let place = old.firstChild;
  for (const next of fresh.childNodes) {
    const key = next.dataset?.key;
    let match = key === undefined ? place : keyed.get(key);
    if (match && key === undefined && (match.dataset?.key !== undefined || match.nodeName !== next.nodeName)) match = null;
    if (!match) {
      const added = document.importNode(next, true);
      old.insertBefore(added, place);
      kept.add(added);
      continue;
    }
    if (match !== place) old.insertBefore(match, place);
    else place = place.nextSibling;
    kept.add(match);
    morph(match, next);
  }
  for (const child of before) if (!kept.has(child) && child.parentNode === old) child.remove();
}
