// <comer-ink>: a surface to write on and the formula that was written. docs/embedding.md describes attributes and events.

import { TEMPLATE } from './comer-ink-template.js';
import { openEngine } from './engine.js';
import { InkSurface } from './ink-surface.js';
import { placed, withoutScribbled } from './ink.js';
import { PictureStage } from './picture-stage.js';
import { WHOLE } from './picture-warp.js';
import { inkOf, strokeOwners, strokesOf } from './reading.js';
import { ResultPanel } from './result-panel.js';
import { Session } from './session.js';
import { handleInkKey } from './shortcuts.js';

/** Milliseconds after the pen lifts until the formula is read. */
const PAUSE = 350;

export class ComerInk extends HTMLElement {
  #session = new Session();
  #surface;
  #stage;
  #panel;
  #announced = '';

  constructor() {
    super();
    this.attachShadow({ mode: 'open' }).innerHTML = TEMPLATE;
    this.#surface = new InkSurface(this.#id('paper'));
    this.#stage = new PictureStage(this.#id('picture'));
    this.#panel = new ResultPanel(this.shadowRoot);
    this.#listenToSurface();
    this.#listenToPanel();
    this.#session.addEventListener('update', () => this.#render());
    this.#session.addEventListener('change', () => this.#send('change', { strokes: this.strokes, latex: this.latex }));
    this.#session.addEventListener('error', ({ detail }) => this.#send('error', detail));
  }

  connectedCallback() {
    this.engine ??= openEngine(this.getAttribute('server'));
    this.#session.nbest = Number(this.getAttribute('nbest')) || 5;
    this.#render();
  }

  #id(name) {
    return this.shadowRoot.getElementById(name);
  }

  #send(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }

  get engine() {
    return this.#session.engine;
  }

  set engine(engine) {
    this.#session.engine = engine;
  }

  /** The LaTeX that is shown. */
  get latex() {
    return this.#panel.latex;
  }

  /** The MathML of what is shown; empty while the LaTeX is invalid. */
  get mathml() {
    const { isCurrent, mathml } = this.#session.view();
    return isCurrent ? mathml : '';
  }

  get strokes() {
    return this.#session.current.strokes;
  }

  /** Replaces the ink; it can be undone. */
  set strokes(strokes) {
    this.#session.push({ strokes }, { fresh: true });
    this.#surface.reveal();
    this.#session.readSoon(0);
  }

  /** The present state, for `restore`. */
  get snapshot() {
    return { ...this.#session.current, latex: this.latex, mathml: this.mathml };
  }

  restore({ sheet, strokes = [], picture = null, part = null, edit = null }) {
    this.#session.push({ sheet, strokes, picture, part, edit }, { fresh: true });
    this.#surface.reveal();
    this.#session.readSoon(0);
    if (edit && !edit.mathml) {
      this.#session.renderEdit();
    }
  }

  get tool() {
    return this.#surface.tool;
  }

  /** 'pen' or 'eraser'. */
  set tool(tool) {
    this.#surface.tool = tool;
    this.#id('paper').dataset.tool = tool;
    for (const id of ['pen', 'eraser']) {
      this.#id(id).setAttribute('aria-pressed', id === tool);
    }
  }

  undo() {
    this.#session.undo();
    this.#surface.reveal();
  }

  redo() {
    this.#session.redo();
    this.#surface.reveal();
  }

  /** Begins a new sheet. */
  clear() {
    if (!this.#session.isEmpty) {
      this.#session.push({}, { fresh: true });
    }
  }

  /** Shows all ink. */
  fit() {
    this.#surface.fit();
  }

  zoom(factor) {
    this.#surface.zoom(factor);
  }

  /** The part of the plane that is shown: screen = ink * scale + (x, y). */
  get view() {
    const { scale, x, y, width, height } = this.#surface.view;
    return { scale, x, y, width, height };
  }

  /** Reads what is on the surface, now. */
  read() {
    return this.#session.read();
  }

  /** Shows the formula of this number among the alternatives. */
  choose(formula) {
    this.#session.choose(formula);
  }

  /** Copies the formula as 'latex', 'dollars' or 'mathml'. */
  copy(format) {
    return this.#panel.copy(format);
  }

  /** Scales foreign ink to the surface and shows it. */
  importStrokes(strokes) {
    const { width, height } = this.#surface.view;
    this.strokes = placed(strokes, width || 600, height || 400);
  }

  /** Shows and reads a picture: {name, source: canvas or null, file, shrunk}. */
  openPicture(picture) {
    this.#session.push({ sheet: picture.sheet ?? Date.now(), picture: { crop: WHOLE, ...picture } }, { fresh: true });
    this.#session.readSoon(0);
  }

  get canExplain() {
    return Boolean(this.#session.supported.explain && this.engine.explain && this.#session.current.reading);
  }

  /** Shows where the model looked, if the engine can. */
  explain() {
    const { picture, strokes, reading } = this.#session.current;
    this.engine.explain(picture ? picture.sent : inkOf(reading, strokes));
  }

  /** Whether Ctrl+Z in the LaTeX box belongs to the text that is being typed. */
  get hasPendingText() {
    return this.#session.hasTyped(this.#panel.box.value);
  }

  /** Draws again with the present colours. */
  refresh() {
    this.#surface.redraw();
  }

  #render() {
    const session = this.#session;
    const { strokes, picture } = session.current;
    const view = session.view();
    if (this.#surface.strokes !== strokes) {
      this.#surface.strokes = strokes;
    }
    this.#surface.unread = view.unread;
    this.#surface.frame((!picture && view.reading?.found) || null, view.reading?.chosen ?? 0);
    this.#stage.show(picture, view.reading);
    this.#id('hint').hidden = strokes.length > 0 || Boolean(picture) || this.#surface.isDrawing;
    this.#id('undo').disabled = !session.canUndo;
    this.#id('redo').disabled = !session.canRedo;
    this.#id('clear').disabled = session.isEmpty;
    this.#id('pen').disabled = this.#id('eraser').disabled = Boolean(picture);
    this.#panel.show(view);
    this.#showScale();
    this.#announce(view);
  }

  #showScale() {
    const { view, strokes } = this.#surface;
    this.#id('scale').textContent = `${Math.round(view.scale * 100)} %`;
    this.#id('fit').disabled = view.isDefault;
    this.#id('fit').setAttribute('aria-label', `${this.#id('scale').textContent}: show everything`);
    this.#id('zoom-out').disabled = this.#id('zoom-in').disabled = !strokes.length;
  }

  /** Sends `result` once for each formula. */
  #announce({ state, latex, mathml, formula, edit, busy }) {
    const key = `${this.#session.current.sheet} ${edit} ${latex} ${this.strokes.length}`;
    if (state === 'shown' && !busy && key !== this.#announced) {
      this.#announced = key;
      this.#send('result', { latex, mathml, confidence: formula?.confidence ?? null, edited: edit });
    }
  }

  /** Highlights a symbol with all of its strokes; -1 highlights nothing. */
  #light(token) {
    const { reading, shown, edit, strokes, picture } = this.#session.current;
    const lit = token >= 0 && reading && shown === 0 && !edit;
    this.#panel.light(lit ? token : null);
    this.#surface.light(lit ? strokesOf(reading, strokes, token) : null);
    const box = lit && picture?.sentSize && reading.boxes?.[token];
    this.#stage.light(box ? box.map((side, index) => side / picture.sentSize[index % 2]) : null);
  }

  #listenToSurface() {
    const [surface, session] = [this.#surface, this.#session];
    const pause = () => Number(this.getAttribute('pause')) || PAUSE;
    surface.addEventListener('start', () => {
      session.stopReading();
      this.#id('hint').hidden = true;
    });
    surface.addEventListener('cancel', () => {
      this.#render();
      if (!session.current.reading) {
        session.readSoon(pause());
      }
    });
    surface.addEventListener('stroke', ({ detail: { points } }) => {
      session.setStrokes(withoutScribbled(this.strokes, points) ?? [...this.strokes, points], pause());
    });
    surface.addEventListener('erase', ({ detail }) => session.setStrokes(detail.strokes, pause()));
    surface.addEventListener('view', () => this.#showScale());
    surface.addEventListener('hover', ({ detail: { stroke } }) => {
      const { reading } = session.current;
      this.#light(stroke >= 0 && reading ? strokeOwners(reading, this.strokes)?.[stroke] ?? -1 : -1);
    });
    const cropped = ({ detail: { crop } }) => ({ ...session.current.picture, crop, sent: null });
    this.#stage.addEventListener('change', (event) => {
      session.push({ picture: cropped(event), reading: null, shown: 0, constraints: null });
      session.readSoon(0);
    });
    // Each formula of a page is a sheet of its own, so that the history has all of them.
    this.#stage.addEventListener('choose', (event) => {
      session.push({ picture: cropped(event) }, { fresh: true });
      session.readSoon(0);
    });
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.refresh());
    new MutationObserver(() => this.refresh()).observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme', 'class'] });
  }

  #listenToPanel() {
    const [panel, session] = [this.#panel, this.#session];
    panel.addEventListener('typed', ({ detail: { text } }) => session.typed(text));
    panel.addEventListener('light', ({ detail: { token } }) => this.#light(token));
    panel.addEventListener('choose-formula', ({ detail: { formula } }) => session.chooseFormula(formula));
    panel.addEventListener('choose', ({ detail: { formula } }) => session.choose(formula));
    panel.addEventListener('correct', ({ detail }) => session.correct(detail));
    panel.addEventListener('retry', () => session.read());
    panel.addEventListener('use-reading', () => session.useReading());
    panel.addEventListener('keep-edit', () => session.keepEdit());
    panel.box.addEventListener('blur', () => session.finishTyping());
    const clicks = {
      pen: () => { this.tool = 'pen'; },
      eraser: () => { this.tool = 'eraser'; },
      undo: () => this.undo(),
      redo: () => this.redo(),
      clear: () => this.clear(),
      fit: () => this.fit(),
      'zoom-in': () => this.zoom(1.25),
      'zoom-out': () => this.zoom(0.8),
    };
    for (const [id, act] of Object.entries(clicks)) {
      this.#id(id).addEventListener('click', act);
    }
    this.addEventListener('keydown', (event) => handleInkKey(this, event));
    for (const event of ['online', 'focus']) {
      addEventListener(event, () => session.isUnreachable && session.read());
    }
  }
}

customElements.define('comer-ink', ComerInk);
