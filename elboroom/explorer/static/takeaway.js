// @ts-check
// What can be taken away: a picture, a film, sentences, Python, a command.

/** @param {string} name @param {Blob} content */
export function save(name, content) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Canvases side by side, each pixel enlarged, as a PNG. @param {HTMLCanvasElement[]} canvases @param {string} name */
export async function savePicture(canvases, name) {
  const wide = canvases[0].width, tall = canvases[0].height, by = Math.max(1, Math.round(256 / Math.max(wide, tall)));
  const sheet = document.createElement("canvas");
  sheet.width = canvases.length * (wide * by + 2) - 2;
  sheet.height = tall * by;
  const pen = /** @type {CanvasRenderingContext2D} */ (sheet.getContext("2d"));
  pen.imageSmoothingEnabled = false;
  canvases.forEach((canvas, i) => pen.drawImage(canvas, i * (wide * by + 2), 0, wide * by, tall * by));
  const blob = await new Promise((done) => sheet.toBlob(done));
  if (blob) save(name, /** @type {Blob} */ (blob));
}

/** @param {string} text */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch { // a page that is framed, or not on this machine, has no clipboard
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

/** @param {string} text @returns {string} */
const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;

/** @param {string[]} folders @param {string} view @param {number} points @returns {string} */
export function command(folders, view, points) {
  return `elbo explore ${folders.map(quoted).join(" ")}${points === USUAL ? "" : ` --points ${points}`} --view ${quoted(view)}`;
}

export const USUAL = 10_000; // examples on a map
const literal = (/** @type {string} */ s) => JSON.stringify(s).replace(/[\u007f-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
const labels = (/** @type {Record<string, string>} */ u, /** @type {number} */ n) => {
  const pairs = Object.entries(u);
  return pairs.length ? `run.labelled(${n}, **{${pairs.map(([k, v]) => `${literal(k)}: ${literal(v)}`).join(", ")}})` : "";
};

/** Answers to a context as Python. @param {string} folder @param {string[]} turns @param {number} n @param {number} seed
 * @param {Record<string, string>} u @returns {string} */
export function answered(folder, turns, n, seed, u) {
  const given = labels(u, n);
  return ["import elboroom", "", `run = elboroom.load(${literal(folder)})`,
    `answers = run.generate([${turns.map(literal).join(", ")}], ${n}, seed=${seed}${given ? `, u=${given}` : ""})`, ""].join("\n");
}

/**
 * What is on the screen as Python.
 * @param {{folder: string, kind: string, z: number[], u: Record<string, string>,
 *   way: {z: number[][], u: Record<string, string>, spherical: boolean} | null, edit: import("./edits.js").Edits["shown"]}} now
 * @returns {string}
 */
export function python(now) {
  const list = (/** @type {number[]} */ z) => `[${z.map((v) => Number(v.toPrecision(5))).join(", ")}]`;
  const given = (/** @type {Record<string, string>} */ u, /** @type {number} */ n) => (Object.keys(u).length ? `, ${labels(u, n)}` : "");
  const { way, edit } = now, style = edit?.said[0] === "style";
  const imports = ["import elboroom", ...(way || edit ? ["import torch"] : []), ...(way?.spherical ? ["from elboroom.geometry import paths"] : []),
    ...(style ? ["from elboroom.runs.transfer import restyled"] : [])];
  const lines = [...imports, "", `run = elboroom.load(${literal(now.folder)})`, ...(edit ? edited(edit, list) : [`z = [${list(now.z)}]`]),
    `made = run.decode(z${given(now.u, 1)})  # ${now.kind === "tokens" ? "one sentence" : "(1, *shape)"}`];
  if (way) {
    const [a, b, n] = [way.z[0], way.z[way.z.length - 1], way.z.length];
    lines.push("", `a, b = torch.tensor(${list(a)}), torch.tensor(${list(b)})`,
      `path = run.decode(${way.spherical ? "paths.arc" : "run.space.way"}(a, b, ${n}).numpy()${given(way.u, n)})`);
  }
  return `${lines.join("\n")}\n`;
}

/** The code of an edit, from the code that it starts from.
 * @param {NonNullable<import("./edits.js").Edits["shown"]>} edit @param {(z: number[]) => string} list @returns {string[]} */
function edited({ base, said, strength, vector }, list) {
  const [kind, label, value] = said, before = `before = torch.tensor([${list(base.z)}])`;
  if (kind === "style") return [before, `z = restyled(run, before, {${literal(label)}: ${literal(value)}}, ${strength}).numpy()`];
  const told = kind === "lasso" ? "the selection" : JSON.stringify(`${label} ${value}`);
  return [before, `vector = torch.tensor(${list(vector ?? [])})  # ${told}: its mean code minus that of all others`,
    `z = run.space.back(run.space.flat(before) + ${strength} * vector).numpy()`];
}
