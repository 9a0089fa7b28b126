'use strict';

const crypto = require('crypto');
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

const MOST_AXES = 16;

function fault(message) {
  return Object.assign(new Error(message), { code: 'HAGANE' });
}

function read(file) {
  try {
    return fs.readFileSync(file);
  } catch (error) {
    throw fault(`'${file}' cannot be read: ${error.message}; expected a folder that hagane build wrote`);
  }
}

/** The library of a build, which is whole: loading one that was cut off ends the process. */
function libraryOf(folder) {
  const file = path.join(folder, 'manifest.json');
  let manifest;
  try {
    manifest = JSON.parse(read(file).toString('utf8'));
  } catch (error) {
    throw error.code === 'HAGANE' ? error : fault(`'${file}' is damaged: build the model again`);
  }
  const name = manifest?.library;
  if (typeof name !== 'string' || path.basename(name) !== name) throw fault(`'${file}' names no library`);
  const library = path.resolve(folder, name);
  if (name.endsWith('.a')) throw fault(`'${library}' is an archive: build the model with --shared`);
  const sum = crypto.createHash('sha256').update(read(library)).digest('hex');
  if (sum !== manifest.library_sha256) throw fault(`'${library}' is damaged, or of another build`);
  return library;
}

/** A build that is open; runs do not block. */
class Model {
  #handle;

  /** Open a folder that `hagane build` wrote. */
  constructor(folder, { threads = 0 } = {}) {
    if (typeof folder !== 'string') throw new TypeError(`expected the folder of a build, got ${folder}`);
    this.#handle = addon.open(libraryOf(folder), folder, threads);
    this.inputs = addon.describe(this.#handle, 0);
    this.outputs = addon.describe(this.#handle, 1);
  }

  /** Run the model on {name: {shape, data}}; a promise of the same for the outputs. */
  async run(feed) {
    if (feed === null || typeof feed !== 'object') throw new TypeError(`expected {input: {shape, data}}, got ${feed}`);
    const inputs = Object.entries(feed).map(([name, tensor]) => {
      const known = this.inputs.find((each) => each.name === name);
      if (known === undefined) {
        const names = this.inputs.map((each) => each.name).join(', ');
        throw fault(`there is no input '${name}'; the model has: ${names}`);
      }
      const { type } = known;
      const { shape, data } = tensor ?? {};
      if (!(data instanceof ARRAYS[type])) {
        throw new TypeError(`input '${name}': expected ${ARRAYS[type].name}, got ${data?.constructor?.name}`);
      }
      const sizes = Array.from(shape ?? [NaN]);
      if (sizes.length > MOST_AXES || !sizes.every(Number.isSafeInteger)) {
        throw new TypeError(`input '${name}': expected a shape of ${MOST_AXES} whole numbers at most, got [${sizes}]`);
      }
      return { name, type, shape: sizes, data };
    });
    const results = await addon.run(this.#handle, inputs);
    return Object.fromEntries(
      results.map(({ name, type, shape, buffer }) => [name, { shape, data: new ARRAYS[type](buffer) }]),
    );
  }

  /** Close the model, once its runs have ended; none can be begun. The garbage collector does so at the latest. */
  close() {
    addon.close(this.#handle);
  }
}

module.exports = { Model };
