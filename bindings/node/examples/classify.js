// Classifies a picture: node classify.js BUILD PICTURE.ppm
//
// The picture is a binary PPM of the size that the model takes; pixels become numbers from 0 to 1.
'use strict';

const fs = require('fs');
const { Model } = require('..');

function readPicture(path, height, width) {
  const bytes = fs.readFileSync(path);
  const head = Buffer.from(`P6\n${width} ${height}\n255\n`);
  if (!bytes.subarray(0, head.length).equals(head)) throw new Error(`expected a PPM of ${width} x ${height}`);
  const pixels = bytes.subarray(head.length);
  const count = height * width;
  return Float32Array.from({ length: 3 * count }, (_, i) => Math.fround(pixels[(i % count) * 3 + Math.floor(i / count)] / 255));
}

async function main([build, picture]) {
  const model = new Model(build);
  const [{ name, least }] = model.inputs;
  const [height, width] = least.slice(2);
  const data = readPicture(picture, height, width);
  const results = await model.run({ [name]: { shape: [1, 3, height, width], data } });
  const scores = results[model.outputs[0].name].data;
  console.log(scores.indexOf(Math.max(...scores)));
}

main(process.argv.slice(2)).catch((error) => {
  console.error(error.message);
  process.exitCode = 1;
});
