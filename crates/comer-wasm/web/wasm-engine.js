// The engine in the browser: the package `comer-wasm`, in a Web Worker.

import { Recognizer } from './comer-wasm/index.js';
import { EngineError } from './engine-error.js';

/** Errors of the package as errors of an engine. */
function translated(error) {
  if (error.name !== 'RecognitionError') {
    return error;
  }
  const kind = error.kind === 'load' ? 'unreachable' : error.kind;
  return new EngineError(kind, error.message, { token: Number(/^token (\d+)/.exec(error.message)?.[1] ?? 0) });
}

export class WasmEngine {
  #loading = null;

  constructor() {
    this.#load().catch(() => {}); // Reported by the first call.
  }

  /** Tried again after a failure. */
  #load() {
    this.#loading ??= Recognizer.load().catch((error) => {
      this.#loading = null;
      throw error;
    });
    return this.#loading;
  }

  async #use(act) {
    try {
      return await act(await this.#load());
    } catch (error) {
      throw translated(error);
    }
  }

  async info() {
    return { constraints: true, explain: false, local: true };
  }

  recognizeStrokes(strokes, options) {
    return this.#use((recognizer) => recognizer.recognizeStrokes(strokes, { nbest: 5, formulas: 'auto', ...options, alignment: true, mathml: true }));
  }

  recognizeImage(blob, options) {
    return this.#use((recognizer) => recognizer.recognizeFile(blob, { nbest: 5, formulas: 'auto', ...options, alignment: true, mathml: true, image: true }));
  }

  mathml(latex, options) {
    return this.#use((recognizer) => recognizer.mathml(latex, options));
  }
}
