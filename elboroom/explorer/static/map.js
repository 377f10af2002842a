// @ts-check
// The map: up to 100,000 codes on a canvas. Points are written into the pixels by hand, since that pans without waiting where
// a thousand calls of a pen would not; contours of the prior lie on a canvas behind, pins and the lasso on one before.
import { make } from "./shown.js";

const SEVERAL = ["#4477cc", "#e6862e", "#2a9d78", "#d1495b", "#8e63ce", "#a89c1f", "#46b4d9", "#c2579d", "#7a8a3c", "#808b99"];
const TWICE = 300; // milliseconds in which a second click makes it a double one
const SCALE = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];

/** @param {number} t from 0 to 1 @returns {string} */
function along(t) {
  const at = Math.min(0.9999, Math.max(0, t)) * (SCALE.length - 1), i = Math.floor(at), f = at - i;
  return `rgb(${SCALE[i].map((c, k) => Math.round(c + f * (SCALE[i + 1][k] - c))).join(",")})`;
}

/** The colour of a class. @param {number} k @param {number} count @param {boolean} ordered @returns {string} */
export function tint(k, count, ordered) {
  return ordered || count > SEVERAL.length ? along(count > 1 ? k / (count - 1) : 0.5) : SEVERAL[k % SEVERAL.length];
}

/** @param {string} colour @returns {number} as it lies in the pixels of a canvas */
function packed(colour) {
  const pen = /** @type {CanvasRenderingContext2D} */ (make("canvas").getContext("2d"));
  pen.fillStyle = colour;
  pen.fillRect(0, 0, 1, 1);
  const [r, g, b] = pen.getImageData(0, 0, 1, 1).data;
  return (255 << 24) | (b << 16) | (g << 8) | r;
}

export class CodeMap {
  /** @param {{hover: (at: Place | null) => void, click: (at: Place) => void, lasso: (rows: number[]) => void, look: () => void}} on */
  constructor(on) {
    this.on = on;
    this.points = new Float32Array(0);
    this.n = 0;
    /** @type {Int32Array | null} */
    this.classes = null;
    /** @type {Uint32Array} */
    this.tints = new Uint32Array([0]);
    /** @type {Set<number>} */
    this.off = new Set();
    /** @type {Set<number> | null} */
    this.chosen = null;
    /** @type {{mass: number, line: number[]}[]} */
    this.contours = [];
    /** @type {{name: string, x: number, y: number, now: boolean}[]} */
    this.marks = [];
    /** @type {[number, number][]} */
    this.way = [];
    /** @type {[number, number][] | null} */
    this.drawn = null;
    this.lassoing = false;
    /** @type {Place | null} */
    this.tapped = null;
    this.whole = true; // whether it shows all there is
    this.at = { x: 0, y: 0, scale: 1 };
    this.box = { width: 1, height: 1 }; // in pixels of CSS, as it was last laid out
    this.ratio = 1;
    this.behind = make("canvas", { "aria-hidden": "true" });
    this.dots = make("canvas", { "aria-hidden": "true" });
    this.before = make("canvas", {
      tabindex: 0, role: "img",
      "aria-label": "Map of the codes. Arrow keys pan, plus and minus zoom, Enter opens what lies in the middle.",
    });
    this.element = make("div", { class: "map" }, this.behind, this.dots, this.before);
    this.listen();
    new ResizeObserver(() => this.resize()).observe(this.element);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.ask());
  }

  /** @param {Float32Array<ArrayBuffer>} points @param {{mass: number, line: number[]}[]} contours */
  set(points, contours) {
    this.points = points;
    this.n = points.length / 2;
    this.contours = contours;
    this.chosen = null;
    this.fit();
  }

  /** @param {Int32Array | null} classes @param {string[]} colours */
  colour(classes, colours) {
    this.classes = classes;
    this.tints = Uint32Array.from(colours.length ? colours : [this.style("--first")], packed);
    this.ask();
  }

  /** @param {string} name @returns {string} */
  style(name) {
    return getComputedStyle(this.element).getPropertyValue(name).trim() || "#888888";
  }

  /** Shows all of it. */
  fit() {
    if (!this.n) return;
    const every = Math.max(1, Math.floor(this.n / 4000)), xs = [], ys = [];
    for (let i = 0; i < this.n; i += every) { xs.push(this.points[2 * i]); ys.push(this.points[2 * i + 1]); }
    xs.sort((a, b) => a - b);
    ys.sort((a, b) => a - b);
    const ends = (/** @type {number[]} */ v) => [v[Math.floor(0.002 * v.length)], v[Math.ceil(0.998 * v.length) - 1]];
    const [[left, right], [low, high]] = [ends(xs), ends(ys)];
    const { box } = this;
    const wide = Math.max(right - left, 1e-6), tall = Math.max(high - low, 1e-6);
    this.at = { x: (left + right) / 2, y: (low + high) / 2, scale: 0.88 * Math.min(box.width / wide, box.height / tall) || 1 };
    this.whole = true;
    this.on.look();
    this.ask();
  }

  /** Where it looks, if that is not all: its middle, and how wide it is. @returns {number[]} */
  get window() {
    return this.whole ? [] : [this.at.x, this.at.y, this.box.width / this.at.scale];
  }

  /** Looks there again. @param {number[]} window */
  look([x, y, wide]) {
    if (![x, y, wide].every(Number.isFinite) || wide <= 0) return;
    this.fitted = true;
    this.at = { x, y, scale: this.box.width / wide };
    this.here();
  }

  /** It looks elsewhere now. */
  here() {
    this.whole = false;
    this.on.look();
    this.ask();
  }

  resize() {
    const { width, height } = this.element.getBoundingClientRect(), ratio = Math.min(2, devicePixelRatio || 1);
    const box = { width, height };
    this.box = box;
    this.ratio = ratio;
    for (const canvas of [this.behind, this.dots, this.before]) {
      canvas.width = Math.max(1, Math.round(box.width * ratio));
      canvas.height = Math.max(1, Math.round(box.height * ratio));
    }
    this.pixels = new ImageData(this.dots.width, this.dots.height);
    this.words = new Uint32Array(this.pixels.data.buffer);
    if (this.fitted !== true && this.n) { this.fitted = true; this.fit(); } else this.ask();
  }

  /** Draws at the next frame, once. */
  ask() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => { this.asked = false; this.paint(); });
  }

  /** @param {number} x @param {number} y @returns {[number, number]} pixels of CSS */
  placed(x, y) {
    const { width, height } = this.box;
    return [width / 2 + (x - this.at.x) * this.at.scale, height / 2 - (y - this.at.y) * this.at.scale];
  }

  /** @param {number} px @param {number} py @returns {[number, number]} */
  there(px, py) {
    const { width, height } = this.box;
    return [this.at.x + (px - width / 2) / this.at.scale, this.at.y - (py - height / 2) / this.at.scale];
  }

  paint() {
    if (!this.pixels || !this.words) return;
    this.paintDots(this.words);
    this.paintBehind();
    this.paintBefore();
  }

  /** @param {Uint32Array} words */
  paintDots(words) {
    const pixels = /** @type {ImageData} */ (this.pixels), wide = pixels.width, tall = pixels.height;
    words.fill(0);
    const { ratio } = this, scale = this.at.scale * ratio;
    const left = wide / 2 - this.at.x * scale, top = tall / 2 + this.at.y * scale;
    const size = Math.max(1, Math.round(ratio * (this.n > 40000 ? 1 : this.n > 8000 ? 2 : this.n > 1500 ? 3 : 5)));
    const cut = size >= 4 ? 1 : 0; // larger dots lose their corners
    const { points, classes, tints, off, chosen } = this;
    const pale = chosen ? packed(this.style("--line")) : 0;
    for (let i = 0; i < this.n; i++) {
      const k = classes ? classes[i] : 0;
      if (off.size && off.has(k)) continue;
      const x = (left + points[2 * i] * scale - size / 2) | 0, y = (top - points[2 * i + 1] * scale - size / 2) | 0;
      if (x < 0 || y < 0 || x + size >= wide || y + size >= tall) continue;
      const colour = chosen && !chosen.has(i) ? pale : tints[classes ? k % tints.length : 0];
      for (let dy = 0; dy < size; dy++) {
        const inset = cut && (dy === 0 || dy === size - 1) ? 1 : 0;
        const from = (y + dy) * wide + x;
        for (let dx = inset; dx < size - inset; dx++) words[from + dx] = colour;
      }
    }
    /** @type {CanvasRenderingContext2D} */ (this.dots.getContext("2d")).putImageData(pixels, 0, 0);
  }

  /** @param {HTMLCanvasElement} canvas @returns {CanvasRenderingContext2D} */
  pen(canvas) {
    const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    const { ratio } = this;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, canvas.width, canvas.height);
    return pen;
  }

  paintBehind() {
    const pen = this.pen(this.behind);
    pen.strokeStyle = this.style("--muted");
    for (const { mass, line } of this.contours) {
      pen.globalAlpha = 0.75 - 0.4 * mass;
      pen.setLineDash(mass > 0.95 ? [3, 4] : []);
      pen.beginPath();
      for (let i = 0; i < line.length; i += 2) pen.lineTo(...this.placed(line[i], line[i + 1]));
      pen.stroke();
    }
    pen.globalAlpha = 1;
  }

  paintBefore() {
    const pen = this.pen(this.before), ink = this.style("--ink"), card = this.style("--card");
    pen.lineWidth = 2;
    if (this.way.length > 1) {
      pen.strokeStyle = ink;
      pen.beginPath();
      for (const [x, y] of this.way) pen.lineTo(...this.placed(x, y));
      pen.stroke();
      pen.fillStyle = ink;
      for (const [x, y] of this.way) { pen.beginPath(); pen.arc(...this.placed(x, y), 2.5, 0, 7); pen.fill(); }
    }
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.font = "600 11px system-ui, sans-serif";
    for (const { name, x, y, now } of this.marks) {
      const [px, py] = this.placed(x, y);
      pen.beginPath();
      pen.arc(px, py, now ? 7 : 9, 0, 7);
      pen.strokeStyle = now ? card : ink;
      pen.fillStyle = now ? this.style("--second") : card;
      pen.fill();
      pen.stroke();
      pen.fillStyle = ink;
      if (!now) pen.fillText(name, px, py + 0.5);
    }
    if (this.drawn) {
      pen.strokeStyle = this.style("--second");
      pen.setLineDash([5, 4]);
      pen.beginPath();
      for (const [x, y] of this.drawn) pen.lineTo(...this.placed(x, y));
      pen.closePath();
      pen.stroke();
      pen.setLineDash([]);
    }
  }

  /** @param {number} px @param {number} py @returns {number} the point nearest to a place, within ten pixels, or -1 */
  nearest(px, py) {
    const [x, y] = this.there(px, py), reach = 10 / this.at.scale;
    let best = -1, least = reach * reach;
    for (let i = 0; i < this.n; i++) {
      const dx = this.points[2 * i] - x, dy = this.points[2 * i + 1] - y, d = dx * dx + dy * dy;
      if (d < least && !(this.classes && this.off.has(this.classes[i]))) { best = i; least = d; }
    }
    return best;
  }

  /** @param {number} by @param {number} px @param {number} py */
  zoom(by, px, py) {
    const [x, y] = this.there(px, py);
    this.at.scale *= by;
    const [nx, ny] = this.there(px, py);
    this.at.x += x - nx;
    this.at.y += y - ny;
    this.here();
  }

  /** @param {number} dx @param {number} dy in pixels */
  pan(dx, dy) {
    this.at.x -= dx / this.at.scale;
    this.at.y += dy / this.at.scale;
    this.here();
  }

  listen() {
    const of = (/** @type {PointerEvent | WheelEvent} */ event) => {
      const box = this.element.getBoundingClientRect();
      return /** @type {[number, number]} */ ([event.clientX - box.left, event.clientY - box.top]);
    };
    /** @type {Map<number, [number, number]>} */
    const held = new Map();
    let moved = 0;
    const top = this.before;
    top.addEventListener("pointerdown", (event) => {
      top.setPointerCapture(event.pointerId);
      held.set(event.pointerId, of(event));
      moved = 0;
      if ((event.shiftKey || this.lassoing) && held.size === 1) this.drawn = [this.there(...of(event))];
    });
    top.addEventListener("pointermove", (event) => {
      const now = of(event), was = held.get(event.pointerId);
      if (!was) return this.on.hover(this.place(...now));
      moved += Math.hypot(now[0] - was[0], now[1] - was[1]);
      if (this.drawn) { this.drawn.push(this.there(...now)); this.ask(); } else if (held.size === 2) {
        const other = /** @type {[number, number]} */ ([...held].find(([id]) => id !== event.pointerId)?.[1]);
        const by = Math.hypot(now[0] - other[0], now[1] - other[1]) / Math.max(1, Math.hypot(was[0] - other[0], was[1] - other[1]));
        this.zoom(by, (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
      } else this.pan(now[0] - was[0], now[1] - was[1]);
      held.set(event.pointerId, now);
    });
    top.addEventListener("pointerup", (event) => {
      held.delete(event.pointerId);
      if (this.drawn && moved > 12) this.choose(this.drawn);
      else if (moved <= 4) this.tap(this.place(...of(event)));
      this.drawn = null;
      this.ask();
    });
    top.addEventListener("pointercancel", (event) => { held.delete(event.pointerId); this.drawn = null; });
    top.addEventListener("pointerleave", () => this.on.hover(null));
    top.addEventListener("dblclick", () => {
      this.tapped = null;
      this.fit();
    });
    top.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), ...of(event));
    }, { passive: false });
    top.addEventListener("keydown", (event) => {
      const { width, height } = this.box, middle = /** @type {const} */ ([width / 2, height / 2]);
      const step = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] }[event.key];
      if (step) this.pan(step[0], step[1]);
      else if (event.key === "+" || event.key === "=") this.zoom(1.25, ...middle);
      else if (event.key === "-") this.zoom(0.8, ...middle);
      else if (event.key === "0") this.fit();
      else if (event.key === "Enter") this.on.click(this.place(...middle));
      else return;
      event.preventDefault();
    });
  }

  /** @typedef {{index: number, x: number, y: number, px: number, py: number}} Place */
  /** @param {number} px @param {number} py @returns {Place} */
  place(px, py) {
    const [x, y] = this.there(px, py);
    return { index: this.nearest(px, py), x, y, px, py };
  }

  /** A click, unless it turns out to be the half of two. @param {Place} at */
  tap(at) {
    const before = this.tapped;
    if (before && Math.hypot(before.px - at.px, before.py - at.py) > 10) this.on.click(before);
    this.tapped = at;
    setTimeout(() => {
      if (this.tapped !== at) return;
      this.tapped = null;
      this.on.click(at);
    }, TWICE);
  }

  /** @param {[number, number][]} line */
  choose(line) {
    const rows = [];
    for (let i = 0; i < this.n; i++) {
      if (this.classes && this.off.has(this.classes[i])) continue;
      const x = this.points[2 * i], y = this.points[2 * i + 1];
      let inside = false;
      for (let a = 0, b = line.length - 1; a < line.length; b = a++) {
        const [ax, ay] = line[a], [bx, by] = line[b];
        if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) inside = !inside;
      }
      if (inside) rows.push(i);
    }
    this.chosen = rows.length ? new Set(rows) : null;
    this.ask();
    this.on.lasso(rows);
  }
}
