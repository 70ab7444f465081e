/** Values and errors in the forms that clients get. */
import { inspect } from 'node:util';
import { send } from './events.mjs';

/** The methods by which objects show themselves in notebooks, and the names of these forms for clients. */
const METHODS = {
  _toHtml: 'html',
  _toMarkdown: 'markdown',
  _toSvg: 'svg',
  _toPng: 'png',
  _toJpeg: 'jpeg',
  _toLatex: 'latex',
  _toJavascript: 'javascript',
};
/** the folder of the kernel, as stacks show it */
const HERE = new URL('.', import.meta.url).href;
const MIME_NAMES = {
  'text/plain': 'text',
  'text/html': 'html',
  'text/markdown': 'markdown',
  'image/svg+xml': 'svg',
  'image/png': 'png',
  'image/jpeg': 'jpeg',
  'application/pdf': 'pdf',
  'text/latex': 'latex',
  'application/json': 'json',
  'application/javascript': 'javascript',
};

/** Shows a value in the middle of a cell; a second argument names its media type: `display(svg, 'image/svg+xml')`. */
export function display(value, mime) {
  const forms = mime === undefined ? formsOf(value) : { [MIME_NAMES[mime] ?? mime]: portable(value), extra: {} };
  send({ type: 'result', ...forms, is_main_result: false });
}

export function formsOf(value) {
  const forms = { text: typeof value === 'string' ? value : inspect(value), extra: {} };
  if (value === null || typeof value !== 'object') return forms;
  for (const [method, name] of Object.entries(METHODS)) {
    if (typeof value[method] === 'function') forms[name] = portable(value[method]());
  }
  return forms;
}

function portable(value) {
  return value instanceof Uint8Array ? Buffer.from(value).toString('base64') : value;
}

/** @param details where V8 found it, for errors of syntax, whose stack does not say it */
export function describeError(error, details) {
  if (!(error instanceof Error) && Object.prototype.toString.call(error) !== '[object Error]') {
    const value = typeof error === 'string' ? error : inspect(error);
    return { name: 'Error', value, traceback: `Uncaught ${inspect(error)}` };
  }
  const lines = String(error.stack ?? error).split('\n');
  // From the first frame of the kernel on, nothing is the cell's.
  const ours = lines.findIndex((line) => line.includes(HERE) || line.includes('(node:inspector'));
  const stack = (ours < 0 ? lines : lines.slice(0, ours)).join('\n');
  const place = error.name === 'SyntaxError' && details !== undefined ? `\n    at line ${details.lineNumber + 1}` : '';
  return { name: String(error.name), value: String(error.message), traceback: stack + place };
}
