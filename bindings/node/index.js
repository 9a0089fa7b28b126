'use strict';

const fs = require('fs');
const path = require('path');

const addon = require(process.env.HAGANE_ADDON || './build/Release/hagane.node');

// Element types as ONNX numbers them, and the arrays that hold them.
const ARRAYS = {
  1: Float32Array,
  2: Uint8Array,
  3: Int8Array,
  4: Uint16Array,
  5: Int16Array,
  6: Int32Array,
  7: BigInt64Array,
  9: Uint8Array, // truth values
  10: Uint16Array, // float16, as bits
  11: Float64Array,
  12: Uint32Array,
  13: BigUint64Array,
  16: Uint16Array, // bfloat16, as bits
};

/** A build that is open; runs do not block. */
class Model {
  #handle;

  /** Open a folder that `hagane build` wrote. */
  constructor(folder, { threads = 0 } = {}) {
    const manifest = JSON.parse(fs.readFileSync(path.join(folder, 'manifest.json'), 'utf8'));
    this.#handle = addon.open(path.resolve(folder, manifest.library), folder, threads);
    this.inputs = addon.describe(this.#handle, 0);
    this.outputs = addon.describe(this.#handle, 1);
  }

  /** Run the model on {name: {shape, data}}; a promise of the same for the outputs. */
  async run(feed) {
    const inputs = Object.entries(feed).map(([name, { shape, data }]) => {
      const known = this.inputs.find((each) => each.name === name);
      const type = known === undefined ? 1 : known.type;
      if (!(data instanceof ARRAYS[type])) {
        throw new TypeError(`input '${name}': expected ${ARRAYS[type].name}, got ${data?.constructor?.name}`);
      }
      return { name, type, shape: Array.from(shape), data };
    });
    const results = await addon.run(this.#handle, inputs);
    return Object.fromEntries(
      results.map(({ name, type, shape, buffer }) => [name, { shape, data: new ARRAYS[type](buffer) }]),
    );
  }
}

module.exports = { Model };
