// What the binding for Node promises, beside its example: bindings.js BUILD GUESTS DAMAGED…
'use strict';

const assert = require('assert');
const { Model } = require('../../bindings/node');

async function fails(text, action) {
  await assert.rejects(
    async () => action(),
    (error) => error instanceof Error && error.message.includes(text),
    text,
  );
}

function guests(changes = {}) {
  const feed = {
    x: { shape: [2, 3], data: Float32Array.from([1, 2, 3, NaN, 5, 6]) },
    ids: { shape: [3], data: BigInt64Array.from([0n, 9n, 4n]) },
    flag: { shape: [2], data: Uint8Array.from([1, 0]) },
    half: { shape: [2], data: Uint16Array.from([0x3c00, 0xc000]) },
    'größe😀': { shape: [1], data: BigUint64Array.from([2n ** 64n - 1n]) },
  };
  return { ...feed, ...changes };
}

async function main([pictures, mixed, ...damaged]) {
  const model = new Model(mixed);
  assert.deepStrictEqual(model.inputs.map((each) => each.name), Object.keys(guests()));
  assert.deepStrictEqual([model.inputs[0].least, model.inputs[0].most], [[0, 3], [4, 3]]);
  const found = await model.run(guests());
  assert.deepStrictEqual(found.y.shape, [2, 2]);
  assert.ok(Number.isFinite(found.y.data[0]) && Number.isNaN(found.y.data[2]));
  assert.deepStrictEqual([...found.rows.data.filter((_, i) => i % 5 === 0)], [0, 45, 20]);
  assert.deepStrictEqual([...found.unflagged.data], [0, 1]);
  assert.deepStrictEqual([...found.halved.data], [0xbc00, 0x4000]);
  assert.deepStrictEqual(found['länge😀'].data[0], 2n ** 64n - 1n);
  const none = await model.run(guests({ x: { shape: [0, 3], data: new Float32Array(0) } }));
  assert.deepStrictEqual([none.y.shape, none.y.data.length], [[0, 2], 0]);

  const row = (...shape) => guests({ x: { shape, data: new Float32Array(15) } });
  await fails("input 'x': axis 0 is 5, expected 0 to 4", () => model.run(row(5, 3)));
  await fails("input 'x': axis 1 is 4, expected 3", () => model.run(row(2, 4)));
  await fails("input 'x': axis 0 is -1", () => model.run(row(-1, 3)));
  await fails("input 'x': expected 2 axes, got 1", () => model.run(row(3)));
  await fails('expected a shape of 16 whole numbers', () => model.run(row(...Array(17).fill(1))));
  await fails('expected a shape of 16 whole numbers', () => model.run(row(1.5, 3)));
  await fails("expected memory of 48 bytes, got 8", () =>
    model.run(guests({ x: { shape: [4, 3], data: new Float32Array(2) } })));
  await fails("input 'x': expected Float32Array, got Float64Array", () =>
    model.run(guests({ x: { shape: [1, 3], data: new Float64Array(3) } })));
  await fails("input 'x': expected Float32Array, got undefined", () => model.run(guests({ x: null })));
  await fails("there is no input 'z'; the model has: x, ids", () => model.run(guests({ z: guests().x })));
  const { half, ...missing } = guests();
  await fails("input 'half' is missing", () => model.run(missing));
  await fails("'look up'", () => model.run(guests({ ids: { shape: [1], data: BigInt64Array.from([10n]) } })));
  await fails('expected {input: {shape, data}}', () => model.run(null));
  for (const folder of damaged) await fails(folder, () => new Model(folder));

  const own = guests();
  const held = model.run(own);
  structuredClone(own.x.data, { transfer: [own.x.data.buffer] }); // its memory goes elsewhere
  assert.deepStrictEqual((await held).y, found.y);
  const same = new Model(pictures);
  const x = { x: { shape: [1, 3, 6, 8], data: Float32Array.from({ length: 144 }, (_, i) => i / 144) } };
  const [first, ...others] = Array.from({ length: 20 }, () => same.run(x));
  same.close(); // once they have ended
  same.close();
  const expected = await first;
  for (const each of others) assert.deepStrictEqual(await each, expected);
  await fails('the model is closed', () => same.run(x));
  console.log('fine');
}

main(process.argv.slice(2)).catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
