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

/** @param {string[]} folders @param {string} view @returns {string} */
export function command(folders, view) {
  return `elbo explore ${folders.map(quoted).join(" ")} --view ${quoted(view)}`;
}

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
 * @param {{folder: string, kind: string, z: number[], u: Record<string, string>, way: number[][] | null, spherical: boolean}} now
 * @returns {string}
 */
export function python(now) {
  const list = (/** @type {number[]} */ z) => `[${z.map((v) => Number(v.toPrecision(5))).join(", ")}]`;
  const given = (/** @type {number} */ n) => (Object.keys(now.u).length ? `, ${labels(now.u, n)}` : "");
  const lines = ["import elboroom", "", `run = elboroom.load(${literal(now.folder)})`, `z = [${list(now.z)}]`,
    `made = run.decode(z${given(1)})  # ${now.kind === "tokens" ? "one sentence" : "(1, *shape)"}`];
  if (now.way) {
    const [a, b, n] = [now.way[0], now.way[now.way.length - 1], now.way.length];
    const way = now.spherical ? "paths.arc" : "run.space.way";
    lines.splice(1, 0, "import torch", ...(now.spherical ? ["from elboroom.geometry import paths"] : []));
    lines.push("", `a, b = torch.tensor(${list(a)}), torch.tensor(${list(b)})`, `path = run.decode(${way}(a, b, ${n}).numpy()${given(n)})`);
  }
  return `${lines.join("\n")}\n`;
}
