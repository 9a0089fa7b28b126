// One rollout on the stage: its picture, the explanation over it, and the facts of the step.

import { imageUrl } from "rl/api";
import { short } from "rl/chart";
import { text } from "rl/panes";

export class View {
  constructor(series, name, onClose) {
    this.series = series;
    this.name = name;
    this.pictures = new Map();
    this.element = document.createElement("article");
    this.element.className = "view";
    this.element.setAttribute("aria-label", `Rollout ${series.id}`);
    this.title = text("h3", series.id);
    this.canvas = document.createElement("canvas");
    this.canvas.setAttribute("role", "img");
    this.missing = text("p", "", "soft");
    const frame = document.createElement("div");
    frame.className = "picture";
    frame.append(this.canvas, this.missing);
    this.facts = document.createElement("dl");
    this.element.append(this.title, frame, this.facts);
    if (onClose) {
      const close = text("button", "Close");
      close.type = "button";
      close.addEventListener("click", onClose);
      this.element.append(close);
    }
  }

  async show(step, overlay) {
    this.wanted = step;
    const row = await this.series.row(step).catch(() => null);
    if (this.wanted !== step) return null;
    this.row = row;
    const facts = row
      ? [["step", step], ["action", this.action(row)], ["reward", short(row.reward)],
        ["return", short(row.episode_return)], ["episode", row.episode], ["end", row.done]]
      : [["step", "–"]];
    this.facts.replaceChildren(...facts.filter(([, value]) => value !== undefined && value !== "–").map(([key, value]) => {
      const pair = document.createElement("div");
      pair.append(text("dt", key), text("dd", String(value)));
      return pair;
    }));
    if (!this.named && this.series.steps) {
      this.named = true;
      this.series.row(0).then((first) => {
        if (first?.agent) this.title.textContent = `${first.agent} · seed ${first.seed} · ${this.series.id}`;
      }, () => { this.named = false; });
    }
    const picture = row?.image_path ? await this.picture(row.image_path).catch(() => null) : null;
    if (this.wanted !== step) return row;
    this.canvas.hidden = !picture;
    this.missing.textContent = picture ? "" : row?.image_path ? "The picture is not in the log folder." : "No picture of this step.";
    if (picture) this.draw(picture, overlay);
    this.canvas.setAttribute("aria-label", `State at step ${step}, action ${row ? this.action(row) : "unknown"}`);
    for (let next = step + 1; next < step + 4; next++) this.ahead(next);
    return row;
  }

  action(row) {
    if (typeof row.action === "number") return this.name(row.action);
    if (Array.isArray(row.action)) return row.action.map((part) => (typeof part === "number" ? short(part) : JSON.stringify(part))).join(", ");
    return row.action === undefined ? "–" : JSON.stringify(row.action);
  }

  draw(picture, overlay) {
    const { canvas } = this;
    const grow = Math.max(1, Math.floor(420 / picture.width));
    canvas.width = picture.width * grow;
    canvas.height = picture.height * grow;
    const paint = canvas.getContext("2d");
    paint.imageSmoothingEnabled = false;
    paint.drawImage(picture, 0, 0, canvas.width, canvas.height);
    if (overlay) overlay(paint, canvas.width, canvas.height);
  }

  async picture(path) {
    if (!this.pictures.has(path)) {
      if (this.pictures.size > 60) this.pictures.delete(this.pictures.keys().next().value);
      const image = new Image();
      image.src = imageUrl(path);
      this.pictures.set(path, image.decode().then(() => image));
      this.pictures.get(path).catch(() => this.pictures.delete(path));
    }
    return this.pictures.get(path);
  }

  async ahead(step) {
    if (step >= this.series.steps) return;
    const row = await this.series.row(step).catch(() => null);
    if (row?.image_path) this.picture(row.image_path).catch(() => null);
  }
}
