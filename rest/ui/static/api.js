// Calls of the REST API. Every change that a page makes goes through here.

const base = document.body.dataset.base;
const MOST_WAITING = 20000;
const PAUSE = 1000;

export const api = (...segments) => [base, ...segments.map(encodeURIComponent)].join("/");
export const page = (...segments) => [`${base}/ui`, ...segments.map(encodeURIComponent)].join("/");

export class Refused extends Error {
  constructor(message, status, document) {
    super(message);
    this.status = status;
    this.document = document;
  }
}

// Offsets may be greater than 2^53: such numbers stay strings.
export function parsed(text) {
  return JSON.parse(text, (_key, value, context) =>
    typeof value === "number" && context && /^-?\d+$/.test(context.source) && !Number.isSafeInteger(value) ? context.source : value,
  );
}

// Send a request, and repeat it for some seconds while the cluster rebalances; `waiting` is called when that begins.
export async function call(method, url, body, { headers = {}, waiting = () => {} } = {}) {
  const end = Date.now() + MOST_WAITING;
  for (;;) {
    try {
      return await ask(method, url, body, headers);
    } catch (error) {
      if (!rebalances(error) || Date.now() > end) throw error;
      waiting("The cluster is rebalancing; retrying.");
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
    }
  }
}

async function ask(method, url, body, headers) {
  const sent = { method, headers: { Accept: "application/json", ...headers }, cache: "no-store" };
  if (body !== undefined) {
    sent.headers["Content-Type"] = "application/json";
    sent.body = typeof body === "string" ? body : JSON.stringify(body);
  }
  let answer;
  try {
    answer = await fetch(url, sent);
  } catch {
    throw new Refused("The worker does not answer. It may have carried out the request: check before you repeat it.", 0);
  }
  const text = await answer.text();
  const found = read(text);
  if (answer.status === 401) throw new Refused("Your session has ended: reload the page to sign in.", 401);
  if (!answer.ok) throw new Refused(withRemedy((found && found.message) || `The worker answered ${answer.status}.`, answer.status), answer.status, found);
  return { document: found, headers: answer.headers, status: answer.status };
}

// Of these refusals the REST API says, in Kafka Connect's words, only what they are.
function withRemedy(message, status) {
  if (status === 405) return `${message}. A proxy between this page and the worker lets only some methods through, or the worker is now of another version: reload the page, or open it at the worker's own address.`;
  if (message.includes("doesn't match connector name in the URL")) return `${message}. Leave the key name as it is: a connector keeps its name. To rename it, create one with the new name from a copy of this one, set its offsets, and delete this one.`;
  return message;
}

function read(text) {
  try {
    return text ? parsed(text) : null;
  } catch {
    return null;
  }
}

const rebalances = (error) => error instanceof Refused && error.status === 409 && /rebalance|no known leader/.test(error.message);
