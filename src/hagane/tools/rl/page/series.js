// A log as columns of float32: loaded once in binary, then only what was appended.

import { ask, getJson } from "rl/api";

const PAGE = 100;
export const BLOCK = 16;

export class Series {
  constructor(id) {
    this.id = id;
    this.steps = 0;
    this.columns = new Map();
    this.warnings = [];
    this.pages = new Map();
    this.loading = null;
    this.known = new Map();
  }

  // The least and greatest value of every BLOCK steps, for drawing many at once.
  blocks(name) {
    const known = this.known.get(name);
    if (known?.steps === this.steps) return known;
    const column = this.columns.get(name);
    const count = Math.floor(this.steps / BLOCK);
    const least = new Float32Array(count).fill(Infinity);
    const most = new Float32Array(count).fill(-Infinity);
    for (let i = 0; i < count * BLOCK; i++) {
      const block = i >> 4;
      if (column[i] < least[block]) least[block] = column[i];
      if (column[i] > most[block]) most[block] = column[i];
    }
    const made = { steps: this.steps, least, most };
    this.known.set(name, made);
    return made;
  }

  path(rest = "") {
    return `/api/rollouts/${encodeURIComponent(this.id)}${rest}`;
  }

  // Load what is new; calls that come meanwhile wait for the same answer.
  refresh() {
    this.loading ??= this.load().finally(() => {
      this.loading = null;
    });
    return this.loading;
  }

  async load() {
    const raw = await (await ask(this.path(`/series?from=${this.steps}`))).arrayBuffer();
    const size = new DataView(raw).getUint32(0, true);
    const header = JSON.parse(new TextDecoder().decode(new Uint8Array(raw, 4, size)));
    const count = header.steps - header.from;
    this.warnings = header.warnings;
    if (header.from < this.steps) this.columns.clear();
    header.columns.forEach((name, index) => {
      const fresh = new Float32Array(raw, 4 + size + 4 * count * index, count);
      this.append(name, fresh, header.from, header.steps);
    });
    for (const page of [...this.pages.keys()]) {
      if ((page + 1) * PAGE > this.steps) this.pages.delete(page);
    }
    this.steps = header.steps;
  }

  append(name, fresh, from, steps) {
    let column = this.columns.get(name);
    if (!column || column.length < steps) {
      const larger = new Float32Array(Math.max(steps, Math.ceil((column?.length ?? 0) * 1.5)));
      larger.fill(NaN);
      if (column) larger.set(column);
      column = larger;
      this.columns.set(name, column);
    }
    column.set(fresh, from);
  }

  value(name, step) {
    return this.columns.get(name)?.[step] ?? NaN;
  }

  // The parts of a vector in order: action_values.0, action_values.1, ...
  parts(key) {
    const found = [];
    while (this.columns.has(`${key}.${found.length}`)) found.push(`${key}.${found.length}`);
    return found.length ? found : this.columns.has(key) ? [key] : [];
  }

  // The line of a step as the log holds it, from a page of lines that is kept.
  async row(step) {
    const page = Math.floor(step / PAGE);
    if (!this.pages.has(page)) {
      if (this.pages.size > 40) this.pages.delete(this.pages.keys().next().value);
      const wanted = getJson(this.path(`?from=${page * PAGE}&count=${PAGE}`));
      this.pages.set(page, wanted.then((answer) => answer.rollout_log));
      wanted.catch(() => this.pages.delete(page));
    }
    const rows = await this.pages.get(page);
    return rows[step - page * PAGE] ?? null;
  }
}
