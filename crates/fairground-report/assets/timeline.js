// Who ran where and when: a row for each CPU, then an area for each group.
(() => {
  const place = $("timeline-plot");
  if (!place) return;
  const sides = SIDES.filter((s) => s.cpus > 0);
  const [LEFT, RIGHT, AXIS, GROUP, GROUPS_MOST] = [58, 2, 22, 46, 12];
  const canvas = element("canvas", { tabindex: 0, role: "application", "aria-label": "Timeline of CPUs and groups; keys are named below" });
  const readout = element("p", { class: "readout", role: "status", "aria-live": "polite" });
  const legend = element("div", { class: "legend" });
  let side = sides[0];
  let at = { cpu: -1, index: -1 };
  let view;
  let width = 1;

  const plot = () => [LEFT, width - LEFT - RIGHT];
  const rowHeight = () => Math.max(3, Math.min(18, Math.floor(440 / side.cpus)));
  const x = (ns) => LEFT + ((ns - view.from) / (view.to - view.from)) * (width - LEFT - RIGHT);

  // Threads of one name have one colour; if there is one name only, threads are told apart.
  let colourOf = new Map();
  let byName = true;
  const chooseColours = () => {
    const time = new Map();
    for (const cpu of side.slices.cpu) for (const [, len, who] of cpu) {
      const name = side.tasks[who].name;
      time.set(name, (time.get(name) || 0) + len);
    }
    byName = time.size > 1;
    const names = [...time.keys()].sort((a, b) => time.get(b) - time.get(a) || (a < b ? -1 : 1));
    colourOf = new Map(names.slice(0, 8).map((n, i) => [n, "c" + i]));
    legend.replaceChildren();
    const add = (colour, words) => {
      const mark = element("i");
      mark.style.background = `var(--${colour})`;
      legend.append(element("span", {}, mark, words));
    };
    if (byName) names.slice(0, 8).forEach((n) => add(colourOf.get(n), n));
    else legend.append(element("span", {}, "all threads are called " + names[0] + "; colours tell them apart"));
    if (names.length > 8) add("other", names.length - 8 + " other names");
    if (side.heat.throttled.some((bins) => bins.some((v) => v > 0))) add("throttled", "throttled queues");
  };
  const colour = (who) => {
    const task = side.tasks[who];
    return colours[byName ? colourOf.get(task.name) || "other" : "c" + (task.tid % 8)];
  };

  const groups = () => {
    const sum = (bins) => bins.reduce((a, b) => a + b, 0);
    const used = side.groups.map((path, i) => ({ path, i, time: sum(side.heat.group[i]) + sum(side.heat.throttled[i]) }));
    return used.filter((g) => g.time > 0).sort((a, b) => b.time - a.time || a.i - b.i).slice(0, GROUPS_MOST);
  };

  // The first slice that ends after `ns`.
  const first = (slices, ns) => {
    let [lo, hi] = [0, slices.length];
    while (lo < hi) {
      const mid = (lo + hi) >> 1;
      if (slices[mid][0] + slices[mid][1] > ns) hi = mid;
      else lo = mid + 1;
    }
    return lo;
  };

  const bins = (f) => {
    const [from, to] = side.span_ns;
    const each = (to - from) / side.heat.bins;
    const low = Math.max(0, Math.floor((view.from - from) / each));
    const high = Math.min(side.heat.bins - 1, Math.floor((view.to - from) / each));
    for (let b = low; b <= high; b++) f(b, from + b * each, from + (b + 1) * each);
  };

  const drawCpu = (g, cpu, y, h) => {
    const [from, to] = side.slices.window_ns;
    const inner = h > 5 ? h - 2 : h - 0.5;
    g.fillStyle = colours["raised"];
    g.fillRect(LEFT, y, width - LEFT - RIGHT, inner);
    // Beyond the window only how busy the CPU was is known.
    bins((b, s, e) => {
      const busy = side.heat.busy[cpu][b] / 1000;
      for (const [a, z] of [[s, Math.min(e, from)], [Math.max(s, to), e]]) {
        if (z <= a || busy === 0) continue;
        g.fillStyle = mix(colours.raised, colours.other, busy);
        const [l, r] = [Math.max(LEFT, x(a)), Math.min(width - RIGHT, x(z))];
        g.fillRect(l, y, r - l, inner);
      }
    });
    const slices = side.slices.cpu[cpu];
    for (let i = first(slices, view.from); i < slices.length && slices[i][0] < view.to; i++) {
      const [s, len, who] = slices[i];
      const l = Math.max(LEFT, x(s));
      const r = Math.min(width - RIGHT, x(s + len));
      g.fillStyle = colour(who);
      g.fillRect(l, y, Math.max(0.5, r - l - (r - l > 3 ? 0.6 : 0)), inner);
      if (h >= 14 && r - l > 46) {
        g.fillStyle = "#ffffff";
        g.textBaseline = "middle";
        g.save();
        g.beginPath();
        g.rect(l, y, r - l - 3, inner);
        g.clip();
        g.fillText(side.tasks[who].name, l + 4, y + inner / 2 + 0.5);
        g.restore();
      }
      if (at.cpu === cpu && at.index === i) {
        g.strokeStyle = colours.ink;
        g.lineWidth = 1.5;
        g.strokeRect(l, y, Math.max(2, r - l), inner);
        g.lineWidth = 1;
      }
    }
  };

  const drawGroup = (g, group, y, most) => {
    const h = GROUP - 22;
    g.fillStyle = colours.dim;
    g.textBaseline = "top";
    g.fillText(group.path === "/" ? "/ (root)" : group.path, LEFT, y);
    const base = y + GROUP - 8;
    g.textAlign = "right";
    g.textBaseline = "bottom";
    g.fillText((most / 1000).toPrecision(2), LEFT - 6, base - h + 9);
    g.textAlign = "left";
    bins((b, s, e) => {
      const [l, r] = [Math.max(LEFT, x(s)), Math.min(width - RIGHT, x(e))];
      const draw = (value, colour, from) => {
        const tall = (value / most) * h;
        g.fillStyle = colour;
        g.fillRect(l, base - from - tall, Math.max(0.5, r - l), tall);
        return from + tall;
      };
      const used = draw(side.heat.group[group.i][b], colours.base, 0);
      draw(Math.min(side.heat.throttled[group.i][b], most - Math.min(most, side.heat.group[group.i][b])), colours.throttled, used);
    });
    g.strokeStyle = colours.line;
    g.strokeRect(LEFT + 0.5, base - h + 0.5, width - LEFT - RIGHT - 1, h);
  };

  const draw = () => {
    const h = rowHeight();
    const shown = groups();
    const top = side.cpus * h;
    const height = top + AXIS + (shown.length ? 8 + shown.length * GROUP : 0);
    let g;
    [g, width] = fit(canvas, height);
    const every = [1, 2, 4, 8, 16, 32, 64].find((n) => n * h >= 14) || 64;
    for (let cpu = 0; cpu < side.cpus; cpu++) {
      drawCpu(g, cpu, cpu * h, h);
      if (cpu % every) continue;
      g.fillStyle = at.cpu === cpu ? colours.ink : colours.dim;
      g.textAlign = "right";
      g.textBaseline = "middle";
      g.fillText((cpu === 0 ? "CPU " : "") + cpu, LEFT - 6, cpu * h + Math.max(h / 2, 6));
      g.textAlign = "left";
    }
    view.axis(g, LEFT, width - LEFT - RIGHT, top, 4);
    const most = Math.max(1, ...shown.flatMap((s) => side.heat.group[s.i]));
    shown.forEach((s, i) => drawGroup(g, s, top + AXIS + 8 + i * GROUP, most));
  };

  const describe = (cpu, i) => {
    const [s, len, who, waited] = side.slices.cpu[cpu][i];
    const task = side.tasks[who];
    const group = side.groups.length > 1 ? ", group " + (side.groups[task.group] || "?") : "";
    const wait = waited ? `, waited ${duration(waited - 1)} since its wake-up` : "";
    return `${task.name} ${task.tid}${group}\nCPU ${cpu}, from ${(s / 1e6).toFixed(4)} ms for ${duration(len)}${wait}`;
  };
  const select = (cpu, index) => {
    at = { cpu, index };
    const slices = side.slices.cpu[cpu];
    readout.textContent = slices[index] ? describe(cpu, index).replace("\n", ": ") : `CPU ${cpu}: no slice here`;
    draw();
  };
  const step = (by) => {
    const cpu = Math.max(0, at.cpu);
    const slices = side.slices.cpu[cpu];
    if (!slices.length) return select(cpu, -1);
    const seen = slices[at.index] && at.cpu === cpu;
    const index = seen ? at.index + by : first(slices, view.from);
    const i = Math.max(0, Math.min(slices.length - 1, index));
    const [s, len] = slices[i];
    if (s < view.from || s + len > view.to) {
      const span = view.to - view.from;
      view.set(s + len / 2 - span / 2, s + len / 2 + span / 2);
    }
    select(cpu, i);
  };
  const climb = (by) => {
    const cpu = Math.max(0, Math.min(side.cpus - 1, at.cpu + by));
    select(cpu, first(side.slices.cpu[cpu], (view.from + view.to) / 2));
  };

  const hover = (e, share) => {
    const y = e.clientY - canvas.getBoundingClientRect().top;
    const cpu = Math.floor(y / rowHeight());
    if (cpu >= side.cpus) return tip("");
    const ns = view.from + share * (view.to - view.from);
    const slices = side.slices.cpu[cpu];
    const i = first(slices, ns);
    const [from, to] = side.slices.window_ns;
    if (slices[i] && slices[i][0] <= ns) return tip(describe(cpu, i), e.clientX, e.clientY);
    if (ns >= from && ns <= to) return tip(`CPU ${cpu} idle at ${(ns / 1e6).toFixed(4)} ms`, e.clientX, e.clientY);
    const [start, end] = side.span_ns;
    const b = Math.min(side.heat.bins - 1, Math.floor(((ns - start) / (end - start)) * side.heat.bins));
    tip(`CPU ${cpu}: ${(side.heat.busy[cpu][b] / 10).toFixed(1)} % busy around ${(ns / 1e6).toFixed(3)} ms`, e.clientX, e.clientY);
  };

  const show = (i) => {
    side = sides[i];
    at = { cpu: -1, index: -1 };
    chooseColours();
    const [from, to] = side.slices.window_ns;
    const kept = side.slices.cpu.reduce((sum, c) => sum + c.length, 0);
    const all = side.slices.all;
    $("timeline-note").textContent =
      `${side.about}. ` +
      (kept < all
        ? `${kept.toLocaleString("en")} of ${all.toLocaleString("en")} slices, those from ${duration(from)} to ${duration(to)}, are kept exactly; elsewhere rows show how busy a CPU was.`
        : `All ${all.toLocaleString("en")} slices.`) +
      (groups().length ? " Below: CPUs used by each group." : "");
    const [start, end] = side.span_ns;
    if (view) Object.assign(view, { least: start, most: end });
    if (view) view.set(view.from, view.to);
  };

  view = new View(...sides[0].span_ns, draw);
  const extra = { n: () => step(1), p: () => step(-1), ArrowDown: () => climb(1), ArrowUp: () => climb(-1), Escape: () => canvas.blur() };
  const tools = view.buttons();
  const exact = element("button", { type: "button" }, "Exact part");
  exact.addEventListener("click", () => view.set(...side.slices.window_ns));
  const keys = element("span", { class: "keys" });
  keys.innerHTML = "<kbd>←</kbd> <kbd>→</kbd> move, <kbd>+</kbd> <kbd>−</kbd> zoom, <kbd>↑</kbd> <kbd>↓</kbd> CPU, <kbd>n</kbd> <kbd>p</kbd> slice, <kbd>0</kbd> all; wheel zooms after a click";
  tools.append(exact, keys);
  place.append(canvas, legend, readout, tools);
  view.attach(canvas, plot, hover, extra);
  choice($("timeline-sides"), "timeline-side", sides.map((s) => s.variant), (i) => show(i));
  width = place.clientWidth;
  show(0);
  redraws.push(draw);
})();
