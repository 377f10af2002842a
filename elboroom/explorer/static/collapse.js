// @ts-check
// What was measured: the collapse view, KL and variance of the mean of every dimension, and the numbers of metrics.json.
import { make, short } from "./shown.js";

export class Collapse {
  /** @param {any} sheet */
  constructor(sheet) {
    /** @type {import("./dials.js").Dimension[]} */
    const dims = sheet.dimensions;
    const most = (/** @type {(d: import("./dials.js").Dimension) => number} */ of) => Math.max(0.1, ...dims.map(of)); // what is nearly nothing should look so
    const top = most((d) => d.kl ?? 0), wide = most((d) => d.variance);
    const bar = (/** @type {number} */ share, /** @type {string} */ kind) => {
      const made = make("i", { class: kind });
      made.style.width = `${Math.max(0, 100 * share)}%`;
      return make("span", { class: "bar" }, made);
    };
    const rows = dims.map((d) => make("tr", { class: d.active ? "" : "passive" },
      make("th", { scope: "row" }, `z${d.index}`),
      ...(d.kl === null ? [make("td", { colspan: 2, class: "muted" }, "no KL")]
        : [make("td", {}, bar(d.kl / top, "kl")), make("td", { class: "value" }, short(d.kl))]),
      make("td", {}, bar(d.variance / wide, "variance")), make("td", { class: "value" }, d.variance.toPrecision(2))));
    this.element = make("section", { class: "card collapse" }, make("h3", {}, "Which dimensions are alive"),
      make("p", { class: "hint" }, sheet.verdicts[0] ?? ""),
      make("div", { class: "scroll" }, make("table", {}, make("thead", {}, make("tr", {}, make("th"),
        make("th", { colspan: 2, scope: "col" }, "mean KL, nats"), make("th", { colspan: 2, scope: "col" }, "variance of the mean"))),
      make("tbody", {}, ...rows))));
  }
}

/** @param {any} entry @returns {string} */
const errors = (entry) => Object.entries(entry.errors ?? {}).map(([name, v]) => `± ${Number(/** @type {number} */ (v).toPrecision(2))} ${name.replaceAll("_", " ")}`).join(", ");

export class Numbers {
  /** @param {any} sheet */
  constructor(sheet) {
    const found = Object.entries(sheet.numbers) // rate_per_dim is the rate again
      .filter(([name, e]) => name !== "rate_per_dim" && /** @type {any} */ (e)?.value !== undefined);
    const rows = found.map(([name, e]) => {
      const entry = /** @type {any} */ (e);
      const value = entry.value === null ? "—" : (Number(entry.value.toPrecision(5)) + 0).toLocaleString("en", { maximumFractionDigits: 4 });
      return make("tr", {}, make("th", { scope: "row" }, name.replaceAll("_", " ")), make("td", { class: "value" }, value.replace("-", "−")),
        make("td", {}, errors(entry) || entry.reason || ""), make("td", { class: "muted" }, [entry.unit, entry.estimator ?? entry.mode].filter(Boolean).join(", ")));
    });
    const folder = sheet.folder;
    this.element = make("section", { class: "card numbers" }, make("h3", {}, "Numbers"), rows.length
      ? make("div", { class: "scroll" }, make("table", {}, make("tbody", {}, ...rows)))
      : make("p", { class: "hint" }, "Not measured yet: ", make("code", {}, `elbo eval ${folder}`)));
  }
}
