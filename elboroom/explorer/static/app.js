// @ts-check
// The page: one run or two side by side, with pins that both look at, and an address that restores it.
import { Panel } from "./panel.js";
import { make } from "./shown.js";
import { USUAL, answered, command, copy, python } from "./takeaway.js";
import { Refusal, runs } from "./transport.js";
import { sourceOf, sourceText, viewOf, viewText } from "./view.js";

/** @typedef {import("./view.js").Source} Source */
/** @typedef {{name: string, source: Source, z?: number[], by: number, known: Map<number, Promise<any>>}} Pin */

export class App {
  constructor() {
    /** @type {Panel[]} */
    this.panels = [];
    /** @type {Pin[]} */
    this.pins = [];
    this.ready = false;
    this.main = /** @type {HTMLElement} */ (document.querySelector("main"));
    this.bar = /** @type {HTMLElement} */ (document.querySelector("#bar"));
    this.alert = /** @type {HTMLElement} */ (document.querySelector("#alert"));
    this.toast = /** @type {HTMLElement} */ (document.querySelector("#toast"));
  }

  async start() {
    await this.trying(async () => {
      this.list = await runs();
      this.choices();
      await this.show(viewOf(location.hash));
    });
    addEventListener("hashchange", () => {
      if (location.hash.slice(1) !== this.written) void this.trying(() => this.show(viewOf(location.hash)));
    });
  }

  choices() {
    /** @type {any[]} */
    const list = this.list ?? [];
    const options = () => list.map((run) => make("option", { value: run.number }, run.title ? `${run.name} · ${run.title}` : run.name));
    const changed = () => void this.trying(() => this.show({
      ...this.view(), run: Number(this.first?.value), with: this.second?.value ? Number(this.second.value) : null, z: [], u: {}, off: [], window: [],
      path: "", analogy: "", edit: "", other: null,
    }));
    this.first = make("select", { id: "run", "aria-label": "Run", onchange: changed }, ...options());
    this.second = make("select", { id: "with", "aria-label": "Compare with", onchange: changed }, make("option", { value: "" }, "nothing"), ...options());
    const taken = (/** @type {string} */ name, /** @type {() => string} */ text) => make("button", {
      onclick: async () => { await copy(text()); this.say(`${name} copied`); },
    }, `Copy ${name}`);
    this.bar.replaceChildren(make("label", {}, "Run ", this.first),
      ...(list.length > 1 ? [make("label", {}, "beside ", this.second)] : []), make("span", { class: "space" }),
      taken("as Python", () => this.python()), taken("as command", () => this.command()), taken("link", () => location.href));
  }

  /** @param {import("./view.js").View} view */
  async show(view) {
    /** @type {any[]} */
    const list = this.list ?? [];
    if (!list.length) throw new Refusal("There are no runs here.", 0);
    this.ready = false;
    const numbers = [view.run, view.with].filter((n) => n !== null && n < list.length);
    if (!numbers.length) numbers.push(0);
    if (this.first) this.first.value = String(numbers[0]);
    if (this.second) this.second.value = numbers.length > 1 ? String(numbers[1]) : "";
    this.panels = numbers.map((n) => new Panel(this, /** @type {number} */ (n)));
    this.pins = [];
    view.pins.forEach((text) => this.add(sourceOf(text, view.u), this.panels[0]));
    this.main.className = this.panels.length > 1 ? "two" : "one";
    this.main.replaceChildren(...this.panels.map((panel) => panel.element));
    await Promise.all(this.panels.map((panel) => this.building(panel, view)));
    this.ready = true;
    this.changed();
  }

  /** @param {Panel} panel @param {import("./view.js").View} view */
  async building(panel, view) {
    try {
      const first = panel === this.panels[0];
      await panel.build(first ? view.context : "");
      if (panel.replies) {
        await panel.replies.ask();
        return;
      }
      const own = first ? view : view.other, source = sourceOf((own ?? view).open, (own ?? view).u), z = own?.z ?? [];
      await panel.open(source && (own || source.kind !== "code") ? source : { kind: "row", row: await this.some(panel) });
      if (own && z.length === panel.sheet.latent && panel.point && z.some((v, j) => Math.abs(v - /** @type {any} */ (panel.point).z[j]) > 1e-3 * Math.max(1, Math.abs(v)))) {
        const answer = await panel.answer({ kind: "code", z, u: own.u });
        await panel.take({ z: answer.facts.z, at: answer.facts.at, u: answer.facts.u, source: panel.point.source }, answer, false);
      }
      panel.past = [];
      await panel.paths?.update();
      if (first) await panel.paths?.choose(view.path, view.analogy);
      if (first && view.edit) await panel.edits?.again(view.edit, view.strength);
      void panel.map?.start(view.map, view.colour, view.off, first ? view.window : []);
    } catch (error) {
      panel.element.replaceChildren(make("p", { class: "problem", role: "alert" }, error instanceof Error ? error.message : String(error)));
      if (!(error instanceof Refusal)) throw error;
    }
  }

  /** @param {Panel} panel @returns {Promise<number>} */
  async some(panel) {
    return (await panel.server.ask("example", { seed: 0 })).facts.row;
  }

  /** Shows a source in every panel that can show it. @param {Source} source @param {Panel} from */
  async open(source, from) {
    await this.trying(async () => {
      await Promise.all(this.panels.filter((panel) => panel === from || this.linked(source, panel, from)).map((panel) => panel.open(source)));
    });
  }

  /** Whether a source of one panel means something in another. @param {Source} source @param {Panel} panel @param {Panel} from */
  linked(source, panel, from) {
    if (!panel.sheet || panel.sheet.answers || source.kind === "code" || panel.sheet.kind !== from.sheet.kind) return false;
    return source.kind !== "row" || panel.sheet.same === from.sheet.same;
  }

  /** @param {Source | null} source @param {Panel} from @param {number[]} [z] */
  add(source, from, z) {
    if (!source || this.pins.length >= 26) return;
    const used = new Set(this.pins.map((pin) => pin.name));
    const name = [..."ABCDEFGHIJKLMNOPQRSTUVWXYZ"].find((letter) => !used.has(letter)) ?? "?";
    this.pins.push({ name, source, z, by: from.number, known: new Map() });
  }

  /** @param {import("./panel.js").Point} point @param {Panel} from */
  async pin(point, from) {
    const opened = point.source.kind !== "code" && (await this.resolved({ name: "", source: point.source, by: from.number, known: new Map() }, from));
    const same = opened && opened.z.every((/** @type {number} */ v, /** @type {number} */ j) => Math.abs(v - point.z[j]) < 1e-4);
    this.add(same ? point.source : { kind: "code", z: point.z, u: point.u }, from, point.z);
    await this.trying(async () => { await Promise.all(this.panels.map((panel) => panel.paths?.update())); });
    this.changed();
  }

  /** @param {Pin} pin */
  unpin(pin) {
    this.pins = this.pins.filter((other) => other !== pin);
    void this.trying(async () => { await Promise.all(this.panels.map((panel) => panel.paths?.update())); });
    this.changed();
  }

  /** What a pin is in a panel: its code and how it looks; nothing where it belongs to the other run. @param {Pin} pin @param {Panel} panel */
  async resolved(pin, panel) {
    const from = this.panels.find((other) => other.number === pin.by) ?? this.panels[0];
    if (panel.number !== pin.by && !this.linked(pin.source, panel, from)) return null;
    if (!pin.known.has(panel.number)) {
      pin.known.set(panel.number, panel.answer(pin.source).then((answer) => ({ z: answer.facts.z, at: answer.facts.at, u: answer.facts.u ?? {}, answer })));
    }
    return pin.known.get(panel.number)?.catch(() => null);
  }

  /** @returns {import("./view.js").View} */
  view() {
    const [panel, second] = this.panels, map = panel?.map, other = second?.point, point = panel?.point;
    const shown = panel?.edits?.shown, edit = shown?.said[0] === "lasso" ? null : shown; // what a lasso held is not kept
    const kept = this.pins.filter((pin) => pin.by === panel?.number || !["code", "image"].includes(pin.source.kind));
    return {
      run: panel?.number ?? 0, with: second?.number ?? null, open: point ? sourceText(point.source, edit?.base.z ?? point.z) : "",
      z: edit?.base.z ?? point?.z ?? [], u: point?.u ?? {},
      context: panel?.replies?.text.value ?? "", map: map?.view ?? "", colour: map?.by.value ?? "", off: map ? [...map.code.off] : [],
      pins: kept.map((pin) => sourceText(pin.source, pin.z)), window: map?.code.window ?? [], ...(panel?.paths?.chosen(kept) ?? { path: "", analogy: "" }),
      edit: edit ? JSON.stringify(edit.said) : "", strength: edit?.strength ?? 0,
      other: other ? { open: sourceText(other.source, other.z), z: other.z, u: other.u } : null,
    };
  }

  /** Writes the view into the address, now and then. */
  changed() {
    if (!this.ready || this.writing) return;
    this.writing = setTimeout(() => {
      this.writing = 0;
      this.written = viewText(this.view());
      history.replaceState(null, "", `#${this.written}`);
    }, 150);
  }

  command() {
    const view = { ...this.view(), run: 0, with: this.panels[1] ? 1 : null };
    return command(this.panels.map((panel) => panel.sheet.folder), viewText(view), this.panels[0].sheet.points ?? USUAL);
  }

  python() {
    const panel = this.panels[0], point = panel.point;
    if (panel.replies) return answered(panel.sheet.folder, panel.replies.turns, Number(panel.replies.many.value), panel.replies.seed, panel.u());
    if (!point) return "";
    const { folder, kind } = panel.sheet;
    return python({ folder, kind, z: point.z, u: point.u, way: panel.paths?.way ?? null, edit: panel.edits?.shown ?? null });
  }

  /** Does something, and says what went wrong. @param {() => Promise<void>} work */
  async trying(work) {
    try {
      await work();
      this.alert.hidden = true;
    } catch (error) {
      this.alert.textContent = error instanceof Error ? error.message : String(error);
      this.alert.hidden = false;
      if (!(error instanceof Refusal)) throw error;
    }
  }

  /** @param {string} sentence */
  say(sentence) {
    this.toast.textContent = sentence;
    this.toast.hidden = false;
    setTimeout(() => { this.toast.hidden = true; }, 1800);
  }
}

const app = new App();
void app.start();
Object.assign(window, { elboroom: app }); // for the console, and for tests
