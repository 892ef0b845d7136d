// The error of every engine.

export class EngineError extends Error {
  /**
   * @param {'input'|'busy'|'unreachable'|'internal'} kind
   * @param {object} details `token`: the number of the faulty token from 1; `retryAfter`: seconds
   */
  constructor(kind, message, details = {}) {
    super(message);
    this.name = 'EngineError';
    this.kind = kind;
    Object.assign(this, details);
  }
}
