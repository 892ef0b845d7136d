// Measures loading, the first answer and the best of several. `?native=GREEDY,BEAM` gives the milliseconds of the native program on
// one thread, which `cargo bench -p comer-wasm` measures, and adds the ratios.

import { Recognizer } from './comer-wasm/index.js';
import { parseInk } from './ink.js';

const RUNS = 12;

async function time(act) {
  const start = performance.now();
  const value = await act();
  return [performance.now() - start, value];
}

/** The least time of several runs, inside of the recogniser: without the messages to and from the worker. */
async function best(recognizer, strokes, options) {
  let least = Infinity;
  for (let run = 0; run < RUNS; run++) {
    least = Math.min(least, (await recognizer.recognizeStrokes(strokes, options)).milliseconds);
  }
  return least;
}

const strokes = parseInk(await (await fetch('benchmark.inkml')).text());
const [load, recognizer] = await time(() => Recognizer.load());
const [first, reading] = await time(() => recognizer.recognizeStrokes(strokes, { nbest: 5, alignment: true, mathml: true }));
const greedy = await best(recognizer, strokes, { greedy: true });
const beam = await best(recognizer, strokes, {});
const result = { latex: reading.formulas[0].latex, load, first, greedy, beam };
const lines = [
  `${result.latex}`,
  `load (code and model): ${load.toFixed(0)} ms`,
  `first answer, as the page asks for it: ${first.toFixed(0)} ms`,
  `greedy search: ${greedy.toFixed(1)} ms`,
  `joint search, beam 10: ${beam.toFixed(1)} ms`,
];
const native = new URLSearchParams(location.search).get('native')?.split(',').map(Number);
if (native) {
  lines.push(`native: greedy ${native[0].toFixed(1)} ms (ratio ${(greedy / native[0]).toFixed(2)}), beam 10 ${native[1].toFixed(1)} ms (ratio ${(beam / native[1]).toFixed(2)})`);
}
document.getElementById('report').textContent = lines.join('\n');
// For programs that drive the page.
document.documentElement.dataset.result = JSON.stringify(result);
