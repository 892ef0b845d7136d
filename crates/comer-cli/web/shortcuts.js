// Keyboard shortcuts of the surface. Letters do nothing while a text is being edited.

/** Whether an event comes from a box for text. */
export function inText(event) {
  return Boolean(event.composedPath()[0].matches?.('textarea, input:not([type=file])'));
}

/** Handles a key for a <comer-ink>; does nothing if the key has no meaning there. */
export function handleInkKey(ink, event) {
  if (event.defaultPrevented || event.altKey) {
    return;
  }
  const key = event.key.toLowerCase();
  const command = event.ctrlKey || event.metaKey;
  const text = inText(event);
  // A text that was typed and not yet left has an undo of its own.
  const ownUndo = text && (event.composedPath()[0].id === 'latex' ? ink.hasPendingText : event.composedPath()[0].value !== '');
  let act = null;
  if (command && !ownUndo) {
    act = { z: () => (event.shiftKey ? ink.redo() : ink.undo()), y: () => ink.redo() }[key];
    if (key === 'c' && !text && getSelection().isCollapsed && ink.latex) {
      act = () => ink.copy('latex');
    }
  } else if (!command && !text) {
    act = {
      delete: () => ink.clear(),
      backspace: () => ink.clear(),
      p: () => { ink.tool = 'pen'; },
      e: () => { ink.tool = 'eraser'; },
      x: ink.canExplain ? () => ink.explain() : null,
      '+': () => ink.zoom(1.25),
      '=': () => ink.zoom(1.25),
      '-': () => ink.zoom(0.8),
      0: () => ink.fit(),
    }[key] ?? (/^[1-5]$/.test(key) ? () => ink.choose(Number(key) - 1) : null);
  }
  if (act) {
    event.preventDefault();
    act();
  }
}
