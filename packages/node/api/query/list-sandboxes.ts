import type { ListSandboxesV2Query } from '@aenv/contracts/api/list-query.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { z } from '@hono/zod-openapi';
import type { ListQuery } from '../../sandboxes/contract.ts';
import { metadataFilter } from './metadata-filter.ts';
import { startedAfter } from './moment.ts';

export const MAX_PAGE = 100;

/** @throws AenvError `invalid_request` */
export function listQuery(query: z.output<typeof ListSandboxesV2Query>): ListQuery {
  const metadata = metadataFilter(query.metadata);
  const template = templateFilter(query.template);
  return {
    states: statesOf(query.state),
    ...(metadata === undefined ? {} : { metadata }),
    ...(query.startedAfter === undefined ? {} : { startedAfter: startedAfter(query.startedAfter) }),
    ...(template === undefined ? {} : { template }),
    order: query.order ?? 'desc',
    limit: query.limit ?? MAX_PAGE,
    ...(query.nextToken === undefined || query.nextToken === '' ? {} : { nextToken: query.nextToken }),
  };
}

function statesOf(text: string | undefined): ListQuery['states'] {
  if (text === undefined || text === '') return ['running', 'paused'];
  const states = new Set<'running' | 'paused'>();
  for (const word of text.split(',')) {
    const state = word.trim();
    if (state !== 'running' && state !== 'paused') {
      throw new AenvError('invalid_request', `query.state: must be a comma list of running, paused`);
    }
    states.add(state);
  }
  return [...states];
}

function templateFilter(text: string | undefined): string | undefined {
  const template = text?.trim().toLowerCase();
  if (template === undefined || template === '') return undefined;
  if (template.includes(':'))
    throw new AenvError('invalid_request', 'query.template: takes an id or alias without a tag');
  return template;
}
