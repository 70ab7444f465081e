import { z } from 'zod';

/** Media types that this reader takes, OCI and Docker schema 2 alike. */
export const MEDIA_TYPES = {
  indexes: [
    'application/vnd.oci.image.index.v1+json',
    'application/vnd.docker.distribution.manifest.list.v2+json',
  ] as readonly string[],
  manifests: [
    'application/vnd.oci.image.manifest.v1+json',
    'application/vnd.docker.distribution.manifest.v2+json',
  ] as readonly string[],
  configs: [
    'application/vnd.oci.image.config.v1+json',
    'application/vnd.docker.container.image.v1+json',
  ] as readonly string[],
} as const;

const size = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER);

const platform = z.object({
  architecture: z.string(),
  os: z.string(),
  variant: z.string().optional(),
});

/** OCI image specification, "Content Descriptors". Unknown members are allowed there and ignored here. */
const descriptorSchema = z.object({
  mediaType: z.string().max(255),
  digest: z.string().max(160),
  size,
  platform: platform.optional(),
  annotations: z.record(z.string(), z.string()).optional(),
});

/** "Image Index"; Docker's manifest list has the same shape. */
export const indexSchema = z.object({
  schemaVersion: z.literal(2),
  mediaType: z.string().optional(),
  manifests: z.array(descriptorSchema).max(1024),
});

/** "Image Manifest"; Docker's schema 2 has the same shape. */
export const manifestSchema = z.object({
  schemaVersion: z.literal(2),
  mediaType: z.string().optional(),
  config: descriptorSchema,
  layers: z.array(descriptorSchema).max(512),
});

const strings = z.array(z.string()).nullish();

/** "Image Configuration". Docker writes null where a list is empty. */
export const configSchema = z.object({
  architecture: z.string(),
  os: z.string(),
  variant: z.string().optional(),
  config: z
    .object({
      User: z.string().nullish(),
      Env: strings,
      Entrypoint: strings,
      Cmd: strings,
      WorkingDir: z.string().nullish(),
      ExposedPorts: z.record(z.string(), z.unknown()).nullish(),
      Labels: z.record(z.string(), z.string()).nullish(),
    })
    .nullish(),
  rootfs: z.object({ type: z.literal('layers'), diff_ids: z.array(z.string().max(160)).max(512) }),
});

export const layoutSchema = z.object({ imageLayoutVersion: z.string().regex(/^1\./, 'is no version 1 layout') });

export type Descriptor = z.infer<typeof descriptorSchema>;
export type ImageIndex = z.infer<typeof indexSchema>;
export type RawImageConfig = z.infer<typeof configSchema>;
