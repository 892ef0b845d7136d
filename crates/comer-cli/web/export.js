// Copies and files for the user.

export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Without a secure context, as on a phone in the same network, only this works.
    const area = document.createElement('textarea');
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
  }
}

export function saveFile(name, type, text) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
