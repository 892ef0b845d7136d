// The page: tools, keys and theme; the rest is in the parts that it imports.

import { copied, copy } from './away.js';
import { showEarlier } from './earlier.js';
import { explain } from './explain.js';
import { byId, inText, state, svg } from './state.js';
import { clear, redo, redraw, undo } from './strokes.js';

function choose(tool) {
  state.tool = tool;
  svg.classList.toggle('erasing', tool === 'eraser');
  for (const id of ['pen', 'eraser']) {
    byId(id).setAttribute('aria-pressed', id === tool);
  }
}

byId('pen').addEventListener('click', () => choose('pen'));
byId('eraser').addEventListener('click', () => choose('eraser'));
byId('undo').addEventListener('click', undo);
byId('redo').addEventListener('click', redo);
byId('clear').addEventListener('click', clear);
byId('help-open').addEventListener('click', () => byId('help').showModal());

addEventListener('keydown', (event) => {
  if (inText(event) || byId('help').open) {
    return;
  }
  const key = event.key.toLowerCase();
  const command = event.ctrlKey || event.metaKey;
  const plain = !command && !event.altKey;
  const act = {
    z: command && (event.shiftKey ? redo : undo),
    y: command && redo,
    c: command && getSelection().isCollapsed && byId('latex').value && (() => copy(copied.latex())),
    delete: plain && clear,
    backspace: plain && clear,
    p: plain && (() => choose('pen')),
    e: plain && (() => choose('eraser')),
    o: plain && (() => byId('file').click()),
    x: plain && explain,
    '?': plain && (() => byId('help').showModal()),
  }[key] || (plain && /^[1-5]$/.test(key) && (() => byId('choices').querySelectorAll('button')[Number(key) - 1]?.click()));
  if (act) {
    event.preventDefault();
    act();
  }
});

const root = document.documentElement;

function showTheme(theme) {
  root.dataset.theme = theme;
}

matchMedia('(prefers-color-scheme: dark)').addEventListener('change', (event) => showTheme(event.matches ? 'dark' : 'light'));
byId('theme').addEventListener('click', () => {
  const theme = root.dataset.theme === 'dark' ? 'light' : 'dark';
  try {
    localStorage.setItem('comer.theme', theme);
  } catch {
    // It is forgotten with the page, then.
  }
  showTheme(theme);
});

showEarlier();
redraw();
// For those who drive the page: from here on it listens.
root.dataset.ready = 'true';
