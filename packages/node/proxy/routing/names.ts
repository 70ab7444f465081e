const PORT = /^[1-9][0-9]{0,4}$/;
const SANDBOX_ID = /^([a-z0-9]{1,63})(?:-[a-z0-9]{1,63})?$/;

/** A TCP port in canonical decimal, 1 to 65535; undefined for anything else (`0`, `080`, `8x`, `65536`). */
export function parsePort(text: string): number | undefined {
  if (!PORT.test(text)) return undefined;
  const port = Number(text);
  return port <= 65_535 ? port : undefined;
}

/**
 * A sandbox id. The old form `<id>-<clientID>` is accepted and its second part dropped; more dashes are refused.
 * @returns undefined when the text is no id
 */
export function parseSandboxId(text: string): string | undefined {
  return SANDBOX_ID.exec(text)?.[1];
}
