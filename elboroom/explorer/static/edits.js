// @ts-check
// Edits: the code in hand, moved along the vector of an attribute (of a label's value, or of what the lasso holds), or, where
// the model has a block of style, moved to the style of a class.
import { make, short } from "./shown.js";
import { newest } from "./transport.js";

/** @typedef {{z: number[], u: Record<string, string>}} Base */
/** What an edit asks for, by the code it starts from and its strength. @typedef {(base: Base, strength: number) => Promise<{facts: any, bytes: ArrayBuffer}>} Change */

export class Edits {
  /** @param {import("./panel.js").Panel} panel */
  constructor(panel) {
    this.panel = panel;
    /** @type {Change | null} */
    this.change = null;
    /** @type {Base | null} */
    this.base = null;
    /** @type {number[] | null} */
    this.vector = null;
    const few = (/** @type {Record<string, string[]>} */ named) => Object.entries(named).filter(([, classes]) => classes.length <= 200);
    const labels = few(panel.sheet.labels), styles = few(panel.sheet.styles);
    const group = (/** @type {string} */ kind, /** @type {string} */ name, /** @type {string[]} */ classes) =>
      make("optgroup", { label: kind === "style" ? `style: ${name}` : name },
        ...classes.map((c) => make("option", { value: JSON.stringify([kind, name, c]) }, kind === "style" ? `to ${name} ${c}` : `${name} ${c}`)));
    this.choice = make("select", { "aria-label": "Attribute", onchange: () => void this.choose() },
      make("option", { value: "" }, labels.length || styles.length ? "Choose an attribute…" : "Lasso some points on the map first"),
      ...styles.map(([name, classes]) => group("style", name, classes)),
      ...labels.map(([name, classes]) => group("attribute", name, classes)));
    this.strength = make("input", { type: "range", min: -3, max: 3, step: 0.05, value: 0, disabled: true, "aria-label": "Strength of the edit" });
    this.told = make("output", {}, "0.00");
    this.strength.addEventListener("input", () => void this.apply(this.strength.valueAsNumber));
    this.note = make("p", { class: "hint" }, styles.length ? "Another style with the same content, or the difference of two means of codes."
      : "The difference of two means of codes, added to the code in hand.");
    this.element = make("section", { class: "card edits" }, make("h3", {}, styles.length ? "Edit by a style or an attribute" : "Edit by an attribute"), this.note,
      make("div", { class: "row" }, this.choice),
      make("div", { class: "dial strength" }, make("span", {}, "strength"), this.strength, this.told));
    this.apply = newest(this.applied.bind(this));
  }

  async choose() {
    const value = this.choice.value;
    this.rest();
    this.change = null;
    this.vector = null;
    this.strength.disabled = true;
    if (!value) return;
    if (value === "lasso") return this.along(this.lasso ?? [], "of the selection");
    const [kind, label, name] = JSON.parse(value);
    if (kind === "style") return this.restyle(label, name);
    await this.panel.app.trying(async () => {
      const { facts } = await this.panel.server.ask("vector", { label, value: name });
      this.along(facts.vector, `of ${facts.selected.toLocaleString("en")} examples with ${label} ${name}`);
    });
  }

  /** Along a vector. @param {number[]} vector @param {string} whose */
  along(vector, whose) {
    this.vector = vector;
    this.use(`The mean code ${whose} minus that of all others, added to the code in hand.`,
      ({ z, u }, strength) => this.panel.server.ask("edit", { z, vector, strength, u }));
  }

  /** To the style of a class, at once. @param {string} label @param {string} value */
  async restyle(label, value) {
    this.use(`The style moves to the mean style of ${label} ${value}, all the way at strength 1; the content stays.`,
      ({ z, u }, strength) => this.panel.server.ask("restyle", { z, label, value, strength, u }));
    this.strength.value = "1";
    await this.apply(1);
  }

  /** @param {string} note @param {Change} change */
  use(note, change) {
    this.change = change;
    this.strength.disabled = false;
    this.note.textContent = note;
  }

  /** What the lasso holds, as one more attribute. @param {number[]} vector @param {number} count */
  offer(vector, count) {
    this.lasso = vector;
    this.choice.querySelector('option[value="lasso"]')?.remove();
    this.choice.append(make("option", { value: "lasso" }, `selection of ${count.toLocaleString("en")}`));
    this.choice.value = "lasso";
    void this.choose();
  }

  /** The edit on the screen: the code that it starts from, what is asked for and how strongly.
   * @returns {{base: Base, said: string[], strength: number, vector: number[] | null} | null} */
  get shown() {
    if (!this.base || !this.change) return null;
    const said = this.choice.value === "lasso" ? ["lasso", "", ""] : JSON.parse(this.choice.value);
    return { base: this.base, said, strength: this.strength.valueAsNumber, vector: this.vector };
  }

  /** An edit of before again, on the code in hand. @param {string} said @param {number} strength */
  async again(said, strength) {
    if (![...this.choice.options].some((option) => option.value === said)) return;
    this.choice.value = said;
    await this.choose();
    this.strength.value = String(strength);
    await this.apply(this.strength.valueAsNumber);
  }

  /** The code in hand is another: the next edit starts there. */
  rest() {
    this.base = null;
    this.strength.value = "0";
    this.told.value = "0.00";
  }

  /** @param {number} strength @returns {Promise<void>} */
  async apply(strength) {
    await this.applied(strength);
  }

  /** @param {number} strength */
  async applied(strength) {
    const { panel, change } = this;
    if (!panel.point || !change) return;
    if (!this.base) {
      panel.remember();
      this.base = panel.point;
    }
    const { base } = this;
    this.told.value = short(strength);
    await panel.app.trying(async () => {
      const answer = await change(base, strength);
      await panel.take({ z: answer.facts.z, at: answer.facts.at, u: base.u, source: /** @type {any} */ (panel.point).source }, answer, false);
      this.base = base;
    });
  }
}
