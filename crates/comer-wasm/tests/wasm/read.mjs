// Reads files with the package in Node: a JSON list of paths on stdin, a JSON list of readings on stdout; the arguments are the
// package and the options.

import { readFile } from 'node:fs/promises';

const { Recognizer } = await import(process.argv[2]);
const recognizer = await Recognizer.load();
const options = JSON.parse(process.argv[3]);
const chunks = [];
for await (const chunk of process.stdin) {
  chunks.push(chunk);
}
const readings = [];
for (const path of JSON.parse(Buffer.concat(chunks))) {
  readings.push(await recognizer.recognizeFile(await readFile(path), options));
}
console.log(JSON.stringify(readings));
