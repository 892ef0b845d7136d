// The recogniser in a Web Worker: the first message names its sources, each later one is a call.

import { openLocal } from './local.js';

let engine;

onmessage = async ({ data: { sources, name, values } }) => {
  if (sources) {
    engine = openLocal(sources);
    engine.catch(() => {}); // Reported by the first call.
    return;
  }
  try {
    postMessage({ result: (await engine)[name](...values) });
  } catch ({ kind = 'internal', message }) {
    postMessage({ error: { kind, message } });
  }
};
