// Sets the theme before anything is shown.

(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem('comer.theme');
  } catch {
    // Without storage the system decides.
  }
  const dark = matchMedia('(prefers-color-scheme: dark)').matches;
  document.documentElement.dataset.theme = chosen ?? (dark ? 'dark' : 'light');
})();
