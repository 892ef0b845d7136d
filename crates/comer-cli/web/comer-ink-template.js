// The markup of <comer-ink>.

const icon = (paths) => `<svg viewBox="0 0 24 24" aria-hidden="true">${paths}</svg>`;

const button = (id, label, title, paths, more = '') =>
  `<button type="button" id="${id}" class="tool" title="${title}" aria-label="${label}" ${more}>${icon(paths)}<span>${label}</span></button>`;

const href = (name) => new URL(name, import.meta.url).href;

export const TEMPLATE = `
<link rel="stylesheet" href="${href('controls.css')}" crossorigin="anonymous">
<link rel="stylesheet" href="${href('comer-ink.css')}" crossorigin="anonymous">
<section class="desk" aria-label="Writing surface">
  <div class="tools" role="toolbar" aria-label="Tools">
    ${button('pen', 'Pen', 'Pen (P)', '<path d="M4 20l1-5L16 4l4 4L9 19z"/><path d="M14 6l4 4"/>', 'aria-pressed="true"')}
    ${button('eraser', 'Eraser', 'Eraser (E)', '<path d="M9 19l-5-5L14 4l6 6-9 9z"/><path d="M9 9l6 6M8 19h12"/>', 'aria-pressed="false"')}
    <span class="gap"></span>
    ${button('undo', 'Undo', 'Undo (Ctrl+Z)', '<path d="M8 5L4 9l4 4"/><path d="M4 9h10a5 5 0 0 1 0 10H9"/>', 'disabled')}
    ${button('redo', 'Redo', 'Redo (Ctrl+Shift+Z)', '<path d="M16 5l4 4-4 4"/><path d="M20 9H10a5 5 0 0 0 0 10h5"/>', 'disabled')}
    ${button('clear', 'Clear', 'Clear (Delete)', '<path d="M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13"/>', 'disabled')}
    <span class="gap end"></span>
    <slot name="tools"></slot>
  </div>
  <div class="paper" id="paper">
    <canvas class="finished" aria-hidden="true"></canvas>
    <canvas class="current" id="ink" role="img" aria-label="Empty writing surface" tabindex="0"></canvas>
    <p class="hint" id="hint"><strong>Write here</strong><span>with a pen, a finger or the mouse, or drop a picture.</span><span>Scribble over strokes to erase them.</span></p>
    <div class="zoom" role="group" aria-label="Zoom">
      ${button('zoom-out', 'Zoom out', 'Zoom out (-)', '<path d="M5 12h14"/>')}
      <button type="button" id="fit" title="Show everything (0)" aria-label="Show everything"><span id="scale">100 %</span></button>
      ${button('zoom-in', 'Zoom in', 'Zoom in (+)', '<path d="M5 12h14M12 5v14"/>')}
    </div>
    <div class="picture" id="picture" hidden>
      <div class="frame"><canvas role="img" aria-label="The picture that is read"></canvas><svg class="outline" aria-hidden="true"><path class="shade"/><path/><path class="place"/></svg><img class="seen" alt="What the network saw: white ink on black" hidden><p class="no-preview" hidden></p></div>
      <div class="bar" role="toolbar" aria-label="Picture">
        <button type="button" data-picture="left">Turn left</button>
        <button type="button" data-picture="right">Turn right</button>
        <button type="button" data-picture="perspective" aria-pressed="false" title="Move each corner by itself, to straighten a photo taken at an angle">Perspective</button>
        <button type="button" data-picture="reset" disabled>Whole picture</button>
        <button type="button" data-picture="seen" aria-pressed="false" disabled title="The picture as the network sees it">What was read</button>
      </div>
    </div>
    <p class="drop" aria-hidden="true">Drop it here</p>
  </div>
  <slot name="pictures"></slot>
</section>
<section class="result" aria-label="Formula">
  <div class="shown">
    <div class="formula" id="formula" data-state="empty" tabindex="-1"><p class="empty">Your formula appears here.</p></div>
    <div class="status-line"><p class="status" id="status" role="status"></p><span id="status-actions"></span></div>
    <div class="doubts" id="doubts" role="group" aria-label="Doubtful symbols" hidden></div>
    <div class="menu" id="menu" role="group" hidden></div>
  </div>
  <div class="conflict" id="conflict" role="group" aria-label="The new reading" hidden></div>
  <div class="editor">
    <label for="latex">LaTeX</label>
    <textarea id="latex" rows="2" spellcheck="false" autocapitalize="off" autocomplete="off" aria-describedby="error"></textarea>
    <div class="error" id="error" role="alert"></div>
  </div>
  <div class="actions" id="actions">
    <button type="button" class="main" data-copy="latex" disabled>Copy LaTeX</button>
    <button type="button" data-copy="dollars" disabled title="With dollar signs">Copy $…$</button>
    <button type="button" data-copy="mathml" disabled>Copy MathML</button>
    <button type="button" data-copy="aligned" hidden title="All formulas as lines, aligned at their relation signs">Copy all lines</button>
    <slot name="actions"></slot>
  </div>
  <div class="alternatives" id="alternatives" hidden>
    <h2>Or did you mean</h2>
    <ul id="choices"></ul>
  </div>
  <slot></slot>
</section>`;
