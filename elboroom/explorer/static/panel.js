// @ts-check
// A panel: one run, with the picture or sentence of the code in hand, its dials, its map, and what is made of its pins.
import { Collapse, Numbers } from "./collapse.js";
import { Dials } from "./dials.js";
import { Edits } from "./edits.js";
import { MapCard } from "./mapcard.js";
import { OwnInput } from "./own.js";
import { Paths } from "./paths.js";
import { Replies } from "./replies.js";
import { Stage, make, short, write } from "./shown.js";
import { savePicture, save } from "./takeaway.js";
import { Server, newest } from "./transport.js";

/** @typedef {import("./view.js").Source} Source */
/** What a code came from: the answer with its input where there is one, what was said of it, and its words.
 * @typedef {{answer: {facts: any, bytes: ArrayBuffer} | null, said: string, reference: string | null}} Context */
/** @typedef {{z: number[], at: number[], u: Record<string, string>, source: Source, moved?: boolean, context?: Context}} Point */

export class Panel {
  /** @param {import("./app.js").App} app @param {number} number */
  constructor(app, number) {
    this.app = app;
    this.number = number;
    this.server = new Server(number, (stale) => this.tellStale(stale));
    this.element = make("section", { class: "panel", "aria-label": "run" });
    /** @type {any} */
    this.sheet = null;
    /** @type {Point | null} */
    this.point = null;
    /** @type {Point[]} */
    this.past = [];
    this.seed = 0;
    this.draws = 0;
    /** What the words of the sentence in hand are compared with. @type {string | null} */
    this.reference = null;
    /** What sliders ask for while an answer is on its way, by their dimension. @type {Map<number, number>} */
    this.waiting = new Map();
  }

  /** @param {string} context what a model that answers is to be asked first, one turn a line */
  async build(context) {
    this.element.replaceChildren(make("p", { class: "waiting", role: "status" }, "Opening the run…"));
    const { facts } = await this.server.ask("sheet");
    this.sheet = facts;
    this.stale = make("div", { class: "stale", role: "alert", hidden: true },
      "This run has another checkpoint now. ", make("button", { onclick: () => void this.reload() }, "Reload it"));
    if (facts.answers) {
      this.replies = new Replies(this, context);
      this.element.replaceChildren(this.stale, this.head(), make("div", { class: "cards" }, this.replies.element, new Numbers(facts).element));
      return;
    }
    this.input = new Stage(facts.kind, "the input");
    this.stage = new Stage(facts.kind, "what the code stands for");
    this.caption = make("p", { class: "caption", "aria-live": "polite" });
    this.dials = new Dials(facts.dimensions, (dim, value) => void this.move(dim, value), () => this.remember());
    this.edits = new Edits(this);
    this.paths = new Paths(this);
    this.map = new MapCard(this);
    this.own = new OwnInput(this);
    this.element.replaceChildren(this.stale, this.head(), make("div", { class: "cards" },
      this.look(), this.dialsCard(), this.map.element, this.paths.element, this.edits.element, this.own.element,
      new Collapse(facts).element, new Numbers(facts).element));
    this.flush = newest(this.catchUp.bind(this));
  }

  head() {
    const s = this.sheet;
    return make("header", { class: "run" },
      make("h2", {}, s.title, make("span", {}, ` on ${s.data}`)),
      make("p", { class: "formula" }, make("code", {}, s.formula), ` ${s.paper} · step ${s.step.toLocaleString("en")} · `, make("span", { title: s.folder }, s.folder.split(/[\\/]/).pop())),
      make("p", { class: "verdict" }, s.verdicts.join(" ")));
  }

  look() {
    const s = this.sheet, of = (/** @type {Record<string, any>} */ has, /** @type {string} */ text) => make("button", has, text);
    this.inputBox = make("figure", { class: "input", hidden: true }, this.input?.element ?? "", make("figcaption", {}, "input"));
    const buttons = make("div", { class: "buttons" },
      of({ class: "draw", onclick: () => this.app.open({ kind: "prior", seed: ++this.draws }, this) }, s.prior ? "Random draw" : "Draw of the codes"),
      of({ class: "example", onclick: () => void this.another() }, "Example"),
      of({ class: "zero", onclick: () => this.app.open({ kind: "zero" }, this) }, s.space === "sphere" ? "Middle" : "Zero"),
      of({ class: "undo", onclick: () => this.undo() }, "Undo"),
      of({ class: "pin primary", onclick: () => this.point && this.app.pin(this.point, this) }, "Pin"));
    const tools = make("div", { class: "buttons quiet" }, s.kind === "tokens"
      ? of({ class: "save", onclick: () => save("sentence.txt", new Blob([`${this.stage?.sentence}\n`])) }, "Save text")
      : of({ class: "save", onclick: () => void savePicture([/** @type {Stage} */ (this.stage).canvas], "picture.png") }, "Save PNG"));
    this.others = make("ul", { class: "others" });
    if (s.kind === "tokens") tools.append(of({ class: "alternatives", onclick: () => void this.alternatives() }, "Alternatives by sampling"));
    return make("section", { class: `card look ${s.kind}` }, make("h3", {}, "What the code stands for"),
      make("div", { class: "both" }, make("figure", {}, this.stage?.element ?? ""), this.inputBox), /** @type {Node} */ (this.caption),
      ...this.givenChoices(), buttons, tools, this.others);
  }

  /** Labels that the model is conditional on. */
  givenChoices() {
    /** @type {Map<string, HTMLSelectElement>} */
    this.given = new Map();
    return Object.entries(this.sheet.given).map(([name, classes]) => {
      const choice = make("select", { onchange: () => this.point && void this.open({ kind: "code", z: this.point.z, u: this.u() }) },
        .../** @type {string[]} */ (classes).map((c) => make("option", { value: c }, c)));
      this.given?.set(name, choice);
      return make("label", { class: "given" }, name, choice);
    });
  }

  /** @returns {Record<string, string>} */
  u() {
    return Object.fromEntries([...(this.given ?? [])].map(([name, choice]) => [name, choice.value]));
  }

  dialsCard() {
    const many = this.sheet.dimensions.length;
    return make("section", { class: "card dimensions" }, make("h3", {}, "Dimensions"),
      make("p", { class: "hint" }, `${many} dimension${many === 1 ? "" : "s"} by ${this.sheet.ranked}; drag one and watch what it changes.`),
      /** @type {Dials} */ (this.dials).element);
  }

  /** Shows a source, and makes its code the one in hand. @param {Source} source */
  async open(source) {
    const { facts, bytes } = await this.answer(source);
    this.remember();
    await this.take({ z: facts.z, at: facts.at, u: facts.u ?? {}, source }, { facts, bytes }, true);
  }

  /** @param {Source} source */
  async answer(source) {
    const u = this.u();
    if (source.kind === "row") return this.server.ask("example", { row: source.row });
    if (source.kind === "prior") return this.server.ask("prior", { seed: source.seed, u });
    if (source.kind === "zero") return this.server.ask("zero", { u });
    if (source.kind === "text") return this.server.ask("read", { text: source.text, u });
    if (source.kind === "image") return this.server.ask("read", { invert: source.invert, u }, source.content);
    return this.server.ask("edit", { z: source.z, vector: source.z.map(() => 0), strength: 0, u: { ...u, ...source.u } });
  }

  /** @param {Point} point @param {{facts: any, bytes: ArrayBuffer}} answer @param {boolean} fresh whether words are compared with it from now on */
  async take(point, answer, fresh) {
    const { facts } = answer, stage = /** @type {Stage} */ (this.stage);
    point.context ??= fresh ? undefined : this.point?.context;
    point.moved ??= !fresh;
    this.point = point;
    this.waiting.clear();
    for (const [name, choice] of this.given ?? []) if (point.u[name]) choice.value = point.u[name];
    this.dials?.set(point.at);
    const both = facts.count === 2 && (facts.row !== undefined || facts.nll !== undefined);
    if (both) await this.input?.show(answer, 0);
    if (this.inputBox && (fresh || both)) this.inputBox.hidden = !both;
    await stage.show(answer, both ? 1 : 0, fresh ? (both ? this.input?.sentence ?? null : null) : this.reference);
    if (fresh) this.reference = stage.sentence;
    if (fresh) this.edits?.rest();
    this.others?.replaceChildren();
    this.tell(facts, fresh);
    if (fresh) point.context = { answer: both ? answer : null, said: this.said ?? "", reference: this.reference };
    this.map?.mark();
    this.app.changed();
  }

  /** @param {any} facts @param {boolean} fresh */
  tell(facts, fresh) {
    if (!this.caption) return;
    const parts = [];
    if (facts.row !== undefined) parts.push(`Example ${facts.row.toLocaleString("en")} of the data`, ...Object.entries(facts.labels).map(([k, v]) => `${k} ${v}`));
    if (facts.nll !== undefined) parts.push("Your input", facts.nll === null ? `no −log p(x): ${facts.reason}` : `−log p(x) ≤ ${short(facts.nll, 1)} nats (${facts.estimator})`);
    if (this.point?.source.kind === "prior") parts.push(this.sheet.prior ? "A draw of the prior" : "A draw of the Gaussian fitted to the codes");
    if (this.point?.source.kind === "zero") parts.push("The middle of the space");
    if (fresh) this.said = parts.join(" · ");
    this.caption.textContent = (this.said && this.point?.moved ? `${this.said}, moved` : this.said) || "\u00a0";
  }

  /** One dimension set to a value. @param {number} dim @param {number} value */
  async moved(dim, value) {
    const { point } = this;
    if (!point) return;
    await this.app.trying(async () => {
      const answer = await this.server.ask("move", { z: point.z, dim, value, u: point.u });
      if (this.point !== point) return; // another code was taken in hand meanwhile
      this.point = { ...point, z: answer.facts.z, at: answer.facts.at, moved: true };
      this.dials?.set(this.point.at, dim, ...this.waiting.keys());
      await this.stage?.show(answer, 0, this.reference);
      this.edits?.rest();
      this.tell({}, false);
      this.map?.mark();
      this.app.changed();
    });
  }

  /** A slider was moved; of each the newest value waits while an answer is on its way. @param {number} dim @param {number} value */
  async move(dim, value) {
    this.waiting.set(dim, value);
    await this.flush();
  }

  /** Asks for what waits. @returns {Promise<void>} */
  async catchUp() {
    for (const [dim, value] of this.waiting) {
      this.waiting.delete(dim);
      await this.moved(dim, value);
    }
  }

  /** @returns {Promise<void>} */
  async flush() {
    await this.catchUp();
  }

  remember() {
    if (!this.point || this.past[this.past.length - 1] === this.point) return;
    this.past.push(this.point);
    if (this.past.length > 100) this.past.shift();
  }

  undo() {
    const last = this.past.pop();
    if (last) void this.app.trying(() => this.restore(last));
  }

  /** A code that was in hand before, with the input that it came from. @param {Point} point */
  async restore(point) {
    const answer = await this.answer({ kind: "code", z: point.z, u: point.u });
    const { answer: input, said, reference } = point.context ?? { answer: null, said: "", reference: null };
    [this.said, this.reference] = [said, reference];
    if (this.inputBox) this.inputBox.hidden = !input;
    if (input) await this.input?.show(input, 0);
    this.edits?.rest();
    await this.take({ ...point, at: answer.facts.at }, answer, false);
  }

  async another() {
    await this.app.trying(async () => {
      const { facts } = await this.server.ask("example", { seed: ++this.seed });
      this.app.open({ kind: "row", row: facts.row }, this);
    });
  }

  async alternatives() {
    const point = this.point;
    if (!point) return;
    await this.app.trying(async () => {
      const { facts } = await this.server.ask("alternatives", { z: point.z, n: 6, seed: ++this.draws, u: point.u });
      const lines = facts.sentences.map((/** @type {string} */ sentence) => {
        const line = make("li");
        write(line, sentence, this.stage?.sentence ?? null);
        return line;
      });
      this.others?.replaceChildren(...lines);
    });
  }

  /** @param {boolean} stale */
  tellStale(stale) {
    if (this.stale) this.stale.hidden = !stale;
  }

  async reload() {
    await this.app.trying(async () => {
      await this.server.reload();
      location.reload();
    });
  }
}
