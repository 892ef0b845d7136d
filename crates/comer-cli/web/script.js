// The page: strokes in, formula out. One state, one way to draw it.

const byId = (id) => document.getElementById(id);
const svg = byId('ink');
const SVG = 'http://www.w3.org/2000/svg';
/** Milliseconds after the pen lifts until the formula is read. */
const PAUSE = 350;
/** How near the eraser must come to a stroke, in pixels. */
const REACH = 9;
const MOST_EARLIER = 40;
/** Tokens without ink of their own. */
const INKLESS = new Set(['{', '}', '^', '_', '\\limits']);

const state = {
  strokes: [], // each a list of [x, y]
  past: [], // lists of strokes to go back to
  future: [],
  tool: 'pen',
  picture: null, // a file that is shown instead of strokes
  answer: null, // what the server said last
  chosen: null, // the formula of it that is shown: {latex, tokens, mathml}
  mathml: '', // what is shown now
  sheet: Date.now(), // which entry of the history this surface is
};

// --- Strokes ------------------------------------------------------------------------------------------------------

let drawing = null; // the stroke under the pen: {id, type, points, path, before}
let penSeen = false;

const rounded = (value) => Math.round(value * 10) / 10;

function pathOf(points) {
  if (points.length === 1) {
    return `M${points[0].join(' ')}l0.01 0`;
  }
  // Through the middles of the pieces, so that the line is round where the pen was quick.
  let text = `M${points[0].join(' ')}`;
  for (let i = 1; i + 1 < points.length; i++) {
    const [x, y] = points[i];
    const [nextX, nextY] = points[i + 1];
    text += `Q${x} ${y} ${rounded((x + nextX) / 2)} ${rounded((y + nextY) / 2)}`;
  }
  return `${text}L${points[points.length - 1].join(' ')}`;
}

function newPath(points) {
  const path = document.createElementNS(SVG, 'path');
  path.setAttribute('d', pathOf(points));
  return path;
}

function redraw() {
  svg.replaceChildren(...state.strokes.map(newPath));
  svg.classList.remove('lit');
  const count = state.strokes.length;
  svg.setAttribute('aria-label', count ? `Writing surface with ${count} strokes` : 'Empty writing surface');
  svg.toggleAttribute('hidden', Boolean(state.picture));
  byId('picture').hidden = !state.picture;
  byId('hint').hidden = count > 0 || Boolean(state.picture) || Boolean(drawing);
  byId('undo').disabled = !state.past.length;
  byId('redo').disabled = !state.future.length;
  byId('clear').disabled = !count && !state.picture;
  byId('save-inkml').disabled = byId('save-svg').disabled = !count;
}

/** Puts other strokes in place of the present ones, and remembers these. */
function change(strokes) {
  state.past.push(state.strokes);
  state.future = [];
  state.strokes = strokes;
  redraw();
  readSoon();
}

function step(from, to) {
  if (!from.length) {
    return;
  }
  to.push(state.strokes);
  state.strokes = from.pop();
  closePicture();
  redraw();
  readSoon(0);
}

const undo = () => step(state.past, state.future);
const redo = () => step(state.future, state.past);

function clear() {
  if (!state.strokes.length && !state.picture) {
    return;
  }
  closePicture();
  state.sheet = Date.now();
  change([]);
}

function place(event) {
  const box = svg.getBoundingClientRect();
  return [rounded(event.clientX - box.left), rounded(event.clientY - box.top)];
}

function erasing(event) {
  return state.tool === 'eraser' || (event.buttons & 32) !== 0;
}

function distance([x, y], [fromX, fromY], [toX, toY]) {
  const [width, height] = [toX - fromX, toY - fromY];
  const length = width * width + height * height;
  const share = length ? Math.max(0, Math.min(1, ((x - fromX) * width + (y - fromY) * height) / length)) : 0;
  return Math.hypot(x - fromX - share * width, y - fromY - share * height);
}

const touches = (stroke, point) =>
  stroke.some((to, index) => distance(point, stroke[Math.max(0, index - 1)], to) < REACH);

/** Erases what lies on the way from one point to the next. */
function erase(from, to) {
  const steps = Math.ceil(Math.hypot(to[0] - from[0], to[1] - from[1]) / REACH);
  const way = Array.from({ length: steps + 1 }, (_, step) => from.map((start, axis) => start + (to[axis] - start) * step / (steps || 1)));
  const kept = state.strokes.filter((stroke) => !way.some((point) => touches(stroke, point)));
  if (kept.length < state.strokes.length) {
    state.strokes = kept;
    redraw();
  }
}

svg.addEventListener('pointerdown', (event) => {
  if (event.pointerType === 'pen') {
    penSeen = true;
  }
  // Whoever writes with a pen rests a hand on the surface.
  const palm = event.pointerType === 'touch' && penSeen;
  if (drawing || palm || !event.isPrimary || (event.button !== 0 && event.button !== 5)) {
    return;
  }
  event.preventDefault();
  svg.setPointerCapture(event.pointerId);
  stopReading();
  const point = place(event);
  drawing = { id: event.pointerId, erases: erasing(event), points: [point], before: state.strokes };
  byId('hint').hidden = true;
  if (drawing.erases) {
    erase(point, point);
  } else {
    drawing.path = newPath(drawing.points);
    svg.append(drawing.path);
  }
});

svg.addEventListener('pointermove', (event) => {
  if (!drawing || event.pointerId !== drawing.id) {
    return;
  }
  const events = event.getCoalescedEvents?.() ?? [];
  for (const part of events.length ? events : [event]) {
    const point = place(part);
    const last = drawing.points[drawing.points.length - 1];
    if (point[0] !== last[0] || point[1] !== last[1]) {
      drawing.points.push(point);
      if (drawing.erases) {
        erase(last, point);
      }
    }
  }
  drawing.path?.setAttribute('d', pathOf(drawing.points));
});

function lift(event) {
  if (!drawing || event.pointerId !== drawing.id) {
    return;
  }
  const { points, before, erases } = drawing;
  drawing = null;
  if (event.type === 'pointercancel') {
    state.strokes = before;
    redraw();
    return;
  }
  const after = erases ? state.strokes : scribbled(before, points) ?? [...before, points];
  if (after.length === before.length) {
    redraw();
    readSoon();
    return;
  }
  state.strokes = before;
  change(after);
}
svg.addEventListener('pointerup', lift);
svg.addEventListener('pointercancel', lift);

/** How often values go back by a good part of their range. */
function turns(values, range) {
  let [count, direction, extreme] = [0, 0, values[0]];
  for (const value of values) {
    const moved = value - extreme;
    if (range > 16 && Math.abs(moved) > range * 0.3 && Math.sign(moved) !== direction) {
      count += direction === 0 ? 0 : 1;
      direction = Math.sign(moved);
    }
    if (direction === 0 ? Math.abs(moved) > range * 0.3 : Math.sign(moved) === direction) {
      extreme = value;
    }
  }
  return count;
}

/** What is left after a scribble; null if the stroke is none: it turns back often, and covers what was there. */
function scribbled(strokes, points) {
  const xs = points.map(([x]) => x);
  const ys = points.map(([, y]) => y);
  const box = [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)];
  if (Math.max(turns(xs, box[2] - box[0]), turns(ys, box[3] - box[1])) < 5) {
    return null;
  }
  const inside = ([x, y]) => x >= box[0] - 4 && x <= box[2] + 4 && y >= box[1] - 4 && y <= box[3] + 4;
  const covered = (stroke) => stroke.filter(inside).length >= stroke.length * 0.6;
  const left = strokes.filter((stroke) => !covered(stroke));
  return left.length < strokes.length ? left : null;
}

// --- Reading ------------------------------------------------------------------------------------------------------

let timer = 0;
let request = null;

function stopReading() {
  clearTimeout(timer);
  request?.abort();
  request = null;
}

function readSoon(pause = PAUSE) {
  stopReading();
  if (!state.strokes.length) {
    show(null);
    return;
  }
  timer = setTimeout(() => read(JSON.stringify({ strokes: state.strokes }), 'application/json'), pause);
}

async function problem(response) {
  const text = await response.text();
  try {
    return JSON.parse(text).detail ?? text;
  } catch {
    return text || `The server answered ${response.status}.`;
  }
}

async function read(body, type) {
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

function fail(text) {
  show(null);
  byId('status').textContent = text;
}

// --- The formula --------------------------------------------------------------------------------------------------

/** LaTeX as people write it: spaces only where they tell something apart. */
function tidy(latex) {
  const tokens = latex.split(' ').filter(Boolean);
  const spaced = new Set(['=', '+', '-', '<', '>', '\\leq', '\\geq', '\\neq', '\\pm', '\\times', '\\div', '\\rightarrow', '\\in']);
  let text = '';
  tokens.forEach((token, index) => {
    const before = tokens[index - 1];
    const binary = spaced.has(token) && before !== undefined && !'{(['.includes(before) && !spaced.has(before);
    const afterBinary = text.endsWith(' ');
    if (binary && !afterBinary) {
      text += ' ';
    } else if (/^[A-Za-z]/.test(token) && /\\[A-Za-z]+$/.test(text)) {
      text += ' ';
    }
    text += token;
    if (binary) {
      text += ' ';
    } else if (token === ',') {
      text += ' ';
    }
  });
  return text.trim();
}

/** A `<math>` element of our server's text. */
function mathOf(text) {
  const math = new DOMParser().parseFromString(text, 'text/html').querySelector('math');
  return math ? document.importNode(math, true) : document.createElement('span');
}

const sureness = (confidence) => (confidence < 0.5 ? 'wrong' : confidence < 0.85 ? 'unsure' : '');

function percent(share) {
  const whole = Math.round(share * 100);
  return whole < 1 ? 'under 1 %' : whole > 99 ? 'over 99 %' : `${whole} %`;
}

/** Shows an answer, or none. */
function show(answer) {
  state.answer = answer;
  const formula = answer && { ...answer, strokes: answer.alignment?.strokes };
  byId('status').textContent = '';
  showFormula(formula);
  showAlternatives();
  if (answer) {
    remember();
  }
}

function showFormula(formula) {
  state.chosen = formula;
  const latex = formula ? tidy(formula.latex) : '';
  byId('latex').value = latex;
  byId('error').textContent = '';
  showMath(formula?.mathml ?? '', latex);
  showTokens();
  if (formula) {
    const sure = `${percent(formula.confidence)} sure`;
    const time = formula.milliseconds === undefined ? '' : `, read in ${Math.round(formula.milliseconds)} ms`;
    byId('status').textContent = `${sure}${time}`;
    const spoken = document.createElement('span');
    spoken.className = 'unseen';
    spoken.textContent = `The formula is ${latex}. `;
    byId('status').prepend(spoken);
  }
}

function showMath(mathml, latex) {
  state.mathml = mathml;
  const place = byId('formula');
  if (mathml) {
    place.replaceChildren(mathOf(mathml));
    place.dataset.state = 'shown';
  } else {
    const empty = document.createElement('p');
    empty.className = 'empty';
    empty.textContent = 'Your formula appears here.';
    place.replaceChildren(empty);
    place.dataset.state = 'empty';
  }
  place.classList.toggle('long', latex.length > 40);
  place.classList.toggle('longer', latex.length > 90);
  document.querySelectorAll('[data-copy]').forEach((button) => {
    button.disabled = !latex;
  });
}

function showTokens() {
  const list = byId('tokens');
  const tokens = state.chosen?.tokens ?? [];
  list.replaceChildren();
  tokens.forEach(({ token, confidence }, index) => {
    const element = byId('formula').querySelector(`[data-token="${index}"]`);
    const kind = sureness(confidence);
    if (kind) {
      element?.classList.add(kind);
    }
    if (INKLESS.has(token)) {
      return;
    }
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = token;
    button.className = kind;
    button.dataset.token = index;
    button.title = `${percent(confidence)} sure`;
    button.setAttribute('aria-label', `${token}, ${percent(confidence)} sure`);
    list.append(button);
  });
  list.hidden = !list.childElementCount;
}

/** Lights a symbol and the strokes that it was read from. */
function light(index) {
  document.querySelectorAll('.lit').forEach((element) => element.classList.remove('lit'));
  if (index === null) {
    return;
  }
  document.querySelectorAll(`[data-token="${index}"]`).forEach((element) => element.classList.add('lit'));
  const shares = state.chosen?.strokes?.[index];
  if (!shares || state.picture || shares.length !== svg.childElementCount) {
    return;
  }
  const most = Math.max(...shares);
  svg.classList.add('lit');
  shares.forEach((share, stroke) => svg.children[stroke].classList.toggle('lit', share >= 0.45 * most));
}

for (const id of ['formula', 'tokens']) {
  const index = (event) => event.target.closest?.('[data-token]')?.dataset.token ?? null;
  byId(id).addEventListener('pointerover', (event) => light(index(event)));
  byId(id).addEventListener('focusin', (event) => light(index(event)));
  byId(id).addEventListener('pointerleave', () => light(null));
  byId(id).addEventListener('focusout', () => light(null));
}

// A stroke lights its symbol: the one that looked at it most.
svg.addEventListener('pointerover', (event) => {
  const shares = state.chosen?.strokes;
  const stroke = Array.prototype.indexOf.call(svg.children, event.target);
  if (drawing || !shares?.length || stroke < 0 || event.pointerType !== 'mouse') {
    return;
  }
  const inked = state.chosen.tokens.map(({ token }, index) => (INKLESS.has(token) ? -1 : shares[index][stroke]));
  light(inked.indexOf(Math.max(...inked)));
});
svg.addEventListener('pointerout', () => light(null));

function showAlternatives() {
  const formulas = state.answer ? [state.answer, ...state.answer.alternatives] : [];
  byId('alternatives').hidden = formulas.length < 2;
  byId('choices').replaceChildren(...formulas.map((formula, index) => {
    const item = document.createElement('li');
    const button = choice(formula, percent(formula.confidence));
    button.setAttribute('aria-pressed', index === 0);
    button.addEventListener('click', () => {
      const strokes = index === 0 ? state.answer.alignment?.strokes : undefined;
      showFormula({ ...formula, strokes });
      byId('choices').querySelectorAll('button').forEach((other) => other.setAttribute('aria-pressed', other === button));
      remember();
    });
    item.append(button);
    return item;
  }));
}

/** A button with a formula on it. */
function choice(formula, note) {
  const button = document.createElement('button');
  const [shown, said] = [document.createElement('span'), document.createElement('span')];
  button.type = 'button';
  shown.append(formula.mathml ? mathOf(formula.mathml) : tidy(formula.latex));
  said.className = 'share';
  said.textContent = note;
  button.append(shown, said);
  button.setAttribute('aria-label', `${tidy(formula.latex)}, ${note}`);
  return button;
}

let renderTimer = 0;
let rendering = 0;

byId('latex').addEventListener('input', () => {
  clearTimeout(renderTimer);
  stopReading();
  renderTimer = setTimeout(render, 120);
});

/** Shows the LaTeX of the box. */
async function render() {
  const latex = byId('latex').value.trim();
  const own = ++rendering;
  state.chosen = null;
  showTokens();
  if (!latex) {
    byId('error').textContent = '';
    showMath('', '');
    return;
  }
  try {
    const response = await fetch('api/mathml', { method: 'POST', body: latex, headers: { 'content-type': 'text/plain' } });
    const answer = response.ok ? await response.json() : { problem: await problem(response) };
    if (own !== rendering) {
      return;
    }
    byId('error').textContent = answer.problem ?? '';
    if (answer.mathml) {
      showMath(answer.mathml, latex);
      byId('status').textContent = '';
    }
  } catch {
    byId('error').textContent = 'The server cannot be reached.';
  }
}

// --- Taking away --------------------------------------------------------------------------------------------------

async function copy(text) {
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

const copied = {
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

// --- Pictures and ink from elsewhere ------------------------------------------------------------------------------

function closePicture() {
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

// --- Earlier formulas ---------------------------------------------------------------------------------------------

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
function remember() {
  const { sheet, chosen, strokes } = state;
  if (!chosen) {
    return;
  }
  const entry = { sheet, latex: chosen.latex, mathml: chosen.mathml, strokes };
  keep([entry, ...earlier().filter((other) => other.sheet !== sheet)]);
}

function showEarlier() {
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

// --- Tools, keys, theme -------------------------------------------------------------------------------------------

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

const inText = (event) => event.target.closest?.('textarea, input') !== null && event.target.closest?.('textarea, input') !== undefined;

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
    '?': plain && (() => byId('help').showModal()),
  }[key] || (plain && /^[1-5]$/.test(key) && (() => byId('choices').querySelectorAll('button')[Number(key) - 1]?.click()));
  if (act) {
    event.preventDefault();
    act();
  }
});

const dark = matchMedia('(prefers-color-scheme: dark)');

function storedTheme() {
  try {
    return localStorage.getItem('comer.theme');
  } catch {
    return null;
  }
}

function showTheme(theme) {
  document.documentElement.dataset.theme = theme ?? (dark.matches ? 'dark' : 'light');
}

dark.addEventListener('change', () => showTheme(storedTheme()));
byId('theme').addEventListener('click', () => {
  const theme = document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark';
  try {
    localStorage.setItem('comer.theme', theme);
  } catch {
    // It is forgotten with the page, then.
  }
  showTheme(theme);
});

showTheme(storedTheme());
showEarlier();
redraw();
