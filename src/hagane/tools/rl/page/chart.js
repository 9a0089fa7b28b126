// Lines over steps on a canvas: drawn by the least and greatest value under each pixel.

export const COLOURS = ["#2f7de1", "#d9730d", "#2e9e5b", "#a64fd0", "#d1427a", "#0f97a8", "#8a7a1f", "#6b7686"];

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
        this.draw();
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
    new ResizeObserver(() => this.draw()).observe(this.canvas);
  }

  stepAt(x) {
    const share = (x - 44) / Math.max(1, this.canvas.clientWidth - 52);
    return Math.round(this.from + Math.min(1, Math.max(0, share)) * (this.to - this.from));
  }

  show(series, from, to, step) {
    Object.assign(this, { series, from, to, step });
    this.draw();
  }

  draw() {
    if (!this.series || !this.canvas.clientWidth) return;
    const { canvas } = this;
    const scale = devicePixelRatio || 1;
    const width = canvas.clientWidth;
    const height = canvas.clientHeight;
    if (canvas.width !== Math.round(width * scale)) canvas.width = Math.round(width * scale);
    if (canvas.height !== Math.round(height * scale)) canvas.height = Math.round(height * scale);
    const paint = canvas.getContext("2d");
    paint.setTransform(scale, 0, 0, scale, 0, 0);
    paint.clearRect(0, 0, width, height);
    const style = getComputedStyle(document.body);
    const soft = getComputedStyle(canvas.parentElement.querySelector("figcaption")).color;
    const left = 44;
    const right = width - 8;
    const bottom = height - 18;
    const shown = this.names.filter((name) => !this.hidden.has(name) && this.series.columns.has(name));
    const bins = shown.map((name) => this.bins(this.series.columns.get(name), right - left));
    let low = Infinity;
    let high = -Infinity;
    for (const { least, most } of bins) {
      for (let i = 0; i < least.length; i++) {
        if (least[i] < low) low = least[i];
        if (most[i] > high) high = most[i];
      }
    }
    if (!(low <= high)) [low, high] = [0, 1];
    if (low === high) [low, high] = [low - 0.5, high + 0.5];
    const y = (value) => bottom - 2 - ((value - low) / (high - low)) * (bottom - 10);
    paint.font = `12px ${style.fontFamily}`;
    paint.fillStyle = soft;
    paint.textAlign = "right";
    paint.fillText(short(high), left - 5, 12);
    paint.fillText(short(low), left - 5, bottom);
    paint.textAlign = "left";
    paint.fillText(String(this.from), left, height - 4);
    paint.textAlign = "right";
    paint.fillText(String(this.to), right, height - 4);
    shown.forEach((name, index) => {
      const { least, most } = bins[index];
      paint.strokeStyle = COLOURS[this.names.indexOf(name) % COLOURS.length];
      paint.lineWidth = 1.5;
      paint.beginPath();
      let pen = false;
      const last = Math.max(1, least.length - 1);
      for (let i = 0; i < least.length; i++) {
        if (Number.isNaN(least[i]) || least[i] === Infinity) {
          if (this.sparse) continue;
          pen = false;
          continue;
        }
        const x = left + (i / last) * (right - left);
        if (pen) paint.lineTo(x, y(least[i]));
        else paint.moveTo(x, y(least[i]));
        if (most[i] !== least[i]) paint.lineTo(x, y(most[i]));
        pen = true;
      }
      paint.stroke();
    });
    if (this.step >= this.from && this.step <= this.to) {
      const x = left + ((this.step - this.from) / Math.max(1, this.to - this.from)) * (right - left);
      paint.strokeStyle = soft;
      paint.lineWidth = 1;
      paint.beginPath();
      paint.moveTo(x, 4);
      paint.lineTo(x, bottom);
      paint.stroke();
    }
    const here = shown.map((name) => `${name} ${short(this.series.value(name, this.step))}`).join(", ");
    canvas.setAttribute("aria-label", `${this.title}, steps ${this.from} to ${this.to}; step ${this.step}: ${here}`);
  }

  bins(column, pixels) {
    const first = this.from;
    const count = Math.min(column.length, this.series.steps, this.to + 1) - first;
    const size = Math.max(1, Math.min(count, Math.floor(pixels)));
    const least = new Float32Array(size).fill(Infinity);
    const most = new Float32Array(size).fill(-Infinity);
    for (let i = 0; i < count; i++) {
      const value = column[first + i];
      if (value !== value) continue;
      const bin = Math.min(size - 1, Math.floor((i * size) / count));
      if (value < least[bin]) least[bin] = value;
      if (value > most[bin]) most[bin] = value;
    }
    this.sparse = count > pixels;
    return { least, most };
  }
}

export function short(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 0.001 || size >= 1e6)) return value.toExponential(1);
  return String(Number(value.toPrecision(4)));
}
