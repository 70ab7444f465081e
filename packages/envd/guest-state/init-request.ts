import type { GuestDrive, InitRequest } from '@aenv/contracts/envd/host-api.ts';
import { RESTORE_EVENTS, type RestoreEvent } from '@aenv/contracts/envd/restore-api.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { isRecord, isStringMap } from './state.ts';

const TEXT_FIELDS = [
  'timestamp',
  'defaultUser',
  'defaultWorkdir',
  'sandboxId',
  'templateId',
  'hostname',
  'machineId',
  'seed',
  'hostSecret',
] as const;

/**
 * Checks the body of POST /init. Unknown fields are ignored, so that an older guest still works with a newer host.
 * @throws AenvError `invalid_request` with the field's name
 */
export function parseInitRequest(body: unknown): InitRequest {
  if (body === undefined) return {};
  if (!isRecord(body)) throw new AenvError('invalid_request', 'the body must be a JSON object');
  const request: Record<string, unknown> = {};
  for (const field of TEXT_FIELDS) {
    const value = body[field];
    if (value === undefined || value === null) continue;
    if (typeof value !== 'string') throw new AenvError('invalid_request', `${field} must be a string`);
    request[field] = value;
  }
  if (request.machineId !== undefined && !/^[0-9a-f]{32}$/.test(String(request.machineId))) {
    throw new AenvError('invalid_request', 'machineId must have 32 hexadecimal digits');
  }
  if (body.event !== undefined && body.event !== null) request.event = parseEvent(body.event);
  for (const field of ['capture', 'letGo'] as const) {
    const value = body[field];
    if (value === undefined || value === null) continue;
    if (typeof value !== 'boolean') throw new AenvError('invalid_request', `${field} must be true or false`);
    request[field] = value;
  }
  if (request.letGo === true && request.event === undefined) {
    throw new AenvError('invalid_request', 'letGo needs an event');
  }
  if (body.envVars !== undefined && body.envVars !== null) {
    if (!isStringMap(body.envVars)) throw new AenvError('invalid_request', 'envVars must map names to strings');
    request.envVars = body.envVars;
  }
  if (body.accessToken !== undefined) {
    if (body.accessToken !== null && typeof body.accessToken !== 'string') {
      throw new AenvError('invalid_request', 'accessToken must be a string or null');
    }
    request.accessToken = body.accessToken;
  }
  if (body.drives !== undefined && body.drives !== null) request.drives = parseDrives(body.drives);
  return request;
}

function parseDrives(value: unknown): readonly GuestDrive[] {
  if (!Array.isArray(value) || !value.every(isDrive)) {
    throw new AenvError('invalid_request', 'drives must be drives with label, mountPath and readOnly');
  }
  return value;
}

function isDrive(value: unknown): value is GuestDrive {
  if (!isRecord(value)) return false;
  const { label, mountPath, readOnly, subPath } = value;
  return (
    typeof label === 'string' &&
    typeof mountPath === 'string' &&
    mountPath.startsWith('/') &&
    typeof readOnly === 'boolean' &&
    (subPath === undefined || typeof subPath === 'string')
  );
}

/** @throws AenvError `invalid_request` */
export function parseEvent(value: unknown): RestoreEvent {
  const event = RESTORE_EVENTS.find((known) => known === value);
  if (event === undefined) throw new AenvError('invalid_request', `event must be one of ${RESTORE_EVENTS.join(', ')}`);
  return event;
}

/**
 * RFC 3339 to seconds since the epoch, as a decimal number with nine digits after the point.
 * @throws AenvError `invalid_request`
 */
export function parseTimestamp(text: string): string {
  const match = /^(\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d)(?:\.(\d{1,9})\d*)?([Zz]|[+-]\d\d:\d\d)$/.exec(text);
  const ms = match === null ? Number.NaN : Date.parse(`${match[1]}${match[3]}`);
  if (!Number.isFinite(ms) || ms < 0) throw new AenvError('invalid_request', 'timestamp must be an RFC 3339 time');
  return `${ms / 1000}.${(match?.[2] ?? '').padEnd(9, '0')}`;
}
