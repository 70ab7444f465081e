import type { Route } from '../http/route.ts';
import { openApiDocument } from '../openapi.ts';
import type { ApiParts } from '../parts.ts';
import { apiKeyRoutes } from './api-keys.ts';
import { coldSandboxRoutes } from './cold-sandbox.ts';
import { createSandboxRoutes } from './create-sandbox.ts';
import { forkSandboxRoutes } from './fork-sandbox.ts';
import { imageTemplateRoutes } from './image-templates.ts';
import { listSandboxesRoutes } from './list-sandboxes.ts';
import { observationRoutes } from './observation.ts';
import { oneSandboxRoutes } from './one-sandbox.ts';
import { serviceRoutes } from './service.ts';
import { snapshotRoutes } from './snapshots.ts';
import { storageRoutes } from './storage.ts';
import { templateBuildRoutes } from './template-builds.ts';
import { templateTagRoutes } from './template-tags.ts';
import { templateRoutes } from './templates.ts';
import { unservedRoutes } from './unserved.ts';

/** Every route, in the order in which they are matched: a fixed word stands before a parameter in its place. */
export function allRoutes(parts: ApiParts): readonly Route[] {
  let document: string | undefined;
  const routes: readonly Route[] = [
    ...serviceRoutes(parts, () => {
      document ??= JSON.stringify(openApiDocument(routes, parts.version), null, 2);
      return document;
    }),
    ...templateTagRoutes(parts),
    ...unservedRoutes(parts),
    ...apiKeyRoutes(parts),
    ...storageRoutes(parts),
    ...createSandboxRoutes(parts),
    ...coldSandboxRoutes(parts),
    ...listSandboxesRoutes(parts),
    ...observationRoutes(parts),
    ...oneSandboxRoutes(parts),
    ...forkSandboxRoutes(parts),
    ...snapshotRoutes(parts),
    ...imageTemplateRoutes(parts),
    ...templateBuildRoutes(parts),
    ...templateRoutes(parts),
  ];
  return routes;
}
