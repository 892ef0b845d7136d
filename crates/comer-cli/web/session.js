// The state behind <comer-ink>, without its DOM: snapshots with undo, reading, editing, and what is to be shown.
//
// Events: `update` (something to show changed), `change` (ink, picture or LaTeX changed), `error` {message, kind}.

import { merge, tokenTexts } from './latex.js';
import { extract, isSmall, isWhole, thumbnail, toBlob } from './picture-warp.js';
import { inkOf, unreadStrokes } from './reading.js';
import { UndoStack } from './undo.js';

/** Milliseconds of rest after typing until the formula is shown. */
const TYPING_PAUSE = 120;

/** A snapshot: everything that undo brings back. */
export const emptySheet = () => ({
  sheet: Date.now(), // which entry of the history it is
  strokes: [],
  picture: null, // {name, source, file, shrunk, crop}
  reading: null, // of the engine, for these strokes or this picture
  shown: 0, // which of its formulas
  constraints: null,
  part: null, // {chosen, found, aligned}: which of several formulas of the ink is read alone; -1: all ink as one formula
  edit: null, // {text, base, mathml, error, notice}: what the user made of the reading `base`
  conflict: null, // a formula of a new reading that contradicts the edit
});

export class Session extends EventTarget {
  nbest = 5;
  /** What the engine supports. */
  supported = {};
  #engine = null;
  #stack = new UndoStack(emptySheet());
  #timer = 0;
  #request = null;
  #failure = null;
  #last = null; // the view that was shown last
  #typing = null; // the LaTeX before the user began to type
  #typingTimer = 0;

  get engine() {
    return this.#engine;
  }

  set engine(engine) {
    this.#engine = engine;
    this.#describe();
  }

  async #describe() {
    try {
      this.supported = await this.#engine.info();
      this.#send('update');
    } catch {
      // Asked again after the next reading.
    }
  }

  get current() {
    return this.#stack.current;
  }

  get canUndo() {
    return this.#stack.canUndo;
  }

  get canRedo() {
    return this.#stack.canRedo;
  }

  get isBusy() {
    return this.#request !== null;
  }

  /** Whether the last reading failed because the engine could not be reached. */
  get isUnreachable() {
    return this.#failure?.kind === 'unreachable';
  }

  get isEmpty() {
    const { strokes, picture, edit } = this.current;
    return !strokes.length && !picture && !edit?.text;
  }

  #send(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }

  // Changes that can be undone.

  /** Makes `changes` to the current snapshot, or to an empty one with `fresh`. */
  push(changes, { fresh = false } = {}) {
    this.#settle();
    this.#stack.push({ ...(fresh ? emptySheet() : this.current), ...changes });
    this.#changed();
  }

  setStrokes(strokes, pause) {
    this.push({ strokes, reading: null, shown: 0, constraints: null, part: null, conflict: null });
    this.readSoon(pause);
  }

  undo() {
    this.#move(() => this.#stack.undo());
  }

  redo() {
    this.#move(() => this.#stack.redo());
  }

  #move(act) {
    this.#settle();
    if (!act()) {
      return;
    }
    this.#changed();
    const { reading, edit } = this.current;
    if (!reading) {
      this.readSoon(0);
    }
    if (edit && edit.mathml === undefined) {
      this.renderEdit();
    }
  }

  /** Ends what is under way for the current snapshot. */
  #settle() {
    this.stopReading();
    this.endTyping();
    this.#failure = null;
  }

  #changed() {
    this.#send('update');
    this.#send('change');
  }

  // Reading.

  stopReading() {
    clearTimeout(this.#timer);
    this.#request?.abort();
    this.#request = null;
  }

  readSoon(pause) {
    this.stopReading();
    const { strokes, picture } = this.current;
    if (strokes.length || picture) {
      this.#timer = setTimeout(() => this.read(), pause);
    }
  }

  async read() {
    this.stopReading();
    const request = new AbortController();
    this.#request = request;
    this.#failure = null;
    this.#send('update');
    try {
      const reading = await this.#recognize(request.signal);
      if (this.#request === request) {
        this.#request = null;
        await this.#take(reading);
      }
    } catch (error) {
      if (this.#request === request) {
        this.#request = null;
        this.#fail(error);
      }
    }
    if (this.supported.explain === undefined) {
      this.#describe();
    }
  }

  async #recognize(signal) {
    const { strokes, picture, constraints, part } = this.current;
    const options = { nbest: this.nbest, signal, ...(constraints && { constraints }) };
    if (picture) {
      return this.#engine.recognizeImage(await this.#sent(picture), options);
    }
    if (!part) {
      return this.#engine.recognizeStrokes(strokes, options);
    }
    const reading = await this.#engine.recognizeStrokes(inkOf(part, strokes), { ...options, formulas: 'one' });
    // All lines have the reading without constraints.
    return { ...reading, ...part, aligned: constraints ? null : part.aligned };
  }

  /** The file of a picture: as it came if it is whole and small, else its cropped and shrunk content. */
  async #sent(picture) {
    if (!picture.sent) {
      const asItCame = !picture.source || (isWhole(picture.crop) && isSmall(picture));
      const canvas = asItCame ? picture.source : extract(picture.source, picture.crop);
      picture.sentSize = canvas && [canvas.width, canvas.height];
      picture.thumbnail = canvas ? thumbnail(canvas) : '';
      picture.sent = asItCame ? picture.file : await toBlob(canvas);
    }
    return picture.sent;
  }

  #fail(error) {
    this.#failure = error;
    if (error.kind === 'busy') {
      this.#timer = setTimeout(() => this.read(), 1000 * error.retryAfter);
    } else {
      this.#send('error', { message: error.message, kind: error.kind ?? 'internal' });
    }
    this.#send('update');
  }

  /** An edit stays when a reading comes, and is merged with it where that is possible. */
  async #take(reading) {
    const { edit } = this.current;
    this.#stack.amend({ reading, shown: 0, conflict: null });
    if (edit?.text.trim()) {
      await this.#mergeEdit(edit, reading.formulas[0]);
    } else {
      this.#stack.amend({ edit: null });
    }
    this.#changed();
  }

  async #mergeEdit(edit, formula) {
    const base = formula.latex;
    const merged = merge(edit.base, edit.text, base);
    if (merged !== null && tokenTexts(merged).join(' ') === tokenTexts(edit.text).join(' ')) {
      this.#stack.amend({ edit: { ...edit, base } });
      return;
    }
    const snapshot = this.current;
    let mathml = '';
    try {
      mathml = merged ? await this.#engine.mathml(merged) : '';
    } catch {
      // What does not make a formula is not merged.
    }
    if (this.current === snapshot) {
      const notice = 'Your edit was merged with the new reading.';
      this.#stack.amend(mathml ? { edit: { text: merged, base, mathml, notice } } : { conflict: formula });
    }
  }

  /** Another symbol for a token: the rest is read again under that choice, or the best formula that has it is shown. */
  correct({ index, token, formula }) {
    const { reading, shown } = this.current;
    if (!this.supported.constraints) {
      this.choose(formula);
      return;
    }
    const before = reading.formulas[shown].tokens.slice(0, index);
    this.push({ constraints: { prefix: [...before.map(({ text }) => text), token] }, reading: null, shown: 0, edit: null });
    this.readSoon(0);
  }

  /** Reads one of several formulas of the ink alone, or with -1 all ink as one formula. */
  chooseFormula(chosen) {
    const { found, aligned } = this.current.reading;
    this.push({ part: { chosen, found, aligned }, reading: null, shown: 0, constraints: null, edit: null, conflict: null });
    this.readSoon(0);
  }

  choose(formula) {
    if (this.current.reading?.formulas[formula]) {
      this.push({ shown: formula, edit: null, conflict: null });
    }
  }

  // Editing.

  /** Whether `text` differs from what it was before the user began to type, so that the text box has something to undo. */
  hasTyped(text) {
    return this.#typing !== null && this.#typing !== text;
  }

  /** Ink that was written just before is read now; its reading is merged with what was typed. */
  finishTyping() {
    this.endTyping();
    if (!this.current.reading && !this.isBusy) {
      this.readSoon(0);
    }
  }

  endTyping() {
    this.#typing = null;
  }

  typed(text) {
    this.stopReading();
    const { reading, shown, edit: before } = this.current;
    const base = before?.base ?? reading?.formulas[shown].latex ?? this.#last?.latex ?? '';
    const edit = { text, base };
    if (this.#typing === null) {
      const typing = this.#last?.latex ?? '';
      this.#failure = null;
      this.#stack.push({ ...this.current, edit, conflict: null });
      this.#typing = typing;
    } else {
      this.#stack.amend({ edit, conflict: null });
    }
    this.#changed();
    clearTimeout(this.#typingTimer);
    this.#typingTimer = setTimeout(() => this.renderEdit(), TYPING_PAUSE);
  }

  /** Asks for the MathML of the edited text. */
  async renderEdit() {
    const { edit } = this.current;
    if (!edit) {
      return;
    }
    let result = { mathml: '', error: null };
    try {
      result.mathml = edit.text.trim() ? await this.#engine.mathml(edit.text) : '';
    } catch (error) {
      result = { mathml: '', error: { message: error.message, token: error.token } };
    }
    if (this.current.edit === edit) {
      this.#stack.amend({ edit: { ...edit, ...result } });
      this.#changed();
    }
  }

  /** Keeps the edit although the new reading contradicts it. */
  keepEdit() {
    const { edit, conflict } = this.current;
    this.#stack.amend({ edit: { ...edit, base: conflict.latex }, conflict: null });
    this.#changed();
  }

  useReading() {
    this.push({ edit: null, conflict: null, shown: 0 });
  }

  // Showing.

  /** What is to be shown; see ResultPanel.show. While there is no answer, the last one of this sheet stays. */
  view() {
    const { sheet, strokes, picture, reading, shown, edit, conflict } = this.current;
    if (this.#last?.sheet !== sheet) {
      this.#last = null;
    }
    const nothing = { latex: '', mathml: '', formula: null, isCurrent: false, state: 'empty' };
    const common = {
      sheet, reading, shown, conflict, busy: this.isBusy, message: this.#failure?.message ?? '', constraints: this.supported.constraints,
      typing: this.#typing !== null, formula: null, edit: false, error: null, unread: [],
    };
    const last = this.#last ?? nothing;
    let view = { ...common, ...nothing };
    if (edit) {
      const state = edit.mathml ? 'shown' : edit.text.trim() ? 'stale' : 'empty';
      const mathml = edit.mathml || (state === 'stale' ? last.mathml : '');
      view = { ...common, latex: edit.text, mathml, isCurrent: Boolean(edit.mathml), state, edit: true, notice: edit.notice, error: edit.error ?? null };
    } else if (reading) {
      const formula = reading.formulas[shown];
      const unread = picture ? [] : unreadStrokes(reading, strokes);
      view = { ...common, latex: formula.latex, mathml: formula.mathml, isCurrent: true, state: 'shown', formula, unread };
    } else if (strokes.length || picture) {
      const { latex, mathml, formula, isCurrent } = last;
      view = { ...common, latex, mathml, isCurrent, formula, state: mathml ? 'stale' : 'empty' };
    }
    if (view.state !== 'stale') {
      this.#last = view;
    }
    return view;
  }
}
