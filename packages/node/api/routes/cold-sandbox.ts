import { type AttachedDrive, mountPathOf } from '@aenv/contracts/api/attached-drive.ts';
import { NewColdSandbox } from '@aenv/contracts/api/cold-sandbox.ts';
import { Sandbox } from '@aenv/contracts/api/sandbox.ts';
import type { NewDrive } from '../../templates/drives/contract.ts';
import { type Route, route } from '../http/route.ts';
import type { ApiParts } from '../parts.ts';
import { presentSandbox } from '../present/sandbox.ts';
import { sizesOf } from '../query/template-sizes.ts';
import { DEFAULT_TIMEOUT, timeToLive } from '../query/timeouts.ts';
import { createOptions } from './create-sandbox.ts';

/** Sandboxes that boot an image without a template of a name. Not part of the E2B API. */
export function coldSandboxRoutes({ sandboxes, images, drives, settings }: ApiParts): readonly Route[] {
  return [
    route({
      method: 'POST',
      path: '/sandboxes-cold',
      summary: 'Boot a sandbox from an image of a registry, which is pulled where it is not here',
      body: NewColdSandbox,
      answers: [{ status: 201, description: 'the sandbox runs', schema: Sandbox }],
      errors: [404, 413, 422, 500, 502, 503, 507],
      handle: async ({ body }) => {
        const { image, allowInternetAccess, cpuCount, memoryMB, diskSizeMB, attachedDrives, extraBootArgs, ...rest } =
          body;
        const seconds = timeToLive(body.timeout ?? DEFAULT_TIMEOUT.v1, settings.maxTimeoutSeconds);
        const asked = (templateID: string) => {
          const options = { ...rest, templateID, allow_internet_access: allowInternetAccess };
          return { ...createOptions(options, body.secure ?? false, seconds), cold: true };
        };
        // What is wrong with the rest is told before anything is fetched.
        asked('cold');
        const template = await images.prepareCold(image, sizesOf({ cpuCount, memoryMB, diskSizeMB }));
        const view = await drives.use((attachedDrives ?? []).map(newDrive), (starts) =>
          sandboxes.create({ ...asked(template), drives: starts }),
        );
        return { status: 201, body: presentSandbox(view, settings.domain) };
      },
    }),
  ];
}

function newDrive(drive: AttachedDrive): NewDrive {
  const { driveID: driveId, source, readOnly, subPath, diskSizeMB } = drive;
  return {
    ...{ driveId, image: source.image, mountPath: mountPathOf(drive), readOnly: readOnly ?? true },
    ...(subPath == null ? {} : { subPath }),
    ...(diskSizeMB == null ? {} : { sizeMb: diskSizeMB }),
  };
}
