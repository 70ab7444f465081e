/** `make docs`: writes docs/reference anew. */
import { writeReferences } from './references.ts';

const changed = await writeReferences();
console.log(changed.length === 0 ? 'docs: all current' : `docs: wrote ${changed.join(', ')}`);
