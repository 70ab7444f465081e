import { mkdtemp, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureDevelopmentCertificate } from '../make/development-certificate.ts';

/** The domain of the certificates of tests. */
export const DOMAIN = 'some.test';

/** A fresh folder with an authority and a certificate for `DOMAIN`, as `aenv cert` makes them; the caller removes it. */
export async function certificateFolder(): Promise<{ readonly dir: string; readonly ca: string }> {
  const dir = await mkdtemp(join(tmpdir(), 'aenv-tls-'));
  const { authority } = await ensureDevelopmentCertificate({ domain: DOMAIN, dir });
  return { dir, ca: await readFile(authority, 'utf8') };
}
