// A span of time that is moved and zoomed, by mouse, finger and keyboard.
class View {
  constructor(from, to, changed) {
    Object.assign(this, { least: from, most: to, from, to, changed });
  }

  set(from, to) {
    const span = Math.min(Math.max(to - from, 100), this.most - this.least);
    this.from = Math.max(this.least, Math.min(from, this.most - span));
    this.to = this.from + span;
    this.changed();
  }

  // By `factor` around the point that is `share` of the way.
  zoom(factor, share = 0.5) {
    const at = this.from + (this.to - this.from) * share;
    const span = Math.max(100, (this.to - this.from) * factor);
    this.set(at - span * share, at - span * share + span);
  }

  // By a part of what is seen.
  move(part) {
    const by = (this.to - this.from) * part;
    this.set(this.from + by, this.to + by);
  }

  reset() {
    this.set(this.least, this.most);
  }

  // `plot()` gives left edge and width of the plot in the canvas.
  attach(canvas, plot, hover, keys) {
    let held = null;
    const share = (e) => {
      const [left, width] = plot();
      const x = e.clientX - canvas.getBoundingClientRect().left - left;
      return Math.max(0, Math.min(1, x / width));
    };
    canvas.addEventListener(
      "wheel",
      (e) => {
        if (!e.ctrlKey && !e.metaKey && !e.shiftKey && document.activeElement !== canvas) return;
        e.preventDefault();
        if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) this.move(e.deltaX / 800);
        else this.zoom(Math.exp(e.deltaY / 400), share(e));
      },
      { passive: false },
    );
    canvas.addEventListener("pointerdown", (e) => {
      held = { x: e.clientX, from: this.from, to: this.to };
      canvas.setPointerCapture(e.pointerId);
      canvas.focus({ preventScroll: true });
    });
    canvas.addEventListener("pointermove", (e) => {
      if (held) {
        const by = ((held.x - e.clientX) / plot()[1]) * (held.to - held.from);
        this.set(held.from + by, held.to + by);
      }
      hover(e, share(e));
    });
    const release = () => (held = null);
    canvas.addEventListener("pointerup", release);
    canvas.addEventListener("pointercancel", release);
    canvas.addEventListener("pointerleave", () => tip(""));
    canvas.addEventListener("dblclick", (e) => this.zoom(0.25, share(e)));
    canvas.addEventListener("keydown", (e) => {
      if (e.ctrlKey || e.metaKey || e.altKey) return;
      const own = {
        ArrowLeft: () => this.move(-0.2),
        ArrowRight: () => this.move(0.2),
        "+": () => this.zoom(0.5),
        "=": () => this.zoom(0.5),
        "-": () => this.zoom(2),
        0: () => this.reset(),
        Home: () => this.set(this.least, this.least + this.to - this.from),
        End: () => this.set(this.most - (this.to - this.from), this.most),
        ...keys,
      }[e.key];
      if (own) {
        e.preventDefault();
        own();
      }
    });
  }

  // The same as buttons.
  buttons() {
    const box = element("div", { class: "tools" });
    const add = (word, label, f) => {
      const button = element("button", { type: "button", "aria-label": label }, word);
      button.addEventListener("click", f);
      box.append(button);
    };
    add("+", "Zoom in", () => this.zoom(0.5));
    add("−", "Zoom out", () => this.zoom(2));
    add("←", "Earlier", () => this.move(-0.4));
    add("→", "Later", () => this.move(0.4));
    add("All", "The whole run", () => this.reset());
    return box;
  }

  // Time axis of `width` px from `left` on, at `y`.
  axis(g, left, width, y, height) {
    const span = this.to - this.from;
    const step = steps(span, width / 95);
    g.fillStyle = colours.dim;
    g.strokeStyle = colours.line;
    g.textBaseline = "top";
    for (let t = Math.ceil(this.from / step) * step; t <= this.to; t += step) {
      const x = Math.round(left + ((t - this.from) / span) * width) + 0.5;
      g.beginPath();
      g.moveTo(x, y);
      g.lineTo(x, y + height);
      g.stroke();
      const words = moment(t, step);
      const half = g.measureText(words).width / 2;
      if (x - half < left - 6) continue;
      g.textAlign = x + half > left + width ? "right" : "center";
      g.fillText(words, g.textAlign === "right" ? left + width : x, y + height + 4);
    }
    g.textAlign = "left";
  }
}
