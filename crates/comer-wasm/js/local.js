// The recogniser in the present thread.

import init, { Engine, mathml } from './comer_wasm.js';

/** The bytes at an address: over HTTP, or of a file in Node. */
async function read(address) {
  if (address.startsWith('file:')) {
    const { readFile } = await import('node:fs/promises');
    return readFile(new URL(address));
  }
  const response = await fetch(address);
  if (!response.ok) {
    throw new Error(`${address}: ${response.status} ${response.statusText}`);
  }
  return new Uint8Array(await response.arrayBuffer());
}

async function load({ model, languageModel }) {
  const code = new URL('comer_wasm_bg.wasm', import.meta.url);
  const [weights, language] = await Promise.all([
    read(model),
    languageModel && read(languageModel),
    init({ module_or_path: code.protocol === 'file:' ? read(code.href) : code }),
  ]);
  return new Engine(weights, language || undefined);
}

/** Errors as {kind, message}: what Rust returns is a string, everything else is a crash. */
function attempt(act) {
  try {
    return act();
  } catch (error) {
    throw typeof error === 'string' ? { kind: 'input', message: error } : { kind: 'internal', message: `The recogniser crashed: ${error}` };
  }
}

function timed(act) {
  const start = performance.now();
  const reading = JSON.parse(attempt(act));
  return { ...reading, milliseconds: performance.now() - start };
}

/** @param sources {{model: string, languageModel: string | null}} addresses */
export async function openLocal(sources) {
  let engine;
  try {
    engine = await load(sources);
  } catch (error) {
    throw { kind: 'load', message: `The recogniser could not be loaded: ${error.message ?? error}` };
  }
  return {
    recognizeFile: (bytes, options) => timed(() => engine.recognizeFile(bytes, options)),
    recognizePixels: (width, height, rgba, options) => timed(() => engine.recognizePixels(width, height, rgba, options)),
    mathml: (latex) => attempt(() => mathml(latex)),
    provenance: () => JSON.parse(attempt(() => engine.provenance())),
  };
}
