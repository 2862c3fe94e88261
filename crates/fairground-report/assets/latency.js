// Percentiles of the wake-up latency: logarithmic over nines.
(() => {
  const place = $("latency-plot");
  if (!place) return;
  const sides = SIDES.filter((s) => s.latency.length > 0);
  const LEVELS = [0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999];

  // Latency and the share of wake-ups that took at most so long.
  const curve = (side) => {
    const all = side.latency.reduce((sum, [, n]) => sum + n, 0);
    let below = 0;
    return side.latency.map(([ns, n]) => {
      const from = below / all;
      below += n;
      return { ns: Math.max(1, ns), from, to: below / all, all };
    });
  };
  const curves = sides.map(curve);
  const quantile = (points, q) => {
    const found = points.find((p) => p.to >= q - 1e-12);
    return (found || points[points.length - 1]).ns;
  };

  const draw = () => {
    place.replaceChildren();
    const W = Math.max(320, place.clientWidth);
    const H = W < 600 ? 250 : 300;
    const [left, right, top, bottom] = [58, 14, 10, 24];
    const chart = svg("svg", { class: "chart", viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": "Percentiles of the wake-up latency" });
    const lo = Math.floor(Math.log10(Math.min(...curves.map((c) => quantile(c, 0.01)))));
    const hi = Math.max(lo + 1, Math.ceil(Math.log10(Math.max(...curves.map((c) => c[c.length - 1].ns)))));
    const number = Math.max(...curves.map((c) => c[0].all));
    const nines = Math.min(5, Math.max(2, Math.ceil(Math.log10(number))));
    const x = (ns) => left + Math.max(0,  (Math.log10(ns) - lo) / (hi - lo)) * (W - left - right);
    const depth = (q) => Math.min(nines, -Math.log10(Math.max(1 - q, 1e-9)));
    const y = (q) => H - bottom - (depth(q) / nines) * (H - top - bottom);
    for (const q of LEVELS.filter((q) => depth(q) < nines + 1e-9 && (q === 0 || 1 - q >= 10 ** -nines - 1e-12))) {
      chart.append(svg("path", { class: "grid", d: `M${left} ${y(q)}H${W - right}` }));
      const words = q === 0 ? "fastest" : parseFloat((q * 100).toFixed(4)) + " %";
      chart.append(svg("text", { x: left - 8, y: y(q) + 4, "text-anchor": "end" }, words));
    }
    const sparse = (W - left - right) / (hi - lo) < 52;
    for (let d = lo; d <= hi; d++) {
      chart.append(svg("path", { class: "grid", d: `M${x(10 ** d)} ${top}V${H - bottom}` }));
      const anchor = d === hi ? "end" : "middle";
      if (sparse && (hi - d) % 2) continue;
      chart.append(svg("text", { x: x(10 ** d), y: H - bottom + 16, "text-anchor": anchor }, decade(d)));
    }
    curves.forEach((points, i) => {
      let d = `M${x(points[0].ns)} ${y(0)}`;
      for (const p of points) d += `L${x(p.ns).toFixed(1)} ${y(p.from).toFixed(1)}V${y(Math.min(p.to, 1)).toFixed(1)}`;
      chart.append(svg("path", { class: "curve v" + i, d }));
    });
    const hit = svg("rect", { x: left, y: top, width: W - left - right, height: H - top - bottom, fill: "transparent" });
    hit.addEventListener("pointermove", (e) => {
      const box = chart.getBoundingClientRect();
      const deep = ((H - bottom - ((e.clientY - box.top) / box.height) * H) / (H - top - bottom)) * nines;
      const q = Math.max(0, 1 - 10 ** -deep);
      const lines = sides.map((s, i) => s.variant + ": " + duration(quantile(curves[i], q)));
      tip((q * 100).toPrecision(5) + " % took at most\n" + lines.join("\n"), e.clientX, e.clientY);
    });
    hit.addEventListener("pointerleave", () => tip(""));
    chart.append(hit);
    place.append(chart, legend());
  };

  const decade = (d) => duration(10 ** d).replace(/\.0+ /, " ");

  const legend = () => {
    const box = element("div", { class: "legend" });
    sides.forEach((s, i) => {
      const mark = element("i");
      mark.style.background = ["var(--base)", "var(--patch)", "var(--c2)"][i % 3];
      const number = curves[i][0].all.toLocaleString("en");
      box.append(element("span", {}, mark, `${s.variant}: ${number} wake-ups`));
    });
    return box;
  };

  const table = () => {
    const levels = [0.5, 0.9, 0.99, 0.999, 1];
    const head = element("tr", {}, element("th", {}, ""));
    for (const q of levels) head.append(element("th", { class: "num" }, q === 1 ? "longest" : "p" + parseFloat((q * 100).toFixed(1))));
    const body = element("tbody");
    sides.forEach((s, i) => {
      const row = element("tr", {}, element("td", {}, s.variant));
      for (const q of levels) {
        const ns = quantile(curves[i], q);
        row.append(element("td", { class: "num", "data-value": ns }, duration(ns)));
      }
      body.append(row);
    });
    const scroll = element("div", { class: "scroll" });
    scroll.append(element("table", {}, element("thead", {}, head), body));
    $("latency-table").replaceChildren(scroll);
  };

  table();
  redraws.push(draw);
})();
