// @ts-check
// Questions and answers: the same interface whether a server answers or frames that were decoded before (frames.js).

/** @typedef {{facts: any, bytes: ArrayBuffer}} Answer */

/** What went wrong, in the server's own sentence. */
export class Refusal extends Error {
  /** @param {string} sentence @param {number} status */
  constructor(sentence, status) {
    super(sentence);
    this.status = status;
  }
}

/** @returns {string} */
function token() {
  const meta = /** @type {HTMLMetaElement} */ (document.querySelector('meta[name="token"]'));
  return meta.content;
}

/** @param {string} path @param {RequestInit} [how] @returns {Promise<Response>} */
async function request(path, how = {}) {
  /** @type {Response} */
  let response;
  try {
    response = await fetch(path, { ...how, headers: { ...how.headers, "x-elboroom-token": token() } });
  } catch {
    throw new Refusal("The explorer does not answer: was it stopped in its terminal?", 0);
  }
  if (response.ok) return response;
  const told = await response.json().catch(() => ({ problem: `the explorer refused (${response.status})` }));
  throw new Refusal(told.problem, response.status);
}

/** The runs that there are. @returns {Promise<{number: number, name: string, title: string, problem: string}[]>} */
export async function runs() {
  return (await request("/api/runs")).json();
}

/** A run behind the server. */
export class Server {
  /** @param {number} number @param {(stale: boolean) => void} [onstale] */
  constructor(number, onstale = () => {}) {
    this.number = number;
    this.onstale = onstale;
  }

  /** @param {string} verb @param {object} [asked] @param {ArrayBuffer} [content] @returns {Promise<Answer>} */
  async ask(verb, asked = {}, content) {
    const path = `/api/runs/${this.number}/${verb}`;
    const response = content
      ? await request(`${path}?asked=${encodeURIComponent(JSON.stringify(asked))}`,
          { method: "POST", body: content, headers: { "content-type": "application/octet-stream" } })
      : await request(path,
          { method: "POST", body: JSON.stringify(asked), headers: { "content-type": "application/json" } });
    const answer = opened(await response.arrayBuffer());
    this.onstale(Boolean(answer.facts.stale));
    return answer;
  }

  async reload() {
    await request(`/api/runs/${this.number}/reload`, { method: "POST", body: "{}" });
  }
}

/** A message: the length of the facts, the facts, the bytes. @param {ArrayBuffer} message @returns {Answer} */
export function opened(message) {
  const length = new DataView(message).getUint32(0, true);
  const facts = JSON.parse(new TextDecoder().decode(new Uint8Array(message, 4, length)));
  return { facts, bytes: message.slice(4 + length) };
}

/**
 * One question at a time: what is asked while an answer is on its way waits, and only the newest of it is asked at all.
 * @template {any[]} T
 * @param {(...asked: T) => Promise<void>} work
 * @returns {(...asked: T) => Promise<void>}
 */
export function newest(work) {
  /** @type {T | null} */
  let next = null;
  let busy = false;
  return async (...asked) => {
    next = asked;
    if (busy) return;
    busy = true;
    try {
      while (next) {
        const now = next;
        next = null;
        await work(...now);
      }
    } finally {
      busy = false;
    }
  };
}
