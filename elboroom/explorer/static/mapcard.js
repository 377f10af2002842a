// @ts-check
// The card of the map: which map, which colours, a legend that filters, and what lies under the pointer.
import { CodeMap, tint } from "./map.js";
import { Stage, make } from "./shown.js";
import { newest } from "./transport.js";

export class MapCard {
  /** @param {import("./panel.js").Panel} panel */
  constructor(panel) {
    this.panel = panel;
    /** Which rows of the data the points are, asked for once. @type {Promise<Int32Array<ArrayBuffer>> | null} */
    this.rows = null;
    this.view = "";
    /** @type {any} */
    this.facts = null;
    this.code = new CodeMap({
      hover: (at) => void this.hover(at), click: (at) => void panel.app.trying(() => this.click(at)), lasso: (rows) => void this.lasso(rows),
      look: () => panel.app.changed(),
    });
    const dims = panel.sheet.dimensions, [first, second] = [dims[0].index, (dims[1] ?? dims[0]).index];
    const pairs = dims.map((/** @type {any} */ d) => make("option", { value: d.index }, `z${d.index}`));
    this.kind = make("select", { "aria-label": "Kind of map", onchange: () => void this.load() },
      make("option", { value: "dims" }, "two dimensions"), make("option", { value: "pca" }, "PCA"), make("option", { value: "tsne" }, "t-SNE"));
    this.x = make("select", { "aria-label": "across", onchange: () => void this.load() }, ...pairs);
    this.y = make("select", { "aria-label": "up", onchange: () => void this.load() }, ...pairs.map((/** @type {Node} */ o) => o.cloneNode(true)));
    this.x.value = String(first);
    this.y.value = String(second);
    this.by = make("select", { "aria-label": "Colour by", onchange: () => void this.colour() }, make("option", { value: "" }, "one colour"),
      ...Object.keys(panel.sheet.labels).map((name) => make("option", { value: name }, name)));
    this.by.value = Object.keys(panel.sheet.labels)[0] ?? "";
    const free = make("button", { class: "lasso", "aria-pressed": "false", title: "or hold Shift and drag", onclick: () => {
      this.code.lassoing = !this.code.lassoing;
      free.setAttribute("aria-pressed", String(this.code.lassoing));
    } }, "Lasso");
    this.legend = make("div", { class: "legend" });
    this.status = make("p", { class: "hint status", role: "status" });
    this.tip = make("div", { class: "tip", hidden: true });
    this.code.element.append(this.tip);
    this.selection = make("div", { class: "selection", hidden: true });
    this.element = make("section", { class: "card mapcard" },
      make("h3", {}, "Map of the codes"), make("div", { class: "row" }, this.kind, this.x, this.y, make("label", {}, "colour ", this.by), free,
        make("button", { onclick: () => this.code.fit() }, "Fit")),
      this.code.element, this.legend, this.status, this.selection);
    this.hovered = newest(this.look.bind(this));
  }

  /** @param {string} view @param {string} colour @param {number[]} off @param {number[]} window */
  async start(view, colour, off, window) {
    const latent = this.panel.sheet.latent;
    if (view === "pca" || view === "tsne") this.kind.value = view;
    else if (/^\d+,\d+$/.test(view)) [this.x.value, this.y.value] = view.split(",");
    else this.kind.value = latent > 2 ? "pca" : "dims";
    if (colour && [...this.by.options].some((o) => o.value === colour)) this.by.value = colour;
    await this.load();
    if (window.length === 3) this.code.look(/** @type {[number, number, number]} */ (window));
    await this.colour(off);
  }

  async load() {
    const dims = this.kind.value === "dims";
    this.x.hidden = this.y.hidden = !dims;
    const view = dims ? `${this.x.value},${this.y.value}` : this.kind.value;
    this.view = view;
    const n = this.panel.sheet.rows;
    this.status.textContent = view === "tsne" ? `Computing t-SNE of ${Math.min(n, 5000).toLocaleString("en")} codes, once; this takes up to a minute…` : `Encoding ${n.toLocaleString("en")} examples…`;
    await this.panel.app.trying(async () => {
      this.rows ??= this.panel.server.ask("rows").then(({ bytes }) => new Int32Array(bytes));
      const { facts, bytes } = await this.panel.server.ask("chart", { view }).catch((error) => {
        if (this.view === view) this.status.textContent = "There is no such map of these codes.";
        throw error;
      });
      if (this.view !== view) return;
      this.facts = facts;
      this.index = await this.rows;
      this.code.set(new Float32Array(bytes), facts.contours);
      const names = facts.axes.filter(Boolean);
      this.status.textContent = `${facts.n.toLocaleString("en")} examples of ${this.panel.sheet.split}${names.length ? `; across ${names[0]}, up ${names[1]}` : ""}${facts.contours.length ? "; lines hold 50, 90 and 99 % of the prior" : ""}. Point to decode, click to pin.`;
      this.mark();
      this.panel.app.changed();
    });
  }

  /** @param {number[]} [off] */
  async colour(off = []) {
    const label = this.by.value;
    this.code.off = new Set(off);
    if (!label) {
      this.code.colour(null, []);
      this.legend.replaceChildren();
      return;
    }
    await this.panel.app.trying(async () => {
      const { facts, bytes } = await this.panel.server.ask("labels", { label });
      const ordered = facts.kind === "ordinal", count = facts.classes.length;
      const colours = facts.classes.map((/** @type {string} */ _, /** @type {number} */ k) => tint(k, count, ordered));
      this.code.colour(new Int32Array(bytes), colours);
      this.legend.replaceChildren(make("span", { class: "muted" }, label), ...facts.classes.slice(0, 80).map((/** @type {string} */ name, /** @type {number} */ k) => this.chip(name, k, colours[k])));
      this.panel.app.changed();
    });
  }

  /** @param {string} name @param {number} k @param {string} colour */
  chip(name, k, colour) {
    const dot = make("i");
    dot.style.background = colour;
    const chip = make("button", { class: "chip", "aria-pressed": String(!this.code.off.has(k)), title: "show or hide; double click shows it alone" }, dot, name);
    const redraw = () => {
      [...this.legend.querySelectorAll(".chip")].forEach((other, i) => other.setAttribute("aria-pressed", String(!this.code.off.has(i))));
      this.code.ask();
      this.panel.app.changed();
    };
    chip.addEventListener("click", () => {
      if (!this.code.off.delete(k)) this.code.off.add(k);
      redraw();
    });
    chip.addEventListener("dblclick", () => {
      const chips = this.legend.querySelectorAll(".chip").length;
      this.code.off = new Set([...Array(chips).keys()].filter((i) => i !== k));
      redraw();
    });
    return chip;
  }

  /** Where a code lies on this map, if it can be told. @param {number[]} at @param {number} [row] @returns {[number, number] | null} */
  placed(at, row) {
    const { facts } = this;
    if (!facts) return null;
    if (facts.across) {
      const sum = (/** @type {number[]} */ axis) => axis.reduce((s, w, j) => s + w * (at[j] - facts.middle[j]), 0);
      return [sum(facts.across), sum(facts.up)];
    }
    const i = row === undefined ? -1 : this.index?.subarray(0, facts.n).indexOf(row) ?? -1;
    return i < 0 ? null : [this.code.points[2 * i], this.code.points[2 * i + 1]];
  }

  /** Marks the code in hand, the pins and the path. */
  mark() {
    const { panel, code } = this;
    code.marks = [];
    const add = (/** @type {string} */ name, /** @type {any} */ point, /** @type {boolean} */ now) => {
      const same = point && this.placed(point.at, point.source?.kind === "row" && !now ? point.source.row : undefined);
      if (same) code.marks.push({ name, x: same[0], y: same[1], now });
    };
    panel.app.pins.forEach((pin, i) => panel.paths?.points[i] && add(pin.name, { ...panel.paths.points[i], source: pin.source }, false));
    if (panel.point) add("", panel.point, true);
    const way = panel.paths?.way;
    code.way = way && this.facts?.across ? way.at.map((/** @type {number[]} */ at) => this.placed(at)) : [];
    code.ask();
  }

  /** @param {any} at */
  async hover(at) {
    this.pointed = at;
    if (!at) {
      this.tip.hidden = true;
      return;
    }
    await this.hovered(at);
  }

  /** @param {any} at @returns {Promise<void>} */
  async hovered(at) {
    await this.look(at);
  }

  /** @param {any} at */
  async look(at) {
    if (this.pointed !== at || !this.facts) return;
    const answer = await this.answer(at).catch(() => null);
    if (!answer || !this.pointed) {
      this.tip.hidden = true;
      return;
    }
    const { facts } = answer, { kind } = this.panel.sheet, stages = [];
    for (let k = 0; k < facts.count; k++) {
      const stage = new Stage(kind, "under the pointer");
      await stage.show(answer, k);
      stages.push(stage.element);
    }
    const said = facts.row === undefined ? "decoded from this place" : Object.entries(facts.labels).map(([k, v]) => `${k} ${v}`).join(" · ") || "input and output";
    this.tip.replaceChildren(make("div", { class: "pictures" }, ...stages), make("span", {}, said));
    const box = this.code.element.getBoundingClientRect();
    this.tip.hidden = false;
    this.tip.style.left = `${Math.max(4, Math.min(at.px + 14, box.width - this.tip.offsetWidth - 4))}px`;
    this.tip.style.top = `${Math.max(4, Math.min(at.py + 14, box.height - this.tip.offsetHeight - 4))}px`;
  }

  /** @param {any} at */
  async answer(at) {
    if (at.index >= 0 && this.index) return this.panel.server.ask("example", { row: this.index[at.index] });
    if (this.view === "tsne" || !this.panel.point) return null;
    return this.panel.server.ask("spot", { view: this.view, x: at.x, y: at.y, z: this.panel.point.z, u: this.panel.point.u });
  }

  /** Takes what lies there in hand, and pins it. @param {any} at */
  async click(at) {
    const { panel } = this;
    const answer = await this.answer(at);
    if (!answer) return;
    const { facts } = answer;
    /** @type {import("./view.js").Source} */
    const source = facts.row === undefined ? { kind: "code", z: facts.z, u: facts.u } : { kind: "row", row: facts.row };
    await panel.app.pin({ z: facts.z, at: facts.at, u: facts.u, source }, panel);
    await panel.app.open(source, panel);
  }

  /** @param {number[]} rows */
  async lasso(rows) {
    this.selection.hidden = !rows.length;
    if (!rows.length) return;
    const { panel } = this;
    await panel.app.trying(async () => {
      const off = [...this.code.off], hidden = off.length ? { label: this.by.value, off } : {};
      const answer = await panel.server.ask("select", { rows, shown: this.facts.n, ...hidden });
      const stage = new Stage(panel.sheet.kind, "the mean of the selection");
      await stage.show(answer, 0);
      const { z, u, at } = answer.facts;
      this.selection.replaceChildren(stage.element, make("div", {},
        make("p", {}, make("b", {}, rows.length.toLocaleString("en")), ` examples selected, ${((100 * rows.length) / this.facts.n).toFixed(1)} %; this is what their mean code stands for.`),
        make("div", { class: "buttons" },
          make("button", { onclick: () => void panel.app.trying(() => panel.open({ kind: "code", z, u })) }, "Take the mean in hand"),
          make("button", { onclick: () => void panel.app.pin({ z, at, u, source: { kind: "code", z, u } }, panel) }, "Pin the mean"),
          make("button", { onclick: () => { this.code.chosen = null; this.code.ask(); this.selection.hidden = true; } }, "Clear"))));
      panel.edits?.offer(answer.facts.vector, rows.length);
    });
  }
}
