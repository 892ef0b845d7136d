// Pictures and ink from files: chosen, photographed, pasted, dropped. Several pictures become a list.

import { importHistory, openSheet } from './history.js';
import { parseInk } from './ink.js';
import { decode, thumbnail, toBlob } from './picture-warp.js';
import { inText } from './shortcuts.js';
import { showToast } from './toast.js';

const byId = (id) => document.getElementById(id);

/** Formats that the server reads and not every browser shows. */
const SERVER_FORMATS = /\.(tiff?|bmp|gif|webp)$/i;
const LARGEST_UPLOAD = 16 << 20;

let ink;
/** Pictures of the list: {name, source, file, shrunk, sheet, thumbnail, latex}. */
let list = [];

/** Whether a file starts as a picture of some known format does. */
async function isTiff(file) {
  const head = new Uint8Array(await file.slice(0, 4).arrayBuffer());
  return ['73,73,42,0', '77,77,0,42'].includes(head.join(','));
}

/** A file as a picture; null after a message if it is none. */
async function openPicture(file, sheet) {
  try {
    const { canvas, shrunk } = await decode(file);
    return { name: file.name, source: canvas, file, shrunk, sheet, thumbnail: thumbnail(canvas) };
  } catch {
    if (SERVER_FORMATS.test(file.name) && file.size <= LARGEST_UPLOAD && await isTiff(file)) {
      return { name: file.name, source: null, file, shrunk: false, sheet, thumbnail: '' };
    }
    return null;
  }
}

async function openInk(file) {
  const text = await file.text();
  if (await importHistory(text)) {
    return true;
  }
  const strokes = parseInk(text);
  if (strokes) {
    ink.importStrokes(strokes);
  }
  return Boolean(strokes);
}

const isInk = (file) => /\.(inkml|json)$/i.test(file.name) || (/xml|json/.test(file.type) && !file.type.startsWith('image/'));

export async function openFiles(files) {
  const failed = [];
  const opened = [];
  let sheet = Date.now();
  for (const file of files) {
    if (isInk(file)) {
      if (!await openInk(file)) {
        failed.push(`${file.name || 'This file'} has no strokes that can be read.`);
      }
      continue;
    }
    const picture = await openPicture(file, sheet++);
    if (picture) {
      opened.push(picture);
    } else {
      failed.push(`${file.name || 'This file'} is not a picture that can be read.`);
    }
  }
  if (failed.length) {
    showToast(failed.join(' '));
  }
  if (opened.length) {
    list = opened.length > 1 ? opened : [];
    ink.openPicture(opened[0]);
    showList();
    readRest();
  }
}

/** Reads the other pictures of the list, one after the other, so that their formulas are there when they are looked at. */
async function readRest() {
  const pictures = list;
  for (const picture of pictures.slice(1)) {
    try {
      const file = picture.shrunk ? await toBlob(picture.source) : picture.file;
      const { formulas } = await ink.engine.recognizeImage(file, { nbest: 1 });
      picture.latex ??= formulas[0].latex;
    } catch (error) {
      picture.error = error.message;
    }
    if (list !== pictures) {
      return;
    }
    showList();
  }
}

/** The picture of the list that is on the surface, or one of its formulas. */
const shownPicture = () => list.find(({ sheet }) => sheet === ink.snapshot.picture?.sheet);

function showList() {
  const place = byId('pictures');
  const shown = shownPicture();
  place.hidden = list.length < 2 || !shown;
  const focused = [...place.children].indexOf(document.activeElement);
  place.replaceChildren(...list.map((picture) => {
    const button = document.createElement('button');
    button.type = 'button';
    button.setAttribute('aria-pressed', picture === shown);
    if (picture.thumbnail) {
      const image = document.createElement('img');
      Object.assign(image, { src: picture.thumbnail, alt: '' });
      button.append(image);
    }
    const text = document.createElement('span');
    text.textContent = picture.latex ?? picture.error ?? `${picture.name}…`;
    text.className = picture.error ? 'failed' : '';
    button.title = picture.name;
    button.append(text);
    button.addEventListener('click', () => {
      if (!openSheet(picture.sheet)) {
        ink.openPicture(picture);
      }
    });
    return button;
  }));
  place.children[focused]?.focus();
}

export function startPictures(element) {
  ink = element;
  ink.addEventListener('result', ({ detail }) => {
    const picture = shownPicture();
    if (picture) {
      picture.latex = detail.latex;
      showList();
    }
  });
  ink.addEventListener('change', () => {
    if (list.length) {
      showList();
    }
  });
  for (const id of ['file', 'photo']) {
    byId(id).addEventListener('change', () => {
      const files = [...byId(id).files];
      byId(id).value = '';
      openFiles(files);
    });
  }
  byId('open').addEventListener('click', () => byId('file').click());
  byId('camera').addEventListener('click', () => byId('photo').click());

  addEventListener('paste', (event) => {
    const files = [...(event.clipboardData?.files ?? [])];
    const text = event.clipboardData?.getData('text') ?? '';
    if (files.length) {
      event.preventDefault();
      openFiles(files);
    } else if (!inText(event) && /^\s*<[\s\S]*<trace/.test(text)) {
      openFiles([new File([text], 'pasted.inkml')]);
    }
  });

  let depth = 0;
  const mark = (dropping) => ink.toggleAttribute('dropping', dropping);
  addEventListener('dragenter', () => mark(++depth > 0));
  addEventListener('dragleave', () => mark(--depth > 0));
  addEventListener('dragover', (event) => event.preventDefault());
  addEventListener('drop', (event) => {
    event.preventDefault();
    depth = 0;
    mark(false);
    const files = [...(event.dataTransfer?.files ?? [])];
    if (files.length) {
      openFiles(files);
    } else {
      showToast('Nothing to read was dropped: expected a picture, InkML or JSON file.');
    }
  });
}
