// Shows in a tab of its own where the model looked while it read what is on the surface.

import { byId, state } from './state.js';

/** A form, because a page that comes by one has a policy of its own: this one runs no inline script. */
export function explain() {
  if (byId('explain').disabled) {
    return;
  }
  const form = document.createElement('form');
  Object.assign(form, {
    method: 'post',
    action: 'api/recognize?explain=1',
    enctype: 'multipart/form-data',
    target: '_blank',
    hidden: true,
  });
  const field = document.createElement(state.picture ? 'input' : 'textarea');
  field.name = 'file';
  if (state.picture) {
    const files = new DataTransfer();
    files.items.add(state.picture);
    field.type = 'file';
    field.files = files.files;
  } else {
    field.value = JSON.stringify({ strokes: state.strokes });
  }
  form.append(field);
  document.body.append(form);
  form.submit();
  form.remove();
}

byId('explain').addEventListener('click', explain);
