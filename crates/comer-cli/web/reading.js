// Asks the server for the formula; an older question is called off.

import { show } from './formula.js';
import { byId, state } from './state.js';

/** Milliseconds after the pen lifts until the formula is read. */
const PAUSE = 350;

let timer = 0;
let request = null;

export function stopReading() {
  clearTimeout(timer);
  request?.abort();
  request = null;
}

export function readSoon(pause = PAUSE) {
  stopReading();
  if (!state.strokes.length) {
    show(null);
    return;
  }
  timer = setTimeout(() => read(JSON.stringify({ strokes: state.strokes }), 'application/json'), pause);
}

export async function problem(response) {
  const text = await response.text();
  try {
    return JSON.parse(text).detail ?? text;
  } catch {
    return text || `The server answered ${response.status}.`;
  }
}

export async function read(body, type) {
  stopReading();
  const own = new AbortController();
  request = own;
  byId('formula').dataset.state = 'busy';
  byId('status').textContent = 'Reading…';
  try {
    const options = { method: 'POST', body, headers: { 'content-type': type }, signal: own.signal };
    const response = await fetch('api/recognize?nbest=5&alignment=1&mathml=1', options);
    if (response.status === 503) {
      byId('status').textContent = 'The server is busy; trying again.';
      timer = setTimeout(() => read(body, type), 1000 * (Number(response.headers.get('retry-after')) || 1));
      return;
    }
    if (!response.ok) {
      fail(await problem(response));
      return;
    }
    const answer = await response.json();
    if (request === own) {
      show(answer);
    }
  } catch (error) {
    if (error.name !== 'AbortError') {
      fail('The server cannot be reached.');
    }
  } finally {
    if (request === own) {
      request = null;
    }
  }
}

export function fail(text) {
  show(null);
  byId('status').textContent = text;
}
