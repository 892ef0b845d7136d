// The history: every formula with its ink or picture; searched, opened, exported, deleted. Also restores an unfinished sheet.

import { saveFile } from './export.js';
import { namedMath } from './formula-view.js';
import { HistoryStore, loadSession, saveSession } from './history-store.js';
import { bounds, pathData } from './ink.js';
import { decode, isSmall, toBlob, WHOLE } from './picture-warp.js';
import { showToast } from './toast.js';

const FORMAT = 'comer-history';
const byId = (id) => document.getElementById(id);
const store = new HistoryStore();
let ink;

/** Keeps what the surface shows: one entry for each sheet, also of an edit that is no formula yet. */
async function keep() {
  const { sheet, strokes, picture, part, latex, mathml, reading, edit } = ink.snapshot;
  if (latex && (reading || edit)) {
    const read = reading?.formulas[0].latex ?? store.get(sheet)?.read ?? null;
    await store.put({ sheet, time: Date.now(), latex, mathml, read, edited: latex !== read, strokes, part, ...await pictureFields(picture) });
    if (mathml) {
      show();
    }
  } else if (picture && !store.get(sheet)) {
    await store.put({ sheet, time: Date.now(), latex: '', strokes, ...await pictureFields(picture) });
  }
}

/** The whole picture, and what was cropped from it. */
async function pictureFields(picture) {
  if (!picture) {
    return {};
  }
  const { name, source, file, crop, thumbnail } = picture;
  picture.whole ??= source && !isSmall(picture) ? toBlob(source) : file;
  return { picture: await picture.whole, name, crop, thumbnail };
}

function keepSession() {
  const { sheet, strokes, picture, part, edit, reading, shown, latex } = ink.snapshot;
  // An alternative that was chosen is kept as an edit of the first formula.
  const chosen = shown > 0 ? { text: latex, base: reading.formulas[0].latex } : null;
  saveSession({ sheet, strokes, picture: Boolean(picture), part, edit: edit ? { text: edit.text, base: edit.base } : chosen });
}

async function pictureOf(entry) {
  if (!entry?.picture) {
    return null;
  }
  const { name = 'picture', picture: file, crop = WHOLE, thumbnail, sheet } = entry;
  const { canvas: source, shrunk } = await decode(file).catch(() => ({ canvas: null, shrunk: false }));
  return { name, source, file, shrunk, crop, sheet, thumbnail };
}

async function open(entry) {
  const picture = await pictureOf(entry);
  const edited = entry.edited || (!entry.strokes.length && !picture);
  const edit = edited ? { text: entry.latex, base: entry.read ?? '', mathml: entry.mathml } : null;
  ink.restore({ sheet: entry.sheet, strokes: entry.strokes, picture, part: entry.part, edit });
}

/** Opens what the history has of a sheet; false if there is nothing. */
export function openSheet(sheet) {
  const entry = store.get(sheet);
  if (entry?.latex) {
    open(entry);
  }
  return Boolean(entry?.latex);
}

/** A drawing as a small SVG image. */
function drawing(strokes) {
  const box = bounds(strokes);
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  const [width, height] = [box.right - box.left, box.bottom - box.top];
  const pen = Math.max(width / 60, height / 34, 1.5);
  svg.setAttribute('viewBox', `${box.left - pen} ${box.top - pen} ${width + 2 * pen} ${height + 2 * pen}`);
  svg.setAttribute('aria-hidden', 'true');
  svg.setAttribute('stroke-width', pen);
  for (const stroke of strokes) {
    const path = document.createElementNS(svg.namespaceURI, 'path');
    path.setAttribute('d', pathData(stroke));
    svg.append(path);
  }
  return svg;
}

function item(entry) {
  const [row, button, source, formula, note] = ['li', 'button', 'span', 'span', 'span'].map((name) => document.createElement(name));
  button.type = 'button';
  button.className = 'entry';
  source.className = 'source';
  if (entry.thumbnail) {
    const image = document.createElement('img');
    Object.assign(image, { src: entry.thumbnail, alt: '' });
    source.append(image);
  } else if (entry.strokes.length) {
    source.append(drawing(entry.strokes));
  }
  formula.className = 'entry-formula';
  formula.append(...namedMath(entry, ''));
  note.className = 'note';
  const time = new Date(entry.time);
  const today = time.toDateString() === new Date().toDateString();
  const when = today ? time.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' }) : time.toLocaleDateString();
  note.textContent = entry.edited ? `edited ${when}` : when;
  button.append(source, formula, note);
  button.addEventListener('click', () => open(entry));
  const remove = document.createElement('button');
  remove.type = 'button';
  remove.className = 'quiet icon';
  remove.textContent = '×';
  remove.setAttribute('aria-label', `Delete ${entry.latex}`);
  remove.addEventListener('click', () => removeEntries([entry]));
  row.append(button, remove);
  return row;
}

async function removeEntries(entries) {
  for (const entry of entries) {
    await store.delete(entry.sheet);
  }
  show();
  showToast(entries.length === 1 ? 'Deleted from the history.' : `${entries.length} formulas deleted from the history.`, {
    label: 'Undo',
    run: async () => {
      for (const entry of entries) {
        await store.put(entry);
      }
      show();
    },
  });
}

function show() {
  const wanted = byId('history-search').value.replace(/\s/g, '').toLowerCase();
  const { entries } = store;
  const found = entries.filter(({ latex }) => latex.replace(/\s/g, '').toLowerCase().includes(wanted));
  byId('history').hidden = !entries.length;
  byId('history-list').replaceChildren(...found.map(item));
  if (!found.length) {
    const none = document.createElement('li');
    none.textContent = 'Nothing found.';
    byId('history-list').append(none);
  }
}

async function exportJson() {
  const toDataUrl = (blob) => new Promise((resolve) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.readAsDataURL(blob);
  });
  const entries = await Promise.all(store.entries.map(async (entry) => ({ ...entry, picture: entry.picture && await toDataUrl(entry.picture) })));
  saveFile('comer-history.json', 'application/json', JSON.stringify({ format: FORMAT, version: 1, entries }, null, 1));
}

function exportTex() {
  const formulas = store.entries.map((entry) => `% ${new Date(entry.time).toISOString()}${entry.edited ? ', edited' : ''}\n\\[ ${entry.latex} \\]\n`);
  const text = `\\documentclass{article}\n\\usepackage{amsmath, amssymb}\n\\begin{document}\n\n${formulas.join('\n')}\n\\end{document}\n`;
  saveFile('comer-history.tex', 'application/x-tex', text);
}

function blobOf(dataUrl) {
  const [head, data] = dataUrl.split(',');
  return new Blob([Uint8Array.from(atob(data), (byte) => byte.charCodeAt(0))], { type: /^data:([^;]*)/.exec(head)?.[1] ?? '' });
}

/** Adds the entries of an exported history; false if the text is none. */
export async function importHistory(text) {
  let file = null;
  try {
    file = JSON.parse(text);
  } catch {
    return false;
  }
  if (file?.format !== FORMAT || !Array.isArray(file.entries)) {
    return false;
  }
  const valid = file.entries.filter(({ sheet, latex, strokes }) => sheet && latex && Array.isArray(strokes));
  for (const entry of valid) {
    await store.put({ ...entry, picture: entry.picture && blobOf(entry.picture) });
  }
  show();
  showToast(`${valid.length} formulas added to the history.`);
  return true;
}

export async function startHistory(element) {
  ink = element;
  await store.open();
  const session = loadSession();
  if (session && (session.strokes.length || session.picture || session.edit)) {
    const picture = session.picture ? await pictureOf(store.get(session.sheet)) : null;
    ink.restore({ ...session, picture });
  }
  ink.addEventListener('change', keepSession);
  ink.addEventListener('change', keep);
  byId('history').addEventListener('toggle', show);
  byId('history-search').addEventListener('input', show);
  byId('history-json').addEventListener('click', exportJson);
  byId('history-tex').addEventListener('click', exportTex);
  byId('history-clear').addEventListener('click', () => removeEntries(store.entries));
  show();
}
