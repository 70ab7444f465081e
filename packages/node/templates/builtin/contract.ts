import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { StartState, TemplateSource } from '../contract.ts';
import type { BuiltinTemplate } from '../register.ts';

export interface BuildOptions {
  /** content-addressed cache */
  readonly assetsDir: string;
  /** where the disk's layers are kept */
  readonly layersDir: string;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/** A template that is built when somebody asks for it. */
export interface BuildableTemplate {
  readonly template: BuiltinTemplate;
  /** From the cache what is there already. @throws AenvError of the packages, the disk and the host; the signal's reason */
  build(options: BuildOptions): Promise<{ readonly source: TemplateSource; readonly start: StartState }>;
}
