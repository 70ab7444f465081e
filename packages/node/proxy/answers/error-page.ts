import type { AenvError } from '@aenv/contracts/errors/aenv-error.ts';

/** A page for people: what happened and what to do, no script, nothing loaded from anywhere. */
export function errorPage(error: AenvError): string {
  const details = Object.entries(error.details)
    .filter(([, value]) => typeof value === 'string' || typeof value === 'number')
    .map(([name, value]) => `<dt>${escapeHtml(name)}</dt><dd>${escapeHtml(String(value))}</dd>`)
    .join('');
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${error.status} ${escapeHtml(error.message)}</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 40rem; margin: 15vh auto; padding: 0 1rem; color: #222 }
h1 { font-size: 1.4rem } dt { float: left; clear: left; width: 7rem; color: #666 } dd { font-family: monospace }
@media (prefers-color-scheme: dark) { body { background: #181818; color: #ddd } dt { color: #999 } }
</style>
</head>
<body>
<h1>${escapeHtml(error.message)}</h1>
<p>${escapeHtml(error.remediation)}</p>
<dl><dt>status</dt><dd>${error.status}</dd><dt>error_code</dt><dd>${escapeHtml(error.code)}</dd>${details}</dl>
</body>
</html>
`;
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
