// @ts-check
// An input of one's own: a sentence, or an image that is dropped, chosen or pasted.
import { make } from "./shown.js";

export class OwnInput {
  /** @param {import("./panel.js").Panel} panel */
  constructor(panel) {
    this.panel = panel;
    const kind = panel.sheet.kind;
    this.element = make("section", { class: "card own" }, make("h3", {}, "Your own input"),
      ...(kind === "tokens" ? this.sentence() : kind === "pixels" ? this.image()
        : [make("p", { class: "hint" }, "This model takes vectors: run.encode in Python.")]));
  }

  sentence() {
    const text = make("input", { type: "text", maxlength: 2000, "aria-label": "A sentence", placeholder: "Type a sentence, then Enter", autocomplete: "off" });
    const form = make("form", {
      class: "row", onsubmit: (/** @type {Event} */ event) => {
        event.preventDefault();
        if (text.value.trim()) this.panel.app.open({ kind: "text", text: text.value }, this.panel);
      },
    }, text, make("button", { type: "submit" }, "Encode"));
    return [make("p", { class: "hint" }, "It is encoded and decoded again; then the sliders move it. Words that the model does not know become <unk>."), form];
  }

  image() {
    const file = make("input", { type: "file", accept: "image/png,image/jpeg,image/bmp,image/gif,image/webp", "aria-label": "An image" });
    const invert = make("input", { type: "checkbox" });
    const drop = make("label", { class: "drop" }, "Drop an image here, or choose one ", file);
    const read = async (/** @type {Blob | null | undefined} */ blob) => {
      if (!blob) return;
      this.content = await blob.arrayBuffer();
      this.open(invert.checked);
    };
    file.addEventListener("change", () => void read(file.files?.[0]));
    invert.addEventListener("change", () => this.open(invert.checked));
    for (const name of ["dragover", "drop", "dragleave"]) {
      drop.addEventListener(name, (event) => {
        event.preventDefault();
        drop.classList.toggle("over", name === "dragover");
        if (name === "drop") void read(/** @type {DragEvent} */ (event).dataTransfer?.files[0]);
      });
    }
    const [, high, wide] = this.panel.sheet.shape;
    return [
      make("p", { class: "hint" }, `It is scaled to ${wide} × ${high}${this.panel.sheet.binary ? " in black and white" : ""}, as the data was.`),
      drop, make("label", { class: "check" }, invert, "dark on light: invert it"),
    ];
  }

  /** @param {boolean} invert */
  open(invert) {
    if (this.content) this.panel.app.open({ kind: "image", content: this.content, invert, name: "image" }, this.panel);
  }
}
