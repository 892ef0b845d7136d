// The formula: shown, explained by its strokes, exchanged for an alternative, edited.

import { remember } from './earlier.js';
import { problem, stopReading } from './reading.js';
import { byId, state, svg } from './state.js';
import { drawing } from './strokes.js';

/** Tokens without ink of their own. */
const INKLESS = new Set(['{', '}', '^', '_', '\\limits']);

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
export function show(answer) {
  state.answer = answer;
  const formula = answer && { ...answer, strokes: answer.alignment?.strokes };
  byId('status').textContent = '';
  showFormula(formula);
  showAlternatives();
  if (answer) {
    remember();
  }
}

export function showFormula(formula) {
  state.chosen = formula;
  const latex = formula?.latex ?? '';
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
  byId('explain').disabled = !state.answer;
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

export function showAlternatives() {
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
export function choice(formula, note) {
  const button = document.createElement('button');
  const [shown, said] = [document.createElement('span'), document.createElement('span')];
  button.type = 'button';
  shown.append(formula.mathml ? mathOf(formula.mathml) : formula.latex);
  said.className = 'share';
  said.textContent = note;
  button.append(shown, said);
  button.setAttribute('aria-label', `${formula.latex}, ${note}`);
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
