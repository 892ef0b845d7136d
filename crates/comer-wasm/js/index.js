// Handwritten mathematics to LaTeX, in this browser (in a Web Worker) or in Node.

import { openLocal } from './local.js';

/** Recognition failed. `kind` is 'input' (the input or the options are at fault), 'load' or 'internal'. */
export class RecognitionError extends Error {
  constructor(kind, message) {
    super(message);
    this.name = 'RecognitionError';
    this.kind = kind;
  }
}

const revived = ({ kind, message }) => new RecognitionError(kind, message);

/** A promise that fails when the signal is aborted. */
const aborted = (signal) => new Promise((_, fail) => {
  signal.addEventListener('abort', () => fail(signal.reason), { once: true });
});

/** The recogniser in this thread. */
class Local {
  #engine;

  constructor(sources) {
    this.#engine = openLocal(sources);
  }

  async send(name, values) {
    try {
      return await (await this.#engine)[name](...values);
    } catch (error) {
      throw revived(error);
    }
  }

  stop() {}
}

/** The recogniser in a Web Worker, which is started again after a crash. */
class Remote {
  #sources;
  #worker = null;
  #pending = null;

  constructor(sources) {
    this.#sources = sources;
  }

  #start() {
    const worker = new Worker(new URL('./worker.js', import.meta.url), { type: 'module' });
    const settle = (act) => {
      const pending = this.#pending;
      this.#pending = null;
      act(pending);
    };
    worker.onmessage = ({ data: { result, error } }) => settle((pending) => {
      if (!error) {
        pending?.done(result);
        return;
      }
      if (error.kind !== 'input') {
        this.stop();
      }
      pending?.fail(revived(error));
    });
    worker.onerror = (event) => settle((pending) => {
      this.stop();
      pending?.fail(new RecognitionError('load', event.message || 'The Web Worker could not be started.'));
    });
    worker.postMessage({ sources: this.#sources });
    return worker;
  }

  send(name, values) {
    this.#worker ??= this.#start();
    return new Promise((done, fail) => {
      this.#pending = { done, fail };
      this.#worker.postMessage({ name, values });
    });
  }

  stop() {
    this.#worker?.terminate();
    this.#worker = null;
    this.#pending?.fail(new RecognitionError('internal', 'The recogniser was terminated.'));
    this.#pending = null;
  }
}

export class Recognizer {
  #backend;
  #last = Promise.resolve();

  /** Use `Recognizer.load`. */
  constructor(backend) {
    this.#backend = backend;
  }

  /** Loads WebAssembly and model. Both are beside this module unless `model` and `languageModel` are other addresses. */
  static async load({ model, languageModel, worker = typeof Worker !== 'undefined' } = {}) {
    const address = (given, name) => (given === null ? null : new URL(given ?? name, given ? globalThis.location?.href : import.meta.url).href);
    const sources = { model: address(model, 'comer.safetensors'), languageModel: address(model && !languageModel ? null : languageModel, 'language-model.safetensors') };
    const recognizer = new Recognizer(worker ? new Remote(sources) : new Local(sources));
    await recognizer.provenance();
    return recognizer;
  }

  /** Strokes as [[[x, y], ...], ...] in the order of writing, y down, in any unit. */
  recognizeStrokes(strokes, options) {
    return this.#recognize('recognizeFile', [new TextEncoder().encode(JSON.stringify({ strokes }))], options);
  }

  /** Pixels of a canvas. */
  recognizeImage({ width, height, data }, options) {
    return this.#recognize('recognizePixels', [width, height, new Uint8Array(data.buffer, data.byteOffset, data.byteLength)], options);
  }

  /** A file: png, jpeg, bmp, webp, tiff, gif, InkML or JSON strokes. */
  async recognizeFile(file, options) {
    const bytes = file instanceof Blob ? new Uint8Array(await file.arrayBuffer()) : new Uint8Array(file);
    return this.#recognize('recognizeFile', [bytes], options);
  }

  /** LaTeX as a MathML element. */
  mathml(latex, { signal } = {}) {
    return this.#call('mathml', [latex], signal);
  }

  /** What made the model: data, recipe, licence, accuracy. */
  provenance() {
    return this.#call('provenance', []);
  }

  /** Ends the Web Worker. */
  terminate() {
    this.#backend.stop();
  }

  #recognize(name, values, { signal, ...options } = {}) {
    return this.#call(name, [...values, JSON.stringify(options)], signal);
  }

  /** One call at a time; a call that is aborted before its turn costs nothing. */
  #call(name, values, signal) {
    const result = this.#last.then(() => {
      signal?.throwIfAborted();
      return this.#backend.send(name, values);
    });
    this.#last = result.catch(() => {});
    return signal ? Promise.race([result, aborted(signal)]) : result;
  }
}
