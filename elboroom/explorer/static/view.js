// @ts-check
// The view as an address: what stands behind # restores the page.

/** @typedef {{kind: "row", row: number} | {kind: "text", text: string} | {kind: "code", z: number[], u: Record<string, string>}
 *   | {kind: "image", content: ArrayBuffer, invert: boolean, name: string} | {kind: "prior", seed: number} | {kind: "zero"}} Source */

/** @param {number[]} z @returns {string} */
const codeText = (z) => z.map((v) => Number(v.toPrecision(4))).join(",");

/** A source as text; a picture of one's own is too long for an address, so its code stands for it.
 * @param {Source} source @param {number[]} [z] @returns {string} */
export function sourceText(source, z) {
  if (source.kind === "row") return `row:${source.row}`;
  if (source.kind === "text") return `text:${source.text.slice(0, 300)}`;
  if (source.kind === "prior") return `prior:${source.seed}`;
  if (source.kind === "zero") return "zero:";
  return `code:${codeText(source.kind === "code" ? source.z : z ?? [])}`;
}

/** @param {string} text @param {Record<string, string>} [u] @returns {Source | null} */
export function sourceOf(text, u = {}) {
  const [kind, rest] = [text.slice(0, text.indexOf(":")), text.slice(text.indexOf(":") + 1)];
  const z = rest.split(",").map(Number), whole = Number.parseInt(rest, 10);
  if (kind === "row" && whole >= 0) return { kind, row: whole };
  if (kind === "text" && rest.trim()) return { kind, text: rest };
  if (kind === "prior" && whole >= 0) return { kind, seed: whole };
  if (kind === "zero") return { kind };
  if (kind === "code" && z.length && z.every(Number.isFinite)) return { kind, z, u };
  return null;
}

/** @typedef {{run: number, with: number | null, open: string, z: number[], u: Record<string, string>, context: string, map: string, colour: string, off: number[],
 *   pins: string[], window: number[], path: string, analogy: string, edit: string, strength: number, other: Beside | null}} View */
/** The code in hand of the second run. @typedef {{open: string, z: number[], u: Record<string, string>}} Beside */

/** @param {View} view @returns {string} */
export function viewText(view) {
  const said = new URLSearchParams();
  said.set("run", String(view.run));
  if (view.with !== null) said.set("with", String(view.with));
  if (view.open) said.set("open", view.open);
  if (view.z.length) said.set("z", codeText(view.z));
  if (Object.keys(view.u).length) said.set("u", JSON.stringify(view.u));
  if (view.context) said.set("context", view.context.slice(0, 2000));
  if (view.map) said.set("map", view.map);
  if (view.colour) said.set("colour", view.colour);
  if (view.off.length) said.set("off", view.off.join(","));
  for (const pin of view.pins) said.append("pin", pin);
  if (view.window.length) said.set("window", codeText(view.window));
  if (view.path) said.set("path", view.path);
  if (view.analogy) said.set("analogy", view.analogy);
  if (view.edit) said.set("edit", view.edit);
  if (view.edit) said.set("strength", String(view.strength));
  if (view.other) {
    said.set("open2", view.other.open);
    said.set("z2", codeText(view.other.z));
    if (Object.keys(view.other.u).length) said.set("u2", JSON.stringify(view.other.u));
  }
  return said.toString();
}

/** @param {string} text @returns {View} */
export function viewOf(text) {
  const said = new URLSearchParams(text.replace(/^#/, ""));
  const number = (/** @type {string} */ name) => (/^\d+$/.test(said.get(name) ?? "") ? Number(said.get(name)) : null);
  const numbers = (/** @type {string} */ name) => (said.get(name) ?? "").split(",").filter(Boolean).map(Number).filter(Number.isFinite);
  /** @returns {Record<string, string>} */
  const labels = (/** @type {string} */ name) => {
    try {
      const read = JSON.parse(said.get(name) ?? "{}");
      if (read && typeof read === "object") return Object.fromEntries(Object.entries(read).map(([k, v]) => [k, String(v)]));
    } catch { /* an address that was cut */ }
    return {};
  };
  const strength = Number(said.get("strength") ?? 0);
  return {
    run: number("run") ?? 0, with: number("with"), open: said.get("open") ?? "", z: numbers("z"), u: labels("u"), context: said.get("context") ?? "", map: said.get("map") ?? "",
    colour: said.get("colour") ?? "", off: numbers("off"), pins: said.getAll("pin").slice(0, 26),
    window: numbers("window"), path: said.get("path") ?? "", analogy: said.get("analogy") ?? "", edit: said.get("edit") ?? "",
    strength: Number.isFinite(strength) ? strength : 0, other: said.has("z2") ? { open: said.get("open2") ?? "", z: numbers("z2"), u: labels("u2") } : null,
  };
}
