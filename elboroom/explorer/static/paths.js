// @ts-check
// Pins, and what is made of them: a strip from one to another, and the analogy a - b + c.
import { Stage, draw, make, spriteOf, write } from "./shown.js";
import { save, savePicture } from "./takeaway.js";

const WAYS = { euclidean: "straight line", sphere: "great circle", hyperbolic: "geodesic" };

export class Paths {
  /** @param {import("./panel.js").Panel} panel */
  constructor(panel) {
    this.panel = panel;
    /** @type {any[]} */
    this.points = [];
    /** @type {any} */
    this.way = null;
    this.turn = 0; // counts the paths that were asked for
    this.list = make("div", { class: "pins" });
    this.strip = make("div", { class: "strip", role: "list", "aria-label": "The path" });
    const choice = (/** @type {string} */ label) => make("select", { "aria-label": label, onchange: () => void this.refresh() });
    this.from = choice("from");
    this.to = choice("to");
    this.curve = make("select", { "aria-label": "kind of path", onchange: () => void this.refresh() },
      make("option", { value: "" }, WAYS[/** @type {keyof typeof WAYS} */ (panel.sheet.space)]),
      ...(panel.sheet.space === "euclidean" ? [make("option", { value: "spherical" }, "great circle")] : []));
    this.a = choice("a");
    this.b = choice("b");
    this.c = choice("c");
    /** @type {{z: number[], u: Record<string, string>} | null} */
    this.sum = null;
    this.result = new Stage(panel.sheet.kind, "a - b + c");
    this.analogy = make("div", { class: "row analogy", hidden: true }, this.a, "−", this.b, "+", this.c, "=", this.result.element,
      make("button", { onclick: () => this.hold() }, "Take it in hand"));
    const tokens = panel.sheet.kind === "tokens";
    this.tools = make("div", { class: "row", hidden: true }, "from", this.from, "to", this.to, "by", this.curve,
      ...(tokens ? [make("button", { onclick: () => save("path.txt", new Blob([`${this.sentences.join("\n")}\n`])) }, "Save text")] : [
        make("button", { class: "png", onclick: () => void savePicture([.../** @type {NodeListOf<HTMLCanvasElement>} */ (this.strip.querySelectorAll("canvas"))], "path.png") }, "Save PNG"),
        ...(panel.sheet.kind === "pixels" ? [make("button", { class: "gif", onclick: () => void this.film() }, "Save GIF")] : [])]));
    /** @type {string[]} */
    this.sentences = [];
    this.hint = make("p", { class: "hint" }, "Pin what you see, or click points on the map. Two pins make a path, three an analogy.");
    this.element = make("section", { class: "card paths" }, make("h3", {}, "Pins and paths"), this.hint, this.list, this.tools, this.strip, this.analogy);
  }

  /** Looks at the pins anew. */
  async update() {
    const pins = this.panel.app.pins;
    this.points = await Promise.all(pins.map((pin) => this.panel.app.resolved(pin, this.panel)));
    const shown = await Promise.all(pins.map(async (pin, i) => this.card(pin, this.points[i])));
    this.list.replaceChildren(...shown);
    this.hint.hidden = pins.length >= 2;
    const usable = pins.map((pin, i) => ({ name: pin.name, i })).filter(({ i }) => this.points[i]);
    this.fill(this.from, usable, 0);
    this.fill(this.to, usable, 1);
    this.fill(this.a, usable, 0);
    this.fill(this.b, usable, 1);
    this.fill(this.c, usable, 2);
    this.tools.hidden = usable.length < 2;
    this.analogy.hidden = usable.length < 3;
    this.panel.map?.mark();
    await this.refresh();
  }

  /** @param {HTMLSelectElement} choice @param {{name: string, i: number}[]} usable @param {number} usual */
  fill(choice, usable, usual) {
    const had = choice.value;
    choice.replaceChildren(...usable.map(({ name, i }) => make("option", { value: i }, name)));
    const same = usable.some(({ i }) => String(i) === had);
    choice.value = same && choice.dataset.full === "yes" ? had : String(usable[Math.min(usual, usable.length - 1)]?.i ?? "");
    choice.dataset.full = usable.length > usual ? "yes" : "no";
  }

  /** @param {import("./app.js").Pin} pin @param {any} point */
  async card(pin, point) {
    const card = make("div", { class: "pinned" }, make("b", {}, pin.name));
    if (point) {
      const stage = new Stage(this.panel.sheet.kind, `pin ${pin.name}`);
      await stage.show(point.answer, point.answer.facts.count - 1);
      const open = () => void this.panel.app.trying(() => this.panel.open(pin.source));
      card.append(make("button", { class: "open", title: "Take it in hand", onclick: open }, stage.element));
    } else card.append(make("span", { class: "muted" }, "a code of the other run"));
    card.append(make("button", { class: "remove", "aria-label": `Remove pin ${pin.name}`, onclick: () => this.panel.app.unpin(pin) }, "×"));
    return card;
  }

  async refresh() {
    const { panel } = this, [a, b] = [this.points[Number(this.from.value)], this.points[Number(this.to.value)]];
    const turn = ++this.turn;
    this.way = null;
    if (this.tools.hidden || !a || !b) {
      this.strip.replaceChildren();
      panel.map?.mark();
      return;
    }
    await panel.app.trying(async () => {
      const spherical = this.curve.value === "spherical", u = a.u;
      const answer = await panel.server.ask("path", { a: a.z, b: b.z, points: 9, spherical, u });
      if (turn !== this.turn) return; // another path was asked for meanwhile
      this.way = { z: answer.facts.z, at: answer.facts.at, u, spherical };
      await this.show(answer, u);
      await this.combine();
      panel.map?.mark();
    });
  }

  /** @param {{facts: any, bytes: ArrayBuffer}} answer @param {Record<string, string>} u */
  async show(answer, u) {
    const { facts } = answer, { kind } = this.panel.sheet;
    this.strip.classList.toggle("lines", kind === "tokens");
    this.sentences = facts.sentences ?? [];
    const sprite = kind === "pixels" ? await spriteOf(answer) : null;
    this.strip.replaceChildren(...facts.z.map((/** @type {number[]} */ z, /** @type {number} */ k) => {
      const stage = new Stage(kind, `step ${k + 1} of ${facts.z.length}`);
      if (sprite) draw(stage.canvas, sprite, k);
      else if (kind === "tokens") write(stage.text, facts.sentences[k], k ? facts.sentences[k - 1] : null);
      else void stage.show(answer, k);
      return make("button", { class: "frame", role: "listitem", title: "Take it in hand", onclick: () => void this.panel.app.trying(() => this.panel.open({ kind: "code", z, u })) }, stage.element);
    }));
  }

  /** Which pins the path and the analogy are of, by their places in a list. @param {import("./app.js").Pin[]} kept
   * @returns {{path: string, analogy: string}} */
  chosen(kept) {
    const { pins } = this.panel.app, place = (/** @type {HTMLSelectElement} */ choice) => kept.indexOf(pins[Number(choice.value)]);
    const text = (/** @type {number[]} */ places) => (places.every((k) => k >= 0) ? places.join(",") : "");
    const path = this.tools.hidden ? "" : text([this.from, this.to].map(place));
    return { path: path && this.curve.value ? `${path},${this.curve.value}` : path, analogy: this.analogy.hidden ? "" : text([this.a, this.b, this.c].map(place)) };
  }

  /** Chooses them again. @param {string} path @param {string} analogy */
  async choose(path, analogy) {
    const [from, to, curve] = path.split(","), [a, b, c] = analogy.split(",");
    const set = (/** @type {HTMLSelectElement} */ choice, /** @type {string | undefined} */ value) => {
      if (value && [...choice.options].some((option) => option.value === value)) choice.value = value;
    };
    set(this.from, from);
    set(this.to, to);
    set(this.curve, curve);
    set(this.a, a);
    set(this.b, b);
    set(this.c, c);
    await this.refresh();
  }

  async combine() {
    if (this.analogy.hidden) return;
    const [a, b, c] = [this.a, this.b, this.c].map((choice) => this.points[Number(choice.value)]);
    if (!a || !b || !c) return; // a pin went meanwhile
    const answer = await this.panel.server.ask("analogy", { a: a.z, b: b.z, c: c.z, u: c.u });
    this.sum = { z: answer.facts.z, u: c.u };
    await this.result.show(answer, 0);
  }

  hold() {
    const { sum } = this;
    if (sum) void this.panel.app.trying(() => this.panel.open({ kind: "code", ...sum }));
  }

  async film() {
    const way = this.way;
    if (!way) return;
    await this.panel.app.trying(async () => {
      const { bytes } = await this.panel.server.ask("gif", { z: way.z, u: way.u });
      save("path.gif", new Blob([bytes], { type: "image/gif" }));
    });
  }
}
