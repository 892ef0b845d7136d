// Undo and redo over immutable snapshots.

const LIMIT = 500;

export class UndoStack {
  #past = [];
  #future = [];

  constructor(current) {
    this.current = current;
  }

  get canUndo() {
    return this.#past.length > 0;
  }

  get canRedo() {
    return this.#future.length > 0;
  }

  /** Makes `next` current; the present snapshot can be returned to. */
  push(next) {
    this.#past.push(this.current);
    this.#past.splice(0, this.#past.length - LIMIT);
    this.#future = [];
    this.current = next;
  }

  /** Adds to the current snapshot, for instance its recognition, without a step of its own. */
  amend(changes) {
    this.current = { ...this.current, ...changes };
  }

  undo() {
    return this.#move(this.#past, this.#future);
  }

  redo() {
    return this.#move(this.#future, this.#past);
  }

  #move(from, to) {
    if (!from.length) {
      return false;
    }
    to.push(this.current);
    this.current = from.pop();
    return true;
  }
}
