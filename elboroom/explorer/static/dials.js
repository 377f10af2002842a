// @ts-check
// Dials: a slider for each dimension, the one that says most first, passive ones folded away. Reads make and short of shown.js,
// and is held by reports too.
import { make, short } from "./shown.js";

/** @typedef {{index: number, kl: number | null, variance: number, active: boolean, low: number, high: number}} Dimension */

export class Dials {
  /**
   * @param {Dimension[]} dimensions
   * @param {(dim: number, value: number) => void} onmove while a slider is dragged
   * @param {(dim: number) => void} [onstart] before it is moved for the first time
   * @param {Map<number, number[]> | null} [stops] values of each that can be had, where there are only some
   */
  constructor(dimensions, onmove, onstart = () => {}, stops = null) {
    /** @type {Map<number, {range: HTMLInputElement, value: HTMLOutputElement}>} */
    this.rows = new Map();
    this.stops = stops;
    const most = Math.max(0.1, ...dimensions.map((d) => d.kl ?? d.variance));
    const alive = dimensions.filter((d) => d.active), idle = dimensions.filter((d) => !d.active);
    const rowOf = (/** @type {Dimension} */ d) => this.row(d, most, onmove, onstart);
    this.element = make("div", { class: "dials" }, ...alive.map(rowOf));
    if (!alive.length) this.element.append(make("p", { class: "muted" }, "No dimension is active."));
    if (idle.length) {
      const open = !alive.length;
      const title = `${idle.length} passive dimension${idle.length === 1 ? "" : "s"}`;
      this.element.append(
        make("details", { class: "idle", open }, make("summary", {}, title), ...idle.map(rowOf)));
    }
  }

  /** @param {Dimension} d @param {number} most @param {(dim: number, value: number) => void} onmove
   * @param {(dim: number) => void} onstart */
  row(d, most, onmove, onstart) {
    const id = `dial-${Math.random().toString(36).slice(2)}`;
    const stops = this.stops?.get(d.index);
    const range = make("input", stops
      ? { type: "range", id, min: 0, max: stops.length - 1, step: 1 }
      : { type: "range", id, min: d.low, max: d.high, step: (d.high - d.low) / 200 });
    const value = make("output", { for: id });
    const says = d.kl === null ? `var ${d.variance.toPrecision(2)}` : `KL ${short(d.kl)}`;
    const meter = make("span", { class: "meter", title: says }, make("i"));
    /** @type {HTMLElement} */ (meter.firstChild).style.width = `${(100 * Math.max(0, d.kl ?? d.variance)) / most}%`;
    let held = false;
    range.addEventListener("pointerdown", () => { held = false; });
    range.addEventListener("blur", () => { held = false; }); // what keys do until then is one move
    range.addEventListener("input", () => {
      if (!held) onstart(d.index);
      held = true;
      const at = stops ? stops[range.valueAsNumber] : range.valueAsNumber;
      this.tell(d.index, at);
      onmove(d.index, at);
    });
    this.rows.set(d.index, { range, value });
    return make("div", { class: d.active ? "dial" : "dial passive" },
      make("label", { for: id }, `z${d.index}`), meter, range, value);
  }

  /** @param {number} dim @param {number} at */
  tell(dim, at) {
    const { range, value } = /** @type {{range: HTMLInputElement, value: HTMLOutputElement}} */ (this.rows.get(dim));
    value.value = short(at);
    range.setAttribute("aria-valuetext", `${short(at)}`);
  }

  /** Puts every slider where the code is, but for those in hand. @param {number[]} at @param {number[]} but */
  set(at, ...but) {
    for (const [dim, { range }] of this.rows) {
      if (but.includes(dim)) continue;
      const stops = this.stops?.get(dim);
      if (stops) {
        range.value = String(stops.reduce((best, v, i) => (Math.abs(v - at[dim]) < Math.abs(stops[best] - at[dim]) ? i : best), 0));
      } else range.value = String(at[dim]);
      this.tell(dim, at[dim]);
    }
  }
}
