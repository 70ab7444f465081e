import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { TestDescriptor, TestLayout } from './layout.ts';

export interface PushTarget {
  /** `http://127.0.0.1:PORT` */
  readonly base: string;
  readonly repository: string;
  readonly authorization?: string;
}

interface Document {
  readonly config?: TestDescriptor;
  readonly layers?: readonly TestDescriptor[];
  readonly manifests?: readonly TestDescriptor[];
}

/** Pushes an image or an index of a layout with all that it refers to. */
export async function push(
  target: PushTarget,
  layout: TestLayout,
  top: TestDescriptor,
  tag: string = top.digest,
): Promise<void> {
  const data = await readFile(layout.blobPath(top.digest));
  const document = JSON.parse(data.toString('utf8')) as Document;
  for (const manifest of document.manifests ?? []) await push(target, layout, manifest);
  for (const blob of [...(document.layers ?? []), ...(document.config === undefined ? [] : [document.config])]) {
    await pushBlob(target, await readFile(layout.blobPath(blob.digest)));
  }
  await expect(201, `${target.base}/v2/${target.repository}/manifests/${tag}`, {
    method: 'PUT',
    headers: { ...authorization(target), 'content-type': top.mediaType },
    body: data,
  });
}

export async function pushBlob(target: PushTarget, data: Buffer): Promise<void> {
  const digest = `sha256:${createHash('sha256').update(data).digest('hex')}`;
  const started = await expect(202, `${target.base}/v2/${target.repository}/blobs/uploads/`, {
    method: 'POST',
    headers: authorization(target),
  });
  const location = new URL(started.headers.get('location') ?? '', target.base);
  location.searchParams.set('digest', digest);
  await expect(201, location.href, {
    method: 'PUT',
    headers: { ...authorization(target), 'content-type': 'application/octet-stream' },
    body: data,
  });
}

async function expect(status: number, url: string, init: RequestInit): Promise<Response> {
  const response = await fetch(url, init);
  const text = await response.text();
  if (response.status !== status) throw new Error(`${init.method} ${url}: ${response.status} ${text}`);
  return response;
}

function authorization(target: PushTarget): Record<string, string> {
  return target.authorization === undefined ? {} : { authorization: target.authorization };
}
