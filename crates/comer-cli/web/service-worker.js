// Keeps the page for use without its server. The network comes first, so that a new version is seen at once; requests to
// the API pass through.

const CACHE = 'comer-shell';

/** All files of the page, relative to this one. */
const FILES = [
  './', 'app.js', 'comer-ink-template.js', 'comer-ink.css', 'comer-ink.js', 'controls.css', 'default-engine.js', 'engine-error.js', 'engine.js', 'export.js', 'formula-view.js',
  'history-store.js', 'history.js', 'icon-maskable.svg', 'icon.svg', 'ink-surface.js', 'ink.js', 'latex.js', 'manifest.webmanifest',
  'picture-stage.js', 'picture-warp.js', 'pictures.js', 'reading.js', 'result-panel.js', 'server-engine.js', 'session.js',
  'shortcuts.js', 'speech.js', 'style.css', 'theme.js', 'toast.js', 'undo.js', 'viewport.js',
];

self.addEventListener('install', (event) => {
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(FILES)).then(() => self.skipWaiting()));
});

self.addEventListener('activate', (event) => {
  event.waitUntil(self.clients.claim());
});

self.addEventListener('fetch', (event) => {
  const { request } = event;
  const name = new URL(request.url).pathname.slice(new URL(self.registration.scope).pathname.length) || './';
  if (request.method === 'GET' && new URL(request.url).origin === self.location.origin && FILES.includes(name)) {
    event.respondWith(fresh(request));
  }
});

async function fresh(request) {
  const cache = await caches.open(CACHE);
  try {
    const response = await fetch(request);
    if (response.ok) {
      await cache.put(request, response.clone());
    }
    return response;
  } catch (error) {
    const kept = await cache.match(request, { ignoreSearch: true });
    if (kept) {
      return kept;
    }
    throw error;
  }
}
