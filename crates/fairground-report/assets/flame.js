// Time by stack of functions, outermost at the top. A click or Enter makes one as wide as the plot.
(() => {
  const place = $("flame-plot");
  if (!place) return;
  const sides = SIDES.filter((s) => s.stacks.length > 0);
  const ROW = 20;
  const box = element("div", { class: "flame", role: "group", "aria-label": "Functions by stack" });
  const legend = element("div", { class: "legend" });
  const tools = element("div", { class: "tools" });

  // A tree of { name, self, calls, total, inner, path } from rows in order, outer ones first.
  const tree = (side) => {
    const root = { name: "all busy time", self: 0, calls: 0, inner: [], path: "" };
    const way = [root];
    for (const [depth, name, self, calls] of side.stacks) {
      const outer = way[depth - 1];
      const node = { name: side.functions[name], self, calls, inner: [], outer };
      node.path = outer.path + ";" + node.name;
      outer.inner.push(node);
      way[depth] = node;
      way.length = depth + 1;
    }
    const sum = (node) => {
      node.total = node.self;
      for (const inner of node.inner) node.total += sum(inner);
      node.inner.sort((a, b) => b.total - a.total || (a.name < b.name ? -1 : 1));
      return node.total;
    };
    sum(root);
    return root;
  };
  const roots = sides.map(tree);
  const shares = roots.map((root) => {
    const map = new Map();
    const walk = (n) => {
      map.set(n.path, n.total / root.total);
      n.inner.forEach(walk);
    };
    walk(root);
    return map;
  });

  let side = 0;
  let part = 0;
  let top = null;

  // The scheduler's functions, all of the kernel, or everything.
  const PARTS = ["Scheduler", "Kernel", "All"];
  const some = () => {
    const root = roots[side];
    if (part === 2) return root;
    const own = new Set(sides[side].functions.filter((_, i) => sides[side].scheduler[i]));
    const inner = root.inner.filter((n) => (part === 0 ? own.has(n.name) : n.name !== "[user]"));
    return { ...root, name: PARTS[part].toLowerCase(), inner, total: inner.reduce((s, n) => s + n.total, 0) };
  };

  const paint = (node) => {
    if (sides.length > 1) {
      const [own, other] = [shares[side].get(node.path) || 0, shares[1 - Math.min(1, side)].get(node.path) || 0];
      const change = (side === 0 ? other - own : own - other) / Math.max(own, other, 1e-9);
      const t = Math.min(1, Math.abs(change));
      return mix("#d5d9de", change > 0 ? "#e58a6f" : "#7fb0e0", t);
    }
    let hash = 0;
    for (const c of node.name) hash = (hash * 31 + c.charCodeAt(0)) % 997;
    return mix("#f0c98d", "#e2907a", (hash % 100) / 100);
  };

  const say = (node) => {
    const root = roots[side];
    const share = (n, v) => ((100 * v) / n).toFixed(2) + " %";
    let words = `${node.name}\n${share(root.total, node.total)} of the busy time, ${share(root.total, node.self)} in itself`;
    if (node.calls) words += `\n${node.calls.toLocaleString("en")} calls, ${duration(node.total / node.calls)} each`;
    if (sides.length > 1) {
      const other = 1 - Math.min(1, side);
      words += `\n${sides[other].variant}: ${(100 * (shares[other].get(node.path) || 0)).toFixed(2)} %`;
    }
    return words;
  };

  const draw = () => {
    const width = place.clientWidth;
    const root = some();
    const start = top && find(root, top) ? find(root, top) : root;
    box.replaceChildren();
    let deepest = 0;
    const put = (node, left, total, depth) => {
      const wide = (node.total / total) * width;
      if (wide < 2) return;
      deepest = Math.max(deepest, depth);
      const words = say(node);
      const button = element("button", { type: "button", "aria-label": words.replaceAll("\n", ", ") }, wide > 26 ? node.name : "");
      Object.assign(button.style, { left: left + "px", width: Math.max(1, wide - 1) + "px", top: depth * ROW + "px", background: paint(node) });
      button.addEventListener("click", () => {
        top = node.path === start.path && node.outer ? node.outer.path : node.path;
        draw();
        box.querySelector("button").focus({ preventScroll: true });
      });
      button.addEventListener("pointermove", (e) => tip(words, e.clientX, e.clientY));
      button.addEventListener("pointerleave", () => tip(""));
      button.addEventListener("focus", () => (readout.textContent = words.replaceAll("\n", " · ")));
      box.append(button);
      let x = left;
      for (const inner of node.inner) {
        put(inner, x, total, depth + 1);
        x += (inner.total / total) * width;
      }
    };
    put(start, 0, start.total || 1, 0);
    box.style.height = (deepest + 1) * ROW + "px";
  };
  const find = (node, path) => {
    if (node.path === path) return node;
    for (const inner of node.inner) if ((path + ";").startsWith(inner.path + ";")) return find(inner, path);
    return null;
  };

  const readout = element("p", { class: "readout", role: "status", "aria-live": "polite" });
  const back = element("button", { type: "button" }, "Back to all");
  back.addEventListener("click", () => {
    top = null;
    draw();
  });
  const parts = element("div", { class: "sides" });
  choice(parts, "flame-part", PARTS, (i) => {
    part = i;
    top = null;
    draw();
  });
  tools.append(parts, back);
  if (sides.length > 1) {
    const mark = (colour, words) => {
      const i = element("i");
      i.style.background = colour;
      legend.append(element("span", {}, i, words));
    };
    mark("#e58a6f", `more in ${sides[1].variant}`);
    mark("#7fb0e0", `less in ${sides[1].variant}`);
  }
  legend.append(element("span", {}, "Width is time, with callees; click to look closer. " + sides[0].about + "."));
  place.append(tools, box, legend, readout);
  tools.style.margin = "0 0 8px";
  choice($("flame-sides"), "flame-side", sides.map((s) => s.variant), (i) => {
    side = i;
    draw();
  });
  redraws.push(draw);
})();
