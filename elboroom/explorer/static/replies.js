// @ts-check
// Replies: the turns of a dialogue, or a sentence to translate or simplify, and what the model answers.
import { make, write } from "./shown.js";
import { save } from "./takeaway.js";

export class Replies {
  /** @param {import("./panel.js").Panel} panel @param {string} context the turns to begin with, one a line */
  constructor(panel, context) {
    this.panel = panel;
    this.seed = 0;
    /** @type {string[]} */
    this.sentences = [];
    this.text = make("textarea", { rows: 5, maxlength: 20_000, "aria-label": "The context, one turn a line", spellcheck: false });
    this.text.value = context || panel.sheet.turns.join("\n");
    this.text.addEventListener("input", () => panel.app.changed());
    this.many = make("select", { "aria-label": "How many" }, ...[1, 5, 10].map((n) => make("option", { value: n }, n === 1 ? "the likeliest" : `${n} by chance`)));
    this.many.value = "5";
    this.list = make("ol", { class: "replies", "aria-live": "polite", "aria-label": "Answers" });
    const send = make("form", { onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); void this.ask(); } },
      this.text, ...panel.givenChoices(),
      make("div", { class: "buttons" }, make("button", { type: "submit", class: "primary" }, "Answer"), this.many,
        make("button", { type: "button", class: "save", onclick: () => save("answers.txt", new Blob([`${this.sentences.join("\n")}\n`])) }, "Save text")));
    this.element = make("section", { class: "card answers" }, make("h3", {}, "What it answers"),
      make("p", { class: "hint" }, "One turn a line, the newest last. Click an answer to make it the next turn. Words that the model does not know become <unk>."),
      send, this.list);
  }

  /** @returns {string[]} */
  get turns() {
    return this.text.value.split("\n").map((turn) => turn.trim()).filter(Boolean);
  }

  async ask() {
    const { panel } = this;
    await panel.app.trying(async () => {
      const { facts } = await panel.server.ask("reply", { turns: this.turns, n: Number(this.many.value), seed: ++this.seed, u: panel.u() });
      this.sentences = facts.sentences;
      this.list.replaceChildren(...this.sentences.map((sentence) => {
        const said = make("button", { class: "reply", title: "Make it the next turn", onclick: () => this.follow(sentence) });
        write(said, sentence);
        return make("li", {}, said);
      }));
      panel.app.changed();
    });
  }

  /** @param {string} sentence */
  follow(sentence) {
    this.text.value = [...this.turns, sentence].join("\n");
    this.list.replaceChildren();
    this.panel.app.changed();
    this.text.focus();
  }
}
