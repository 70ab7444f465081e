/** Events on descriptor 4: lines of JSON in ASCII, since clients decode every network chunk by itself, and words. */
import { writeSync } from 'node:fs';

const EVENTS_FD = 4;

export function send(event) {
  const line = JSON.stringify(event).replace(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  write(`${line}\n`);
}

export function sendWord(word) {
  write(`.${word}\n`);
}

function write(text) {
  let data = Buffer.from(text, 'latin1');
  while (data.length > 0) data = data.subarray(writeSync(EVENTS_FD, data));
}
