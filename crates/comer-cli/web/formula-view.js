// The formula as MathML: shrunk or wrapped to fit, doubtful symbols marked, spoken to screen readers.

import { say } from './speech.js';

const LARGEST = 38;
const SMALLEST = 17;

/** What tables of MathML are laid out with. */
const LAYOUT = /^(text-align|justify-items|padding-left|padding-right|width)$/;

/** Sets the layout of table cells from their attribute, which the page's policy does not let a document have. */
function layOut(math) {
  for (const cell of math.querySelectorAll('[data-style]')) {
    for (const [name, value = ''] of cell.dataset.style.split(';').map((part) => part.split(':').map((word) => word.trim()))) {
      if (LAYOUT.test(name)) {
        cell.style.setProperty(name, value);
      }
    }
    cell.removeAttribute('data-style');
  }
  return math;
}

/** A `<math>` element from text. An imported history is foreign text: nothing but MathML without links and handlers is left. */
export function mathElement(text) {
  const math = new DOMParser().parseFromString(text.replace(/ style="/g, ' data-style="'), 'text/html').querySelector('math');
  if (!math) {
    return document.createElement('span');
  }
  for (const element of [math, ...math.querySelectorAll('*')]) {
    if (element.namespaceURI !== math.namespaceURI) {
      element.remove();
    }
    for (const { name } of [...element.attributes]) {
      if (/^on|href|^src|^style$/i.test(name)) {
        element.removeAttribute(name);
      }
    }
  }
  return layOut(document.importNode(math, true));
}

export const spoken = (mathml) => say(mathElement(mathml)).replace(/\s+/g, ' ').trim();

/** A formula for a button: MathML to see, words to hear. */
export function namedMath({ mathml, latex }, note) {
  if (!mathml) {
    return [latex];
  }
  const [math, words] = [mathElement(mathml), document.createElement('span')];
  math.setAttribute('aria-hidden', 'true');
  words.className = 'visually-hidden';
  words.textContent = spoken(mathml) + note;
  return [math, words];
}

/** MathML as others get it: without our own attributes, with its words. */
export function publicMathml(mathml) {
  const words = spoken(mathml).replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
  return mathml.replace(/ data-token="\d+"/g, '').replace('<math ', `<math alttext="${words}" `);
}

/** Cuts a formula into pieces that lines can break between: before each relation or sign of its outermost row. */
function pieces(math) {
  const row = math.children.length === 1 && math.firstElementChild.localName === 'mrow' ? math.firstElementChild : math;
  const groups = [[]];
  for (const child of row.children) {
    const breaks = child.localName === 'mo' && /^[=<>≤≥≠≈→∈+\-−±,]$/.test(child.textContent.trim());
    if (breaks && groups.at(-1).length) {
      groups.push([]);
    }
    groups.at(-1).push(child);
  }
  return groups.map((group) => {
    const piece = math.cloneNode(false);
    const holder = document.createElementNS(math.namespaceURI, 'mrow');
    // An empty first element keeps a leading sign an infix one, with its spaces.
    holder.append(document.createElementNS(math.namespaceURI, 'mrow'), ...group.map((child) => child.cloneNode(true)));
    piece.append(holder);
    return piece;
  });
}

export class FormulaView {
  #place;
  #mathml = '';

  constructor(place) {
    this.#place = place;
    new ResizeObserver(() => this.#fit()).observe(place);
  }

  /** Shows MathML; an empty text shows that there is nothing yet. */
  show(mathml, doubtful = []) {
    this.#mathml = mathml;
    if (!mathml) {
      const empty = document.createElement('p');
      empty.className = 'empty';
      empty.textContent = 'Your formula appears here.';
      this.#place.replaceChildren(empty);
      return;
    }
    const holder = document.createElement('div');
    holder.className = 'math';
    holder.setAttribute('role', 'img');
    holder.setAttribute('aria-label', spoken(mathml));
    holder.append(mathElement(mathml));
    this.#place.replaceChildren(holder);
    this.doubtful = doubtful;
    this.#mark();
    this.#fit();
  }

  #mark() {
    for (const { index, confidence } of this.doubtful) {
      for (const element of this.#place.querySelectorAll(`[data-token="${index}"]`)) {
        element.classList.add(confidence < 0.5 ? 'very-doubtful' : 'doubtful');
      }
    }
  }

  /** Shrinks the formula, then breaks it into lines; where the height is limited, shrinks it to that. */
  #fit() {
    const holder = this.#place.querySelector('.math');
    if (!holder) {
      return;
    }
    const style = getComputedStyle(this.#place);
    const largest = parseFloat(style.getPropertyValue('--formula-size')) || LARGEST;
    const available = this.#place.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    if (holder.classList.contains('lines')) {
      holder.replaceChildren(mathElement(this.#mathml));
      holder.classList.remove('lines');
      this.#mark();
    }
    let size = largest;
    const shrink = (share) => {
      size = Math.max(SMALLEST, Math.floor(size * share));
      holder.style.fontSize = `${size}px`;
    };
    shrink(1);
    shrink(Math.min(1, available / holder.scrollWidth));
    if (holder.scrollWidth > available + 1) {
      holder.classList.add('lines');
      holder.replaceChildren(...pieces(holder.firstElementChild));
      size = Math.min(22, largest);
      shrink(1);
    }
    shrink(Math.min(1, this.#place.clientHeight / this.#place.scrollHeight));
  }
}
