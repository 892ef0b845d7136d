// The history in the browser: IndexedDB, or memory where there is none. Also the sheet that is being worked on.

const LARGEST = 200;

/**
 * Entries by sheet: {sheet, time, latex, read, mathml, strokes, picture, name, crop, thumbnail}. `picture` is a Blob. Without
 * `latex` it is the draft: a picture that was not read yet.
 */
export class HistoryStore {
  #database = null;
  #memory = new Map();

  async open() {
    try {
      this.#database = await new Promise((resolve, reject) => {
        const request = indexedDB.open('comer', 1);
        request.onupgradeneeded = () => request.result.createObjectStore('entries', { keyPath: 'sheet' });
        request.onsuccess = () => resolve(request.result);
        request.onerror = () => reject(request.error);
      });
      for (const entry of await this.#run('readonly', (store) => store.getAll())) {
        this.#memory.set(entry.sheet, entry);
      }
    } catch {
      this.#database = null;
    }
  }

  #run(mode, act) {
    return new Promise((resolve, reject) => {
      const request = act(this.#database.transaction('entries', mode).objectStore('entries'));
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
  }

  /** All entries but the draft, the newest first. */
  get entries() {
    return [...this.#memory.values()].filter(({ latex }) => latex).sort((one, other) => other.time - one.time);
  }

  get(sheet) {
    return this.#memory.get(sheet);
  }

  async put(entry) {
    const drafts = [...this.#memory.values()].filter(({ latex }) => !latex);
    this.#memory.set(entry.sheet, entry);
    for (const { sheet } of [...drafts, ...this.entries.slice(LARGEST)].filter((old) => old.sheet !== entry.sheet)) {
      await this.delete(sheet);
    }
    if (this.#database) {
      await this.#run('readwrite', (store) => store.put(entry)).catch(() => {});
    }
  }

  async delete(sheet) {
    this.#memory.delete(sheet);
    if (this.#database) {
      await this.#run('readwrite', (store) => store.delete(sheet)).catch(() => {});
    }
  }
}

const SESSION = 'comer.session';

/** Keeps the unfinished sheet. localStorage, because it is written before a page is gone. */
export function saveSession(session) {
  try {
    localStorage.setItem(SESSION, JSON.stringify(session));
  } catch {
    // Without storage a reload begins with an empty sheet.
  }
}

export function loadSession() {
  try {
    const session = JSON.parse(localStorage.getItem(SESSION) ?? 'null');
    return session && Array.isArray(session.strokes) ? session : null;
  } catch {
    return null;
  }
}
