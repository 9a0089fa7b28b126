// Lines over steps on a canvas: drawn by the least and greatest value under each pixel.

import { BLOCK } from "rl/series";

export const COLOURS = ["#2f7de1", "#d9730d", "#2e9e5b", "#a64fd0", "#d1427a", "#0f97a8", "#8a7a1f", "#6b7686"];

// Pixels beside the lines: room for labels such as -0.0306.
const LEFT = 58;
const RIGHT = 8;

export class Chart {
  constructor(title, names, labels, onStep, onZoom) {
    this.title = title;
    this.names = names;
    this.hidden = new Set();
    this.figure = document.createElement("figure");
    const caption = document.createElement("figcaption");
    caption.append(title);
    names.forEach((name, index) => {
      const label = document.createElement("label");
      const box = Object.assign(document.createElement("input"), { type: "checkbox", checked: true });
      box.addEventListener("change", () => {
        if (box.checked) this.hidden.delete(name);
        else this.hidden.add(name);
        this.soon();
      });
      const dot = document.createElement("span");
      dot.className = "dot";
      dot.style.background = COLOURS[index % COLOURS.length];
      label.append(box, dot, labels[index]);
      caption.append(label);
    });
    this.canvas = document.createElement("canvas");
    this.canvas.setAttribute("role", "img");
    this.figure.append(caption, this.canvas);
    this.canvas.addEventListener("click", (event) => onStep(this.stepAt(event.offsetX)));
    this.canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      const way = Math.sign(event.deltaY || event.deltaX);
      onZoom(this.stepAt(event.offsetX), way, event.shiftKey);
    }, { passive: false });
    new ResizeObserver(() => this.soon()).observe(this.canvas);
  }

  stepAt(x) {
    const share = (x - LEFT) / Math.max(1, this.canvas.clientWidth - LEFT - RIGHT);
    return Math.round(this.from + Math.min(1, Math.max(0, share)) * (this.to - this.from));
  }

  // Other series, the rollouts beside this one, are dashed.
  show(series, from, to, step, others = []) {
    Object.assign(this, { series, from, to, step, others });
    this.soon();
  }

  // Draw once before the next picture of the screen, however often it is asked for.
  soon() {
    this.waiting ??= requestAnimationFrame(() => {
      this.waiting = undefined;
      this.draw();
    });
  }

  draw() {
    if (!this.series || !this.canvas.clientWidth) return;
    const { canvas } = this;
    const scale = devicePixelRatio || 1;
    const width = canvas.clientWidth;
    const height = canvas.clientHeight;
    const soft = getComputedStyle(this.figure.querySelector("figcaption")).color;
    const all = [this.series, ...this.others];
    const shown = this.names.filter((name) => !this.hidden.has(name) && this.series.columns.has(name));
    const key = JSON.stringify([width, height, scale, soft, this.from, this.to, shown, all.map((s) => [s.id, s.steps])]);
    if (this.key !== key) {
      this.key = key;
      this.layer = new OffscreenCanvas(Math.round(width * scale), Math.round(height * scale));
      const paint = this.layer.getContext("2d");
      paint.scale(scale, scale);
      this.drawLines(paint, width, height, all, shown, soft);
      [canvas.width, canvas.height] = [this.layer.width, this.layer.height];
    }
    const paint = canvas.getContext("2d");
    paint.setTransform(1, 0, 0, 1, 0, 0);
    paint.clearRect(0, 0, canvas.width, canvas.height);
    paint.drawImage(this.layer, 0, 0);
    if (this.step >= this.from && this.step <= this.to) {
      const share = (this.step - this.from) / Math.max(1, this.to - this.from);
      paint.setTransform(scale, 0, 0, scale, 0, 0);
      paint.fillStyle = soft;
      paint.fillRect(LEFT + share * (width - LEFT - RIGHT), 4, 1, height - 22);
    }
    const here = shown.map((name) => `${name} ${short(this.series.value(name, this.step))}`).join(", ");
    canvas.setAttribute("aria-label", `${this.title}, steps ${this.from} to ${this.to}; step ${this.step}: ${here}`);
  }

  drawLines(paint, width, height, all, shown, soft) {
    const [left, right, bottom] = [LEFT, width - RIGHT, height - 18];
    const lines = all.flatMap((series, dashed) => shown
      .filter((name) => series.columns.has(name))
      .map((name) => ({ name, dashed, ...this.bins(series, name, right - left) })));
    let low = Infinity;
    let high = -Infinity;
    for (const { least, most } of lines) {
      for (let i = 0; i < least.length; i++) {
        if (least[i] < low) low = least[i];
        if (most[i] > high) high = most[i];
      }
    }
    if (!(low <= high)) [low, high] = [0, 1];
    if (low === high) [low, high] = [low - 0.5, high + 0.5];
    const y = (value) => bottom - 2 - ((value - low) / (high - low)) * (bottom - 10);
    paint.font = `12px ${getComputedStyle(document.body).fontFamily}`;
    paint.fillStyle = soft;
    paint.textAlign = "right";
    const [lowest, highest] = ends(low, high);
    paint.fillText(highest, left - 5, 12);
    paint.fillText(lowest, left - 5, bottom);
    paint.fillText(String(this.to), right, height - 4);
    paint.textAlign = "left";
    paint.fillText(String(this.from), left, height - 4);
    for (const { name, dashed, least, most, share, sparse } of lines) {
      paint.setLineDash(dashed ? [2 + 4 / dashed, 3] : []);
      paint.strokeStyle = COLOURS[this.names.indexOf(name) % COLOURS.length];
      paint.lineWidth = 1.5;
      paint.beginPath();
      let pen = false;
      const last = Math.max(1, least.length - 1);
      for (let i = 0; i < least.length; i++) {
        if (least[i] === Infinity) {
          pen = pen && sparse;
          continue;
        }
        const x = left + (i / last) * (right - left) * share;
        if (pen) paint.lineTo(x, y(least[i]));
        else paint.moveTo(x, y(least[i]));
        if (most[i] !== least[i]) paint.lineTo(x, y(most[i]));
        pen = true;
      }
      paint.stroke();
    }
  }

  // The least and greatest value of each of at most ``pixels`` groups of steps.
  bins(series, name, pixels) {
    const first = this.from;
    const count = Math.max(0, Math.min(series.steps, this.to + 1) - first);
    const size = Math.max(1, Math.min(count, Math.floor(pixels)));
    const least = new Float32Array(size).fill(Infinity);
    const most = new Float32Array(size).fill(-Infinity);
    const blocks = count > 16 * pixels ? series.blocks(name) : null;
    const column = series.columns.get(name);
    let i = 0;
    while (i < count) {
      const bin = Math.min(size - 1, Math.floor((i * size) / count));
      const block = (first + i) / BLOCK;
      if (blocks && Number.isInteger(block) && i + BLOCK <= count) {
        if (blocks.least[block] < least[bin]) least[bin] = blocks.least[block];
        if (blocks.most[block] > most[bin]) most[bin] = blocks.most[block];
        i += BLOCK;
        continue;
      }
      const value = column[first + i];
      if (value < least[bin]) least[bin] = value;
      if (value > most[bin]) most[bin] = value;
      i += 1;
    }
    const share = Math.max(0, count - 1) / Math.max(1, this.to - this.from);
    return { least, most, share, sparse: count > pixels };
  }
}

// The ends of an axis, with digits enough to tell them apart.
export function ends(low, high) {
  for (let digits = 3; ; digits++) {
    const texts = [short(low, digits), short(high, digits)];
    if (texts[0] !== texts[1] || digits === 6) return texts;
  }
}

export function short(value, digits = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 0.001 || size >= 1e6)) return value.toExponential(1);
  return String(Number(value.toPrecision(digits)));
}
