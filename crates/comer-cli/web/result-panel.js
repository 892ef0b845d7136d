// The result beside the surface: formula, status, doubtful symbols, LaTeX box, alternatives and copying.
//
// It shows a snapshot and reports what the user does: `typed` {text}, `choose` {formula}, `correct` {index, token, formula},
// `choose-formula` {formula}, `light` {token}, `retry`, `use-reading`, `keep-edit`.

import { copyText } from './export.js';
import { FormulaView, mathElement, namedMath, publicMathml, spoken } from './formula-view.js';
import { tokenize } from './latex.js';
import { doubtfulTokens, percent, sureness, tokenAlternatives } from './reading.js';

/** Warnings of the engine that nothing else on the page shows; and ink that was not read, if no stroke shows it. */
const SHOWN_WARNINGS = ['no_formula', 'too_small'];

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [attribute, value] of Object.entries(attributes)) {
    made.setAttribute(attribute, value);
  }
  return made;
}

export class ResultPanel extends EventTarget {
  #root;
  #formula;
  #view = null;
  #alternativesOf = null;
  #actions = '';

  constructor(root) {
    super();
    this.#root = root;
    this.#formula = new FormulaView(this.#id('formula'));
    this.#listen();
  }

  #id(name) {
    return this.#root.getElementById(name);
  }

  #send(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }

  get latex() {
    return this.#id('latex').value.trim();
  }

  get box() {
    return this.#id('latex');
  }

  /**
   * @param {object} view `latex`, `mathml` and whether it belongs to the LaTeX (`isCurrent`), `formula` (of the reading; null
   *   for an edit), `reading`, `shown`, `state` ('empty', 'stale', 'shown'), `busy`, `message`, `unread`, `edit`, `notice`,
   *   `error`, `conflict`, `typing`, `constraints`
   */
  show(view) {
    const before = this.#view;
    const focused = this.#root.activeElement;
    this.#view = view;
    if (this.box.value !== view.latex && !view.typing) {
      this.box.value = view.latex;
    }
    const formulaChanged = before?.mathml !== view.mathml || before?.formula !== view.formula;
    if (formulaChanged) {
      this.#closeMenu();
      this.#formula.show(view.mathml, view.formula ? doubtfulTokens(view.formula) : []);
      this.#showDoubts();
    }
    this.#id('formula').dataset.state = view.busy ? 'busy' : view.state;
    this.#showStatus();
    this.#showConflict();
    this.#showError();
    for (const button of this.#root.querySelectorAll('[data-copy]')) {
      button.disabled = !view.latex || (button.dataset.copy === 'mathml' && (!view.mathml || !view.isCurrent));
    }
    this.#root.querySelector('[data-copy="aligned"]').hidden = !view.reading?.aligned;
    if (before?.reading !== view.reading) {
      this.#showAlternatives();
    }
    this.#id('choices').querySelectorAll('button').forEach((button, index) => button.setAttribute('aria-pressed', index === view.shown && !view.edit));
    if (focused && !focused.checkVisibility()) {
      this.#id('formula').focus({ preventScroll: true }); // What had the focus is gone.
    }
  }

  #showStatus() {
    const { state, message, formula, notice, edit, unread, reading, mathml, conflict } = this.#view;
    const [line, actions] = [this.#id('status'), this.#id('status-actions')];
    const parts = [];
    const buttons = [];
    const button = (label, event, detail, attributes = {}) => {
      const made = element('button', label, { type: 'button', class: 'small', ...attributes });
      made.addEventListener('click', () => this.#send(event, detail));
      buttons.push(made);
    };
    if (this.#view.busy) {
      parts.push('Reading…');
    } else if (message) {
      parts.push(message);
      button('Try again', 'retry');
    } else if (edit || state === 'shown') {
      if (state === 'shown' && mathml) {
        parts.push(element('span', `The formula is ${spoken(mathml)}. `, { class: 'visually-hidden' }));
      }
      if (edit) {
        parts.push(notice ?? 'Edited');
        if (reading && !conflict) {
          button('Use the reading', 'use-reading');
        }
      } else if (formula) {
        const figure = percent(formula.confidence);
        const sure = element('span', sureness(formula.confidence), { class: 'sureness', title: `${figure} sure` });
        sure.append(element('span', `, ${figure}`, { class: 'visually-hidden' }));
        parts.push(sure);
        if (reading?.found) {
          const onInk = Boolean(reading.found[0].strokes);
          parts.push(` · ${reading.found.length} formulas found${onInk ? '' : ': choose one in the picture'}`);
          if (onInk) {
            const { found, chosen = 0 } = reading;
            const formulaButton = (label, number, name) =>
              button(label, 'choose-formula', { formula: number }, { title: name, 'aria-label': name, 'aria-pressed': number === chosen });
            found.forEach(({ latex }, index) => formulaButton(`${index + 1}`, index, `Formula ${index + 1}, ${latex}`));
            formulaButton('As one', -1, 'Read all ink as one formula');
          }
        }
        const isShown = ({ code }) => SHOWN_WARNINGS.includes(code) || (code === 'unread_ink' && !unread.length);
        parts.push(...(reading?.warnings ?? []).filter(isShown).map(({ message: warning }) => ` · ${warning}`));
        if (unread.length) {
          parts.push(` · ${unread.length === 1 ? '1 stroke was' : `${unread.length} strokes were`} not read`);
        }
      }
    }
    // A live region speaks only when its text changes.
    const text = parts.map((part) => part.textContent ?? part).join('');
    if (line.dataset.text !== text) {
      line.dataset.text = text;
      line.replaceChildren(...parts);
    }
    const wanted = buttons.map((made) => made.outerHTML).join('');
    if (this.#actions !== wanted) {
      this.#actions = wanted;
      actions.replaceChildren(...buttons);
    }
  }

  /** New strokes changed what the user edited: both are shown, and the user decides. */
  #showConflict() {
    const { conflict } = this.#view;
    const place = this.#id('conflict');
    if (place.hidden === !conflict && place.shown === conflict) {
      return;
    }
    place.hidden = !conflict;
    place.shown = conflict;
    if (!conflict) {
      place.replaceChildren();
      return;
    }
    const button = (label, event) => {
      const made = element('button', label, { type: 'button' });
      made.addEventListener('click', () => this.#send(event));
      return made;
    };
    const math = conflict.mathml ? mathElement(conflict.mathml) : element('code', conflict.latex);
    const row = element('div', '', { class: 'row' });
    row.append(button('Keep my edit', 'keep-edit'), button('Use the new reading', 'use-reading'));
    place.replaceChildren(element('p', 'Your edit is kept. The ink now reads:'), math, row);
  }

  /** What is wrong with the LaTeX: column, the text around it, and a caret below the place. */
  #showError() {
    const { error } = this.#view;
    const place = this.#id('error');
    this.box.setAttribute('aria-invalid', Boolean(error));
    if (place.dataset.text === (error?.message ?? '')) {
      return;
    }
    place.dataset.text = error?.message ?? '';
    place.replaceChildren();
    if (!error) {
      return;
    }
    const token = tokenize(this.box.value)[error.token - 1];
    const message = error.message.replace(/^token \d+ \(.*?\): /, '');
    if (!token) {
      place.append(element('p', message));
      return;
    }
    const start = Math.max(0, token.start - 24);
    const excerpt = this.box.value.slice(start, token.end + 24).replace(/\s/g, ' ');
    const caret = ' '.repeat(token.start - start) + '^'.repeat(token.end - token.start);
    place.append(element('p', `Column ${token.start + 1}: ${message}`), element('pre', `${excerpt}\n${caret}`, { 'aria-hidden': 'true' }));
  }

  #showDoubts() {
    const list = this.#id('doubts');
    const doubtful = this.#formula.doubtful ?? [];
    const { formula } = this.#view;
    list.hidden = !formula || !doubtful.length || !this.#view.mathml;
    if (list.hidden) {
      list.replaceChildren();
      return;
    }
    const sorted = [...doubtful].sort((one, other) => one.index - other.index);
    list.replaceChildren(element('span', 'Check:', { 'aria-hidden': 'true' }), ...sorted.map(({ index, confidence }) => {
      const { text } = formula.tokens[index];
      const chip = element('button', text, {
        type: 'button', 'data-token': index, title: `${percent(confidence)} sure`, 'aria-expanded': 'false',
        'aria-label': `${text}: ${sureness(confidence).toLowerCase()}, ${percent(confidence)}. Show alternatives.`,
      });
      chip.className = confidence < 0.5 ? 'very-doubtful' : 'doubtful';
      return chip;
    }));
  }

  #toggleMenu(index) {
    if (this.#alternativesOf === index) {
      this.#closeMenu();
      return;
    }
    const { reading, shown, formula, constraints } = this.#view;
    if (!formula || !reading) {
      return;
    }
    this.#closeMenu();
    this.#alternativesOf = index;
    const menu = this.#id('menu');
    const { text } = formula.tokens[index];
    const choices = tokenAlternatives(reading, shown, index).filter((choice) => constraints || choice.formula >= 0);
    const buttons = choices.map(({ token, formula: number }) => {
      const button = element('button', token, { type: 'button' });
      button.addEventListener('click', () => this.#send('correct', { index, token, formula: number }));
      return button;
    });
    const edit = element('button', 'Edit in the LaTeX', { type: 'button', class: 'quiet' });
    edit.addEventListener('click', () => this.#select(index));
    menu.replaceChildren(element('span', choices.length ? `Instead of ${text}:` : `No other reading of ${text}.`), ...buttons, edit);
    menu.setAttribute('aria-label', `Alternatives for ${text}`);
    menu.hidden = false;
    this.#root.querySelector(`#doubts [data-token="${index}"]`)?.setAttribute('aria-expanded', 'true');
  }

  #closeMenu() {
    this.#alternativesOf = null;
    this.#id('menu').hidden = true;
    this.#root.querySelectorAll('#doubts [aria-expanded="true"]').forEach((chip) => chip.setAttribute('aria-expanded', 'false'));
  }

  /** Selects a token in the LaTeX box. */
  #select(index) {
    const token = tokenize(this.box.value)[index];
    this.#closeMenu();
    this.box.focus();
    if (token) {
      this.box.setSelectionRange(token.start, token.end);
    }
  }

  #showAlternatives() {
    const formulas = this.#view.reading?.formulas ?? [];
    this.#id('alternatives').hidden = formulas.length < 2;
    this.#id('choices').replaceChildren(...formulas.map((formula, index) => {
      const item = document.createElement('li');
      const button = element('button', '', { type: 'button', title: `${percent(formula.confidence)} sure` });
      button.append(...namedMath(formula, `, ${percent(formula.confidence)} sure`));
      button.addEventListener('click', () => this.#send('choose', { formula: index }));
      item.append(button);
      return item;
    }));
  }

  /** Highlights a symbol of the formula; null highlights none. */
  light(index) {
    this.#root.querySelectorAll('.lit').forEach((lit) => lit.classList.remove('lit'));
    if (index !== null) {
      this.#root.querySelectorAll(`.shown [data-token="${index}"]`).forEach((symbol) => symbol.classList.add('lit'));
    }
  }

  #listen() {
    this.box.addEventListener('input', () => this.#send('typed', { text: this.box.value }));
    const indexOf = (event) => Number(event.target.closest?.('[data-token]')?.dataset.token ?? -1);
    for (const name of ['formula', 'doubts']) {
      const place = this.#id(name);
      const light = (event) => this.#send('light', { token: indexOf(event) });
      place.addEventListener('pointerover', light);
      place.addEventListener('focusin', light);
      place.addEventListener('pointerleave', () => this.#send('light', { token: -1 }));
      place.addEventListener('focusout', () => this.#send('light', { token: -1 }));
      place.addEventListener('click', (event) => {
        const index = indexOf(event);
        if (index >= 0 && this.#formula.doubtful?.some((doubt) => doubt.index === index)) {
          this.#toggleMenu(index);
        } else if (index >= 0 && this.#view.formula) {
          this.#select(index);
        }
      });
    }
    for (const button of this.#root.querySelectorAll('[data-copy]')) {
      const label = button.textContent;
      button.addEventListener('click', async () => {
        await this.copy(button.dataset.copy);
        button.textContent = 'Copied';
        setTimeout(() => {
          button.textContent = label;
        }, 1200);
      });
    }
  }

  copy(format) {
    const texts = {
      latex: () => this.latex,
      dollars: () => `$${this.latex}$`,
      mathml: () => publicMathml(this.#view.mathml),
      aligned: () => this.#view.reading.aligned,
    };
    return copyText(texts[format]());
  }
}
