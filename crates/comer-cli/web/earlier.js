// Earlier formulas, in the browser's own storage.

import { closePicture } from './files.js';
import { choice, showAlternatives, showFormula } from './formula.js';
import { readSoon, stopReading } from './reading.js';
import { byId, state } from './state.js';
import { change, redraw } from './strokes.js';

const MOST_EARLIER = 40;

function earlier() {
  try {
    const list = JSON.parse(localStorage.getItem('comer.earlier') ?? '[]');
    return Array.isArray(list) ? list : [];
  } catch {
    return [];
  }
}

function keep(list) {
  try {
    localStorage.setItem('comer.earlier', JSON.stringify(list.slice(0, MOST_EARLIER)));
  } catch {
    // Without storage the page works all the same.
  }
  showEarlier();
}

/** Keeps what this surface shows: one entry for each, the last one first. */
export function remember() {
  const { sheet, chosen, strokes } = state;
  if (!chosen) {
    return;
  }
  const entry = { sheet, latex: chosen.latex, mathml: chosen.mathml, strokes };
  keep([entry, ...earlier().filter((other) => other.sheet !== sheet)]);
}

export function showEarlier() {
  const list = earlier();
  byId('history').hidden = !list.length;
  byId('earlier').replaceChildren(...list.map((entry) => {
    const item = document.createElement('li');
    const time = new Date(entry.sheet).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' });
    const button = choice(entry, time);
    button.addEventListener('click', () => {
      stopReading();
      closePicture();
      state.sheet = entry.sheet;
      if (entry.strokes.length) {
        change(entry.strokes);
        readSoon(0);
      } else {
        state.strokes = [];
        redraw();
        state.answer = null;
        showFormula({ latex: entry.latex, mathml: entry.mathml, tokens: [], confidence: 1 });
        byId('status').textContent = '';
        showAlternatives();
      }
    });
    item.append(button);
    return item;
  }));
}

byId('forget').addEventListener('click', () => keep([]));
