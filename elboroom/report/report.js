"use strict";
// Shows the value of every curve at the step under the pointer.
(() => {
  const LEFT = 40, RIGHT = 292, TOP = 26, BOTTOM = 132; // as drawn in chart.py
  const make = (tag, attributes, parent) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    return parent.appendChild(node);
  };
  const format = (x) => String(Number(x.toPrecision(4))).replace("-", "−");
  const charts = [...document.querySelectorAll("svg.curve")].map((svg) => {
    const { steps, values, frame } = JSON.parse(svg.dataset.series);
    const value = svg.querySelector(".value");
    return {
      svg, steps, values, value, frame, rest: value.textContent,
      start: Math.min(0, steps[0]), end: steps[steps.length - 1],
      rule: make("line", { class: "rule", y1: TOP, y2: BOTTOM, visibility: "hidden" }, svg),
      dot: make("circle", { class: "dot", r: 3, visibility: "hidden" }, svg),
    };
  });
  const show = (step) => {
    for (const c of charts) {
      let i = c.steps.findIndex((s) => s >= step);
      if (i < 0) i = c.steps.length - 1;
      if (i > 0 && step - c.steps[i - 1] < c.steps[i] - step) i -= 1;
      const x = LEFT + (RIGHT - LEFT) * (c.steps[i] - c.start) / Math.max(c.end - c.start, 1);
      const y = TOP + (BOTTOM - TOP) * (c.frame[1] - c.values[i]) / (c.frame[1] - c.frame[0]);
      c.rule.setAttribute("x1", x); c.rule.setAttribute("x2", x);
      c.dot.setAttribute("cx", x); c.dot.setAttribute("cy", Math.max(y, TOP));
      for (const mark of [c.rule, c.dot]) mark.setAttribute("visibility", "visible");
      c.value.textContent = `${format(c.values[i])} at ${c.steps[i].toLocaleString("en")}`;
    }
  };
  const hide = () => {
    for (const c of charts) {
      for (const mark of [c.rule, c.dot]) mark.setAttribute("visibility", "hidden");
      c.value.textContent = c.rest;
    }
  };
  for (const c of charts) {
    c.svg.addEventListener("pointermove", (event) => {
      const box = c.svg.getBoundingClientRect();
      const at = (event.clientX - box.left) / box.width * c.svg.viewBox.baseVal.width;
      show(c.start + (at - LEFT) / (RIGHT - LEFT) * (c.end - c.start));
    });
    c.svg.addEventListener("pointerleave", hide);
  }
})();
