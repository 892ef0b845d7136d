'use strict';
(() => {
  const data = JSON.parse(document.getElementById('data').textContent);
  const $ = (id) => document.getElementById(id);
  const cells = data.rows * data.columns;
  const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  for (const pass of data.passes) {
    pass.attention = bytes(pass.attention);
    pass.refinement = bytes(pass.refinement);
  }
  const state = { ...data.choice, step: 0 };
  const pass = () => data.passes[state.pass];
  const shown = (token) => (token === '<eos>' || token === '<sos>' ? 'end' : token);

  // The attention or refinement of a step by the chosen layer and head, or its mean over those not chosen.
  const read = (name, step) => {
    const { layers, heads, least, most } = pass();
    const from = pass()[name];
    const value = name === 'attention' ? (byte) => (byte / 255) ** 2 : (byte) => least + (byte / 255) * (most - least);
    const sum = new Float64Array(cells);
    let count = 0;
    for (let layer = 0; layer < layers; layer++) {
      // The first layer has no refinement, and does not count in its mean.
      if (state.layer !== null ? layer !== state.layer : name === 'refinement' && layer === 0) continue;
      for (let head = 0; head < heads; head++) {
        if (state.head !== null && head !== state.head) continue;
        const start = ((step * layers + layer) * heads + head) * cells;
        for (let cell = 0; cell < cells; cell++) sum[cell] += value(from[start + cell]);
        count += 1;
      }
    }
    return sum.map((total) => total / Math.max(count, 1));
  };

  // All steps of the chosen map, and the range that its shades are taken from.
  let known = null;
  const maps = () => {
    const key = [state.map, state.layer, state.head, state.pass].join();
    if (known?.key === key) return known;
    const steps = pass().steps.map((_, step) => read(state.map === 'refinement' ? 'refinement' : 'attention', step));
    if (state.map === 'coverage') {
      const sum = new Float64Array(cells);
      for (const [number, now] of steps.entries()) {
        steps[number] = sum.slice();
        now.forEach((value, cell) => (sum[cell] += value));
      }
    }
    let [least, most] = [Infinity, -Infinity];
    for (const map of steps) for (const value of map) [least, most] = [Math.min(least, value), Math.max(most, value)];
    known = { key, steps, least: state.map === 'refinement' ? least : 0, most };
    return known;
  };

  const shades = () => {
    if (state.map === 'ink') return data.total;
    const { steps, least, most } = maps();
    const share = (value) => Math.min(Math.max((value - least) / Math.max(most - least, 1e-6), 0), 1);
    const power = { attention: 0.5, refinement: 1.7, coverage: 1 }[state.map];
    return Array.from(steps[state.step], (value) => share(value) ** power);
  };

  const ink = new Image();
  const small = document.createElement('canvas');
  [small.width, small.height] = [data.columns, data.rows];
  const scale = Math.min(Math.max(1000 / data.width, 1), 3);
  const canvas = $('picture');
  [canvas.width, canvas.height] = [Math.round(data.width * scale), Math.round(data.height * scale)];

  const draw = () => {
    const tint = data.tints[state.map === 'ink' ? 'coverage' : state.map];
    const image = new ImageData(data.columns, data.rows);
    shades().forEach((shade, cell) => image.data.set([...tint, Math.round(255 * shade)], 4 * cell));
    small.getContext('2d').putImageData(image, 0, 0);
    const context = canvas.getContext('2d');
    context.clearRect(0, 0, canvas.width, canvas.height);
    context.imageSmoothingEnabled = true;
    context.drawImage(small, 0, 0, data.columns * data.cell * scale, data.rows * data.cell * scale);
    context.drawImage(ink, 0, 0, canvas.width, canvas.height);
    if (state.map === 'ink') {
      context.lineWidth = 2.5;
      for (const { box: [x, y, width, height], unread, reread } of data.regions) {
        for (const [is, colour] of [[unread, data.unread], [reread, data.reread]]) {
          if (!is) continue;
          context.strokeStyle = colour;
          context.setLineDash(reread ? [8, 4] : []);
          context.strokeRect((x - 2) * scale, (y - 2) * scale, (width + 4) * scale, (height + 4) * scale);
        }
      }
      context.setLineDash([]);
    }
    const ramp = $('ramp').getContext('2d');
    const fade = ramp.createLinearGradient(0, 0, 160, 0);
    fade.addColorStop(0, '#fff');
    fade.addColorStop(1, `rgb(${tint})`);
    ramp.fillStyle = fade;
    ramp.fillRect(0, 0, 160, 10);
    const range = state.map === 'ink' ? { least: 0, most: NaN } : maps();
    $('low').textContent = range.least.toFixed(2);
    $('high').textContent = Number.isNaN(range.most) ? 'most' : range.most.toFixed(2);
  };

  const row = (token, probability) => {
    const line = document.createElement('tr');
    const name = line.insertCell();
    name.textContent = shown(token);
    const track = line.insertCell();
    track.className = 'track';
    const bar = track.appendChild(document.createElement('span'));
    bar.className = 'bar';
    bar.style.width = `${100 * probability}%`;
    line.insertCell().textContent = `${(100 * probability).toFixed(1)} %`;
    return line;
  };

  const update = () => {
    const { steps } = pass();
    state.step = Math.min(Math.max(state.step, 0), steps.length - 1);
    const now = steps[state.step];
    $('step').max = steps.length - 1;
    $('step').value = state.step;
    $('number').textContent = `${state.step + 1} of ${steps.length}`;
    $('map').value = state.map;
    $('layer').value = state.layer ?? '';
    $('head').value = state.head ?? '';
    $('pass').value = state.pass;
    $('token').textContent = shown(now.token);
    $('others').replaceChildren(row(now.token, now.probability), ...now.others.map(([token, share]) => row(token, share)));
    const read = new Set(steps.slice(0, state.step + 1).map((step) => step.index));
    for (const [index, button] of Array.from($('tokens').children).entries()) {
      const own = index < data.tokens.length ? index : null;
      button.setAttribute('aria-selected', own === now.index);
      button.classList.toggle('later', !read.has(own));
    }
    for (const id of ['layer', 'head']) $(id).disabled = state.map === 'ink';
    draw();
  };

  const choose = (change) => {
    const before = state.layer;
    Object.assign(state, change);
    // The first layer has no refinement.
    if (state.map === 'refinement' && state.layer === 0) state.layer = change.layer === 0 && before === null ? 1 : null;
    update();
  };
  const turn = (from) => {
    const index = pass().steps[state.step].index;
    choose({ pass: from });
    choose({ step: pass().steps.findIndex((step) => step.index === index) });
  };
  const number = (text) => (text === '' ? null : Number(text));

  const option = (id, value, text) => $(id).append(new Option(text, value));
  for (let layer = 0; layer < pass().layers; layer++) option('layer', layer, layer + 1);
  for (let head = 0; head < pass().heads; head++) option('head', head, head + 1);
  data.passes.forEach(({ direction }, place) => option('pass', place, direction));
  if (!pass().refinement.length) $('map').querySelector('[value=refinement]').remove();
  for (const [index, token] of [...data.tokens, 'end'].entries()) {
    const button = document.createElement('button');
    button.type = 'button';
    button.setAttribute('role', 'option');
    button.textContent = token;
    const own = index < data.tokens.length ? index : null;
    button.addEventListener('click', () => choose({ step: pass().steps.findIndex((step) => step.index === own) }));
    $('tokens').append(button);
  }
  $('map').addEventListener('input', (event) => choose({ map: event.target.value }));
  $('layer').addEventListener('input', (event) => choose({ layer: number(event.target.value) }));
  $('head').addEventListener('input', (event) => choose({ head: number(event.target.value) }));
  $('pass').addEventListener('input', (event) => turn(Number(event.target.value)));
  $('step').addEventListener('input', (event) => choose({ step: Number(event.target.value) }));
  $('controls').addEventListener('submit', (event) => event.preventDefault());

  let timer = null;
  const play = () => {
    if (timer) {
      clearInterval(timer);
      timer = null;
    } else {
      if (state.step === pass().steps.length - 1) choose({ step: 0 });
      timer = setInterval(() => {
        choose({ step: state.step + 1 });
        if (state.step === pass().steps.length - 1) play();
      }, 600);
    }
    $('play').textContent = timer ? '\u275a\u275a' : '\u25b6';
    $('play').setAttribute('aria-label', timer ? 'Pause' : 'Play');
  };
  $('play').addEventListener('click', play);

  // Goes round through the mean and all numbers.
  const next = (value, count, by) => {
    const place = ((value ?? -1) + 1 + by + count + 1) % (count + 1);
    return place === 0 ? null : place - 1;
  };
  const keys = {
    ArrowLeft: () => choose({ step: state.step - 1 }),
    ArrowRight: () => choose({ step: state.step + 1 }),
    Home: () => choose({ step: 0 }),
    End: () => choose({ step: Infinity }),
    ArrowUp: () => choose({ layer: next(state.layer, pass().layers, 1) }),
    ArrowDown: () => choose({ layer: next(state.layer, pass().layers, -1) }),
    ']': () => choose({ head: next(state.head, pass().heads, 1) }),
    '[': () => choose({ head: next(state.head, pass().heads, -1) }),
    m: () => {
      const names = Array.from($('map').options, (one) => one.value);
      choose({ map: names[(names.indexOf(state.map) + 1) % names.length] });
    },
    d: () => turn((state.pass + 1) % data.passes.length),
    ' ': play,
  };
  addEventListener('keydown', (event) => {
    const busy = event.target.closest?.('select') || (event.key === ' ' && event.target.closest?.('button'));
    if (busy || event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });

  $('verdict').textContent = `${data.verdict[0].toUpperCase()}${data.verdict.slice(1)}.`;
  ink.addEventListener('load', draw);
  ink.src = data.ink;
  update();
})();
