// Pictures and ink from elsewhere: chosen, photographed, pasted, dropped.

import { fail, read, stopReading } from './reading.js';
import { byId, inText, rounded, state } from './state.js';
import { change, redraw } from './strokes.js';

export function closePicture() {
  if (state.picture) {
    URL.revokeObjectURL(byId('picture').src);
    byId('picture').removeAttribute('src');
    state.picture = null;
  }
}

async function take(file) {
  const name = file.name.toLowerCase();
  if (name.endsWith('.inkml') || name.endsWith('.json') || /xml|json/.test(file.type) && !file.type.startsWith('image/')) {
    takeInk(await file.text());
    return;
  }
  stopReading();
  closePicture();
  state.sheet = Date.now();
  state.picture = file;
  if (state.strokes.length) {
    state.past.push(state.strokes);
    state.strokes = [];
  }
  byId('picture').src = URL.createObjectURL(file);
  redraw();
  read(file, file.type.startsWith('image/') ? file.type : 'application/octet-stream');
}

/** The strokes of InkML or of JSON, by their points. */
function strokesOf(text) {
  const numbers = (point) => (Array.isArray(point) ? [Number(point[0]), Number(point[1])] : [Number(point.x), Number(point.y)]);
  if (text.trimStart().startsWith('<')) {
    const file = new DOMParser().parseFromString(text, 'application/xml');
    return Array.from(file.getElementsByTagName('trace'), (trace) =>
      trace.textContent.split(',').map((point) => numbers(point.trim().split(/\s+/))));
  }
  const file = JSON.parse(text);
  return (file.strokes ?? file).map((stroke) =>
    stroke.x ? stroke.x.map((x, index) => [Number(x), Number(stroke.y[index])]) : (stroke.points ?? stroke).map(numbers));
}

function takeInk(text) {
  let strokes = [];
  try {
    strokes = strokesOf(text);
  } catch {
    strokes = [];
  }
  const points = strokes.flat();
  if (!points.length || points.some((point) => !point.every(Number.isFinite))) {
    fail('This file has no strokes that can be read.');
    return;
  }
  closePicture();
  state.sheet = Date.now();
  change(fitted(strokes));
}

/** Strokes moved and scaled into the middle of the surface. */
function fitted(strokes) {
  const box = byId('paper').getBoundingClientRect();
  const bounds = (axis) => {
    const values = strokes.flat().map((point) => point[axis]);
    return [values.reduce((a, b) => Math.min(a, b)), values.reduce((a, b) => Math.max(a, b))];
  };
  const [[left, right], [top, bottom]] = [bounds(0), bounds(1)];
  const factor = Math.min(0.8 * box.width / Math.max(1e-9, right - left), 0.6 * box.height / Math.max(1e-9, bottom - top), 220 / Math.max(1e-9, bottom - top));
  const scale = Number.isFinite(factor) ? factor : 1;
  return strokes.map((stroke) => stroke.map(([x, y]) => [
    rounded((x - (left + right) / 2) * scale + box.width / 2),
    rounded((y - (top + bottom) / 2) * scale + box.height / 2),
  ]));
}

for (const id of ['file', 'photo']) {
  byId(id).addEventListener('change', () => {
    const [file] = byId(id).files;
    byId(id).value = '';
    if (file) {
      take(file);
    }
  });
}
byId('open').addEventListener('click', () => byId('file').click());
byId('camera').addEventListener('click', () => byId('photo').click());

addEventListener('paste', (event) => {
  const [file] = event.clipboardData?.files ?? [];
  const text = event.clipboardData?.getData('text') ?? '';
  if (file) {
    event.preventDefault();
    take(file);
  } else if (!inText(event) && /^\s*<[\s\S]*<trace/.test(text)) {
    takeInk(text);
  }
});

let dragging = 0;
addEventListener('dragenter', () => byId('paper').classList.toggle('dropping', ++dragging > 0));
addEventListener('dragleave', () => byId('paper').classList.toggle('dropping', --dragging > 0));
addEventListener('dragover', (event) => event.preventDefault());
addEventListener('drop', (event) => {
  event.preventDefault();
  dragging = 0;
  byId('paper').classList.remove('dropping');
  const [file] = event.dataTransfer?.files ?? [];
  if (file) {
    take(file);
  }
});
