import { z } from '@hono/zod-openapi';
import { LogLevel } from './observation.ts';
import { BuildLogEntry } from './template-build.ts';
import { unserved } from './unserved.ts';

const Name = z.string().max(256);

/** Members of bodies that say how large sandboxes shall be. */
export const TemplateSizes = {
  cpuCount: z.int().min(1).max(64).nullish().openapi({ description: '1 when absent' }),
  memoryMB: z.int().min(128).max(1_048_576).nullish().openapi({ description: '512 when absent' }),
  diskSizeMB: z
    .int()
    .min(16)
    .max(2 * 1024 * 1024)
    .nullish()
    .openapi({ description: 'size of the disk, sparse; 10 GiB when absent. Not part of the E2B API' }),
};

export const ImageName = z
  .string()
  .min(1, 'required')
  .max(4096)
  .openapi({ description: 'an image of a registry', example: 'debian:13-slim' });

const Tags = z.array(z.string().max(256)).max(32);

/** Body of POST /templates/tags. */
export const NewTemplateTags = z
  .strictObject({ target: z.string().min(1, 'required').max(256), tags: Tags.min(1, 'required') })
  .openapi('NewTemplateTags');

/** Body of DELETE /templates/tags. */
export const OldTemplateTags = z
  .strictObject({ name: z.string().min(1, 'required').max(256), tags: Tags.min(1, 'required') })
  .openapi('OldTemplateTags');

export const AssignedTags = z.object({ buildID: z.string(), tags: z.array(z.string()) }).openapi('AssignedTags');

export const TemplateTag = z
  .object({ tag: z.string(), buildID: z.string(), createdAt: z.string().openapi({ format: 'date-time' }) })
  .openapi('TemplateTag');
export type TemplateTag = z.output<typeof TemplateTag>;

/** Body of PATCH /templates/{templateID}, in both versions. */
export const TemplateChange = z
  .strictObject({
    public: z.literal(false, 'not supported by this server: public templates').nullish().openapi({
      description: 'templates of a node are never public',
    }),
  })
  .openapi('TemplateChange');

export const TemplateNames = z.object({ names: z.array(z.string()) }).openapi('TemplateNames');

/** Body of POST /v3/templates. */
export const NewTemplate = z
  .strictObject({
    name: Name.nullish().openapi({ description: 'alias, or namespace/alias, either with :tag', example: 'my-tools' }),
    alias: Name.nullish().openapi({ description: 'the name, as older clients send it' }),
    tags: Tags.nullish().openapi({ description: 'what points at the version; `default` when there is none' }),
    ...TemplateSizes,
    minFreeDiskMb: unserved('free space on disks; use diskSizeMB'),
    teamID: z.string().nullish().openapi({ description: 'ignored: a node has one team', deprecated: true }),
  })
  .refine((body) => (body.name ?? body.alias ?? '') !== '', { message: 'required', path: ['name'] })
  .openapi('NewTemplate');
export type NewTemplate = z.output<typeof NewTemplate>;

export const RequestedTemplate = z
  .object({
    templateID: z.string(),
    buildID: z.string(),
    public: z.boolean(),
    aliases: z.array(z.string()),
    names: z.array(z.string()),
    tags: z.array(z.string()),
  })
  .openapi('RequestedTemplate');
export type RequestedTemplate = z.output<typeof RequestedTemplate>;

const Password = z.strictObject({ type: z.literal('registry'), username: z.string(), password: z.string() });

const command = z
  .string()
  .min(1)
  .max(64 * 1024)
  .refine((text) => !text.includes('\0'), 'contains a zero byte')
  .nullish();

/** Body of POST /v2/templates/{templateID}/builds/{buildID}. */
export const TemplateBuildStart = z
  .strictObject({
    fromImage: ImageName,
    fromImageRegistry: Password.nullish().openapi({
      description: "credentials for the registry, instead of those of Docker's configuration on the host",
    }),
    startCmd: command.openapi({ description: 'runs in every sandbox of the template, as the user of the image' }),
    readyCmd: command.openapi({ description: 'repeated until it succeeds, before a sandbox counts as running' }),
    readyProbe: z
      .strictObject({
        port: z.int().min(1).max(65535),
        path: z
          .string()
          .max(1024)
          .regex(/^\/[!-~]*$/, 'must begin with a slash')
          .nullish(),
      })
      .nullish()
      .openapi({
        description: 'HTTP server that has to answer with 2xx, instead of readyCmd. Not part of the E2B API',
      }),
    steps: unserved('build steps'),
    fromTemplate: unserved('building on top of a template'),
    force: z.boolean().nullish().openapi({ description: 'ignored: an image is looked for anew in every build' }),
    timeoutSeconds: z
      .int()
      .min(1)
      .max(86_400)
      .nullish()
      .openapi({ description: 'limit for the build; none when absent. Not part of the E2B API' }),
  })
  .refine((body) => body.readyCmd == null || body.readyProbe == null, {
    message: 'not together with readyCmd',
    path: ['readyProbe'],
  })
  .openapi('TemplateBuildStart');
export type TemplateBuildStart = z.output<typeof TemplateBuildStart>;

const whole = (digits: number) =>
  z
    .string()
    .regex(new RegExp(`^\\d{1,${digits}}$`), 'must be a whole number')
    .transform(Number)
    .optional();

/** Query of GET /templates/{templateID}/builds/{buildID}/logs. */
export const TemplateBuildLogsQuery = z.strictObject({
  cursor: whole(15).openapi({ type: 'integer', description: 'milliseconds since the epoch; entries from there on' }),
  limit: whole(3)
    .pipe(z.int().min(0).max(100, 'must be at most 100').optional())
    .openapi({ type: 'integer', description: '0 to 100; 100 when absent' }),
  direction: z.enum(['forward', 'backward']).optional().openapi({ description: 'forward when absent' }),
  level: LogLevel.optional().openapi({ description: 'the least level' }),
  source: z.enum(['temporary', 'persistent']).optional().openapi({ description: 'ignored: there is one' }),
});

export const TemplateBuildLogs = z.object({ logs: z.array(BuildLogEntry) }).openapi('TemplateBuildLogs');
export type TemplateBuildLogs = z.output<typeof TemplateBuildLogs>;
