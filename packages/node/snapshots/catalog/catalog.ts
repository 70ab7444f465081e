import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { Ledger } from '../../store/ledger.ts';
import type {
  SnapshotName,
  SnapshotPage,
  SnapshotQuery,
  SnapshotRecord,
  SnapshotUsage,
} from '../../store/snapshot-record.ts';
import { DEFAULT_TAG, parseTemplateReference } from '../../templates/reference.ts';
import type { SnapshotRepository, SnapshotVerification } from '../contract.ts';
import type { SnapshotCatalog } from './contract.ts';

export interface CatalogOptions {
  readonly ledger: Pick<Ledger, 'snapshots' | 'templates' | 'sandboxes'>;
  readonly repository: Pick<SnapshotRepository, 'verify'>;
  /** removes captured machines with their disks */
  readonly checkpoints: { remove(id: string): Promise<void> };
  /** the only one of this node */
  readonly namespace: string;
  readonly log: Logger;
}

/** Sandboxes that a message names. */
const SHOWN = 10;

/** The snapshots of this node, straight from the ledger. */
export class Catalog implements SnapshotCatalog {
  readonly #options: CatalogOptions;

  constructor(options: CatalogOptions) {
    this.#options = options;
  }

  find(reference: string): SnapshotRecord | undefined {
    const { ledger, namespace } = this.#options;
    const { namespace: asked, name, tag } = parseTemplateReference(reference);
    if (asked !== undefined && asked !== namespace) return undefined;
    const byId = asked === undefined && tag === DEFAULT_TAG ? ledger.snapshots.get(name) : undefined;
    return byId ?? ledger.snapshots.byName({ alias: name, tag });
  }

  get(reference: string): SnapshotRecord {
    const found = this.find(reference);
    if (found !== undefined) return found;
    throw new AenvError('snapshot_not_found', `snapshot '${reference.slice(0, 256)}' not found`);
  }

  list(query: SnapshotQuery): SnapshotPage {
    return this.#options.ledger.snapshots.list(query);
  }

  requireFree({ alias }: SnapshotName): void {
    if (this.#options.ledger.templates.byAlias(alias) === undefined) return;
    throw new AenvError('invalid_request', `body.name: '${alias}' is the name of a template`, {
      remediation: 'Choose another name for the snapshot.',
    });
  }

  usage(): SnapshotUsage {
    return this.#options.ledger.snapshots.usage();
  }

  add(snapshot: SnapshotRecord): void {
    this.#options.ledger.snapshots.add(snapshot);
  }

  /** A sandbox that is being made has its row before it needs the snapshot, so nobody comes between the two steps. */
  async remove(reference: string): Promise<boolean> {
    const { ledger, checkpoints, log } = this.#options;
    const snapshot = this.find(reference);
    if (snapshot === undefined) return false;
    const { templateId, checkpointId } = snapshot;
    const users = ledger.sandboxes
      .live()
      .filter((sandbox) => sandbox.templateId === templateId)
      .map(({ sandboxId }) => sandboxId);
    if (users.length > 0) {
      const more = users.length > SHOWN ? ` and ${users.length - SHOWN} more` : '';
      const shown = users.slice(0, SHOWN).join(', ');
      throw new AenvError('snapshot_in_use', `snapshot '${reference}' is used by ${shown}${more}`, {
        details: { sandboxes: users },
      });
    }
    ledger.snapshots.remove(templateId);
    log.info('snapshot removed', { templateId, checkpointId });
    // From here on it is gone for everybody; what could not be removed goes at the next start.
    await checkpoints.remove(checkpointId).catch((error: unknown) => {
      log.error('the files of a removed snapshot are still there', { templateId, checkpointId, error });
    });
    return true;
  }

  async verify(reference: string): Promise<SnapshotVerification> {
    return await this.#options.repository.verify(this.get(reference).checkpointId);
  }
}
