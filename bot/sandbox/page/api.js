// Speaks with the control API of the server that served this page. Nothing else is contacted.

const token = document.querySelector('meta[name="sandbox-token"]').content;
const headers = { "X-Sandbox-Token": token };

export class Refused extends Error {}

async function checked(answer) {
  if (answer.ok) return answer;
  const body = await answer.json().catch(() => ({}));
  const error = new Refused(body.error || `The server answered ${answer.status}.`);
  error.status = answer.status;
  throw error;
}

export async function read(path, query = {}) {
  const asked = new URLSearchParams(query);
  const answer = await checked(await fetch(`/sandbox/${path}?${asked}`, { headers }));
  return answer.json();
}

export async function write(path, body) {
  const answer = await fetch(`/sandbox/${path}`, {
    method: "POST",
    headers: { ...headers, "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  return (await checked(answer)).json();
}

export async function upload(fields, file) {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) if (value) form.append(name, value);
  form.append("file", file, file.name);
  const answer = await fetch("/sandbox/file", { method: "POST", headers, body: form });
  return (await checked(answer)).json();
}

const blobs = new Map();

export function blobUrl(fileId) {
  if (!blobs.has(fileId)) {
    const loading = fetch(`/sandbox/file?file_id=${encodeURIComponent(fileId)}`, { headers })
      .then(checked)
      .then((answer) => answer.blob())
      .then((blob) => URL.createObjectURL(blob));
    loading.catch(() => blobs.delete(fileId));
    blobs.set(fileId, loading);
  }
  return blobs.get(fileId);
}

export async function download(fileId, name) {
  const link = document.createElement("a");
  link.href = await blobUrl(fileId);
  link.download = name;
  link.click();
}
