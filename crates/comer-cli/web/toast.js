// A short message at the bottom of the page, with an action if there is one.

let timer = 0;

export function showToast(message, action = null) {
  const toast = document.getElementById('toast');
  const button = toast.querySelector('button');
  clearTimeout(timer);
  toast.hidden = false;
  toast.querySelector('span').textContent = message;
  button.hidden = !action;
  button.textContent = action?.label ?? '';
  button.onclick = () => {
    toast.hidden = true;
    action?.run();
  };
  timer = setTimeout(() => {
    toast.hidden = true;
  }, 8000);
}
