// Takes the formula and the ink away: copies and files.

import { byId, state, SVG } from './state.js';
import { pathOf } from './strokes.js';

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Without a secure context, as on a phone in the same network, there is only the old way.
    const area = document.createElement('textarea');
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
  }
}

export const copied = {
  latex: () => byId('latex').value.trim(),
  dollars: () => `$${byId('latex').value.trim()}$`,
  mathml: () => state.mathml.replace(/ data-token="\d+"/g, ''),
};

document.querySelectorAll('[data-copy]').forEach((button) => {
  const label = button.textContent;
  button.addEventListener('click', async () => {
    await copy(copied[button.dataset.copy]());
    button.textContent = 'Copied';
    byId('status').textContent = 'Copied.';
    setTimeout(() => {
      button.textContent = label;
    }, 1200);
  });
});

const escaped = (text) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);

function save(name, type, text) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

byId('save-inkml').addEventListener('click', () => {
  const traces = state.strokes.map((stroke, id) => `<trace id="${id}">${stroke.map((point) => point.join(' ')).join(', ')}</trace>`);
  const truth = byId('latex').value.trim();
  const annotation = truth ? `<annotation type="truth">${escaped(truth)}</annotation>\n` : '';
  const channels = '<traceFormat>\n  <channel name="X" type="decimal"/>\n  <channel name="Y" type="decimal"/>\n</traceFormat>';
  save('formula.inkml', 'application/inkml+xml',
    `<ink xmlns="http://www.w3.org/2003/InkML">\n${channels}\n${annotation}${traces.join('\n')}\n</ink>\n`);
});

byId('save-svg').addEventListener('click', () => {
  const points = state.strokes.flat();
  const [left, top] = [0, 1].map((axis) => Math.min(...points.map((point) => point[axis])) - 8);
  const [right, bottom] = [0, 1].map((axis) => Math.max(...points.map((point) => point[axis])) + 8);
  const paths = state.strokes.map((stroke) => `<path d="${pathOf(stroke)}"/>`).join('\n');
  save('formula.svg', 'image/svg+xml',
    `<svg xmlns="${SVG}" viewBox="${left} ${top} ${right - left} ${bottom - top}" fill="none" stroke="black" stroke-width="3.4" ` +
    `stroke-linecap="round" stroke-linejoin="round">\n${paths}\n</svg>\n`);
});
