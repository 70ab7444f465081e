import type { ErrorSpec } from './error-spec.ts';
import { GUEST_ERRORS } from './guest-errors.ts';
import { SNAPSHOT_ERRORS } from './snapshot-errors.ts';
import { STORAGE_ERRORS } from './storage-errors.ts';
import { TEMPLATE_ERRORS } from './template-errors.ts';

/** Every error code of the product. `docs/reference/errors.md` is generated from this file. */
const registry = {
  // What the client sent.
  invalid_request: {
    status: 400,
    summary: 'The request does not have the shape that this route takes.',
    remediation: 'Correct the field named in the message; the API reference lists every field with its type.',
  },
  unsupported_field: {
    status: 400,
    summary: 'The field is known, but this server does not serve it yet.',
    remediation: 'Leave the field out, or use a server version that lists it in its changelog.',
  },
  invalid_timeout: {
    status: 400,
    summary: 'The time to live is not within the allowed range.',
    remediation: 'Send whole seconds, greater than 0 and at most `limits.max_timeout_seconds`.',
  },
  unauthorized: {
    status: 401,
    summary: 'No API key, or one that this server does not know.',
    remediation: 'Send the key in the X-API-Key header; `aenv up` prints the file that holds it.',
  },
  forbidden: {
    status: 403,
    summary: 'The credentials are valid, but do not allow this.',
    remediation: 'Use credentials of the team that owns the resource, or the traffic token of a private sandbox.',
  },
  route_not_found: {
    status: 404,
    summary: 'No such route.',
    remediation: 'Check the path and the method; the API reference lists all routes.',
  },
  sandbox_not_found: {
    status: 404,
    summary: 'No sandbox with this id is alive.',
    remediation: 'List sandboxes with `aenv ls`; an ended sandbox cannot come back.',
  },
  template_not_found: {
    status: 404,
    summary: 'No template with this id, alias or tag.',
    remediation: 'List templates with `aenv template ls`.',
  },
  api_key_not_found: {
    status: 404,
    summary: 'No valid API key with this id.',
    remediation: 'List keys with `aenv key ls`; the key of the node itself is a file and has no id.',
  },
  method_not_allowed: {
    status: 405,
    summary: 'The route exists, but not with this method.',
    remediation: 'Use one of the methods in the Allow header.',
  },
  sandbox_not_running: {
    status: 409,
    summary: 'The sandbox is in a state that does not allow this.',
    remediation: 'Look at its state with `aenv get ID` and repeat when it is running.',
    retryable: true,
  },
  sandbox_paused: {
    status: 409,
    summary: 'The sandbox is paused already.',
    remediation: 'Resume it with `aenv resume ID`, or by connecting to it.',
  },
  sandbox_not_paused: {
    status: 409,
    summary: 'The sandbox is not paused.',
    remediation: 'Nothing needs to be resumed; look at its state with `aenv get ID`.',
  },
  body_too_large: {
    status: 413,
    summary: 'The JSON body is larger than the limit.',
    remediation: 'JSON bodies are limited to 1 MiB; files go through /files, which has no limit.',
  },
  request_timeout: {
    status: 408,
    summary: 'The request did not arrive in time.',
    remediation: 'Send headers and JSON bodies without long pauses.',
    retryable: true,
  },
  headers_too_large: {
    status: 431,
    summary: 'The header fields of the request are larger than the limit.',
    remediation: 'Send fewer or shorter header fields; cookies are the usual cause.',
  },
  not_served: {
    status: 501,
    summary: 'The route is known from the E2B API, but this server does not serve it yet.',
    remediation: 'Do without the feature named in the message, or use a server version that lists it in its changelog.',
  },
  // The data plane.
  bad_route: {
    status: 400,
    summary: 'The request does not say clearly which port of which sandbox it is for.',
    remediation:
      'Use a host name of the form PORT-SANDBOXID.DOMAIN, or send both routing headers, e2b-sandbox-id and e2b-sandbox-port.',
  },
  too_many_connections: {
    status: 429,
    summary: 'The sandbox has as many open connections through the proxy as it may have.',
    remediation: 'Close connections, or raise `proxy.max_connections_per_sandbox`.',
    retryable: true,
  },
  sandbox_gone: {
    status: 502,
    summary: 'The sandbox was not found or does not run.',
    remediation: 'Check it with `aenv get ID`; create a new one if it has ended.',
  },
  port_not_open: {
    status: 502,
    summary: 'The sandbox runs, but nothing listens on this port.',
    remediation: 'Start the server in the sandbox, or correct the port.',
    retryable: true,
  },
  upstream_failed: {
    status: 502,
    summary: 'The server in the sandbox broke the connection before it answered.',
    remediation: 'Look at the log of the server in the sandbox.',
    retryable: true,
  },
  upstream_timeout: {
    status: 504,
    summary: 'The sandbox accepted no connection in time.',
    remediation: 'Check whether the sandbox is busy; raise `proxy.connect_timeout_ms` if it always is.',
    retryable: true,
  },
  // Running sandboxes.
  boot_failed: {
    status: 500,
    summary: 'The microVM did not come up.',
    remediation: 'Read the end of its serial log in the message; run `aenv doctor` to check this host.',
    retryable: true,
  },
  restore_failed: {
    status: 500,
    summary: 'A captured microVM could not be continued.',
    remediation: 'Read what the VMM said in the message; run `aenv snapshot verify` on what was restored.',
    retryable: true,
  },
  capture_failed: {
    status: 500,
    summary: 'The state of a microVM could not be written down.',
    remediation: 'Read the reason in the message; run `aenv doctor` to check this host.',
    retryable: true,
  },
  start_command_failed: {
    status: 500,
    summary: 'The start command of the template failed, or the sandbox was not ready in time.',
    remediation: 'Read its last output in the message; correct the template, or build it again.',
  },
  vm_died: {
    status: 500,
    summary: 'The process of the microVM ended unexpectedly.',
    remediation: 'Read its last lines in the message; run `aenv doctor` to check this host.',
    retryable: true,
  },
  capacity_exhausted: {
    status: 503,
    summary: 'This node has no room for another sandbox.',
    remediation: 'Delete sandboxes that are not needed, or raise the limit named in the message.',
    retryable: true,
  },
  shutting_down: {
    status: 503,
    summary: 'The daemon is shutting down.',
    remediation: 'Repeat the request when it is up again.',
    retryable: true,
  },
  no_space: {
    status: 507,
    summary: 'The disk of the host is full.',
    remediation: 'Free space under the home folder of aenv.',
  },
  // This host.
  qemu_missing: {
    status: 500,
    summary: 'No usable QEMU on this host.',
    remediation: 'Run `aenv doctor --fix`.',
  },
  host_command_failed: {
    status: 500,
    summary: 'A program of the host ended with an error.',
    remediation: 'Its last lines are in the message; `aenv doctor` checks the host.',
  },
  host_command_missing: {
    status: 500,
    summary: 'A program of the host that is needed is not installed.',
    remediation: 'Run `aenv doctor --fix`, which installs the missing packages.',
  },
  host_unsupported: {
    status: 500,
    summary: 'This host lacks something that aenv needs.',
    remediation: 'Run `aenv doctor`, which names the check that fails and the command that mends it.',
  },
  port_in_use: {
    status: 500,
    summary: 'Another process listens on the address of the API.',
    remediation: 'End it, or choose another address with `--listen` or AENV_LISTEN.',
  },
  config_invalid: {
    status: 500,
    summary: 'The configuration has an unknown key or a bad value.',
    remediation: 'Correct the key named in the message; docs/reference/configuration.md lists all keys.',
  },
  already_running: {
    status: 500,
    summary: 'A daemon with this home folder already runs.',
    remediation: 'Use it, or stop it with `aenv down`.',
  },
  daemon_failed: {
    status: 500,
    summary: 'The daemon did not start, or did not end.',
    remediation: 'Read the last lines of its log in the message; `aenv doctor` checks the host.',
  },
  network_exhausted: {
    status: 503,
    summary: 'No free network slot or no free address range.',
    remediation: 'Delete sandboxes, or set `network.cidr` to a range that the host does not use.',
    retryable: true,
  },
  asset_failed: {
    status: 500,
    summary: 'Something that a microVM boots could not be built.',
    remediation: 'The message names the step and its last lines; mend it and run `aenv up` again.',
  },
  image_invalid: {
    status: 400,
    summary: 'The image is damaged or uses something that is not supported.',
    remediation: 'The message names the blob or the entry; build or push the image again.',
  },
  image_reference_invalid: {
    status: 400,
    summary: 'This is not the name of an image.',
    remediation: 'Use NAME, HOST/NAME:TAG or HOST/NAME@sha256:DIGEST; on this host also oci:DIR or an archive.',
  },
  image_not_found: {
    status: 404,
    summary: 'The registry has no such image, or no such tag.',
    remediation: 'Check the spelling and the tag; names without a host are looked up in `registry.search`.',
  },
  image_platform_missing: {
    status: 400,
    summary: 'The image exists, but not for the platform of this host.',
    remediation: 'The message lists the platforms that it has; push the image for this one too.',
  },
  digest_mismatch: {
    status: 502,
    summary: 'What a registry or a mirror delivered is not what its digest says.',
    remediation: 'The message has both digests. Try again; if it stays, the registry or a proxy before it is damaged.',
    retryable: true,
  },
  registry_auth: {
    status: 400,
    summary: 'The registry refuses to give the image to these credentials, or to nobody without any.',
    remediation: "Log in with `docker login HOST`, or correct the credentials in Docker's config.json.",
  },
  registry_unavailable: {
    status: 503,
    summary: 'The registry cannot be reached, or answers with errors.',
    remediation: 'The message names the host and the reason; check the network, then try again.',
    retryable: true,
  },
  registry_rate_limited: {
    status: 503,
    summary: 'The registry asks to wait for longer than is allowed.',
    remediation: 'Try again later; logged-in users and mirrors (`registry.mirrors`) usually have higher limits.',
    retryable: true,
  },
  registry_untrusted: {
    status: 502,
    summary: 'The certificate of the registry is not signed by an authority that this host trusts.',
    remediation: 'Give its authority in `registry.ca` as HOST=FILE, or list the host in `registry.insecure`.',
  },
  registry_address_refused: {
    status: 400,
    summary: 'The registry, or where it leads to, has an address that is not for requests of this kind.',
    remediation:
      'Link-local and metadata addresses are refused always, private ones when a public registry leads there.',
  },
  layer_corrupt: {
    status: 500,
    summary: 'A layer is damaged: a checksum, a length or a structure does not hold.',
    remediation: 'The message names the layer and the place; remove it and pull or build the template again.',
  },
  layer_unavailable: {
    status: 503,
    summary: 'A part of a layer is not here yet, and its registry has not answered for longer than is allowed.',
    remediation: 'Check the network to the registry in the message; `registry.offline_after_seconds` is the limit.',
    retryable: true,
  },
  layer_too_scattered: {
    status: 500,
    summary: 'The layer has more separate pieces than readers of the format take.',
    remediation: 'Export the whole chain as one layer instead of its top alone.',
  },
  io_failed: {
    status: 500,
    summary: 'The disk of the host failed while a layer was read or written.',
    remediation: 'The message names the file; look at the kernel log of the host, then start the sandbox again.',
  },
  block_daemon_failed: {
    status: 503,
    summary: 'The process that serves disks does not start, or ended while it was asked for something.',
    remediation: 'Read the end of `logs/blockd.log` in the home folder; it is started again by itself.',
    retryable: true,
  },
  ...SNAPSHOT_ERRORS,
  ...TEMPLATE_ERRORS,
  ...STORAGE_ERRORS,
  ledger_failed: {
    status: 500,
    summary: 'The ledger could not be read or written.',
    remediation: 'Check space and permissions of the home folder; the ledger is never repaired by guessing.',
  },
  ...GUEST_ERRORS,
  internal: {
    status: 500,
    summary: 'A fault of aenv itself.',
    remediation: 'Report it with the log lines of this request id.',
  },
} satisfies Record<string, ErrorSpec>;

/** A code of the registry. */
export type ErrorCode = keyof typeof registry;

/** All error codes with their specifications. */
export const ERRORS: Readonly<Record<ErrorCode, ErrorSpec>> = registry;
