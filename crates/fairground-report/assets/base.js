"use strict";
// What all plots share: data, colours, numbers, the theme, the tip, copying.
// Times in the samples are nanoseconds.
const RESULT = JSON.parse(document.getElementById("result").textContent);
const SIDES = JSON.parse(document.getElementById("samples").textContent);
const $ = (id) => document.getElementById(id);

function element(tag, attributes, ...children) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(attributes || {})) e.setAttribute(k, v);
  e.append(...children);
  return e;
}

function svg(tag, attributes, text) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [k, v] of Object.entries(attributes || {})) e.setAttribute(k, v);
  if (text !== undefined) e.textContent = text;
  return e;
}

// Three digits and a unit: 12.3 us.
function duration(ns) {
  const a = Math.abs(ns);
  const [f, unit] = a >= 1e9 ? [1e9, "s"] : a >= 1e6 ? [1e6, "ms"] : a >= 1e3 ? [1e3, "µs"] : [1, "ns"];
  const v = ns / f;
  return (unit === "ns" ? v.toFixed(0) : v.toPrecision(Math.abs(v) >= 100 ? 3 + (Math.abs(v) >= 1000) : 3)) + " " + unit;
}

// A point in time, as exactly as a step of `step` ns needs.
function moment(ns, step) {
  const [f, unit] = step >= 1e8 ? [1e9, "s"] : step >= 1e5 ? [1e6, "ms"] : [1e3, "µs"];
  const digits = Math.max(0, Math.min(3, Math.ceil(-Math.log10(step / f))));
  return (ns / f).toFixed(digits) + " " + unit;
}

// Round steps that part `span` into at most `most` pieces.
function steps(span, most) {
  const raw = span / Math.max(1, most);
  const ten = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 5, 10].map((n) => n * ten).find((s) => s >= raw) || ten * 10;
}

const redraws = [];
let colours = {};
function readColours() {
  const style = getComputedStyle(document.documentElement);
  colours = new Proxy({}, { get: (_, name) => style.getPropertyValue("--" + name).trim() });
}
function redraw() {
  readColours();
  for (const f of redraws) f();
}

// A canvas as wide as its place, sharp on every screen.
function fit(canvas, height) {
  const ratio = window.devicePixelRatio || 1;
  const width = Math.max(1, canvas.parentElement.clientWidth);
  canvas.style.height = height + "px";
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const g = canvas.getContext("2d");
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.clearRect(0, 0, width, height);
  g.font = "11px system-ui, 'DejaVu Sans', sans-serif";
  return [g, width];
}

function tip(text, x, y) {
  const t = $("tip");
  if (!text) {
    t.hidden = true;
    return;
  }
  t.textContent = text;
  t.hidden = false;
  const box = t.getBoundingClientRect();
  t.style.left = Math.max(4, Math.min(x + 14, innerWidth - box.width - 6)) + "px";
  t.style.top = (y + 16 + box.height > innerHeight ? y - box.height - 8 : y + 16) + "px";
}

// Buttons of which one is down.
function choice(place, name, words, change) {
  if (words.length < 2) return;
  words.forEach((word, i) => {
    const input = element("input", { type: "radio", name, value: i });
    input.checked = i === 0;
    input.addEventListener("change", () => change(i));
    place.append(element("label", {}, input, word));
  });
}

function mix(a, b, t) {
  const parse = (c) => [1, 3, 5].map((i) => parseInt(c.slice(i, i + 2), 16));
  const [p, q] = [parse(a), parse(b)];
  return "rgb(" + p.map((v, i) => Math.round(v + (q[i] - v) * t)).join(",") + ")";
}

function setUpTheme() {
  const button = $("theme");
  const order = ["system", "light", "dark"];
  let now = 0;
  try {
    now = Math.max(0, order.indexOf(localStorage.getItem("fairground-theme")));
  } catch (_) {
    // A page from a file may have no storage.
  }
  const show = () => {
    button.textContent = "Theme: " + order[now];
    if (now === 0) delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = order[now];
    redraw();
  };
  button.addEventListener("click", () => {
    now = (now + 1) % order.length;
    try {
      localStorage.setItem("fairground-theme", order[now]);
    } catch (_) {
      // As above.
    }
    show();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  show();
}

function setUpCopying() {
  for (const button of document.querySelectorAll(".copy")) {
    const words = button.textContent;
    button.addEventListener("click", async () => {
      const source = $(button.dataset.copy);
      let done = true;
      try {
        await navigator.clipboard.writeText(source.textContent);
      } catch (_) {
        // Where that is not allowed, the old way.
        const box = element("textarea", { "aria-hidden": "true" });
        box.value = source.textContent;
        document.body.append(box);
        box.select();
        done = document.execCommand("copy");
        box.remove();
        button.focus();
      }
      button.textContent = done ? "Copied" : "Not allowed";
      setTimeout(() => (button.textContent = words), 1500);
    });
  }
}

document.documentElement.classList.add("scripted");
readColours();
setUpCopying();
addEventListener("resize", redraw);
addEventListener("DOMContentLoaded", setUpTheme);
