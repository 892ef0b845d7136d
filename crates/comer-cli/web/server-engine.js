// The engine on a server: the HTTP API of `comer serve`.

import { EngineError } from './engine-error.js';

const formulaOf = ({ latex, tokens, confidence, mathml }) => ({
  latex,
  tokens: tokens.map(({ token, confidence: own, symbol_confidence: symbolConfidence = null, alternatives = [] }) => (
    { text: token, confidence: own, symbolConfidence, alternatives })),
  confidence,
  mathml: mathml ?? '',
});

/** Several formulas: what and where they are. */
const foundIn = ({ formulas = [] }) => (formulas.length < 2 ? null
  : formulas.map(({ latex, box: { left, top, right, bottom }, strokes = null }) => ({ latex, box: [left, top, right, bottom], strokes })));

export class ServerEngine {
  #url;
  #info;

  constructor(url) {
    this.#url = new URL('api/', url).href;
  }

  /** The API description lists what the server supports. */
  info() {
    this.#info ??= this.#describe();
    return this.#info;
  }

  async #describe() {
    try {
      const description = await (await this.#fetch('openapi.json', {})).json();
      const names = (description.paths['/api/recognize'].post.parameters ?? []).map(({ name }) => name);
      return Object.fromEntries(['constraints', 'explain', 'formulas'].map((name) => [name, names.includes(name)]));
    } catch (error) {
      this.#info = undefined;
      throw error;
    }
  }

  recognizeStrokes(strokes, options = {}) {
    return this.#recognize(JSON.stringify({ strokes }), 'application/json', options);
  }

  recognizeImage(blob, options = {}) {
    const type = blob.type.startsWith('image/') ? blob.type : 'application/octet-stream';
    return this.#recognize(blob, type, options, { image: 1 });
  }

  async #recognize(body, type, { nbest = 5, signal, constraints, formulas = 'auto' }, more = {}) {
    const supported = await this.info().catch(() => ({}));
    const query = new URLSearchParams({ nbest, alignment: 1, mathml: 1, ...(supported.formulas && { formulas }), ...more });
    if (constraints) {
      query.set('constraints', JSON.stringify(constraints));
    }
    const response = await this.#fetch(`recognize?${query}`, { method: 'POST', body, headers: { 'content-type': type }, signal });
    const answer = await response.json();
    return {
      formulas: [answer, ...(answer.alternatives ?? [])].map(formulaOf),
      milliseconds: answer.milliseconds,
      strokes: answer.alignment?.strokes ?? null,
      regions: answer.ink?.regions ?? null,
      boxes: answer.alignment?.boxes ?? null,
      image: answer.image ?? null,
      found: foundIn(answer),
      aligned: answer.aligned ?? null,
      warnings: answer.warnings ?? [],
    };
  }

  async mathml(latex, { signal } = {}) {
    const response = await this.#fetch('mathml', { method: 'POST', body: latex, headers: { 'content-type': 'text/plain' }, signal });
    return (await response.json()).mathml;
  }

  /** Opens a tab that shows where the model looked. A form, because the answer is a page with a policy of its own. */
  explain(input) {
    const form = document.createElement('form');
    Object.assign(form, {
      method: 'post', action: `${this.#url}recognize?explain=1`, enctype: 'multipart/form-data', target: '_blank', hidden: true,
    });
    const field = document.createElement(input instanceof Blob ? 'input' : 'textarea');
    field.name = 'file';
    if (input instanceof Blob) {
      const files = new DataTransfer();
      files.items.add(new File([input], 'picture', { type: input.type }));
      field.type = 'file';
      field.files = files.files;
    } else {
      field.value = JSON.stringify({ strokes: input });
    }
    form.append(field);
    document.body.append(form);
    form.submit();
    form.remove();
  }

  async #fetch(path, options) {
    let response;
    try {
      response = await fetch(this.#url + path, options);
    } catch (error) {
      if (error.name === 'AbortError') {
        throw error;
      }
      throw new EngineError('unreachable', 'The recogniser cannot be reached.');
    }
    if (response.ok) {
      return response;
    }
    const text = await response.text();
    let problem = {};
    try {
      problem = JSON.parse(text);
    } catch {
      // Not from our server: a proxy, for instance.
    }
    const kind = response.status === 503 ? 'busy' : response.status < 500 ? 'input' : 'internal';
    const token = problem.token ?? Number(/^token (\d+)/.exec(problem.detail ?? '')?.[1] ?? 0);
    const message = kind === 'busy' ? 'The server is busy; trying again.' : problem.detail ?? `The server answered ${response.status} ${response.statusText}.`;
    throw new EngineError(kind, message, { token, retryAfter: Number(response.headers.get('retry-after')) || 1 });
  }
}
