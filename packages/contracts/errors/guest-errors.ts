import type { ErrorSpec } from './error-spec.ts';

/** Inside a sandbox: what envd answers. Its bodies carry only `code` and `message`, as E2B clients expect them. */
export const GUEST_ERRORS = {
  envd_unauthorized: {
    status: 401,
    summary: 'No access token, a wrong one, or a signature that is wrong or expired.',
    remediation: "Send the sandbox's envdAccessToken as X-Access-Token, or sign the URL again.",
  },
  user_unknown: {
    status: 401,
    summary: 'The sandbox has no such user.',
    remediation: "Name a user of the guest's /etc/passwd, or leave the user out to get the default one.",
  },
  path_not_found: {
    status: 404,
    summary: 'Nothing exists at this path in the sandbox.',
    remediation: "Check the path; relative paths start in the user's home.",
  },
  path_exists: {
    status: 409,
    summary: 'Something exists already at this path in the sandbox.',
    remediation: 'Choose another path or remove what is there.',
  },
  path_invalid: {
    status: 400,
    summary: 'The path cannot be used for this: too long, the wrong type, or through something that is no folder.',
    remediation: 'The message names the path and what is wrong with it.',
  },
  process_not_found: {
    status: 404,
    summary: 'No process with this pid or tag was started here and still runs.',
    remediation: 'List processes; the result of an ended one is kept for 30 seconds.',
  },
  program_not_found: {
    status: 404,
    summary: 'The program to start does not exist in the sandbox.',
    remediation: 'Check the name and PATH; scripts also need their interpreter.',
  },
  program_not_executable: {
    status: 403,
    summary: 'The program to start exists, but this user cannot run it.',
    remediation: 'Check its mode, its format and the user; a script needs a #! line.',
  },
  arguments_too_long: {
    status: 400,
    summary: 'The arguments and the environment are longer than the kernel allows.',
    remediation: 'Pass large data through stdin or a file: one argument has at most 128 KiB.',
  },
  input_refused: {
    status: 500,
    summary: 'The process takes no such input: stdin is closed, or it is (not) a terminal.',
    remediation: 'Start it with stdin or with a terminal, and send the matching kind of input.',
  },
  stdin_of_terminal: {
    status: 500,
    summary: 'A terminal has no stdin that could be closed.',
    remediation: 'Send the end-of-transmission character (^D) as input of the terminal.',
  },
  process_deadline: {
    status: 504,
    summary: 'The deadline of the call has passed; a process that it started was killed.',
    remediation: 'Raise the timeout of the command, or start it in the background.',
  },
  output_not_read: {
    status: 429,
    summary: 'The client has stopped reading the output of a process and was dropped.',
    remediation: 'Attach again by pid and keep reading; what was written meanwhile is lost.',
  },
  watch_overflow: {
    status: 500,
    summary: 'More was changed in a watched directory than could be told in time, and some changes were lost.',
    remediation: 'List the directory and watch it again; read the events faster, or watch a smaller directory.',
    retryable: true,
  },
  watch_deadline: {
    status: 504,
    summary: 'The deadline of the call that watches a directory has passed.',
    remediation: 'Watch it again, or without a deadline (`timeoutMs: 0`).',
  },
  watcher_not_found: {
    status: 404,
    summary: 'No watcher with this id.',
    remediation: 'Create one; watchers end when they are removed, and when the guest daemon is started again.',
  },
  too_many_watches: {
    status: 429,
    summary: 'The sandbox watches as much as it can.',
    remediation: 'Remove watchers, or watch a directory with fewer directories below it.',
  },
  not_acceptable: {
    status: 406,
    summary: 'The client accepts none of the encodings that this answer can have.',
    remediation: 'Accept `identity` or `gzip`.',
  },
  drive_unusable: {
    status: 422,
    summary: 'An attached drive cannot be mounted where it was asked for.',
    remediation: 'Mount it at a folder, or at a path that is not there yet; `subPath` must be a folder of the drive.',
  },
  not_implemented: {
    status: 501,
    summary: 'This version of the guest daemon does not have the method.',
    remediation: 'Use a sandbox of a template that was built with a newer version.',
  },
} satisfies Record<string, ErrorSpec>;
