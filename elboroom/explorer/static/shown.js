// @ts-check
// How an example is shown: a picture, a sentence with its changed words marked, or a vector as bars. Imports nothing, so that
// a report can hold it as it is.

/** Pictures of one size in one picture; x and y are where the first of an answer stands.
 * @typedef {{width: number, height: number, count: number, x: number, y: number, picture: ImageBitmap | HTMLImageElement}} Sprite */
/** What is shown: an answer whose picture may be unpacked already. @typedef {{facts: any, bytes: ArrayBuffer, sprite?: Sprite}} Shown */

/** @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag @param {Record<string, any>} [has] @param {...(Node | string)} children @returns {HTMLElementTagNameMap[K]} */
export function make(tag, has = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(has)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "class") node.className = value;
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, String(value));
  }
  node.append(...children);
  return node;
}

/** The pictures of an answer. @param {Shown} answer @returns {Promise<Sprite>} */
export async function spriteOf({ facts, bytes, sprite }) {
  if (sprite) return sprite;
  const picture = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
  return { width: facts.width, height: facts.height, count: facts.count, x: 0, y: 0, picture };
}

/** Draws one picture of a sprite, pixel for pixel; CSS makes it large. @param {HTMLCanvasElement} canvas @param {Sprite} sprite
 * @param {number} k */
export function draw(canvas, sprite, k) {
  canvas.width = sprite.width;
  canvas.height = sprite.height;
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const { width, height } = sprite;
  pen.drawImage(sprite.picture, (sprite.x + k) * width, sprite.y * height, width, height, 0, 0, width, height);
}

/** Bars of a vector. @param {HTMLCanvasElement} canvas @param {number[]} values */
export function bars(canvas, values) {
  canvas.width = 256;
  canvas.height = 128;
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const reach = Math.max(1e-9, ...values.map(Math.abs)), wide = 256 / values.length;
  pen.fillStyle = getComputedStyle(canvas).getPropertyValue("--first") || "#2b6a99";
  values.forEach((v, i) => pen.fillRect(i * wide, 64, Math.max(1, wide - 1), (-v / reach) * 60));
}

/** Which words of a sentence are not in another, by their longest common sequence.
 * @param {string[]} words @param {string[]} before @returns {boolean[]} */
export function changed(words, before) {
  const n = words.length, m = before.length;
  const table = Array.from({ length: n + 1 }, () => new Uint16Array(m + 1));
  for (let i = n - 1; i >= 0; i--) {
    for (let j = m - 1; j >= 0; j--) {
      table[i][j] = words[i] === before[j] ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
    }
  }
  const marks = new Array(n).fill(true);
  for (let i = 0, j = 0; i < n && j < m;) {
    if (words[i] === before[j]) { marks[i] = false; i++; j++; } else if (table[i + 1][j] >= table[i][j + 1]) i++; else j++;
  }
  return marks;
}

/** Writes a sentence; words that the other one does not have are marked. @param {HTMLElement} into @param {string} sentence
 * @param {string | null} [before] */
export function write(into, sentence, before = null) {
  const words = sentence.split(" ").filter(Boolean);
  const marks = before === null ? words.map(() => false) : changed(words, before.split(" ").filter(Boolean));
  into.replaceChildren(...words.flatMap((word, i) => [i ? " " : "", marks[i] ? make("mark", {}, word) : word]));
  if (!words.length) into.replaceChildren(make("span", { class: "muted" }, "(empty)"));
}

/** A place where one example stands. */
export class Stage {
  /** @param {string} kind pixels, tokens or vectors @param {string} label what a screen reader says of it */
  constructor(kind, label) {
    this.kind = kind;
    this.sentence = "";
    this.canvas = make("canvas", { class: "stage", role: "img", "aria-label": label });
    this.text = make("p", { class: "stage sentence", "aria-live": "polite" });
    this.element = kind === "tokens" ? this.text : this.canvas;
  }

  /** @param {Shown} answer @param {number} [k] @param {string | null} [before] */
  async show(answer, k = 0, before = null) {
    if (this.kind === "pixels") draw(this.canvas, await spriteOf(answer), k);
    else if (this.kind === "tokens") {
      this.sentence = answer.facts.sentences[k];
      write(this.text, this.sentence, before);
    } else bars(this.canvas, answer.facts.values[k]);
  }
}

/** A number as short as it can be read. @param {number} x @param {number} [digits] @returns {string} */
export function short(x, digits = 2) {
  const text = x.toFixed(digits);
  return (Number(text) === 0 ? text.replace("-", "") : text).replace("-", "−");
}
