// What stands packed in this document.

/** @param {string} id of an element whose text is base64 of gzip of JSON */
async function unpack(id) {
  const element = document.getElementById(id);
  const bytes = bytesOf(element.textContent.trim());
  element.remove();
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

function bytesOf(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
  return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
}
