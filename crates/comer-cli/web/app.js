// The page around <comer-ink>: pictures, history, saving, theme, keys, and offline use.

import './comer-ink.js';
import { saveFile } from './export.js';
import { startHistory } from './history.js';
import { toInkml, toSvg } from './ink.js';
import { startPictures } from './pictures.js';
import { handleInkKey, inText } from './shortcuts.js';

const byId = (id) => document.getElementById(id);
const ink = byId('comer');
const root = document.documentElement;

byId('save-inkml').addEventListener('click', () => saveFile('formula.inkml', 'application/inkml+xml', toInkml(ink.strokes, ink.latex)));
byId('save-svg').addEventListener('click', () => saveFile('formula.svg', 'image/svg+xml', toSvg(ink.strokes)));
byId('explain').addEventListener('click', () => ink.explain());

function enable() {
  byId('save-inkml').disabled = byId('save-svg').disabled = !ink.strokes.length;
  byId('explain').disabled = !ink.canExplain;
}
ink.addEventListener('change', enable);
ink.addEventListener('result', enable);

const more = byId('more');
addEventListener('click', (event) => {
  if (more.open && !event.target.closest('#more > summary')) {
    more.open = false;
  }
});

ink.engine.info().then(({ local }) => {
  if (local) {
    byId('privacy').textContent = 'What you write is recognised in this browser and sent to nobody. The history is kept in this browser.';
  }
}, () => {}); // A server that does not answer is reported by the first reading.

byId('help-open').addEventListener('click', () => byId('help').showModal());

addEventListener('keydown', (event) => {
  if (byId('help').open) {
    return;
  }
  const plain = !event.ctrlKey && !event.metaKey && !event.altKey && !inText(event);
  if (event.key === 'Escape') {
    more.open = false;
  } else if (plain && event.key === '?') {
    byId('help').showModal();
  } else if (plain && event.key.toLowerCase() === 'o') {
    byId('file').click();
  } else {
    handleInkKey(ink, event);
  }
});

matchMedia('(prefers-color-scheme: dark)').addEventListener('change', (event) => {
  root.dataset.theme = event.matches ? 'dark' : 'light';
});
byId('theme').addEventListener('click', () => {
  root.dataset.theme = root.dataset.theme === 'dark' ? 'light' : 'dark';
  try {
    localStorage.setItem('comer.theme', root.dataset.theme);
  } catch {
    // Without storage the choice lasts as long as the page.
  }
});

startPictures(ink);
await startHistory(ink);
enable();
navigator.serviceWorker?.register('service-worker.js').catch(() => {
  // Without it the page works as long as its server does.
});
// For programs that drive the page: it is complete.
root.dataset.ready = 'true';
