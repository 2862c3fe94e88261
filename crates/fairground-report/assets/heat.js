// How busy each CPU was over the whole run, or how often it switched.
(() => {
  const place = $("heat-plot");
  if (!place) return;
  const sides = SIDES.filter((s) => s.cpus > 0);
  const [LEFT, RIGHT, AXIS] = [58, 2, 22];
  const WHAT = [
    { word: "Busy", rows: (s) => s.heat.busy, most: () => 1000, say: (v) => (v / 10).toFixed(1) + " % busy", end: () => "100 %" },
    {
      word: "Switches",
      rows: (s) => s.heat.switches,
      most: () => Math.max(1, ...sides.flatMap((s) => s.heat.switches.map((r) => Math.max(...r)))),
      say: (v) => v + " switches",
      end: (most) => most + " in one part",
    },
  ];
  let what = WHAT[0];
  const readout = element("p", { class: "readout", role: "status", "aria-live": "polite" });
  const legend = element("div", { class: "legend" });

  const panel = (side) => {
    const canvas = element("canvas", { tabindex: 0, role: "application", "aria-label": `CPUs over time, ${side.variant}; arrow keys read single parts` });
    let at = null;
    let width = 1;
    const h = Math.max(2, Math.min(14, Math.floor(300 / side.cpus)));
    // One scale for all sides.
    const end = Math.max(...sides.map((s) => s.span_ns[1] - s.span_ns[0]));
    const share = (side.span_ns[1] - side.span_ns[0]) / end;
    const view = new View(side.span_ns[0], side.span_ns[0] + end, () => {});
    const draw = () => {
      let g;
      [g, width] = fit(canvas, side.cpus * h + AXIS);
      const rows = what.rows(side);
      const most = what.most();
      const each = ((width - LEFT - RIGHT) * share) / side.heat.bins;
      const [low, high] = [colours["heat-0"], colours["heat-1"]];
      for (let cpu = 0; cpu < side.cpus; cpu++) for (let b = 0; b < side.heat.bins; b++) {
        g.fillStyle = mix(low, high, Math.min(1, rows[cpu][b] / most));
        g.fillRect(LEFT + b * each, cpu * h, each + 0.6, h > 4 ? h - 1 : h + 0.3);
      }
      const every = [1, 2, 4, 8, 16, 32, 64].find((n) => n * h >= 14) || 64;
      g.fillStyle = colours.dim;
      g.textAlign = "right";
      g.textBaseline = "middle";
      for (let cpu = 0; cpu < side.cpus; cpu += every) g.fillText((cpu === 0 ? "CPU " : "") + cpu, LEFT - 6, cpu * h + Math.max(h / 2, 6));
      g.textAlign = "left";
      view.axis(g, LEFT, width - LEFT - RIGHT, side.cpus * h, 4);
      if (at) {
        g.strokeStyle = colours.ink;
        g.strokeRect(LEFT + at.bin * each, at.cpu * h, Math.max(3, each), h);
      }
    };
    const words = (cpu, bin) => {
      const [from, to] = side.span_ns;
      const each = (to - from) / side.heat.bins;
      return `CPU ${cpu}, ${duration(from + bin * each)} to ${duration(from + (bin + 1) * each)}: ${what.say(what.rows(side)[cpu][bin])}`;
    };
    canvas.addEventListener("pointermove", (e) => {
      const box = canvas.getBoundingClientRect();
      const cpu = Math.floor((e.clientY - box.top) / h);
      const bin = Math.floor(((e.clientX - box.left - LEFT) / (width - LEFT - RIGHT) / share) * side.heat.bins);
      const inside = cpu >= 0 && cpu < side.cpus && bin >= 0 && bin < side.heat.bins;
      tip(inside ? words(cpu, bin) : "", e.clientX, e.clientY);
    });
    canvas.addEventListener("pointerleave", () => tip(""));
    canvas.addEventListener("keydown", (e) => {
      const by = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[e.key];
      if (!by || e.ctrlKey || e.metaKey || e.altKey) return;
      e.preventDefault();
      const clamp = (v, n) => Math.max(0, Math.min(n - 1, v));
      at = at ? { bin: clamp(at.bin + by[0], side.heat.bins), cpu: clamp(at.cpu + by[1], side.cpus) } : { bin: 0, cpu: 0 };
      readout.textContent = `${side.variant}: ${words(at.cpu, at.bin)}`;
      draw();
    });
    canvas.addEventListener("blur", () => {
      at = null;
      draw();
    });
    if (sides.length > 1) place.append(element("p", { class: "note" }, side.variant));
    place.append(canvas);
    return draw;
  };

  const scale = () => {
    const ramp = element("span", { class: "ramp" });
    legend.replaceChildren(element("span", {}, "0", ramp, what.end(what.most())));
  };
  const draws = sides.map(panel);
  place.append(legend, readout);
  choice($("heat-what"), "heat-what", WHAT.map((w) => w.word), (i) => {
    what = WHAT[i];
    scale();
    for (const draw of draws) draw();
  });
  scale();
  redraws.push(...draws);
})();
