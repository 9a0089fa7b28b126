// The list of jobs: progress, errors with their traces, and a button that cancels.

import { ask } from "rl/api";
import { text } from "rl/panes";

export class Jobs {
  constructor(place, ended, running) {
    this.place = place;
    this.ended = ended;
    this.running = running;
    this.jobs = new Map();
    this.shown = new Map();
  }

  reset(jobs) {
    this.jobs = new Map(jobs.map((job) => [job.id, job]));
    this.draw();
  }

  hear(job) {
    if (job.hidden && job.status !== "failed") {
      if (job.over) this.ended(job);
      return;
    }
    const before = this.jobs.get(job.id);
    this.jobs.set(job.id, job);
    this.draw();
    if (job.over && before?.over !== true) this.ended(job);
    else if (job.status === "running") this.running(job);
  }

  draw() {
    const latest = [...this.jobs.values()].sort((a, b) => b.id - a.id).slice(0, 12);
    const items = latest.map((job) => this.item(job));
    this.place.replaceChildren(...items);
    if (!items.length) this.place.append(text("li", "none yet", "soft"));
  }

  item(job) {
    const key = JSON.stringify([job.status, job.message]);
    let shown = this.shown.get(job.id);
    if (!shown || shown.key !== key) {
      shown = { key, element: document.createElement("li") };
      this.shown.set(job.id, shown);
      const { element } = shown;
      shown.words = text("span", "");
      element.append(shown.words);
      if (job.status === "running" || job.status === "waiting") {
        shown.bar = document.createElement("progress");
        shown.bar.setAttribute("aria-label", `Job ${job.id}`);
        const cancel = text("button", "Cancel");
        cancel.type = "button";
        cancel.setAttribute("aria-label", `Cancel job ${job.id}`);
        cancel.addEventListener("click", () => ask(`/api/jobs/${job.id}`, "DELETE").catch(() => null));
        element.append(shown.bar, cancel);
      }
      if (job.status === "failed") {
        element.append(text("div", job.message, "error"));
        if (job.trace) {
          const details = document.createElement("details");
          details.append(text("summary", "Trace"), text("pre", job.trace));
          element.append(details);
        }
      }
      for (const words of job.result?.warnings ?? []) element.append(text("div", words, "error"));
    }
    const total = job.total ? ` ${job.done} / ${job.total}` : "";
    shown.words.textContent = `${job.id}. ${job.kind}: ${job.status}${total}`;
    if (shown.bar) {
      if (job.total) Object.assign(shown.bar, { max: job.total, value: job.done });
      else shown.bar.removeAttribute("value");
    }
    return shown.element;
  }
}
