// @ts-check
// Frames: the transport of a page without a server. A report holds what was decoded before: each dimension at some values, the
// others as in one of a few examples; it is asked as a server is.
import { Dials } from "./dials.js";
import { Stage, make } from "./shown.js";

/** @typedef {{kind: string, width: number, height: number, stops: number[][], dimensions: import("./dials.js").Dimension[],
 *   at: number[][], sprites: string[], sentences: string[][][], starts: string[]}} Kept */

/** Answers "example" and "move" from what is kept. */
export class Frames {
  /** @param {Kept} kept */
  constructor(kept) {
    this.kept = kept;
    this.start = 0;
    /** @type {Promise<HTMLImageElement>[]} */
    this.pictures = kept.sprites.map((source) => new Promise((done, failed) => {
      const image = new Image();
      image.onload = () => done(image);
      image.onerror = failed;
      image.src = source;
    }));
  }

  /** @param {string} verb @param {{seed?: number, dim?: number, value?: number}} asked @returns {Promise<import("./shown.js").Shown>} */
  async ask(verb, asked) {
    if (verb === "example") this.start = (asked.seed ?? 0) % this.kept.at.length;
    const { dimensions, at, width, height, sentences, starts } = this.kept, here = at[this.start].slice();
    let k = 0, row = dimensions.length; // where an example stands as it is
    if (verb === "move") {
      row = dimensions.findIndex((d) => d.index === asked.dim);
      const { index } = dimensions[row], stops = this.kept.stops[row], value = asked.value ?? here[index];
      k = stops.reduce((best, v, i) => (Math.abs(v - value) < Math.abs(stops[best] - value) ? i : best), 0);
      here[index] = stops[k];
    }
    const facts = { at: here, z: here, count: 1, sentences: sentences.length ? [verb === "example" ? starts[this.start] : sentences[this.start][row][k]] : [] };
    const sprite = this.pictures.length ? { width, height, count: 1, x: k, y: row, picture: await this.pictures[this.start] } : undefined;
    return { facts, bytes: new ArrayBuffer(0), sprite };
  }
}

/** Puts sliders into a report. @param {HTMLElement} root @param {Kept} kept */
export function mount(root, kept) {
  const frames = new Frames(kept), stage = new Stage(kept.kind, "what the code stands for");
  /** @type {string | null} */
  let reference = null;
  const dials = new Dials(kept.dimensions, async (dim, value) => {
    const answer = await frames.ask("move", { dim, value });
    dials.set(answer.facts.at, dim);
    await stage.show(answer, 0, reference);
  }, () => {}, new Map(kept.dimensions.map((d, i) => [d.index, kept.stops[i]])));
  const open = async (/** @type {number} */ seed) => {
    const answer = await frames.ask("example", { seed });
    dials.set(answer.facts.at);
    await stage.show(answer, 0);
    reference = stage.sentence || null;
  };
  const buttons = kept.at.map((_, i) => make("button", { type: "button", onclick: () => void open(i) }, `Example ${i + 1}`));
  root.replaceChildren(
    make("div", { class: "look" }, stage.element, make("div", { class: "buttons" }, ...buttons)), dials.element);
  void open(0);
}
